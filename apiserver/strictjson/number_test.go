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
		"Digits":          {"an ordinary number", "1000", 1000, ""},
		"Point":           {"serializers of floating-point numbers write it", "10.0", 10, ""},
		"ManyZeros":       {"trailing zeros are not a fraction", "7.000000000000000000000000", 7, ""},
		"Exponent":        {"an exponent is a shorter form", "1e3", 1000, ""},
		"CapitalExponent": {"the exponent may be upper-case and signed", "1E+2", 100, ""},
		"PointExponent":   {"the exponent shifts the point", "1.5e1", 15, ""},
		"Down":            {"a negative exponent can result in a whole number", "1500e-2", 15, ""},
		"ZerosBefore":     {"exponents may have leading zeros", "2e+0003", 2000, ""},
		"Greatest":        {"all digits count, beyond 2^53 as well", "9223372036854775807", 1<<63 - 1, ""},
		"GreatestShort":   {"any notation is accepted", "922337203685477580.7e1", 1<<63 - 1, ""},
		"One":             {"the smallest accepted number", "0.001e3", 1, ""},
		"Zero":            {"zero is a number", "0", 0, "must be at least 1"},
		"MinusZero":       {"-0 equals 0", "-0", 0, "must be at least 1"},
		"MinusZeroPoint":  {"-0 equals 0 in any notation", "-0.0e5", 0, "must be at least 1"},
		"ZeroVast":        {"0 with any exponent is 0", "0e99999999999999999999", 0, "must be at least 1"},
		"Negative":        {"the number is valid, but too small", "-1e2", 0, "must be at least 1"},
		"NegativeVast":    {"the number is too small for any exponent", "-1e400", 0, "must be at least 1"},
		"Fraction":        {"the value is not a whole number", "10.5", 0, "must be a whole number below 2^63"},
		"FractionDown":    {"a negative exponent can result in a fraction", "1e-1", 0, "must be a whole number below 2^63"},
		"FractionDeep":    {"a huge negative exponent is cheap", "1e-99999999999999999999", 0, "must be a whole number below 2^63"},
		"Beyond":          {"the maximum plus one", "9223372036854775808", 0, "must be a whole number below 2^63"},
		"Vast":            {"a huge exponent is cheap", "1e99999999999999999999", 0, "must be a whole number below 2^63"},
		"Long":            {"many digits exceed the maximum", strings.Repeat("9", 100_000), 0, "must be a whole number below 2^63"},
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
			t.Fatalf("%s is a whole number: %t", number, whole)
		}
		if !whole {
			return
		}
		if fits != want.Num().IsInt64() || fits && strconv.FormatInt(n, 10) != want.Num().String() || !fits && (n > 0) != (want.Sign() > 0) {
			t.Errorf("%s is parsed as %d, which fits: %t", number, n, fits)
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
		"2030-01-31T12:00:00Z":           {"the documented format", noon},
		"2030-01-31t12:00:00z":           {"RFC 3339 allows lower case", noon},
		"2030-01-31T12:00:00.5Z":         {"fractions may have any length", noon.Add(time.Second / 2)},
		"2030-01-31T12:00:00.500000000Z": {"fractions may have any length", noon.Add(time.Second / 2)},
		"2030-01-31T13:30:00+01:30":      {"an offset", noon},
		"2030-01-30T12:01:00-23:59":      {"the largest offset", noon},
		"2030-01-31T12:00:00-00:00":      {"an unknown offset", noon},
		"2030-01-31T23:59:60Z":           {"a leap second counts as the following second", noon.Add(12 * time.Hour)},
		"2030-02-01T00:59:60.5+01:00":    {"a leap second with an offset", noon.Add(12*time.Hour + time.Second/2)},
		"2030-01-30T23:59:60Z":           {"leap seconds only occur at the end of a month", time.Time{}},
		"2030-01-31T12:00:60Z":           {"leap seconds only occur at midnight", time.Time{}},
		"2030-01-31T9:00:00Z":            {"hours have two digits", time.Time{}},
		"2030-01-31T12:00:00,5Z":         {"ISO 8601 allows a comma, RFC 3339 does not", time.Time{}},
		"2030-01-31 12:00:00Z":           {"a space instead of the T", time.Time{}},
		"2030-01-31T12:00:00+24:00":      {"offsets are less than a day", time.Time{}},
		"2030-01-31T12:00:00+23:60":      {"sixty minutes", time.Time{}},
		"2030-01-31T24:00:00Z":           {"the hour 24", time.Time{}},
		"2030-01-31T12:00Z":              {"no seconds", time.Time{}},
		"2030-01-31T12:00:00":            {"no offset", time.Time{}},
		"2030-01-31T12:00:00.Z":          {"a decimal point needs digits", time.Time{}},
		"20300131T120000Z":               {"ISO 8601's basic form", time.Time{}},
		"2030-02-30T12:00:00Z":           {"no such day", time.Time{}},
		"99999-01-31T12:00:00Z":          {"years have four digits", time.Time{}},
		"-0001-01-31T12:00:00Z":          {"years have no sign", time.Time{}},
		"2030-13-01T12:00:00Z":           {"no such month", time.Time{}},
		"":                               {"empty", time.Time{}},
	} {
		got, ok := ParseTime(text)
		if ok != !tt.want.IsZero() || ok && !got.Equal(tt.want) {
			t.Errorf("%q: %s, %t; want %s (%s)", text, got, ok, tt.want, tt.reason)
		}
	}
}
