// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestInteger verifies integers in every notation of RFC 8259, section 6.
func TestInteger(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, number string
		want           int64
		problem        string
	}{
		"Digits":          {"the usual form", "1000", 1000, ""},
		"Point":           {"serializers of floating numbers write it", "10.0", 10, ""},
		"ManyZeros":       {"zeros behind the point are no fraction", "7.000000000000000000000000", 7, ""},
		"Exponent":        {"the same number, shorter", "1e3", 1000, ""},
		"CapitalExponent": {"in capitals and with a sign", "1E+2", 100, ""},
		"PointExponent":   {"the point moves", "1.5e1", 15, ""},
		"Down":            {"a negative exponent may leave a whole number", "1500e-2", 15, ""},
		"ZerosBefore":     {"an exponent may have zeros before it", "2e+0003", 2000, ""},
		"Greatest":        {"every digit counts, also beyond 2^53", "9223372036854775807", 1<<63 - 1, ""},
		"GreatestShort":   {"in every notation", "922337203685477580.7e1", 1<<63 - 1, ""},
		"One":             {"the least that is taken here", "0.001e3", 1, ""},
		"Zero":            {"zero is a number", "0", 0, "must be at least 1"},
		"MinusZero":       {"and has no sign", "-0", 0, "must be at least 1"},
		"MinusZeroPoint":  {"in any notation", "-0.0e5", 0, "must be at least 1"},
		"ZeroVast":        {"a power of nothing is nothing", "0e99999999999999999999", 0, "must be at least 1"},
		"Negative":        {"it is read, and too small", "-1e2", 0, "must be at least 1"},
		"NegativeVast":    {"too small, whatever it is", "-1e400", 0, "must be at least 1"},
		"Fraction":        {"a part of a byte is none", "10.5", 0, "must be a whole number below 2^63"},
		"FractionDown":    {"so is this", "1e-1", 0, "must be a whole number below 2^63"},
		"FractionDeep":    {"so is this, at no cost", "1e-99999999999999999999", 0, "must be a whole number below 2^63"},
		"Beyond":          {"one more than the greatest", "9223372036854775808", 0, "must be a whole number below 2^63"},
		"Vast":            {"at no cost", "1e99999999999999999999", 0, "must be a whole number below 2^63"},
		"Long":            {"many digits are beyond it, too", strings.Repeat("9", 100_000), 0, "must be a whole number below 2^63"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := Parse([]byte(`{"n":` + tc.number + `}`))
			if err != nil {
				t.Fatal(err)
			}
			got := body.Field("n").Integer(1)
			problems, _ := body.Problems()
			if said := strings.Join(problems, "; "); got != tc.want || strings.TrimPrefix(said, "n: ") != tc.problem {
				t.Errorf("%s: %.40s is %d, %q, want %d, %q", tc.reason, tc.number, got, said, tc.want, tc.problem)
			}
		})
	}
}

// plainNumber matches a JSON number whose exponent math/big can expand.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9]\d{0,999})(\.\d{1,999})?([eE][+-]?\d{1,3})?$`)

// FuzzWhole compares wholeOf with rational numbers of arbitrary precision.
func FuzzWhole(f *testing.F) {
	for _, seed := range []string{"0", "-0", "1.0", "1e1", "1E+2", "10.0e-1", "0.001e3", "-12.50e1", "9223372036854775807", "-9223372036854775808", "9223372036854775808.0", "1e19", "1e-1", "0e999", "1.e1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, number string) {
		if !json.Valid([]byte(number)) || !plainNumber.MatchString(number) {
			return
		}
		want, ok := new(big.Rat).SetString(number)
		if !ok {
			t.Fatalf("math/big does not read %s", number)
		}
		n, whole, fits := wholeOf([]byte(number))
		if whole != want.IsInt() {
			t.Fatalf("%s is whole: %t", number, whole)
		}
		if !whole {
			return
		}
		if fits != want.Num().IsInt64() || fits && strconv.FormatInt(n, 10) != want.Num().String() || !fits && (n > 0) != (want.Sign() > 0) {
			t.Errorf("%s is read as %d, which fits: %t", number, n, fits)
		}
	})
}

func TestTimeOf(t *testing.T) {
	t.Parallel()
	noon := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, tt := range map[string]struct {
		reason string
		want   time.Time
	}{
		"2030-01-31T12:00:00Z":           {"as the document says it", noon},
		"2030-01-31t12:00:00z":           {"RFC 3339 takes small letters", noon},
		"2030-01-31T12:00:00.5Z":         {"fractions may have any length", noon.Add(time.Second / 2)},
		"2030-01-31T12:00:00.500000000Z": {"fractions may have any length", noon.Add(time.Second / 2)},
		"2030-01-31T13:30:00+01:30":      {"an offset", noon},
		"2030-01-30T12:01:00-23:59":      {"the greatest offset", noon},
		"2030-01-31T12:00:00-00:00":      {"an offset that is not known", noon},
		"2030-01-31T23:59:60Z":           {"a leap second is the one that follows", noon.Add(12 * time.Hour)},
		"2030-02-01T00:59:60.5+01:00":    {"a leap second elsewhere", noon.Add(12*time.Hour + time.Second/2)},
		"2030-01-30T23:59:60Z":           {"a leap second stands at the end of a month", time.Time{}},
		"2030-01-31T12:00:60Z":           {"a leap second stands at midnight", time.Time{}},
		"2030-01-31T9:00:00Z":            {"an hour has two digits", time.Time{}},
		"2030-01-31T12:00:00,5Z":         {"ISO 8601's comma", time.Time{}},
		"2030-01-31 12:00:00Z":           {"a blank for the T", time.Time{}},
		"2030-01-31T12:00:00+24:00":      {"an offset of a day", time.Time{}},
		"2030-01-31T12:00:00+23:60":      {"sixty minutes", time.Time{}},
		"2030-01-31T24:00:00Z":           {"the hour 24", time.Time{}},
		"2030-01-31T12:00Z":              {"no seconds", time.Time{}},
		"2030-01-31T12:00:00":            {"no offset", time.Time{}},
		"2030-01-31T12:00:00.Z":          {"a point without digits", time.Time{}},
		"20300131T120000Z":               {"ISO 8601's basic form", time.Time{}},
		"2030-02-30T12:00:00Z":           {"no such day", time.Time{}},
		"99999-01-31T12:00:00Z":          {"a year has four digits", time.Time{}},
		"-0001-01-31T12:00:00Z":          {"nor a sign", time.Time{}},
		"2030-13-01T12:00:00Z":           {"no such month", time.Time{}},
		"":                               {"nothing", time.Time{}},
	} {
		got, ok := ParseTime(text)
		if ok != !tt.want.IsZero() || ok && !got.Equal(tt.want) {
			t.Errorf("%q: %s, %t; want %s (%s)", text, got, ok, tt.want, tt.reason)
		}
	}
}
