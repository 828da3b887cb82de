// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"fmt"
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
)

func postKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: name}
}

// TestDrainUpTo checks that draining some of the posts that wait for an input leaves the others subscribed.
func TestDrainUpTo(t *testing.T) {
	const some = 8
	states, in := newPostStates(), appInput(v1alpha1.PlatformX)
	for i := range 1000 {
		states.subscribe(postKey(fmt.Sprint("p", i)), in)
	}
	if n := len(states.drainUpTo(in, some)); n != some {
		t.Errorf("%d are woken, want %d", n, some)
	}
	if n := len(states.drainUpTo(in, math.MaxInt)); n != 1000-some {
		t.Errorf("%d are woken, want all others", n)
	}
	if n := len(states.waiting) + len(states.inputs); n != 0 {
		t.Errorf("%d entries stay", n)
	}
}

// TestForgetPost checks that the state of a post is dropped with it.
func TestForgetPost(t *testing.T) {
	states, gone := newPostStates(), postKey("gone")
	known := states.get(gone, "uid")
	known.publish.AddUnsent("attempt", time.Now())
	states.subscribe(gone, appInput(v1alpha1.PlatformX))
	states.prune(gone, true)
	if len(states.byPost) != 1 || len(states.waiting) != 1 {
		t.Fatalf("%d posts are stored, %d inputs awaited", len(states.byPost), len(states.waiting))
	}
	states.forget(gone)
	if n := len(states.byPost) + len(states.waiting) + len(states.inputs); n != 0 {
		t.Errorf("%d entries of a deleted post remain", n)
	}
}
