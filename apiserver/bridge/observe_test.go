// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// TestObserve creates a post after another replica has published an identical one.
func TestObserve(t *testing.T) {
	t.Parallel()
	minuteAgo := v1alpha1.NewTime(now.Add(-time.Minute))
	for name, tc := range map[string]struct {
		reason string
		edit   func(*v1alpha1.Post)
		asks   bool
	}{
		"Published": {"the user published it through another replica", func(*v1alpha1.Post) {}, true},
		"Draft":     {"the post was not published", func(p *v1alpha1.Post) { p.Spec.Draft = true }, false},
		"OldDraft": {"the draft was created long ago and published just now", func(p *v1alpha1.Post) {
			p.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
			p.Status.Targets = []v1alpha1.TargetStatus{{Attempt: &v1alpha1.Attempt{StartedAt: minuteAgo}}}
		}, true},
		"OldPost": {"the post was published long ago", func(p *v1alpha1.Post) { p.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) }, false},
		"DraftOfProgram": {"the user published a client's draft", func(p *v1alpha1.Post) {
			p.Labels = nil
			p.Annotations = map[string]string{v1alpha1.AuthorAnnotation: "key", v1alpha1.LastAuthorAnnotation: person.Author}
		}, true},
		"OfProgram": {"a client uses its own keys", func(p *v1alpha1.Post) { p.Labels = nil }, false},
		"OfAnother": {"another user published it", func(p *v1alpha1.Post) { p.Annotations[v1alpha1.AuthorAnnotation] = "bob" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := &v1alpha1.Post{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: person.Namespace, Name: "before", CreationTimestamp: metav1.NewTime(minuteAgo.Time),
					Labels:      map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb},
					Annotations: map[string]string{v1alpha1.AuthorAnnotation: person.Author},
				},
				Spec: hello("acme").Spec,
			}
			tc.edit(before)
			s := service(&posts{stored: map[string]*v1alpha1.Post{"before": before}}, inMemory("acme"))
			s.Observe(before)
			in := hello("acme")
			in.UnlessRepeated = true
			_, err := s.CreatePost(t.Context(), person, in)
			repeated, asks := errors.AsType[*bridge.RepeatedError](err)
			if asks != tc.asks || asks && repeated.ID != "before" || !asks && err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
