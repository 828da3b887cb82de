// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/test/must"
)

var started = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// working returns a post with one target per caption. The platform has accepted the calls and is still processing them.
func working(name string, captions ...string) *v1alpha1.Post {
	post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
	for i, caption := range captions {
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "page"}, Caption: caption})
		post.Status.Targets = append(post.Status.Targets, v1alpha1.TargetStatus{
			Index: int32(i), Platform: v1alpha1.PlatformX,
			Attempt: &v1alpha1.Attempt{
				Number: 1, ID: "a", AccountID: "4711", OperationID: "op", StartedAt: v1alpha1.NewTime(started), SendBefore: v1alpha1.NewTime(started),
			},
		})
	}
	return post
}

// TestAmbiguous checks which posts may have published the post that a lookup has found. The cache omits the texts of
// large posts.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("many words ", 1000)
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	for name, tc := range map[string]struct {
		reason string
		said   string
		other  *v1alpha1.Post
		// now is the other post as it is in the API server, or nil if it was deleted.
		now  *v1alpha1.Post
		want bool
	}{
		"small, the same words":  {"the cache has them", "hello", working("other", "hello"), working("other", "hello"), true},
		"small, other words":     {"they cannot be mixed up", "hello", working("other", "bye"), working("other", "bye"), false},
		"large, the same words":  {"they are read", large, working("other", "first", large), working("other", "first", large), true},
		"large, other words":     {"no words are not the words of a post without any", "", working("other", "first", large), working("other", "first", large), false},
		"large, and gone":        {"its other targets are not looked for where nothing is", "hello", working("other", large, large), nil, false},
		"large, gone, no words":  {"what is gone says nothing, which is not what a post without words says", "", working("other", large, large), nil, false},
		"large, of another time": {"another post has its name", "hello", working("other", large, large), func() *v1alpha1.Post { p := working("other", "hello"); p.UID = "new"; return p }(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := tc.other.DeepCopy()
			if _, err := kubeclient.TransformForCache(kept); err != nil {
				t.Fatal(err)
			}
			live := fake.NewClientBuilder().WithScheme(scheme)
			if tc.now != nil {
				live = live.WithObjects(tc.now)
			}
			self := working("self", tc.said)
			l := &Lookups{
				Client:    fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.Post{}, openIndex, openAccounts).WithObjects(self, kept).Build(),
				APIReader: live.Build(), Clock: clocktesting.NewFakePassiveClock(started),
			}
			err := l.ambiguous(t.Context(), &delivery.Facts{Post: self}, &self.Status.Targets[0])
			if (err != nil) != tc.want {
				t.Errorf("%v, want an error: %v: %s", err, tc.want, tc.reason)
			}
		})
	}
}
