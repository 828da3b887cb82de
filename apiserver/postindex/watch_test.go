// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex_test

import (
	"slices"
	"testing"

	"github.com/herald-social/herald/apiserver/postindex"
)

// TestWatches verifies that watches of single namespaces have independent versions: the progress of one does not affect
// another.
func TestWatches(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		do     func(x *postindex.Index)
		// a and b are the expected lists of the two namespaces.
		a, b []string
	}{
		"AnotherIsFurther": {
			reason: "a post of b, written at 5, is new to the watch of b, although that of a is at 9",
			do: func(x *postindex.Index) {
				x.Watch("a").Progress(9)
				x.Watch("b").Progress(4)
				x.Upsert("b", at("q", 1), 5)
			},
			b: []string{"q"},
		},
		"ItsOwnIsFurther": {
			reason: "the watch of b has reported that the post is gone",
			do: func(x *postindex.Index) {
				x.Watch("a").Progress(4)
				x.Watch("b").Progress(9)
				x.Upsert("b", at("q", 1), 5)
			},
		},
		"RelistOfOne": {
			reason: "the list of a holds no post of b",
			do: func(x *postindex.Index) {
				x.Upsert("a", at("p", 1), 1)
				x.Upsert("b", at("q", 1), 2)
				r := x.Watch("a").Relist(8)
				r.Add("a", at("r", 2), 7)
				r.Done()
			},
			a: []string{"r"}, b: []string{"q"},
		},
		"RestoredForOne": {
			reason: "the watch of a learns first that the store was restored; b follows with its own list",
			do: func(x *postindex.Index) {
				x.Watch("a").Progress(20)
				x.Watch("b").Progress(20)
				x.Upsert("a", at("p", 1), 30)
				x.Upsert("b", at("q", 1), 31)
				x.Watch("a").Relist(10).Done()
			},
			b: []string{"q"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := postindex.New()
			tc.do(x)
			for namespace, want := range map[string][]string{"a": tc.a, "b": tc.b} {
				page, _ := x.List(namespace, postindex.Query{Page: 1, Limit: 9})
				if got := ids(page); !slices.Equal(got, want) {
					t.Errorf("%s: namespace %s lists %v, want %v", tc.reason, namespace, got, want)
				}
			}
		})
	}
}
