// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, tc := range map[string]struct {
		reason string
		want   time.Duration
		wrong  bool
	}{
		"7d":      {"a number of days", 7 * day, false},
		"1d12h":   {"days and hours", 36 * time.Hour, false},
		"36h30m":  {"a duration that metav1.Duration accepts", 36*time.Hour + 30*time.Minute, false},
		"0s":      {"zero seconds", 0, false},
		"0d":      {"zero days", 0, false},
		"9999d":   {"the maximum of the schema", 9999 * day, false},
		"12h1d":   {"days come before hours", 0, true},
		"1.5d":    {"a fraction of a day", 0, true},
		"-1h":     {"a negative duration", 0, true},
		"d":       {"a number is missing", 0, true},
		"":        {"an empty string is not a duration", 0, true},
		"10000dh": {"a unit without a number", 0, true},
	} {
		var got Duration
		err := json.Unmarshal([]byte(`"`+text+`"`), &got)
		if (err != nil) != tc.wrong || got.Duration != tc.want {
			t.Errorf("%s: %q is %s (%v), want %s", tc.reason, text, got, err, tc.want)
		}
	}
	if data, err := json.Marshal(Duration{Duration: 7 * day}); err != nil || string(data) != `"168h0m0s"` {
		t.Errorf("seven days are formatted as %s (%v), which older versions cannot parse", data, err)
	}
}
