// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

func TestBetween(t *testing.T) {
	t.Parallel()
	x := postindex.New()
	for i, s := range []postindex.Summary{
		at("a", 0), at("b", 10), at("c", 10), withStatus(at("d", 20), v1alpha1.PhaseDraft), withStatus(at("gone", 15), v1alpha1.PhaseCancelled), at("e", 30),
	} {
		x.Upsert(team, s, uint64(i+1))
	}
	for name, tc := range map[string]struct {
		reason   string
		from, to int // seconds
		status   v1alpha1.PostPhase
		platform v1alpha1.Platform
		limit    int
		want     []string
		more     bool
	}{
		"All":       {"newest first, equal times by id, and no cancelled ones", 0, 31, "", "", 10, []string{"e", "d", "b", "c", "a"}, false},
		"HalfOpen":  {"the end belongs to the next range, so that two ranges show nothing twice", 10, 20, "", "", 10, []string{"b", "c"}, false},
		"Next":      {"the beginning belongs to it", 20, 30, "", "", 10, []string{"d"}, false},
		"Full":      {"exactly as many as asked for", 0, 31, "", "", 5, []string{"e", "d", "b", "c", "a"}, false},
		"More":      {"there is one more", 0, 31, "", "", 4, []string{"e", "d", "b", "c"}, true},
		"Draft":     {"of one state", 0, 31, v1alpha1.PhaseDraft, "", 10, []string{"d"}, false},
		"Platform":  {"of one platform", 0, 11, "", v1alpha1.PlatformX, 10, []string{"b", "c", "a"}, false},
		"Nothing":   {"of another", 0, 31, "", v1alpha1.PlatformTikTok, 10, []string{}, false},
		"Before":    {"nothing lies there", -20, 0, "", "", 10, []string{}, false},
		"After":     {"nor there", 31, 40, "", "", 10, []string{}, false},
		"Empty":     {"nor within no time", 10, 10, "", "", 10, []string{}, false},
		"Backwards": {"nor before the beginning", 20, 10, "", "", 10, []string{}, false},
	} {
		found, more := x.Between(team, &postindex.Range{
			From: epoch.Add(time.Duration(tc.from) * time.Second), To: epoch.Add(time.Duration(tc.to) * time.Second),
			Status: tc.status, Platform: tc.platform, Max: tc.limit,
		})
		if diff := gocmp.Diff(tc.want, ids(found)); diff != "" || more != tc.more {
			t.Errorf("%s: %s: more is %v\n%s", name, tc.reason, more, diff)
		}
	}
	if found, more := x.Between("nobody", &postindex.Range{From: epoch, To: epoch.Add(time.Hour), Max: 1}); found != nil || more {
		t.Errorf("another namespace has %v", found)
	}
}

// TestBetweenIsAPartOfTheList verifies that a range equals the part of the whole list within it.
func TestBetweenIsAPartOfTheList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := postindex.New()
		for i := range rapid.IntRange(0, 60).Draw(t, "posts") {
			s := at(fmt.Sprint("p", i), rapid.IntRange(0, 20).Draw(t, "second"))
			s.Status = rapid.SampledFrom(phases).Draw(t, "status")
			s.Platforms[0].Mark = rapid.SampledFrom(marks).Draw(t, "mark")
			x.Upsert(team, s, uint64(i+1))
		}
		r := postindex.Range{
			From:      epoch.Add(time.Duration(rapid.IntRange(-1, 21).Draw(t, "from")) * time.Second),
			To:        epoch.Add(time.Duration(rapid.IntRange(-1, 22).Draw(t, "to")) * time.Second),
			Undecided: rapid.SampledFrom([]postindex.UndecidedFilter{postindex.IncludeUndecided, postindex.OnlyUndecided}).Draw(t, "asked"),
			Max:       rapid.IntRange(1, 70).Draw(t, "max"),
		}
		list, _ := x.List(team, postindex.Query{Page: 1, Limit: 100})
		want := ids(slices.DeleteFunc(slices.Clone(list), func(s postindex.Summary) bool {
			return s.DisplayAt.Before(r.From) || !s.DisplayAt.Before(r.To) || !passes(r.Undecided, &s)
		}))
		beyond := len(want) > r.Max
		found, more := x.Between(team, &r)
		if diff := gocmp.Diff(want[:min(r.Max, len(want))], ids(found)); diff != "" || more != beyond {
			t.Fatalf("more is %v, want %v\n%s", more, beyond, diff)
		}
		counts := postindex.Counts{Status: map[v1alpha1.PostPhase]int{}, Undecided: map[v1alpha1.PostPhase]int{}}
		for _, s := range list {
			counts.Status[s.Status]++
			if s.Platforms[0].Mark == v1alpha1.MarkUndecided {
				counts.Undecided[s.Status]++
			}
		}
		if got := x.Counts(team); got.All() != len(list) || got.AllUndecided() > got.All() {
			t.Fatalf("the counts make %d posts, %d of them asked about, and there are %d", got.All(), got.AllUndecided(), len(list))
		}
		if diff := gocmp.Diff(counts, x.Counts(team)); diff != "" {
			t.Fatalf("counts -want +got:\n%s", diff)
		}
	})
}
