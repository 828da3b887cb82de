// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// unnamed returns an error while what a look has found for a target may be
// another one's: a call with the same words to the same account is under way, or
// was taken by the platform, and nobody knows yet under which id it is online.
func (s *scope) unnamed(ctx context.Context, self *v1alpha1.TargetStatus) *platforms.Error {
	var posts v1alpha1.PostList
	// Finished posts, whose ids are known, are not in the cache.
	if err := s.Client.List(ctx, &posts, client.UnsafeDisableDeepCopy); err != nil {
		return platforms.Errorf(platforms.ClassTransient, "the other posts cannot be read: %v", err)
	}
	said := text.Fold(words(s.post, int(self.Index)))
	for i := range posts.Items {
		post := &posts.Items[i]
		if post.UID == s.post.UID {
			post = s.post
		}
		for n := range post.Status.Targets {
			t := &post.Status.Targets[n]
			if t != self && s.mayBe(t, self) && text.Fold(words(post, int(t.Index))) == said {
				return platforms.Errorf(platforms.ClassTransient, "another post says the same on the account and has no id yet, so that what was found may be that one")
			}
		}
	}
	return nil
}

// mayBe reports whether the call of another target to the same account may have
// made what is found now, and will tell itself what it has made.
func (s *scope) mayBe(t, self *v1alpha1.TargetStatus) bool {
	if t.Platform != self.Platform || !attempt.IsOpen(t.Attempt) || t.Attempt.AccountID != self.Attempt.AccountID {
		return false
	}
	timing, ok := s.timing(t)
	return t.Attempt.OperationID != "" || ok && !attempt.Quiet(t.Attempt, timing, s.Clock.Now())
}

// words are what target i says next, of a tree with its next card.
func words(post *v1alpha1.Post, i int) string {
	if i >= len(post.Spec.Targets) {
		return ""
	}
	if tree := post.Spec.Tree; tree != nil {
		if card := int(attempt.NextCard(posting.Target(post, i))); card < len(tree.Cards) {
			return tree.Cards[card].Caption
		}
	}
	return post.Spec.Targets[i].Caption
}
