// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/test/storetest"
)

// both is a namespace whose posts are in the cluster, in the archive, or in both.
type both struct {
	index   *postindex.Index
	writer  *lists.Writer
	reader  *lists.Reader
	view    *lists.View
	version uint64
	// live holds the posts in the cluster, kept the posts in the archive, and left the posts that have left the cluster
	// since the archive was last read.
	live, kept, left map[string]postindex.Summary
	// shown holds the posts of kept that the index knows.
	shown map[string]postindex.Summary
}

func newBoth() *both {
	files := storetest.NewMemory(time.Now)
	b := &both{
		index: postindex.New(), writer: lists.NewWriter(files, clocktesting.NewFakePassiveClock(epoch)), reader: lists.NewReader(files, 1<<20),
		live: map[string]postindex.Summary{}, kept: map[string]postindex.Summary{}, left: map[string]postindex.Summary{},
		shown: map[string]postindex.Summary{},
	}
	b.writer.Shrink(6, 4, 8)
	b.index.RetainDeleted()
	return b
}

var team1 = lists.Team{Namespace: team, Name: "a"}

func (b *both) draw(t *rapid.T) postindex.Summary {
	s := at(fmt.Sprint("p", rapid.IntRange(0, 60).Draw(t, "id")), rapid.IntRange(0, 30).Draw(t, "second"))
	s.Status = rapid.SampledFrom(phases).Draw(t, "status")
	s.Platforms = nil
	for _, p := range targetPlatforms[:rapid.IntRange(1, len(targetPlatforms)).Draw(t, "targets")] {
		s.Platforms = append(s.Platforms, postindex.PlatformStatus{Platform: p, Status: s.Status})
	}
	if rapid.Bool().Draw(t, "asked") && s.Status != v1alpha1.PhasePosted {
		s.Platforms[0].Status, s.Platforms[0].Mark = v1alpha1.PhaseFailed, v1alpha1.MarkUndecided
	}
	return s
}

func (b *both) put(t *rapid.T) {
	s := b.draw(t)
	b.version++
	b.index.Upsert(team, s, b.version)
	b.live[s.ID] = s
	delete(b.left, s.ID)
}

func isFinished(s *postindex.Summary) bool {
	return s.Status == v1alpha1.PhasePosted || s.Status == v1alpha1.PhaseFailed
}

// uidOf returns the UID of a post: the outcome of a finished post never changes, so posts with different outcomes are
// different objects.
func uidOf(s *postindex.Summary) string {
	return fmt.Sprint(s.ID, s.DisplayAt.Unix(), s.Status, s.Platforms)
}

// archive adds finished posts in the cluster, and posts that left it earlier, to the archive. It deletes none.
func (b *both) archive(t *rapid.T) {
	some := map[string]postindex.Summary{}
	for id, s := range b.live {
		if isFinished(&s) && rapid.Bool().Draw(t, "archived "+id) {
			some[id] = s
		}
	}
	for range rapid.IntRange(0, 12).Draw(t, "others") {
		if s := b.draw(t); isFinished(&s) {
			some[s.ID] = s
		}
	}
	var entries []lists.Entry
	for id, s := range some {
		entries = append(entries, lists.Entry{
			Kind: lists.Kind{Status: s.Status, Category: s.Category, Targets: s.Platforms, Agent: s.Agent},
			Name: id, UID: uidOf(&s), Title: s.Title, DisplayAt: s.DisplayAt, FinishedAt: s.DisplayAt,
		})
	}
	slices.SortFunc(entries, func(x, y lists.Entry) int { return cmp.Compare(x.Name, y.Name) })
	if err := b.writer.Add(t.Context(), team1, entries); err != nil {
		t.Fatal(err)
	}
	maps.Copy(b.kept, some)
}

// remove deletes a post from the cluster, after archiving it if it is finished.
func (b *both) remove(t *rapid.T) {
	if len(b.live) == 0 {
		t.Skip("no posts")
	}
	s := b.live[rapid.SampledFrom(slices.Sorted(maps.Keys(b.live))).Draw(t, "post")]
	if isFinished(&s) {
		entry := lists.Entry{
			Kind: lists.Kind{Status: s.Status, Category: s.Category, Targets: s.Platforms, Agent: s.Agent},
			Name: s.ID, UID: uidOf(&s), Title: s.Title, DisplayAt: s.DisplayAt, FinishedAt: s.DisplayAt,
		}
		if err := b.writer.Add(t.Context(), team1, []lists.Entry{entry}); err != nil {
			t.Fatal(err)
		}
		b.kept[s.ID], b.left[s.ID] = s, s
	}
	b.version++
	b.index.Delete(team, s.ID, b.version)
	delete(b.live, s.ID)
}

func (b *both) expire(t *rapid.T) {
	before := epoch.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "before")) * time.Second)
	_, err := b.writer.Expire(t.Context(), team1, before, 10, func(_ context.Context, refs []lists.Ref) error {
		for _, ref := range refs {
			delete(b.kept, ref.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// refresh updates the index with the archive's content.
func (b *both) refresh(t *rapid.T) {
	left := b.index.RetainedSeq()
	view, err := b.reader.Open(t.Context(), team1, b.view)
	if err != nil {
		t.Fatal(err)
	}
	b.view = view
	b.index.SetArchive(team, view, left)
	b.shown, b.left = maps.Clone(b.kept), map[string]postindex.Summary{}
}

// evict removes the archive's content from the index, like an eviction from the cache; the next list reads it again.
func (b *both) evict(t *rapid.T) {
	b.index.SetArchive(team, nil, 0)
	b.view = nil
	b.refresh(t)
}

// complete reads the missing parts of a list, like package archived, and verifies that no segment is read twice.
func (b *both) complete(t *rapid.T, try func(rows map[lists.ID][]*lists.Row) postindex.Missing) {
	rows := map[lists.ID][]*lists.Row{}
	for range 30 {
		missing := try(rows)
		if missing.View == nil {
			return
		}
		for _, id := range missing.Segments {
			part, err := missing.View.Rows(t.Context(), id)
			if err != nil || rows[id] != nil {
				t.Fatalf("a segment that was read before: %v; %v", rows[id] != nil, err)
			}
			rows[id] = part
		}
		found := map[string]*lists.Sealed{}
		for _, name := range missing.Names {
			sealed, err := missing.View.Find(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			found[name] = sealed
		}
		b.index.SetSealed(team, missing.View, found)
	}
	t.Fatal("the list of missing posts has no end")
}

// want returns every post once: from the cluster, as it left the cluster, or from the archive.
func (b *both) want(q *postindex.Query) []postindex.Summary {
	all := map[string]postindex.Summary{}
	for id, s := range b.shown {
		s.Archived = true
		all[id] = s
	}
	maps.Copy(all, b.left)
	maps.Copy(all, b.live)
	var out []postindex.Summary
	for _, s := range all {
		if s.Status == v1alpha1.PhaseCancelled || q.Status != "" && s.Status != q.Status ||
			q.Platform != "" && !slices.ContainsFunc(s.Platforms, func(p postindex.PlatformStatus) bool { return p.Platform == q.Platform }) ||
			!passes(q.Undecided, &s) {
			continue
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(x, y postindex.Summary) int {
		return cmp.Or(y.DisplayAt.Compare(x.DisplayAt), cmp.Compare(x.ID, y.ID))
	})
	return out
}

func (b *both) check(t *rapid.T) {
	counts := postindex.Counts{Status: map[v1alpha1.PostPhase]int{}, Undecided: map[v1alpha1.PostPhase]int{}}
	for _, status := range append([]v1alpha1.PostPhase{""}, phases...) {
		for _, platform := range append([]v1alpha1.Platform{""}, targetPlatforms...) {
			q := postindex.Query{Status: status, Platform: platform, Limit: rapid.IntRange(1, 9).Draw(t, "limit")}
			want := b.want(&q)
			if n := len(want); platform == "" && status != "" && n > 0 {
				counts.Status[status] = n
			}
			b.checkPages(t, q, want)
			for _, q.Undecided = range undecidedFilters(status) {
				want := b.want(&q)
				if n := len(want); platform == "" && status != "" && n > 0 && q.Undecided == postindex.OnlyUndecided {
					counts.Undecided[status] = n
				}
				b.checkPages(t, q, want)
			}
		}
	}
	b.complete(t, func(map[lists.ID][]*lists.Row) postindex.Missing {
		got, missing := b.index.CountsAll(team)
		if missing.View == nil && !gocmp.Equal(got, counts) {
			t.Fatalf("counts are %v, want %v", got, counts)
		}
		return missing
	})
	b.checkSearch(t)
}

// checkSearch compares a page of a search, and the days that it spans, with a sorted slice.
func (b *both) checkSearch(t *rapid.T) {
	second := func(name string) time.Time {
		return epoch.Add(time.Duration(rapid.IntRange(-1, 31).Draw(t, name)) * time.Second)
	}
	q := drawSearch(t)
	want := b.want(&postindex.Query{Status: q.Status, Platform: q.Platform, Undecided: q.Undecided})
	b.complete(t, func(rows map[lists.ID][]*lists.Row) postindex.Missing {
		found, missing := b.index.Find(team, &q, rows)
		if missing.View == nil {
			compareFound(t, &q, want, &found)
		}
		return missing
	})
	bounds := []time.Time{second("first day"), second("second day"), second("third day")}
	slices.SortFunc(bounds, time.Time.Compare)
	slices.Reverse(want)
	b.complete(t, func(rows map[lists.ID][]*lists.Row) postindex.Missing {
		days, missing := b.index.Days(team, &q, bounds, rows)
		for i := range days {
			if missing.View != nil {
				break
			}
			all := within(want, bounds[i], bounds[i+1])
			if days[i].Total != len(all) || !gocmp.Equal(ids(days[i].Posts), ids(all[:min(q.Limit, len(all))])) {
				t.Fatalf("day %d of %v has %d posts, %v; want %v", i, bounds, days[i].Total, ids(days[i].Posts), ids(all))
			}
		}
		return missing
	})
}

func (b *both) checkPages(t *rapid.T, q postindex.Query, want []postindex.Summary) {
	for q.Page = 1; q.Page <= len(want)/q.Limit+2; q.Page++ {
		first := min((q.Page-1)*q.Limit, len(want))
		expected := want[first:min(first+q.Limit, len(want))]
		b.complete(t, func(rows map[lists.ID][]*lists.Row) postindex.Missing {
			page, total, missing := b.index.ListAll(team, q, rows)
			if missing.View != nil {
				return missing
			}
			if total != len(want) || !slices.EqualFunc(expected, page, same) {
				t.Fatalf("%+v: total %d, want %d, and the page -want +got:\n%s", q, total, len(want), gocmp.Diff(expected, page))
			}
			// A page of four posts spans at most three segments of four posts each; larger pages span proportionally more.
			if most := q.Limit/2 + 4; len(rows) > most+len(b.live) {
				t.Fatalf("%+v: %d segments were read", q, len(rows))
			}
			return missing
		})
	}
}

// TestWithArchive creates, deletes, archives and restores posts at random, and compares all pages of all lists with a
// sorted slice.
func TestWithArchive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newBoth()
		b.refresh(t)
		t.Repeat(map[string]func(*rapid.T){
			"put": b.put, "put again": b.put, "archive": b.archive, "remove": b.remove, "remove again": b.remove, "expire": b.expire,
			"look": b.refresh, "evict": b.evict, "": b.check,
		})
	})
}
