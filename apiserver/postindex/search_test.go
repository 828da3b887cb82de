// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// within returns the posts displayed at or after from and before to. A zero time is no bound.
func within(of []postindex.Summary, from, to time.Time) []postindex.Summary {
	return slices.DeleteFunc(slices.Clone(of), func(s postindex.Summary) bool {
		return !from.IsZero() && s.DisplayAt.Before(from) || !to.IsZero() && !s.DisplayAt.Before(to)
	})
}

// drawSearch returns a search for posts in the first 30 seconds, without conditions.
func drawSearch(t *rapid.T) postindex.Search {
	q := postindex.Search{
		Status:       rapid.SampledFrom(append([]v1alpha1.PostPhase{""}, phases...)).Draw(t, "state"),
		Platform:     rapid.SampledFrom(append([]v1alpha1.Platform{""}, targetPlatforms...)).Draw(t, "on platform"),
		SoonestFirst: rapid.Bool().Draw(t, "soonest first"), Limit: rapid.IntRange(1, 9).Draw(t, "page of"),
	}
	q.Undecided = rapid.SampledFrom(append(undecidedFilters(q.Status), postindex.IncludeUndecided)).Draw(t, "asked about")
	for _, bound := range []*time.Time{&q.From, &q.To} {
		if rapid.Bool().Draw(t, "bounded") {
			*bound = epoch.Add(time.Duration(rapid.IntRange(-1, 31).Draw(t, "bound")) * time.Second)
		}
	}
	if rapid.Bool().Draw(t, "cursor") {
		q.Cursor = &postindex.Cursor{
			ID: fmt.Sprint("p", rapid.IntRange(0, 60).Draw(t, "at")), DisplayAt: epoch.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "at second")) * time.Second),
			Back: rapid.Bool().Draw(t, "back"),
		}
	}
	return q
}

// compareFound verifies a page of a search against the posts that match it, newest first.
func compareFound(t *rapid.T, q *postindex.Search, matching []postindex.Summary, found *postindex.Found) {
	all := within(matching, q.From, q.To)
	newestFirst := func(a, b postindex.Summary) int {
		return cmp.Or(b.DisplayAt.Compare(a.DisplayAt), cmp.Compare(a.ID, b.ID))
	}
	order := newestFirst
	if q.SoonestFirst {
		order = func(a, b postindex.Summary) int { return newestFirst(b, a) }
		slices.Reverse(all)
	}
	first := 0
	if c := q.Cursor; c != nil && c.Back {
		end := 0
		for end < len(all) && order(all[end], postindex.Summary{ID: c.ID, DisplayAt: c.DisplayAt}) < 0 {
			end++
		}
		first = max(end-q.Limit, 0)
	} else if c != nil {
		for first < len(all) && order(all[first], postindex.Summary{ID: c.ID, DisplayAt: c.DisplayAt}) <= 0 {
			first++
		}
		if first == len(all) { // none comes after the cursor: the last page
			first = max(len(all)-q.Limit, 0)
		}
	}
	want := all[first:min(first+q.Limit, len(all))]
	if found.Total != len(all) || len(all) > 0 && found.First != first || !gocmp.Equal(ids(want), ids(found.Posts)) {
		t.Fatalf("%+v, cursor %+v: %v from %d of %d, want %v from %d of %d", q, q.Cursor, ids(found.Posts), found.First, found.Total, ids(want), first, len(all))
	}
}

// TestFindAPage verifies that a page of a search is the part of the whole list that its bounds and cursor select.
func TestFindAPage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := postindex.New()
		for i := range rapid.IntRange(0, 60).Draw(t, "posts") {
			s := at(fmt.Sprint("p", i), rapid.IntRange(0, 20).Draw(t, "second"))
			s.Status = rapid.SampledFrom(phases).Draw(t, "status")
			s.Platforms[0].Mark = rapid.SampledFrom(marks).Draw(t, "mark")
			s.Words = rapid.SampledFrom([]string{"launch day", "day", "night"}).Draw(t, "words")
			x.Upsert(team, s, uint64(i+1))
		}
		q := drawSearch(t)
		list, _ := x.List(team, postindex.Query{Status: q.Status, Platform: q.Platform, Undecided: q.Undecided, Page: 1, Limit: 100})
		found, _ := x.Find(team, &q, nil)
		compareFound(t, &q, list, &found)

		q.Words = []string{"day"}
		var matching []postindex.Summary
		for _, s := range list {
			alone := postindex.Search{Conditions: q.Conditions, From: s.DisplayAt, To: s.DisplayAt.Add(time.Millisecond), Limit: 100}
			if at, _ := x.Find(team, &alone, nil); slices.Contains(ids(at.Posts), s.ID) {
				matching = append(matching, s)
			}
		}
		found, _ = x.Find(team, &q, nil)
		compareFound(t, &q, matching, &found)
	})
}

func TestConditions(t *testing.T) {
	t.Parallel()
	x := postindex.New()
	for i, s := range []postindex.Summary{
		{ID: "launch", Words: "the launch of our new site", Category: v1alpha1.CategoryText, Author: "ada", Accounts: []string{"our-x", "our-threads"}},
		{ID: "relaunch", Words: "a relaunch in may", Category: v1alpha1.CategoryImage, Author: "vera", Accounts: []string{"our-x"}},
		{ID: "agent", Words: "numbers of the week", Category: v1alpha1.CategoryTree, Agent: "Claude", Author: "ada", Accounts: []string{"our-x-2"}},
	} {
		s.Status, s.DisplayAt = v1alpha1.PhaseDraft, epoch.Add(time.Duration(i)*time.Second)
		x.Upsert(team, s, uint64(i+1))
	}
	for name, tc := range map[string]struct {
		reason string
		of     postindex.Conditions
		want   string
	}{
		"Word":       {"words of the text match", postindex.Conditions{Words: []string{"numbers"}}, "agent"},
		"PartOfWord": {"a part of a word matches", postindex.Conditions{Words: []string{"launch"}}, "relaunch launch"},
		"AllWords":   {"all words have to match, in any order", postindex.Conditions{Words: []string{"new", "launch"}}, "launch"},
		"TwoTexts":   {"words do not match across posts", postindex.Conditions{Words: []string{"week", "launch"}}, ""},
		"Category":   {"the category has to match", postindex.Conditions{Category: v1alpha1.CategoryTree}, "agent"},
		"Account":    {"one of its accounts suffices", postindex.Conditions{Account: "our-x"}, "relaunch launch"},
		"OtherName":  {"the account's whole name has to match", postindex.Conditions{Account: "our"}, ""},
		"Author":     {"the author also matches through an agent", postindex.Conditions{Author: "ada"}, "agent launch"},
		"Agent":      {"the agent has to match", postindex.Conditions{Agent: "Claude"}, "agent"},
		"Together":   {"all conditions apply", postindex.Conditions{Author: "ada", Account: "our-x", Words: []string{"site"}}, "launch"},
		"Nobody":     {"an author without posts", postindex.Conditions{Author: "tom"}, ""},
	} {
		found, _ := x.Find(team, &postindex.Search{Conditions: tc.of, Limit: 10}, nil)
		if got := strings.Join(ids(found.Posts), " "); got != tc.want || found.Total != len(found.Posts) {
			t.Errorf("%s: %s: found %q of %d, want %q", name, tc.reason, got, found.Total, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		reason, namespace string
		of                postindex.Search
		want              int
	}{
		"All":     {"each post is compared", team, postindex.Search{Conditions: postindex.Conditions{Author: "ada"}}, 3},
		"Bounds":  {"posts outside the bounds are not compared", team, postindex.Search{Conditions: postindex.Conditions{Author: "ada"}, From: epoch.Add(time.Second), To: epoch.Add(2 * time.Second)}, 1},
		"Turned":  {"inverted bounds exclude all", team, postindex.Search{Conditions: postindex.Conditions{Author: "ada"}, From: epoch.Add(2 * time.Second), To: epoch}, 0},
		"State":   {"the state has no posts", team, postindex.Search{Status: v1alpha1.PhasePosted, Conditions: postindex.Conditions{Author: "ada"}}, 0},
		"Plain":   {"a list without conditions is not scanned", team, postindex.Search{}, 0},
		"Unknown": {"a namespace without posts", "nobody", postindex.Search{Conditions: postindex.Conditions{Author: "ada"}}, 0},
	} {
		if got := x.Scans(tc.namespace, &tc.of); got != tc.want {
			t.Errorf("%s: %s: scans %d posts, want %d", name, tc.reason, got, tc.want)
		}
	}
	if found, _ := x.Find("nobody", &postindex.Search{Limit: 1}, nil); found.Posts != nil {
		t.Errorf("another namespace has %v", found.Posts)
	}
}

// TestFindTexts verifies that a page has the texts of a post, and that an update replaces them.
func TestFindTexts(t *testing.T) {
	t.Parallel()
	x := postindex.New()
	first := postindex.Summary{
		ID: "p-1", Title: "The title", Rest: " and the rest", Picture: "m-1", Words: "the title and the rest", Author: "ada",
		Accounts: []string{"our-x"}, Status: v1alpha1.PhaseDraft, DisplayAt: epoch,
	}
	second := first
	second.Title, second.Rest, second.Picture, second.Words, second.Author, second.Accounts = "Other", "", "", "other words", "vera", []string{"our-threads"}
	for i, s := range []postindex.Summary{first, second, first} {
		x.Upsert(team, s, uint64(i+1))
		found, _ := x.Find(team, &postindex.Search{Limit: 1, Conditions: postindex.Conditions{Author: s.Author, Account: s.Accounts[0], Words: strings.Fields(s.Words)}}, nil)
		want := s
		want.Words, want.Accounts = "", nil
		if diff := gocmp.Diff([]postindex.Summary{want}, found.Posts); diff != "" {
			t.Errorf("version %d: -want +got\n%s", i+1, diff)
		}
		if diff := gocmp.Diff(postindex.Creators{Authors: []string{s.Author}}, x.Creators(team)); diff != "" {
			t.Errorf("version %d: creators -want +got\n%s", i+1, diff)
		}
	}
	x.Upsert(team, postindex.Summary{ID: "p-2", Agent: "Claude", Author: "ada", Status: v1alpha1.PhaseDraft}, 4)
	if diff := gocmp.Diff(postindex.Creators{Authors: []string{"ada"}, Agents: []string{"Claude"}}, x.Creators(team)); diff != "" {
		t.Errorf("creators -want +got\n%s", diff)
	}
}

// TestCountsOfAList verifies the counts against the whole list.
func TestCountsOfAList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := postindex.New()
		for i := range rapid.IntRange(0, 60).Draw(t, "posts") {
			s := at(fmt.Sprint("p", i), i)
			s.Status = rapid.SampledFrom(phases).Draw(t, "status")
			s.Platforms[0].Mark = rapid.SampledFrom(marks).Draw(t, "mark")
			x.Upsert(team, s, uint64(i+1))
		}
		list, _ := x.List(team, postindex.Query{Page: 1, Limit: 100})
		counts := postindex.Counts{Status: map[v1alpha1.PostPhase]int{}, Undecided: map[v1alpha1.PostPhase]int{}}
		for _, s := range list {
			counts.Status[s.Status]++
			if s.Platforms[0].Mark == v1alpha1.MarkUndecided {
				counts.Undecided[s.Status]++
			}
		}
		if got := x.Counts(team); got.All() != len(list) || got.AllUndecided() > got.All() {
			t.Fatalf("the counts are %d posts, %d undecided; the list has %d", got.All(), got.AllUndecided(), len(list))
		}
		if diff := gocmp.Diff(counts, x.Counts(team)); diff != "" {
			t.Fatalf("counts -want +got:\n%s", diff)
		}
	})
}

// TestFindUnhandled verifies that a search for posts that need attention excludes handled posts and those that have left
// the cluster.
func TestFindUnhandled(t *testing.T) {
	t.Parallel()
	x := postindex.New()
	x.RetainDeleted()
	for i, id := range []string{"open", "handled", "left", "dismissed-later"} {
		s := withStatus(at(id, i), v1alpha1.PhaseFailed)
		s.Handled = id == "handled"
		x.Upsert(team, s, uint64(i+1))
	}
	q := postindex.Search{Status: v1alpha1.PhaseFailed, Undecided: postindex.ExcludeUndecided, Limit: 10}
	q.Unhandled = true
	unhandled := func() []string {
		found, _ := x.Find(team, &q, nil)
		return ids(found.Posts)
	}
	if diff := gocmp.Diff([]string{"dismissed-later", "left", "open"}, unhandled()); diff != "" {
		t.Errorf("at first:\n%s", diff)
	}
	x.Delete(team, "left", 9)
	later := withStatus(at("dismissed-later", 3), v1alpha1.PhaseFailed)
	later.Handled = true
	x.Upsert(team, later, 10)
	if diff := gocmp.Diff([]string{"open"}, unhandled()); diff != "" {
		t.Errorf("after one left the cluster and another was dismissed:\n%s", diff)
	}
	q.Unhandled = false
	if all := unhandled(); len(all) != 4 {
		t.Errorf("the failed posts are %q", all)
	}
	found, _ := x.Find(team, &q, nil)
	if i := slices.IndexFunc(found.Posts, func(s postindex.Summary) bool { return s.ID == "handled" }); !found.Posts[i].Handled || found.Posts[3].Handled {
		t.Errorf("a page's posts are %+v", found.Posts)
	}
}
