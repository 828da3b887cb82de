// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

var (
	phases = []v1alpha1.PostPhase{
		v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled, v1alpha1.PhaseProcessing, v1alpha1.PhasePosted, v1alpha1.PhaseFailed, v1alpha1.PhaseCancelled,
	}
	targetPlatforms = []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformBluesky, v1alpha1.PlatformMastodon}
	marks           = []v1alpha1.TargetMark{v1alpha1.MarkNone, v1alpha1.MarkNone, v1alpha1.MarkNone, v1alpha1.MarkWaiting, v1alpha1.MarkUndecided}
	teams           = []string{"team-a", "team-b"}
)

// post identifies a post across teams.
type post struct{ namespace, id string }

// event is an event of the Kubernetes API: a post's state at a version, or its deletion.
type event struct {
	post
	version uint64
	// summary is nil for a deletion.
	summary *postindex.Summary
}

func (e event) shown() bool { return e.summary != nil && e.summary.Status != v1alpha1.PhaseCancelled }

// store is a naive Kubernetes API: the whole history of every post, with the pending watch events and responses to our
// own writes. The index receives them in every order that can occur.
type store struct {
	index   *postindex.Index
	version uint64
	history map[post][]event
	// watch holds the pending watch events, in order; answers holds the pending responses to our own writes.
	watch   []event
	answers []event
	// told is the minimum version of each post that the index has received, and seen is the progress of the watch.
	told map[post]uint64
	seen uint64
	// pages is the rest of a list in progress, at the version taken. The watch is paused meanwhile.
	relist *postindex.Relist
	pages  []event
	taken  uint64
	// backup is the history at the version saved.
	backup map[post][]event
	saved  uint64
	// relists is set if a list must come before the watch continues.
	relists bool
}

func (s *store) latest(p post) (event, bool) {
	h := s.history[p]
	if len(h) == 0 || h[len(h)-1].summary == nil {
		return event{}, false
	}
	return h[len(h)-1], true
}

func drawSummary(t *rapid.T, id string, version uint64) *postindex.Summary {
	s := at(id, rapid.IntRange(0, 8).Draw(t, "second"))
	s.Title = fmt.Sprint(version) // identifies the shown state later
	s.Bytes = rapid.IntRange(0, 3).Draw(t, "bytes") << rapid.SampledFrom([]int{0, 10, 20}).Draw(t, "shift")
	s.Status = rapid.SampledFrom(phases).Draw(t, "status")
	s.Platforms = nil
	for _, platform := range rapid.SliceOfN(rapid.SampledFrom(targetPlatforms), 0, 4).Draw(t, "platforms") {
		s.Platforms = append(s.Platforms, postindex.PlatformStatus{
			Platform: platform, Status: rapid.SampledFrom(phases).Draw(t, "target status"), Mark: rapid.SampledFrom(marks).Draw(t, "mark"),
		})
	}
	return &s
}

func drawPost(t *rapid.T) post {
	return post{rapid.SampledFrom(teams).Draw(t, "team"), fmt.Sprintf("p%d", rapid.IntRange(0, 5).Draw(t, "post"))}
}

// write stores a state and adds it to the watch.
func (s *store) write(e event) {
	s.history[e.post] = append(s.history[e.post], e)
	s.watch = append(s.watch, e)
}

func (s *store) put(t *rapid.T) {
	p := drawPost(t)
	last, ok := s.latest(p)
	if ok && !last.shown() {
		t.Skip("a cancelled post never changes again")
	}
	s.version++
	e := event{p, s.version, drawSummary(t, p.id, s.version)}
	if ok && rapid.Bool().Draw(t, "moves only") {
		e.summary.Status, e.summary.Platforms = last.summary.Status, last.summary.Platforms
	}
	s.write(e)
	if rapid.Bool().Draw(t, "own") {
		s.answers = append(s.answers, e)
	}
}

func (s *store) remove(t *rapid.T) {
	p := drawPost(t)
	if _, ok := s.latest(p); !ok {
		t.Skip("the post does not exist")
	}
	s.version++
	s.write(event{post: p, version: s.version})
}

// answer applies the response to one of our own writes; they arrive in any order.
func (s *store) answer(t *rapid.T) {
	if len(s.answers) == 0 {
		t.Skip("no response is pending")
	}
	i := rapid.IntRange(0, len(s.answers)-1).Draw(t, "answer")
	e := s.answers[i]
	s.answers = slices.Delete(s.answers, i, i+1)
	s.index.Upsert(e.namespace, *e.summary, e.version)
	if !s.relists {
		s.told[e.post] = max(s.told[e.post], e.version)
	}
}

func (s *store) deliverEvents(t *rapid.T) {
	if len(s.watch) == 0 || s.relist != nil || s.relists {
		t.Skip("no event is pending")
	}
	for range rapid.IntRange(1, len(s.watch)).Draw(t, "events") {
		e := s.watch[0]
		s.watch = s.watch[1:]
		if e.summary == nil {
			s.index.Delete(e.namespace, e.id, e.version)
		} else {
			s.index.Upsert(e.namespace, *e.summary, e.version)
		}
		s.index.Watch("").Progress(e.version)
		s.seen = e.version
		s.told[e.post] = max(s.told[e.post], e.version)
	}
}

// bookmark reports that the watch has progressed to just before its next event.
func (s *store) bookmark(t *rapid.T) {
	if s.relist != nil || s.relists {
		t.Skip("no watch is open")
	}
	s.seen = s.version
	if len(s.watch) > 0 {
		s.seen = s.watch[0].version - 1
	}
	s.index.Watch("").Progress(s.seen)
}

// beginRelist starts a list, and aborts one in progress.
func (s *store) beginRelist(t *rapid.T) {
	s.taken, s.pages = s.version, nil
	for p := range s.history {
		if e, ok := s.latest(p); ok {
			s.pages = append(s.pages, e)
		}
	}
	slices.SortFunc(s.pages, func(a, b event) int { return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.id, b.id)) })
	s.pages = rapid.Permutation(s.pages).Draw(t, "order")
	s.relist = s.index.Watch("").Relist(s.taken)
}

func (s *store) nextPage(t *rapid.T) {
	if s.relist == nil {
		t.Skip("no list is in progress")
	}
	n := rapid.IntRange(0, len(s.pages)).Draw(t, "posts")
	for _, e := range s.pages[:n] {
		s.relist.Add(e.namespace, *e.summary, e.version)
	}
	s.pages = s.pages[n:]
	if len(s.pages) > 0 {
		return
	}
	s.relist.Done()
	s.relist, s.relists, s.seen = nil, false, s.taken
	s.watch = slices.DeleteFunc(s.watch, func(e event) bool { return e.version <= s.taken })
	for p, h := range s.history {
		for _, e := range h {
			if e.version <= s.taken {
				s.told[p] = max(s.told[p], e.version)
			}
		}
	}
}

func (s *store) save(*rapid.T) {
	s.backup, s.saved = map[post][]event{}, s.version
	for p, h := range s.history {
		s.backup[p] = slices.Clone(h)
	}
}

// restore restores the backup. The API server is down meanwhile, so nothing is pending. The watch restarts with a list
// before new writes have reached the versions that were lost.
func (s *store) restore(t *rapid.T) {
	if s.backup == nil || s.saved >= s.seen {
		t.Skip("no backup is old enough")
	}
	s.history, s.version = s.backup, s.saved
	s.backup, s.watch, s.answers, s.relist, s.pages = nil, nil, nil, nil, nil
	s.told, s.relists = map[post]uint64{}, true
	s.beginRelist(t)
}

// settle delivers everything that is pending; the index must then equal the store.
func (s *store) settle(t *rapid.T) {
	for s.relist != nil {
		s.nextPage(t)
	}
	for len(s.watch) > 0 {
		s.deliverEvents(t)
	}
	for len(s.answers) > 0 {
		s.answer(t)
	}
	var want []event
	kinds, tallies := map[string]bool{}, map[string]postindex.Tally{}
	for p := range s.history {
		e, ok := s.latest(p)
		if !ok {
			continue
		}
		if e.shown() {
			want = append(want, e)
		}
		kinds[fmt.Sprint(e.summary.Status, e.summary.Category, e.summary.Platforms)] = true
		tallies[p.namespace] = withPost(tallies[p.namespace], e.summary)
	}
	for _, team := range teams {
		if tally, _ := s.index.Tally(team, nil); tally != tallies[team] {
			t.Fatalf("the index counts %+v for %s, want %+v", tally, team, tallies[team])
		}
		ofTeam := slices.DeleteFunc(slices.Clone(want), func(e event) bool { return e.namespace != team })
		whole, total := s.index.List(team, postindex.Query{Page: 1, Limit: 1000})
		if all := sorted(ofTeam, postindex.Query{}); !slices.EqualFunc(all, whole, same) || total != len(ofTeam) {
			t.Fatalf("the index of %s received all events and lists %d of %d posts; -want +got:\n%s", team, total, len(ofTeam), gocmp.Diff(all, whole))
		}
	}
	if s.index.Len() != len(want) {
		t.Fatalf("Len() = %d, want %d", s.index.Len(), len(want))
	}
	if held := s.index.Kinds(); held != len(kinds) {
		t.Fatalf("the index has %d kinds of posts, want %d", held, len(kinds))
	}
}

// withPost adds a post to a tally.
func withPost(t postindex.Tally, s *postindex.Summary) postindex.Tally {
	t.Posts++
	t.Bytes += int64(s.Bytes)
	switch s.Status {
	case v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled, v1alpha1.PhaseProcessing:
		t.Unfinished++
	case v1alpha1.PhasePosted, v1alpha1.PhaseFailed, v1alpha1.PhaseCancelled:
	}
	return t
}

func same(a, b postindex.Summary) bool {
	return a.ID == b.ID && a.Title == b.Title && a.Status == b.Status && a.Category == b.Category &&
		a.DisplayAt.Equal(b.DisplayAt) && a.Archived == b.Archived && slices.Equal(a.Platforms, b.Platforms)
}

// undecidedFilters returns the undecided filters that a phase's list supports.
func undecidedFilters(status v1alpha1.PostPhase) []postindex.UndecidedFilter {
	if status == v1alpha1.PhaseProcessing || status == v1alpha1.PhaseFailed {
		return []postindex.UndecidedFilter{postindex.OnlyUndecided, postindex.ExcludeUndecided}
	}
	return []postindex.UndecidedFilter{postindex.OnlyUndecided}
}

// passes reports whether a post passes the filter.
func passes(asked postindex.UndecidedFilter, s *postindex.Summary) bool {
	is := !s.Archived && slices.ContainsFunc(s.Platforms, func(p postindex.PlatformStatus) bool { return p.Mark == v1alpha1.MarkUndecided })
	return asked == postindex.IncludeUndecided || is == (asked == postindex.OnlyUndecided)
}

// sorted returns the expected list, by brute force.
func sorted(events []event, q postindex.Query) []postindex.Summary {
	var out []postindex.Summary
	for _, e := range events {
		there := q.Platform == "" || slices.ContainsFunc(e.summary.Platforms, func(p postindex.PlatformStatus) bool { return p.Platform == q.Platform })
		named := slices.ContainsFunc(e.summary.Platforms, func(p postindex.PlatformStatus) bool { return p.Platform.InVersion1() })
		if q.Version1 && len(e.summary.Platforms) > 0 && !named {
			continue
		}
		if there && (q.Status == "" || e.summary.Status == q.Status) && passes(q.Undecided, e.summary) {
			out = append(out, *e.summary)
		}
	}
	slices.SortFunc(out, func(a, b postindex.Summary) int {
		return cmp.Or(b.DisplayAt.Compare(a.DisplayAt), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// check runs after every step: the index never reverts to an older state, and every page of every list equals that of
// the sorted posts.
func (s *store) check(t *rapid.T) {
	limit := rapid.IntRange(1, 9).Draw(t, "limit")
	for _, team := range teams {
		whole, _ := s.index.List(team, postindex.Query{Page: 1, Limit: 1000})
		shown := make([]event, len(whole))
		for i := range whole {
			shown[i] = event{post: post{team, whole[i].ID}, summary: &whole[i]}
		}
		if !s.relists {
			s.checkNothingTakenBack(t, team, shown)
		}
		for _, status := range append([]v1alpha1.PostPhase{""}, phases...) {
			for _, platform := range append([]v1alpha1.Platform{""}, targetPlatforms...) {
				q := postindex.Query{Status: status, Platform: platform, Limit: limit}
				checkPages(t, s.index, team, q, sorted(shown, q))
				version1 := q
				version1.Version1 = platform == "" || platform.InVersion1()
				checkPages(t, s.index, team, version1, sorted(shown, version1))
				for _, q.Undecided = range undecidedFilters(status) {
					checkPages(t, s.index, team, q, sorted(shown, q))
				}
			}
		}
	}
}

func checkPages(t *rapid.T, index *postindex.Index, team string, q postindex.Query, want []postindex.Summary) {
	t.Helper()
	var got []postindex.Summary
	for q.Page = 1; q.Page <= len(want)/q.Limit+2; q.Page++ {
		page, total := index.List(team, q)
		q.Into = page // each page overwrites the previous one
		if total != len(want) {
			t.Fatalf("%+v: total %d, want %d", q, total, len(want))
		}
		if expected := min(q.Limit, max(len(want)-len(got), 0)); len(page) != expected {
			t.Fatalf("%+v: %d posts on the page, want %d", q, len(page), expected)
		}
		got = append(got, page...)
	}
	if !slices.EqualFunc(want, got, same) {
		t.Fatalf("%+v: pages -want +got:\n%s", q, gocmp.Diff(want, got))
	}
}

// checkNothingTakenBack compares the shown posts with the states that the index has received. A post that is not shown
// must have been deleted or cancelled at the same version or a later one.
func (s *store) checkNothingTakenBack(t *rapid.T, team string, shown []event) {
	t.Helper()
	is := map[string]string{}
	for _, e := range shown {
		is[e.id] = e.summary.Title
	}
	for _, p := range slices.SortedFunc(maps.Keys(s.told), func(a, b post) int { return cmp.Compare(a.id, b.id) }) {
		if p.namespace != team {
			continue
		}
		var possible []string
		for _, e := range s.history[p] {
			if e.version >= s.told[p] && e.shown() {
				possible = append(possible, e.summary.Title)
			} else if e.version >= s.told[p] {
				possible = append(possible, "")
			}
		}
		if !slices.Contains(possible, is[p.id]) {
			t.Fatalf("%s/%s is known in version %d and shown in version %q; possible are %q", team, p.id, s.told[p], is[p.id], possible)
		}
	}
}

// TestAgainstNaiveSort applies random histories to the index, with watches that lag and restart, lists in pages,
// responses that arrive early or late, and a store restored from a backup. A failure prints the history, and the flag
// that repeats it.
func TestAgainstNaiveSort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		index := postindex.New()
		if rapid.Bool().Draw(t, "ids look alike") {
			index = postindex.NewColliding()
		}
		s := &store{index: index, history: map[post][]event{}, told: map[post]uint64{}}
		t.Repeat(map[string]func(*rapid.T){
			"put": s.put, "put again": s.put, "put once more": s.put, "and again": s.put, "answer soon": s.answer, "remove": s.remove, "answer": s.answer, "tell": s.deliverEvents, "bookmark": s.bookmark,
			"begin relist": s.beginRelist, "next page": s.nextPage, "save": s.save, "restore": s.restore, "settle": s.settle,
			"": s.check,
		})
	})
}
