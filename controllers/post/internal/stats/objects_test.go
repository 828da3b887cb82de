// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestObjectCounts checks that the counted objects follow the events of the informer.
func TestObjectCounts(t *testing.T) {
	object := func(name, uid, version string) *v1alpha1.Post {
		return &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
	}
	for name, tc := range map[string]struct {
		reason string
		events func(c *objectSet[*v1alpha1.Post])
		want   []string
	}{
		"added":    {"additions count during the initial list and afterwards", func(c *objectSet[*v1alpha1.Post]) { c.OnAdd(object("b", "2", "1"), false) }, []string{"a 1 1", "b 2 1"}},
		"changed":  {"the present state is counted", func(c *objectSet[*v1alpha1.Post]) { c.OnUpdate(object("a", "1", "1"), object("a", "1", "2")) }, []string{"a 1 2"}},
		"replaced": {"the deletion in between was missed", func(c *objectSet[*v1alpha1.Post]) { c.OnUpdate(object("a", "1", "1"), object("a", "2", "1")) }, []string{"a 2 1"}},
		"deleted":  {"the post finished, or was deleted", func(c *objectSet[*v1alpha1.Post]) { c.OnDelete(object("a", "1", "2")) }, nil},
		"deleted, unnoticed": {"the watch was interrupted", func(c *objectSet[*v1alpha1.Post]) {
			c.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a", Obj: object("a", "1", "1")})
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var c objectSet[*v1alpha1.Post]
			c.OnAdd(object("a", "1", "1"), true)
			tc.events(&c)
			var got []string
			c.each(func(p *v1alpha1.Post) { got = append(got, fmt.Sprint(p.Name, " ", p.UID, " ", p.ResourceVersion)) })
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// TestScrapeDoesNotCopy checks that a scrape counts the objects without copying them.
func TestScrapeDoesNotCopy(t *testing.T) {
	const posts = 10_000
	_, s, registry := measured(t, connected("acme"))
	for n := range posts {
		p := unfinished("acme", fmt.Sprint(n), 48*time.Hour)
		p.UID = types.UID(fmt.Sprint(n))
		s.Objects.posts.OnAdd(p, true)
	}
	result := testing.Benchmark(func(b *testing.B) {
		b.Helper()
		for b.Loop() {
			if _, err := registry.Gather(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportAllocs()
	})
	// A list of them would take 450 bytes each.
	if each := result.AllocedBytesPerOp() / posts; each > 40 {
		t.Errorf("a scrape allocates %d bytes for each post", each)
	}
}
