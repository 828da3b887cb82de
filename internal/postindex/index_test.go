// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/postindex"
)

const team = "team-a"

var epoch = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

func at(id string, second int) postindex.Summary {
	return postindex.Summary{
		ID: id, Title: "title of " + id, Status: v1alpha1.PhaseScheduled, Category: v1alpha1.CategoryText,
		Platforms: []postindex.PlatformStatus{{Platform: v1alpha1.PlatformX, Status: v1alpha1.PhaseScheduled}},
		DisplayAt: epoch.Add(time.Duration(second) * time.Second),
	}
}

func withStatus(s postindex.Summary, status v1alpha1.PostPhase) postindex.Summary {
	s.Status = status
	return s
}

func ids(page []postindex.Summary) []string {
	out := []string{}
	for _, s := range page {
		out = append(out, s.ID)
	}
	return out
}

func all(x *postindex.Index) []string {
	page, _ := x.List(team, postindex.Query{Page: 1, Limit: 100})
	return ids(page)
}

func TestMergesByResourceVersion(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		feed   func(x *postindex.Index)
		want   []string
	}{
		"NewestFirstTiesByID": {
			reason: "the list is ordered by display time, newest first, and equal times by id",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("b", 1), 1)
				x.Upsert(team, at("c", 2), 2)
				x.Upsert(team, at("a", 1), 3)
			},
			want: []string{"c", "a", "b"},
		},
		"OlderEventIsPassedOver": {
			reason: "an own write that the watch has not told yet must not be taken back",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("a", 1), 1)
				x.Upsert(team, at("b", 2), 2)
				x.Upsert(team, at("a", 9), 7)
				x.Upsert(team, at("a", 0), 5)
			},
			want: []string{"a", "b"},
		},
		"OwnWriteAfterDeletionDoesNotRevive": {
			reason: "the watch may tell create and delete before the answer to the create is taken in",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("a", 1), 5)
				x.Progress(5)
				x.Delete(team, "a", 6)
				x.Progress(6)
				x.Upsert(team, at("a", 1), 5)
			},
			want: []string{},
		},
		"OwnWriteThatWatchAlreadyTold": {
			reason: "the same version twice is one post",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("a", 1), 5)
				x.Progress(5)
				x.Upsert(team, at("a", 1), 5)
			},
			want: []string{"a"},
		},
		"CancelledIsNotListed": {
			reason: "cancelled posts appear in no list",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("a", 1), 1)
				x.Upsert(team, withStatus(at("a", 1), v1alpha1.PhaseCancelled), 2)
			},
			want: []string{},
		},
		"OlderEventDoesNotReviveCancelled": {
			reason: "the watch tells the create after the cancel was taken in as an own write",
			feed: func(x *postindex.Index) {
				x.Upsert(team, withStatus(at("a", 1), v1alpha1.PhaseCancelled), 9)
				x.Upsert(team, at("a", 1), 4)
				x.Progress(4)
				x.Upsert(team, withStatus(at("a", 1), v1alpha1.PhaseCancelled), 9)
				x.Progress(9)
				x.Upsert(team, at("a", 1), 4)
			},
			want: []string{},
		},
		"SameNameCreatedAnew": {
			reason: "a name may be used again once its post is gone",
			feed: func(x *postindex.Index) {
				x.Upsert(team, withStatus(at("a", 1), v1alpha1.PhaseCancelled), 4)
				x.Progress(4)
				x.Delete(team, "a", 5)
				x.Progress(5)
				x.Upsert(team, at("a", 1), 6)
			},
			want: []string{"a"},
		},
		"DeletionThatIsOlderThanTheEntry": {
			reason: "a name that was deleted and created anew by this process stays",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("a", 1), 8)
				x.Delete(team, "a", 7)
			},
			want: []string{"a"},
		},
		"RelistKeepsNewerOwnWrites": {
			reason: "the list was taken before the own write landed",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("own", 3), 12)
				x.Upsert(team, at("gone", 1), 5)
				x.Progress(5)
				x.Replace([]postindex.Item{{Namespace: team, Summary: at("listed", 2), Version: 7}}, 10)
			},
			want: []string{"own", "listed"},
		},
		"RelistDoesNotReviveCancelled": {
			reason: "the list was taken before the own cancel landed",
			feed: func(x *postindex.Index) {
				x.Upsert(team, withStatus(at("a", 1), v1alpha1.PhaseCancelled), 12)
				x.Replace([]postindex.Item{{Namespace: team, Summary: at("a", 1), Version: 7}}, 10)
			},
			want: []string{},
		},
		"RelistLeavesOutCancelled": {
			reason: "cancelled posts appear in no list",
			feed: func(x *postindex.Index) {
				x.Replace([]postindex.Item{
					{Namespace: team, Summary: withStatus(at("a", 1), v1alpha1.PhaseCancelled), Version: 1},
					{Namespace: team, Summary: at("b", 1), Version: 2},
				}, 10)
			},
			want: []string{"b"},
		},
		"RelistAfterRestoredBackup": {
			reason: "a restored Kubernetes store counts from an older version again; its list is what is true",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("lost", 1), 100)
				x.Progress(100)
				x.Replace([]postindex.Item{{Namespace: team, Summary: at("kept", 1), Version: 40}}, 50)
				x.Upsert(team, at("new", 2), 51)
			},
			want: []string{"new", "kept"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := postindex.New()
			tc.feed(x)
			if diff := gocmp.Diff(tc.want, all(x)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if x.Len() != len(tc.want) {
				t.Errorf("%s: Len() = %d, want %d", tc.reason, x.Len(), len(tc.want))
			}
		})
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	x := postindex.New()
	for i := range 5 {
		x.Upsert(team, at(fmt.Sprintf("p%d", i), i), uint64(i+1))
	}
	x.Upsert("team-b", at("other", 9), 9)
	tests := map[string]struct {
		reason string
		query  postindex.Query
		want   []string
		total  int
	}{
		"First":          {"the newest come first", postindex.Query{Page: 1, Limit: 2}, []string{"p4", "p3"}, 5},
		"Last":           {"the last page may be short", postindex.Query{Page: 3, Limit: 2}, []string{"p0"}, 5},
		"Beyond":         {"a page beyond the last is empty but tells the total", postindex.Query{Page: 4, Limit: 2}, []string{}, 5},
		"FarBeyond":      {"a page number near the greatest integer must not overflow", postindex.Query{Page: math.MaxInt, Limit: 100}, []string{}, 5},
		"FarAndFiltered": {"nor with a filter", postindex.Query{Status: v1alpha1.PhaseScheduled, Page: math.MaxInt, Limit: 100}, []string{}, 5},
		"NoMatch":        {"a filter that nothing matches", postindex.Query{Status: v1alpha1.PhaseFailed, Page: 1, Limit: 2}, []string{}, 0},
		"Platform":       {"a filter by platform", postindex.Query{Platform: v1alpha1.PlatformX, Page: 2, Limit: 3}, []string{"p1", "p0"}, 5},
		"OtherPlatform":  {"no target on that platform", postindex.Query{Platform: v1alpha1.PlatformThreads, Page: 1, Limit: 3}, []string{}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, total := x.List(team, tc.query)
			if diff := gocmp.Diff(tc.want, ids(page)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if total != tc.total {
				t.Errorf("%s: total = %d, want %d", tc.reason, total, tc.total)
			}
		})
	}
	if page, total := x.List("team-c", postindex.Query{Page: 1, Limit: 5}); len(page) != 0 || total != 0 {
		t.Errorf("a namespace without posts lists %v, total %d", page, total)
	}
}

// naive is the same thing without any structure: the latest version of every
// post, sorted when it is asked.
type naive map[string]item

type item struct {
	postindex.Summary
	version uint64
}

func (n naive) list(q postindex.Query) ([]string, int) {
	var match []item
	for _, i := range n {
		ok := q.Platform == "" || slices.ContainsFunc(i.Platforms, func(p postindex.PlatformStatus) bool { return p.Platform == q.Platform })
		if ok && i.Status != v1alpha1.PhaseCancelled && (q.Status == "" || i.Status == q.Status) {
			match = append(match, i)
		}
	}
	slices.SortFunc(match, func(a, b item) int {
		if c := b.DisplayAt.Compare(a.DisplayAt); c != 0 {
			return c
		}
		return cmp.Compare(a.ID, b.ID)
	})
	out := []string{}
	for i := (q.Page - 1) * q.Limit; i < len(match) && len(out) < q.Limit; i++ {
		out = append(out, match[i].ID)
	}
	return out, len(match)
}

// TestAgainstNaive feeds random histories, as a watch and own writes would
// tell them, to the index and to a plain map, and compares what they list.
func TestAgainstNaive(t *testing.T) {
	t.Parallel()
	phases := []v1alpha1.PostPhase{v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled, v1alpha1.PhasePosted, v1alpha1.PhaseFailed, v1alpha1.PhaseCancelled}
	platforms := []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformFacebook}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		x, model := postindex.New(), naive{}
		var pending []func() // events that the watch has yet to tell, in order
		version := uint64(0)
		write := func(id string) {
			version++
			s := at(id, rng.IntN(12))
			s.Status = phases[rng.IntN(len(phases))]
			s.Platforms = nil
			for range 1 + rng.IntN(2) {
				s.Platforms = append(s.Platforms, postindex.PlatformStatus{Platform: platforms[rng.IntN(len(platforms))], Status: s.Status})
			}
			v := version
			model[id] = item{s, v}
			pending = append(pending, func() { x.Upsert(team, s, v); x.Progress(v) })
			if rng.IntN(2) == 0 {
				x.Upsert(team, s, v) // an own write, ahead of the watch
			}
		}
		for range 300 {
			id := fmt.Sprintf("p%02d", rng.IntN(40))
			switch op := rng.IntN(10); {
			case op < 6:
				write(id)
			case op == 6:
				version++
				v := version
				delete(model, id)
				pending = append(pending, func() { x.Delete(team, id, v); x.Progress(v) })
			case op == 7 && len(pending) > 0:
				var items []postindex.Item
				for _, i := range model {
					items = append(items, postindex.Item{Namespace: team, Summary: i.Summary, Version: i.version})
				}
				x.Replace(items, version)
				pending = nil
			default:
				for range rng.IntN(len(pending) + 1) {
					pending[0]()
					pending = pending[1:]
				}
			}
		}
		for _, tell := range pending {
			tell()
		}
		for _, q := range []postindex.Query{
			{Page: 1, Limit: 100},
			{Page: 2, Limit: 7},
			{Page: 1, Limit: 5, Status: v1alpha1.PhasePosted},
			{Page: 2, Limit: 3, Platform: v1alpha1.PlatformThreads},
			{Page: 1, Limit: 50, Status: v1alpha1.PhaseDraft, Platform: v1alpha1.PlatformX},
		} {
			page, total := x.List(team, q)
			want, wantTotal := model.list(q)
			if diff := gocmp.Diff(want, ids(page)); diff != "" || total != wantTotal {
				t.Fatalf("seed %d, %+v: total %d, want %d; -want +got:\n%s", seed, q, total, wantTotal, diff)
			}
		}
	}
}
