// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"testing"
	"time"
)

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
		"2030-13-01T12:00:00Z":           {"no such month", time.Time{}},
		"":                               {"nothing", time.Time{}},
	} {
		got, ok := timeOf(text)
		if ok != !tt.want.IsZero() || ok && !got.Equal(tt.want) {
			t.Errorf("%q: %s, %t; want %s (%s)", text, got, ok, tt.want, tt.reason)
		}
	}
}
