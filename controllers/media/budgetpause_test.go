// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"testing"
	"time"
)

func TestPauseOf(t *testing.T) {
	for name, tc := range map[string]struct {
		why          string
		waited, want time.Duration
	}{
		"a new one":           {"places come back within minutes", 0, 30 * time.Second},
		"a clock that is off": {"it was made in the future", -time.Hour, 30 * time.Second},
		"some minutes":        {"it is looked at a fifth later than it might be", 8 * time.Minute, 2 * time.Minute},
		"a day":               {"a hundred thousand such take 170 looks a second, and not 3,400", 24 * time.Hour, 10 * time.Minute},
	} {
		if got := budgetPause(tc.waited); got != tc.want {
			t.Errorf("%s: %s instead of %s: %s", name, got, tc.want, tc.why)
		}
	}
}
