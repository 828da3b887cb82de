// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/posting"
)

// RepeatedError rejects a post whose author recently published the same content to the same accounts.
type RepeatedError struct {
	// ID is the earlier post's id, and At is when it was published.
	ID string
	At time.Time
}

func (e *RepeatedError) Error() string {
	return fmt.Sprintf("the same content was published a moment ago, as post %s; nothing more was posted", e.ID)
}

// repeatedFor is how long repeated content needs a user's confirmation.
const repeatedFor = 10 * time.Minute

// sameContent identifies an author, content and accounts: 16 bytes of a SHA-256.
type sameContent [16]byte

// contentBy returns the identity of an author's content in a namespace. It excludes the time and the platform options,
// which the Kubernetes API fills in. Uploading a file again creates another Media, so files are included only if there
// is no text.
func contentBy(namespace, author string, spec *v1alpha1.PostSpec) sameContent {
	hash, silent := sha256.New(), true
	write := func(parts ...string) {
		for _, part := range parts {
			fmt.Fprintf(hash, "%d:%s", len(part), part)
		}
	}
	say := func(text string) {
		write("text", text)
		silent = silent && text == ""
	}
	write(namespace, author, string(spec.Category))
	for i := range spec.Targets {
		t := &spec.Targets[i]
		write("target", t.ConnectionRef.Name)
		say(t.Caption)
		if t.YouTube != nil {
			say(t.YouTube.Title)
		}
	}
	if spec.Tree != nil {
		for i := range spec.Tree.Cards {
			say(spec.Tree.Cards[i].Caption)
		}
	}
	if silent {
		for _, name := range posting.Of(&v1alpha1.Post{Spec: *spec}).MediaNames() {
			write("file", name)
		}
	}
	return sameContent(hash.Sum(nil)[:len(sameContent{})])
}

// recent holds the posts that users published in the last few minutes through any replica; the watch reports the posts
// of other replicas. Each post takes about 100 bytes until repeatedFor has passed.
type recent struct {
	mu sync.Mutex
	// posts maps content to its posts, each listed once.
	posts  map[sameContent][]recentPost
	pruned time.Time
	// underway holds a channel for each post that is being created. The channel is closed when the creation has ended.
	underway map[sameContent]chan struct{}
}

type recentPost struct {
	name string
	at   time.Time
}

func (p recentPost) expired(now time.Time) bool { return now.Sub(p.at) > repeatedFor }

func newRecent() *recent {
	return &recent{posts: map[sameContent][]recentPost{}, underway: map[sameContent]chan struct{}{}}
}

// acquire locks content until end is called, so only one request at a time creates a post with it.
func (r *recent) acquire(ctx context.Context, content sameContent) (end func(), err error) {
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

// observe adds a post that a user published recently, and ignores others.
func (r *recent) observe(post *v1alpha1.Post, now time.Time) {
	publisher, published := publisherOf(post), recentPost{post.Name, publishedAt(post)}
	if publisher == "" || post.Spec.Draft || posting.Of(post).Cancelled() || published.expired(now) {
		return
	}
	r.add(contentBy(post.Namespace, publisher, &post.Spec), published, now)
}

// publisherOf returns the user who published a post: its last editor or, failing that, its author in the web
// application. It returns "" for a post that a program published.
func publisherOf(post *v1alpha1.Post) string {
	if changed := post.Annotations[v1alpha1.LastAuthorAnnotation]; strings.HasPrefix(changed, access.KeyAuthor) {
		return ""
	} else if changed != "" {
		return changed
	}
	if post.Labels[v1alpha1.OriginLabel] != v1alpha1.OriginWeb {
		return ""
	}
	return post.Annotations[v1alpha1.AuthorAnnotation]
}

// publishedAt returns the latest time of creation, attempt or publication, because drafts may be old.
func publishedAt(post *v1alpha1.Post) time.Time {
	at := posting.Of(post).Created()
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if t.Attempt != nil && t.Attempt.StartedAt.After(at) {
			at = t.Attempt.StartedAt.Time
		}
		if t.PostedAt != nil && t.PostedAt.After(at) {
			at = t.PostedAt.Time
		}
	}
	return at
}

// add records a post with some content under its latest time, and removes expired posts.
func (r *recent) add(content sameContent, post recentPost, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.pruned) > repeatedFor {
		r.pruned = now
		for content, posts := range r.posts {
			if posts = slices.DeleteFunc(posts, func(p recentPost) bool { return p.expired(now) }); len(posts) == 0 {
				delete(r.posts, content)
			} else {
				r.posts[content] = posts
			}
		}
	}
	posts := r.posts[content]
	if i := slices.IndexFunc(posts, func(p recentPost) bool { return p.name == post.name }); i >= 0 {
		if post.at.After(posts[i].at) {
			posts[i].at = post.at
		}
		return
	}
	r.posts[content] = append(posts, post)
}

// find returns the unexpired posts with some content, latest first.
func (r *recent) find(content sameContent, now time.Time) []recentPost {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := slices.DeleteFunc(slices.Clone(r.posts[content]), func(p recentPost) bool { return p.expired(now) })
	slices.SortStableFunc(found, func(a, b recentPost) int { return b.at.Compare(a.at) })
	return found
}

// Observe records a post that the watch reported or that was just created.
func (s *Service) Observe(post *v1alpha1.Post) {
	s.recent.observe(post, s.Clock.Now())
}

// PublishUnlessRepeated is Publish, but returns a RepeatedError for the same content within ten minutes.
func (s *Service) PublishUnlessRepeated(ctx context.Context, caller Caller, id, version string, spec v1alpha1.PostSpec, at *time.Time) (*v1alpha1.Post, error) {
	end, err := s.unlessRepeated(ctx, &caller, &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: id}, Spec: spec})
	if err != nil {
		return nil, err
	}
	defer end()
	return s.Publish(ctx, caller, id, version, spec, at)
}

// unlessRepeated returns a RepeatedError if the caller published a post's content within the last ten minutes. Other
// requests with this content wait until end is called.
func (s *Service) unlessRepeated(ctx context.Context, caller *Caller, post *v1alpha1.Post) (end func(), err error) {
	content := contentBy(post.Namespace, caller.Author, &post.Spec)
	if end, err = s.recent.acquire(ctx, content); err != nil {
		return nil, err
	}
	for _, known := range s.recent.find(content, s.Clock.Now()) {
		if known.name == post.Name {
			continue
		}
		before, err := s.Posts.Get(ctx, post.Namespace, known.name)
		switch {
		case apierrors.IsNotFound(err), err == nil && (isUnpublished(before) || contentBy(before.Namespace, caller.Author, &before.Spec) != content):
			continue
		case err != nil:
			end()
			return nil, fmt.Errorf("read recently published posts: %w", err)
		}
		end()
		return nil, &RepeatedError{ID: known.name, At: known.at}
	}
	return end, nil
}

// isUnpublished reports whether no part of a post is published or still can be.
func isUnpublished(post *v1alpha1.Post) bool {
	if posting.Of(post).Cancelled() || post.Spec.Draft {
		return true
	}
	if posting.Of(post).Phase() != v1alpha1.PhaseFailed {
		return false
	}
	return !slices.ContainsFunc(post.Status.Targets, func(t v1alpha1.TargetStatus) bool {
		return posting.StateOf(&t) != v1alpha1.TargetFailed || t.ExternalID != ""
	})
}
