// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package suspension

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// at returns a time in minutes after noon.
func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

// listed returns suspensions, given in minutes: pairs of start and end, and a single start for one that is ongoing.
func listed(minutes ...int) (list []v1alpha1.Suspension) {
	for pair := range slices.Chunk(minutes, 2) {
		s := v1alpha1.Suspension{From: v1alpha1.NewTime(at(pair[0]))}
		if len(pair) == 2 {
			s.Until = v1alpha1.NewTimePtr(at(pair[1]))
		}
		list = append(list, s)
	}
	return list
}

// said is the inverse of listed.
func said(list []v1alpha1.Suspension) string {
	var all []string
	for _, s := range list {
		end := ""
		if s.Until != nil {
			end = fmt.Sprint(int(s.Until.Sub(noon).Minutes()))
		}
		all = append(all, fmt.Sprintf("%d-%s", int(s.From.Sub(noon).Minutes()), end))
	}
	return strings.Join(all, " ")
}

func TestEnter(t *testing.T) {
	many := make([]int, 0, 34)
	for i := range 16 {
		many = append(many, -100+6*i, -96+6*i)
	}
	many[9]++  // the fifth and the sixth are closest,
	many[21]++ // as are two later ones
	for name, tt := range map[string]struct {
		reason    string
		known     []v1alpha1.Suspension
		suspended bool
		want      string
	}{
		"never":                         {"a team without suspensions", nil, false, ""},
		"starts":                        {"a new suspension starts now", nil, true, "0-"},
		"lasts":                         {"a continuing suspension keeps its start", listed(-10), true, "-10-"},
		"ends":                          {"a suspension ends now", listed(-10), false, "-10-0"},
		"ends with a clock behind":      {"its length is not negative", listed(10), false, "10-10"},
		"starts again":                  {"both suspensions count", listed(-30, -20), true, "-30--20 0-"},
		"starts again immediately":      {"a bouncing switch is one suspension", listed(-30, 0), true, "-30-"},
		"starts before the last ended":  {"with a slow clock: times never overlap", listed(-30, 5), true, "-30-"},
		"ended within the deadline":     {"a post that was due in it may still be published", listed(-90, -60), false, "-90--60"},
		"ended before the deadline":     {"a post that was due in it was published or failed", listed(-90, -61), false, ""},
		"ended before another one":      {"the time of that one was not the posts' own", listed(-200, -160, -130, -40), false, "-130--40"},
		"ended just before another one": {"29 minutes passed between them, and 31 afterwards", listed(-200, -160, -131, -31), false, "-200--160 -131--31"},
		"long ago, with a current one":  {"61 minutes passed between them", listed(-200, -160, -99), true, "-99-"},
		"more than the maximum": {
			"two become one, so that no deadline is shorter than it should be", listed(many...), true,
			"-100--96 -94--90 -88--84 -82--78 -76--66 -64--60 -58--54 -52--48 -46--42 -40--35 -34--30 -28--24 -22--18 -16--12 -10--6 0-",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := said(tt.known)
			if got := said(Update(tt.known, tt.suspended, noon, time.Hour)); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
			}
			if after := said(tt.known); after != before {
				t.Errorf("the argument changed: %q was %q", after, before)
			}
		})
	}
}

func TestMove(t *testing.T) {
	for name, tt := range map[string]struct {
		reason          string
		deadline, since int
		list            []v1alpha1.Suspension
		want            int
		by              int
	}{
		"none":                     {"most deadlines are not extended", 60, 0, nil, 60, 0},
		"within":                   {"its length is added", 60, 0, listed(10, 40), 90, 40},
		"before":                   {"the post did not wait then", 60, 0, listed(-40, -10), 60, 0},
		"when the post became due": {"only the post's waiting time counts", 60, 0, listed(-40, 10), 70, 10},
		"after":                    {"the deadline had already passed", 60, 0, listed(61, 90), 60, 0},
		"from the deadline on":     {"the deadline had not passed", 60, 0, listed(60, 90), 90, 90},
		"beyond the deadline":      {"the complete time counts", 60, 0, listed(50, 300), 310, 300},
		"after another one":        {"the first one extends the deadline beyond the second's start", 60, 0, listed(50, 70, 75, 80), 85, 80},
		"counted before":           {"no time counts twice", 90, 40, listed(10, 40), 90, 0},
		"one counted, one not":     {"only the second counts", 90, 40, listed(10, 40, 50, 55), 95, 55},
		"a current one":            {"its length is unknown", 60, 0, listed(10), 60, 0},
		"one without a length":     {"a clock was set back", 60, 0, listed(10, 10), 60, 0},
		"a suspension that ended at the due time": {"its overlap is empty", 60, 0, listed(-10, 0), 60, 0},
	} {
		t.Run(name, func(t *testing.T) {
			moved, by := ShiftDeadline(at(tt.deadline), at(tt.since), tt.list)
			if !moved.Equal(at(tt.want)) {
				t.Errorf("%s: moved to %s, want %s", tt.reason, moved.Sub(noon), at(tt.want).Sub(noon))
			}
			if want := at(tt.by); by.IsZero() != (tt.by == 0) || tt.by != 0 && !by.Equal(want) {
				t.Errorf("%s: by %s, want %s", tt.reason, by, want)
			}
		})
	}
}

// TestMoveInParts checks that shifting several times gives the same result as shifting once.
func TestMoveInParts(t *testing.T) {
	list := listed(5, 20, 30, 90, 100, 130)
	whole, _ := ShiftDeadline(at(60), at(0), list)
	for n := range len(list) + 1 {
		moved, by := ShiftDeadline(at(60), at(0), list[:n])
		since := at(0)
		if !by.IsZero() {
			since = by
		}
		if moved, _ = ShiftDeadline(moved, since, list); !moved.Equal(whole) {
			t.Errorf("after %d parts: %s, want %s", n, moved.Sub(noon), whole.Sub(noon))
		}
	}
}

func TestSince(t *testing.T) {
	for reason, tt := range map[string]struct {
		list []v1alpha1.Suspension
		want time.Time
	}{
		"never suspended":            {nil, time.Time{}},
		"the last one has ended":     {listed(-30, -10), time.Time{}},
		"the last one has not ended": {listed(-30, -10, -5), at(-5)},
		"the only one has not ended": {listed(-5), at(-5)},
	} {
		if got := OngoingSince(tt.list); !got.Equal(tt.want) {
			t.Errorf("%s: got %s, want %s", reason, got, tt.want)
		}
	}
}

func TestForgotten(t *testing.T) {
	for reason, tt := range map[string]struct {
		list []v1alpha1.Suspension
		want time.Duration
	}{
		"never suspended":                        {nil, 0},
		"the current suspension remains":         {listed(-30, -10, -5), 0},
		"deadlines may depend on it for an hour": {listed(-30, -10), 50*time.Minute + time.Second},
		"overdue":                                {listed(-300, -200), time.Second},
	} {
		got := PruneAfter(tt.list, at(0), time.Hour)
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", reason, got, tt.want)
		}
		if left := Update(tt.list, OngoingSince(tt.list) != (time.Time{}), at(0).Add(got), time.Hour); got > 0 && len(left) > 0 {
			t.Errorf("%s: %d remain", reason, len(left))
		}
	}
}
