// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestTally(t *testing.T) {
	in := metav1.ObjectMeta{Namespace: "acme", Name: "a"}
	draft := v1alpha1.PostSpec{Draft: true, Targets: []v1alpha1.PostTarget{{Caption: "hello"}}}
	cancelled := v1alpha1.PostStatus{CancelledAt: &v1alpha1.Time{}}
	for _, tt := range []struct {
		name, reason string
		obj          any
		want         int64
	}{
		{"a draft", "it is still to be published", &v1alpha1.Post{ObjectMeta: in, Spec: draft}, 1},
		{"a cancelled draft", "it is in the cache, but nothing is left to do for its team", &v1alpha1.Post{ObjectMeta: in, Spec: draft, Status: cancelled}, 0},
		{"the metadata of a post", "the API server has selected the posts that are not finished", &metav1.PartialObjectMetadata{ObjectMeta: in}, 1},
		{"something else", "an event without an object changes nothing", "none", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tally := &Tally{unfinished: map[string]int64{}}
			tally.add(tt.obj, 1)
			if got := tally.Unfinished("acme"); got != tt.want {
				t.Errorf("%s: counted %d, want %d", tt.reason, got, tt.want)
			}
			tally.add(tt.obj, -1)
			if len(tally.unfinished) > 0 {
				t.Errorf("%s: it is still counted after its deletion", tt.reason)
			}
		})
	}
}
