// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestSummaryIsBounded summarises the largest posts: a summary's size depends only on the number of targets.
func TestSummaryIsBounded(t *testing.T) {
	t.Parallel()
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, inMemory("acme"))
	post := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryVideo}}
	post.Name, post.Namespace = "p", caller.Namespace
	post.Annotations = map[string]string{v1alpha1.AgentAnnotation: strings.Repeat("🙂", 50_000)}
	for i := range 100 {
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{
			ConnectionRef: v1alpha1.LocalReference{Name: fmt.Sprintf("c-%d", i)}, Caption: strings.Repeat("🙂", 65_000),
			YouTube: &v1alpha1.YouTubeOptions{Title: strings.Repeat("🙂", 4_096)},
		})
	}
	got := s.Summarise(post)
	if kept := len(got.ID) + len(got.Title) + len(got.Agent); kept > 2<<10 || len(got.Platforms) > 100 {
		t.Errorf("%d bytes of texts and %d targets are kept", kept, len(got.Platforms))
	}
	if got.Title == "" || got.Agent == "" {
		t.Error("the summary lacks its title or its agent")
	}
}
