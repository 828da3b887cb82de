// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// cancelTries limits the attempts to cancel a post that is being written concurrently. Each such write makes progress,
// so a few are enough.
const cancelTries = 10

// GetPost returns one of the caller's team's posts, from the Kubernetes API or the archive.
func (s *Service) GetPost(ctx context.Context, caller Caller, id string) (PostDetail, error) {
	post, err := s.read(ctx, caller, id)
	if err != nil {
		return PostDetail{}, err
	}
	detail := s.detail(post, s.inMemory(caller.Namespace))
	if caller.Version1 {
		detail.Platforms = slices.DeleteFunc(detail.Platforms, func(p PlatformDetail) bool { return !p.Platform.InVersion1() })
	}
	return detail, nil
}

// ReadPost returns one of the team's posts, from the Kubernetes API or the archive. The caller may modify it.
func (s *Service) ReadPost(ctx context.Context, caller Caller, id string) (*v1alpha1.Post, error) {
	return s.read(ctx, caller, id)
}

// CountPosts returns how many of the caller's team's posts are in each listed state.
func (s *Service) CountPosts(ctx context.Context, caller Caller) (postindex.Counts, error) {
	if s.Archive != nil {
		counts, err := s.Archive.Counts(ctx, caller.Namespace)
		return counts, archiveError("count posts", err)
	}
	return s.Index.Counts(caller.Namespace), nil
}

// SubscribePost returns a channel that signals possible changes to a post. Signals that are not received are merged
// into one. Subscribe before reading, so that no change is missed. stop ends the subscription and is called only once.
func (s *Service) SubscribePost(caller Caller, id string) (changes <-chan struct{}, stop func(), err error) {
	changes, stop, ok := s.Subscribe(caller.Namespace, id)
	if !ok {
		return nil, nil, errorf(CodeRateLimited, "too many pages are following posts; reload the page to see the post's current state")
	}
	return changes, stop, nil
}

// ListPosts returns a page of the caller's team's posts. Page and limit are clamped to their bounds.
func (s *Service) ListPosts(ctx context.Context, caller Caller, q postindex.Query) (PostPage, error) {
	q.Page, q.Limit, q.Version1 = min(max(q.Page, 1), maxPage), min(max(q.Limit, 1), maxLimit), caller.Version1
	var (
		posts []postindex.Summary
		total int
		err   error
	)
	if s.Archive != nil {
		posts, total, err = s.Archive.List(ctx, caller.Namespace, q)
	} else {
		posts, total = s.Index.List(caller.Namespace, q)
	}
	if err != nil {
		return PostPage{}, archiveError("list posts", err)
	}
	if caller.Version1 {
		for i := range posts {
			posts[i].Platforms = inVersion1(posts[i].Platforms)
		}
	}
	pages := (total + q.Limit - 1) / q.Limit
	page := PostPage{Posts: posts, Total: total, Page: q.Page, Limit: q.Limit, HasNext: q.Page < pages, CoversArchive: true}
	page.link(q.Page > 1)
	return page, nil
}

// link sets the cursors.
func (p *PostPage) link(hasPrevious bool) {
	if len(p.Posts) == 0 {
		return
	}
	if first := &p.Posts[0]; hasPrevious {
		p.Previous = &postindex.Cursor{ID: first.ID, DisplayAt: first.DisplayAt, Back: true}
	}
	if last := &p.Posts[len(p.Posts)-1]; p.HasNext {
		p.Next = &postindex.Cursor{ID: last.ID, DisplayAt: last.DisplayAt}
	}
}

// SearchPosts returns a page of the caller's team's posts that match a search. The limit is clamped to its bounds.
func (s *Service) SearchPosts(ctx context.Context, caller Caller, q *postindex.Search) (PostPage, error) {
	q.Limit = min(max(q.Limit, 1), maxLimit)
	found, err := s.FindPosts(ctx, caller, q)
	if err != nil {
		return PostPage{}, err
	}
	page := PostPage{
		Posts: found.Posts, Total: found.Total, Page: found.First/q.Limit + 1, Limit: q.Limit,
		HasNext: found.First+len(found.Posts) < found.Total, CoversArchive: q.CoversArchive(),
	}
	page.link(found.First > 0)
	return page, nil
}

// CancelPost cancels a draft, or a scheduled post whose delivery has not started. A caller without ScopePublish can
// cancel only drafts.
func (s *Service) CancelPost(ctx context.Context, caller Caller, id string) error {
	return s.cancel(ctx, caller, id, func(*v1alpha1.Post) bool { return true })
}

// CancelSeen is CancelPost for a user who saw the post. See UpdateDraft for version.
func (s *Service) CancelSeen(ctx context.Context, caller Caller, id, version string) error {
	return s.cancel(ctx, caller, id, isVersion(version))
}

func (s *Service) cancel(ctx context.Context, caller Caller, id string, seen func(*v1alpha1.Post) bool) error {
	if err := require(caller, ScopeDraft); err != nil {
		return err
	}
	for range cancelTries {
		post, err := s.read(ctx, caller, id)
		if err != nil {
			return err
		}
		if refused := cannotCancel(post); refused != nil {
			return refused
		}
		if !seen(post) {
			return changedSince(post)
		}
		if !post.Spec.Draft {
			if refused := require(caller, ScopePublish); refused != nil {
				return refused
			}
		}
		wanted := post.DeepCopy()
		wanted.Spec.Cancelled = true
		signed(&wanted.ObjectMeta, caller)
		cancelled, err := s.Posts.Update(ctx, post, wanted)
		switch {
		case err == nil:
			s.wrote(ctx, cancelled, s.inMemory(cancelled.Namespace))
			s.returnAll(ctx, cancelled)
			s.Acted(ctx, caller, ActCancelled, cancelled)
			return nil
		case apierrors.IsConflict(err):
			continue
		case apierrors.IsNotFound(err):
			return noSuchPost(id)
		case apierrors.IsInvalid(err):
			return errorf(CodeConflict, "post %s is being delivered and can no longer be cancelled", id)
		default:
			return fmt.Errorf("cancel a post: %w", err)
		}
	}
	return errorf(CodeConflict, "post %s is being changed at the same time; try again", id)
}

func cannotCancel(post *v1alpha1.Post) *Error {
	if posting.Of(post).Cancellable() {
		return nil
	}
	switch phase := posting.Of(post).Phase(); phase {
	case v1alpha1.PhaseCancelled:
		return errorf(CodeConflict, "post %s is already cancelled", post.Name)
	case v1alpha1.PhaseProcessing:
		return errorf(CodeConflict, "post %s is being delivered and can no longer be cancelled", post.Name)
	case v1alpha1.PhasePosted, v1alpha1.PhaseFailed, v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled:
		return errorf(CodeConflict, "post %s is %s; only a draft or a scheduled post whose delivery has not begun can be cancelled", post.Name, phase)
	default:
		return errorf(CodeConflict, "post %s cannot be cancelled", post.Name)
	}
}

func (s *Service) read(ctx context.Context, caller Caller, id string) (*v1alpha1.Post, error) {
	if !validName(id) {
		return nil, noSuchPost(id)
	}
	post, err := s.Posts.Get(ctx, caller.Namespace, id)
	switch {
	case apierrors.IsNotFound(err):
		return s.readArchived(ctx, caller, id)
	case err != nil:
		return nil, fmt.Errorf("read a post: %w", err)
	}
	return s.shown(caller, post)
}

// readArchived returns an archived post. It is finished, and therefore read-only.
func (s *Service) readArchived(ctx context.Context, caller Caller, id string) (*v1alpha1.Post, error) {
	if s.Archive == nil {
		return nil, noSuchPost(id)
	}
	// The second read, from the store, is also charged.
	limits.MeterFrom(ctx).Whole(1)
	post, err := s.Archive.Post(ctx, caller.Namespace, id)
	switch {
	case err != nil:
		return nil, archiveError("read a post that is not in the cluster", err)
	case post == nil:
		return nil, noSuchPost(id)
	}
	return s.shown(caller, post)
}

// isArchived reports whether a post was read from the archive, which has no resource versions.
func isArchived(post *v1alpha1.Post) bool { return post.ResourceVersion == "" }

// archiveError adds the operation to an error, and converts ErrArchiveAway to an error for clients.
func archiveError(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrArchiveAway):
		away := errorf(CodeInternal, "older finished posts are in the archive, which cannot be read at the moment; "+
			"try again in half a minute. Newer posts can still be created, and read by their id")
		return fmt.Errorf("%w (%s: %w)", away, doing, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

func noSuchPost(id string) *Error {
	return errorf(CodeNotFound, "this team has no post %q", truncateID(id))
}

// truncateID returns an id for messages, truncated to the longest possible name.
func truncateID(id string) string {
	const longest = 253 // the limit of a name in Kubernetes
	if len(id) <= longest {
		return id
	}
	return strings.ToValidUTF8(id[:longest], "") + "…"
}

// validName reports whether a client's value can be a resource's name. Other values are not sent to the Kubernetes API.
func validName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

func (s *Service) inMemory(namespace string) func(string) *v1alpha1.Connection {
	return func(name string) *v1alpha1.Connection { return s.Connections.Get(namespace, name) }
}

func (s *Service) detail(post *v1alpha1.Post, find func(string) *v1alpha1.Connection) PostDetail {
	view := posting.Of(post)
	out := PostDetail{
		ID:        post.Name,
		Status:    view.Phase(),
		Category:  post.Spec.Category,
		CanCancel: view.CanCancel(s.Clock.Now()),
		Platforms: make([]PlatformDetail, 0, len(post.Spec.Targets)),
		DisplayAt: view.DisplayAt(),
		Waits:     post.Spec.Draft && post.Annotations[v1alpha1.WantedAtAnnotation] != "",
		Version:   Version(post),
		CreatedAt: view.Created(),
		Content:   &post.Spec,
		PostedAt:  make([]time.Time, len(post.Spec.Targets)),
	}
	if at := post.Spec.ScheduledAt; at != nil {
		out.ScheduledAt = &at.Time
	}
	out.Media, out.Cards = contentOf(post)
	for i := range post.Spec.Targets {
		platform := cmp.Or(platformOf(post, i, find), posting.PresumedPlatform(&post.Spec.Targets[i]))
		out.Platforms = append(out.Platforms, s.targetDetail(post, i, platform, find))
		if target := view.Target(i); target != nil && target.PostedAt != nil {
			out.PostedAt[i] = target.PostedAt.Time
		}
	}
	return out
}

func (s *Service) targetDetail(post *v1alpha1.Post, i int, platform v1alpha1.Platform, find func(string) *v1alpha1.Connection) PlatformDetail {
	out := PlatformDetail{
		Platform: platform,
		Status:   posting.Of(post).TargetPhase(i),
		Caption:  post.Spec.Targets[i].Caption,
	}
	if options := post.Spec.Targets[i].YouTube; options != nil && platform == v1alpha1.PlatformYouTube {
		out.YouTubeTitle = options.Title
	}
	if connection := find(post.Spec.Targets[i].ConnectionRef.Name); connection != nil {
		out.ConnectionID = connection.Name
		out.AccountName = connection.Status.AccountName
	}
	target := posting.Of(post).Target(i)
	if target != nil {
		out.ExternalURL, out.RetriedBy = target.ExternalURL, target.RetriedBy
	}
	if out.Status == v1alpha1.PhaseFailed {
		out.ErrorMessage = s.failure(post, target)
	}
	return out
}

func (s *Service) failure(post *v1alpha1.Post, target *v1alpha1.TargetStatus) string {
	if attempt.Undecided(target) {
		return s.question(post, target)
	}
	if attempt.Settled(target) && target.Message != "" {
		return target.Message
	}
	if target != nil && target.Reason != "" {
		return target.Reason
	}
	return "delivery failed for a reason that was not recorded"
}

// question returns the message for an undecided target, with the place where a user can answer it; archived posts
// cannot be resolved. The post's status contains the same message for kubectl users.
func (s *Service) question(post *v1alpha1.Post, target *v1alpha1.TargetStatus) string {
	what, rest := "it", ""
	if n := len(target.Cards); n > 0 {
		what, rest = fmt.Sprintf("card %d", n+1), " The cards before it are online."
	}
	why := ""
	if target.Blocked != nil {
		why = " (" + target.Blocked.Problem + ")"
	}
	unknown := "Needs an answer: it is unknown whether " + what + " was published" + why + "." + rest
	const look = " Do not post it again: it may be online. Someone must check the account, "
	switch {
	case isArchived(post):
		return unknown + " The post is archived, so no outcome can be recorded. Someone must check the account before the same content is posted again: it may be online."
	case s.PageOf != nil:
		return unknown + look + "open " + s.PageOf(post.Namespace, post.Name) + " and answer there."
	default:
		return unknown + look + "read the condition " + v1alpha1.ConditionOutcomeUnknown + " of the Post in Kubernetes and answer as it describes."
	}
}

// platformOf returns the recorded platform of target i, the platform of its connection, or "" if the connection has
// never existed.
func platformOf(post *v1alpha1.Post, i int, find func(string) *v1alpha1.Connection) v1alpha1.Platform {
	if target := posting.Of(post).Target(i); target != nil && target.Platform != "" {
		return target.Platform
	}
	if connection := find(post.Spec.Targets[i].ConnectionRef.Name); connection != nil {
		return connection.Spec.Platform
	}
	return ""
}
