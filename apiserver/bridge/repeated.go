// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// RepeatedError is that a person has published the same to the same accounts a moment ago.
// Nothing was created.
type RepeatedError struct {
	// ID names the post that was created then, and At is when.
	ID string
	At time.Time
}

func (e *RepeatedError) Error() string {
	return fmt.Sprintf("the same was published a moment ago, as post %s; nothing more was posted", e.ID)
}

// repeatedFor is for how long a person is asked before the same is published again.
const repeatedFor = 10 * time.Minute

// sameContent identifies who publishes what to which accounts: 16 bytes of a SHA-256.
type sameContent [16]byte

// contentBy identifies what an author publishes in a namespace. When it goes out is not part
// of it, nor are the options of platforms, which the Kubernetes API completes.
func contentBy(namespace, author string, spec *v1alpha1.PostSpec) sameContent {
	hash := sha256.New()
	write := func(parts ...string) {
		for _, part := range parts {
			fmt.Fprintf(hash, "%d:%s", len(part), part)
		}
	}
	files := func(refs ...v1alpha1.LocalReference) {
		for _, ref := range refs {
			write("file", ref.Name)
		}
	}
	write(namespace, author, string(spec.Category))
	for i := range spec.Targets {
		t := &spec.Targets[i]
		write("target", t.ConnectionRef.Name, t.Caption)
		if t.YouTube != nil {
			write("title", t.YouTube.Title)
		}
	}
	if spec.Image != nil {
		files(spec.Image.MediaRefs...)
	}
	if spec.Video != nil {
		files(spec.Video.MediaRef)
	}
	if spec.Tree != nil {
		for i := range spec.Tree.Cards {
			write("card", spec.Tree.Cards[i].Caption)
			files(spec.Tree.Cards[i].MediaRefs...)
		}
	}
	return sameContent(hash.Sum(nil)[:len(sameContent{})])
}

// recent knows what people have published in the last minutes, on every replica: the watch
// reports what others created. Of each post it keeps some 100 bytes, and drops them after
// repeatedFor.
type recent struct {
	mu     sync.Mutex
	posts  map[sameContent]recentPost
	pruned time.Time
	// underway holds a channel for each content that is being created; it is closed at the
	// end.
	underway map[sameContent]chan struct{}
}

type recentPost struct {
	name string
	at   time.Time
}

func newRecent() *recent {
	return &recent{posts: map[sameContent]recentPost{}, underway: map[sameContent]chan struct{}{}}
}

// begin waits until nobody else creates a post of this content, and keeps others waiting
// until end is called.
func (r *recent) begin(ctx context.Context, content sameContent) (end func(), err error) {
	for {
		r.mu.Lock()
		other := r.underway[content]
		if other == nil {
			mine := make(chan struct{})
			r.underway[content] = mine
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				delete(r.underway, content)
				r.mu.Unlock()
				close(mine)
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fmt.Errorf("stopped while the same post was being created: %w", ctx.Err())
		}
	}
}

// note takes a post that a person published a moment ago; others are passed over.
func (r *recent) note(post *v1alpha1.Post, now time.Time) {
	at := posting.Created(post)
	if post.Labels[v1alpha1.OriginLabel] != v1alpha1.OriginWeb || post.Spec.Draft || post.Spec.Cancelled || now.Sub(at) > repeatedFor {
		return
	}
	content := contentBy(post.Namespace, post.Annotations[v1alpha1.AuthorAnnotation], &post.Spec)
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.pruned) > repeatedFor {
		r.pruned = now
		for old, known := range r.posts {
			if now.Sub(known.at) > repeatedFor {
				delete(r.posts, old)
			}
		}
	}
	if known, ok := r.posts[content]; !ok || known.at.Before(at) {
		r.posts[content] = recentPost{post.Name, at}
	}
}

// find returns the post of a content that was published last.
func (r *recent) find(content sameContent, now time.Time) (recentPost, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.posts[content]
	return known, ok && now.Sub(known.at) <= repeatedFor
}

// Observe takes a post that the watch reported, or that was just created.
func (s *Service) Observe(post *v1alpha1.Post) {
	s.recent.note(post, s.Clock.Now())
}

// unlessRepeated refuses to create what the same person has published a moment ago. Until end
// is called, nobody else creates the same through this replica.
func (s *Service) unlessRepeated(ctx context.Context, caller *Caller, post *v1alpha1.Post) (end func(), err error) {
	content := contentBy(post.Namespace, caller.Author, &post.Spec)
	if end, err = s.recent.begin(ctx, content); err != nil {
		return nil, err
	}
	known, ok := s.recent.find(content, s.Clock.Now())
	if !ok || known.name == post.Name {
		return end, nil
	}
	before, err := s.Posts.Get(ctx, post.Namespace, known.name)
	switch {
	case apierrors.IsNotFound(err), err == nil && isNowhere(before):
		return end, nil
	case err != nil:
		end()
		return nil, fmt.Errorf("read what was published a moment ago: %w", err)
	}
	end()
	return nil, &RepeatedError{ID: known.name, At: known.at}
}

// isNowhere reports whether nothing of a post is published, nor will or may be: to publish
// the same again repeats nothing.
func isNowhere(post *v1alpha1.Post) bool {
	if post.Spec.Cancelled || post.Spec.Draft {
		return true
	}
	if posting.PhaseOf(post) != v1alpha1.PhaseFailed {
		return false
	}
	return !slices.ContainsFunc(post.Status.Targets, func(t v1alpha1.TargetStatus) bool {
		return posting.StateOf(&t) != v1alpha1.TargetFailed || t.ExternalID != ""
	})
}
