// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

func sized(s postindex.Summary, bytes int) postindex.Summary {
	s.Bytes = bytes
	return s
}

func TestTally(t *testing.T) {
	t.Parallel()
	x := postindex.New()
	expect := func(reason string, want postindex.Tally) {
		t.Helper()
		if got, _ := x.Tally("a", nil); got != want {
			t.Errorf("%s: %+v, want %+v", reason, got, want)
		}
	}
	expect("no post is stored", postindex.Tally{})
	x.Upsert("a", sized(at("p", 1), 100), 1)
	x.Upsert("a", sized(withStatus(at("q", 1), v1alpha1.PhaseDraft), 1<<20), 2)
	x.Upsert("b", sized(at("p", 1), 7), 3)
	expect("two of the namespace, and not the other's", postindex.Tally{Posts: 2, Bytes: 100 + 1<<20, Unfinished: 2})
	x.Upsert("a", sized(at("p", 1), 100), 1)
	expect("the same event twice", postindex.Tally{Posts: 2, Bytes: 100 + 1<<20, Unfinished: 2})
	x.Upsert("a", sized(withStatus(at("q", 1), v1alpha1.PhaseDraft), 5), 4)
	expect("an edit made the post smaller", postindex.Tally{Posts: 2, Bytes: 105, Unfinished: 2})
	x.Upsert("a", sized(withStatus(at("q", 1), v1alpha1.PhaseCancelled), 5), 5)
	expect("a cancelled post is stored, but not listed", postindex.Tally{Posts: 2, Bytes: 105, Unfinished: 1})
	if _, total := x.List("a", postindex.Query{Page: 1, Limit: 9}); total != 1 || x.Len() != 2 {
		t.Errorf("%d are listed, and %d altogether; want 1 and 2", total, x.Len())
	}
	x.Upsert("a", sized(withStatus(at("p", 1), v1alpha1.PhasePosted), 100), 6)
	expect("a finished post counts, too", postindex.Tally{Posts: 2, Bytes: 105, Unfinished: 0})
	x.Delete("a", "q", 7)
	expect("a deleted post does not count", postindex.Tally{Posts: 1, Bytes: 100})
	if _, known := x.Tally("a", []string{"q", "p"}); !slices.Equal(known, []bool{false, true}) {
		t.Errorf("the tally includes q and p: %v", known)
	}
	if _, known := x.Tally("nobody", []string{"p"}); !slices.Equal(known, []bool{false}) {
		t.Errorf("the tally includes an unknown post: %v", known)
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	x := postindex.New()
	expect := func(reason string, want ...string) {
		t.Helper()
		got := x.Changed()
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", reason, diff)
		}
	}
	expect("no change")
	x.Upsert("a", sized(at("p", 1), 100), 1)
	x.Upsert("a", sized(at("q", 1), 100), 2)
	x.Upsert("b", sized(at("p", 1), 100), 3)
	expect("each once", "a", "b")
	expect("no further change")
	x.Upsert("a", sized(at("p", 2), 100), 4)
	x.Upsert("a", sized(withStatus(at("p", 2), v1alpha1.PhaseProcessing), 100), 5)
	expect("moving or starting a post does not change the sums")
	x.Upsert("a", sized(withStatus(at("p", 2), v1alpha1.PhasePosted), 100), 6)
	x.Delete("b", "p", 7)
	expect("a finished and a deleted post change the sums", "a", "b")
	r := x.Watch("").Relist(8)
	r.Add("a", sized(withStatus(at("p", 2), v1alpha1.PhasePosted), 101), 8)
	r.Done()
	expect("a list does", "a")
}
