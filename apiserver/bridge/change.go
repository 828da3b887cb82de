// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/rules"
	"github.com/herald-social/herald/posting/usage"
)

// changeTries limits the attempts to write a change, after conflicts and lost responses.
const changeTries = 5

// ErrMaybeChanged is an internal error that leaves open whether a change to a post was stored: the user must check the
// post before trying again.
var ErrMaybeChanged = errors.New("change a post; the change may have been stored")

// Version identifies a post's content. A user's change is conditional on it. Unlike a resourceVersion, it does not
// change with the manager's status updates.
func Version(post *v1alpha1.Post) string {
	return string(post.UID) + "." + strconv.FormatInt(post.Generation, 10)
}

func isVersion(version string) func(*v1alpha1.Post) bool {
	return func(post *v1alpha1.Post) bool { return Version(post) == version }
}

// UpdateDraft replaces the content of a draft, which remains a draft. version is the Version that the user saw. If
// the post has changed since, UpdateDraft returns a CONFLICT and does not store the change. A draft that already has
// this content is not written.
func (s *Service) UpdateDraft(ctx context.Context, caller Caller, id, version string, spec v1alpha1.PostSpec) (*v1alpha1.Post, error) {
	return s.updateDraft(ctx, &change{caller: caller, id: id, seen: isVersion(version)}, spec)
}

func (s *Service) updateDraft(ctx context.Context, c *change, spec v1alpha1.PostSpec) (*v1alpha1.Post, error) {
	spec.Draft = true
	c.act, c.from, c.validate = ActEdited, []v1alpha1.PostPhase{v1alpha1.PhaseDraft}, s.validateChange
	c.spec = func(v1alpha1.PostSpec) v1alpha1.PostSpec { return spec }
	return s.change(ctx, c)
}

// Publish publishes a draft or a scheduled post with the content in spec, at a future time or, if at is nil,
// immediately. It applies all rules for a new post, and the accounts must be ready. See UpdateDraft for version.
// Publish is idempotent: a post that has exactly this content is returned unchanged.
func (s *Service) Publish(ctx context.Context, caller Caller, id, version string, spec v1alpha1.PostSpec, at *time.Time) (*v1alpha1.Post, error) {
	act := ActPublished
	spec.Draft, spec.ScheduledAt = false, nil
	if at != nil {
		act, spec.ScheduledAt = ActScheduled, v1alpha1.NewTimePtr(*at)
	}
	return s.change(ctx, &change{
		caller: caller, id: id, seen: isVersion(version), act: act, from: []v1alpha1.PostPhase{v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled},
		spec: func(v1alpha1.PostSpec) v1alpha1.PostSpec { return spec }, validate: s.validateChange,
	})
}

// EditScheduled replaces the content of a scheduled post before its delivery starts. The post remains scheduled, for
// the time in spec. All rules for a new post apply; accounts that are new to the post must be ready. See UpdateDraft
// for version.
func (s *Service) EditScheduled(ctx context.Context, caller Caller, id, version string, spec v1alpha1.PostSpec) (*v1alpha1.Post, error) {
	if spec.ScheduledAt == nil {
		return nil, invalid(field.ErrorList{field.Required(field.NewPath("spec", "scheduledAt"), "choose when to publish the post")})
	}
	spec.Draft = false
	return s.change(ctx, &change{
		caller: caller, id: id, seen: isVersion(version), act: ActEdited, from: []v1alpha1.PostPhase{v1alpha1.PhaseScheduled},
		spec: func(v1alpha1.PostSpec) v1alpha1.PostSpec { return spec }, validate: s.validateChange,
	})
}

// Reschedule moves a scheduled post to another future time. Only the time and the plan are validated, so a post with
// other problems can also be moved. See UpdateDraft for version.
func (s *Service) Reschedule(ctx context.Context, caller Caller, id, version string, at time.Time) (*v1alpha1.Post, error) {
	return s.move(ctx, &change{caller: caller, id: id, seen: isVersion(version)}, at)
}

// Move is Reschedule for a user who saw only the scheduled time, from, as in a calendar. Other concurrent changes do
// not conflict.
func (s *Service) Move(ctx context.Context, caller Caller, id string, from, at time.Time) (*v1alpha1.Post, error) {
	return s.move(ctx, &change{caller: caller, id: id, seen: func(post *v1alpha1.Post) bool {
		return post.Spec.ScheduledAt.Equal(v1alpha1.NewTimePtr(from))
	}}, at)
}

func (s *Service) move(ctx context.Context, c *change, at time.Time) (*v1alpha1.Post, error) {
	c.act, c.from, c.validate = ActRescheduled, []v1alpha1.PostPhase{v1alpha1.PhaseScheduled}, s.validateTime
	c.spec = func(spec v1alpha1.PostSpec) v1alpha1.PostSpec {
		spec.ScheduledAt = v1alpha1.NewTimePtr(at)
		return spec
	}
	return s.change(ctx, c)
}

type change struct {
	caller Caller
	id     string
	act    Act
	// seen reports whether the post is in the state that the user saw.
	seen func(*v1alpha1.Post) bool
	// from are the phases that allow the change.
	from []v1alpha1.PostPhase
	spec func(now v1alpha1.PostSpec) v1alpha1.PostSpec
	// validate rejects an invalid change, and returns the reservations that the post needs after it.
	validate func(ctx context.Context, before *v1alpha1.Post, j *postValidation) (*reservations, error)

	// before is the post before the change, and reservations are the quota that it needs after the change; nil until it
	// is validated.
	before       *v1alpha1.Post
	reservations *reservations
	// lost is set if the response to a write was lost, so the write may have taken effect.
	lost bool
	// unrecorded omits the event and the log line for a change to a post whose last change was by the same user.
	unrecorded bool
}

// change applies a change at most once over all retries: writes use optimistic concurrency, and a post that is already
// in the wanted state is not written. Usage is reserved before the write, and released if nothing was stored.
func (s *Service) change(ctx context.Context, c *change) (*v1alpha1.Post, error) {
	if err := s.RequireSubscription(c.caller); err != nil {
		return nil, err
	}
	var last error
	for range changeTries {
		post, err := s.read(ctx, c.caller, c.id)
		if err != nil {
			return nil, s.abort(ctx, c, err)
		}
		wanted := post.DeepCopy()
		wanted.Spec = c.spec(*post.Spec.DeepCopy())
		wanted.Spec.Cancelled, wanted.Spec.RetryOf = false, post.Spec.RetryOf
		wanted.Spec.OnUnknownOutcome = cmp.Or(wanted.Spec.OnUnknownOutcome, post.Spec.OnUnknownOutcome)
		if v1alpha1.SemanticEqual(post.Spec, wanted.Spec) && !posting.Of(post).Cancelled() {
			return s.already(ctx, c, post), nil
		}
		if refused := c.refuse(post); refused != nil {
			return nil, s.abort(ctx, c, refused)
		}
		if err := s.reserve(ctx, c, post, wanted); err != nil {
			return nil, err
		}
		signedByAny(&wanted.ObjectMeta, c.caller)
		written, err := s.Posts.Update(ctx, post, wanted)
		switch {
		case err == nil:
			s.changed(ctx, c, written)
			return written, nil
		case apierrors.IsConflict(err):
			last = errorf(CodeConflict, "post %s is being changed at the same time; your change was not stored. Try again.", c.id)
		case answerLost(err):
			c.lost, last = true, err
			if ctx.Err() != nil {
				return nil, s.abort(ctx, c, err)
			}
		case apierrors.IsInvalid(err) && s.deliveryStarted(ctx, c):
			return nil, s.abort(ctx, c, tooLate(c.id))
		default:
			if refused := refusedByKubernetes(err); refused != nil {
				return nil, s.abort(ctx, c, refused)
			}
			return nil, s.abort(ctx, c, fmt.Errorf("change a post: %w", err))
		}
	}
	return nil, s.abort(ctx, c, last)
}

// reserve validates a change and reserves the post's usage. It does so only once, even if the write is retried.
func (s *Service) reserve(ctx context.Context, c *change, before, wanted *v1alpha1.Post) error {
	if c.reservations != nil {
		return nil
	}
	if wanted.Spec.Category != before.Spec.Category && !before.Spec.Draft {
		return invalid(field.ErrorList{field.Forbidden(field.NewPath("spec", "category"), "a post's category cannot be changed unless it is a draft; create a new post instead")})
	}
	now := s.Clock.Now()
	planned := wanted
	if !wanted.Spec.Draft && wanted.Spec.ScheduledAt == nil {
		planned = wanted.DeepCopy()
		planned.Spec.ScheduledAt = v1alpha1.NewTimePtr(now)
	}
	if err := s.requireRoomToChange(before, wanted); err != nil {
		return err
	}
	needs, err := c.validate(ctx, before, &postValidation{post: wanted, planned: planned, stored: before, now: now})
	if err != nil {
		return err
	}
	if err := needs.reserve(ctx); err != nil {
		needs.release(ctx)
		return err
	}
	c.before, c.reservations = before, needs
	return nil
}

// validateChange applies the rules for a new post. Readiness is only checked for a scheduled post's new accounts.
func (s *Service) validateChange(ctx context.Context, before *v1alpha1.Post, j *postValidation) (*reservations, error) {
	needs, _, err := s.validate(ctx, j, func(named map[string]*v1alpha1.Connection) error {
		if j.post.Spec.Draft {
			return nil
		}
		if j.post.Spec.ScheduledAt == nil || before.Spec.Draft {
			return s.requireReady(ctx, named)
		}
		return s.requireReady(ctx, newIn(before, named))
	})
	return needs, err
}

func newIn(before *v1alpha1.Post, named map[string]*v1alpha1.Connection) map[string]*v1alpha1.Connection {
	added := map[string]*v1alpha1.Connection{}
	for name, connection := range named {
		known := slices.ContainsFunc(before.Spec.Targets, func(t v1alpha1.PostTarget) bool { return t.ConnectionRef.Name == name })
		if !known {
			added[name] = connection
		}
	}
	return added
}

// validateTime validates a post's time and the plan's usage at that time.
func (s *Service) validateTime(ctx context.Context, _ *v1alpha1.Post, j *postValidation) (*reservations, error) {
	if errs := append(checkTime(j.post), rules.ValidateTime(j.post, j.now)...); len(errs) > 0 {
		return nil, invalid(errs)
	}
	needs, err := s.withinPlan(ctx, j.planned, s.inMemory(j.post.Namespace))
	if err != nil {
		return nil, err
	}
	if err := needs.check(ctx, v1alpha1.ResourceTikTokDrafts); err != nil {
		return nil, err
	}
	return needs, nil
}

func (c *change) refuse(post *v1alpha1.Post) *Error {
	phase := posting.Of(post).Phase()
	switch {
	case post.DeletionTimestamp != nil:
		return noSuchPost(c.id)
	case phase == v1alpha1.PhaseProcessing:
		return tooLate(c.id)
	case !slices.Contains(c.from, phase):
		return errorf(CodeConflict, "post %s is now %s, and this is only possible for %s; nothing was changed", c.id, phase, namesOf(c.from))
	case !c.seen(post):
		return changedSince(post)
	default:
		return nil
	}
}

// changedSince returns the error for a change to a post that has changed since the user saw it.
func changedSince(post *v1alpha1.Post) *Error {
	by, author := "", post.Annotations[v1alpha1.LastAuthorAnnotation]
	if author != "" {
		by = LastBy + author
	}
	changed := errorf(CodeConflict, "post %s has changed since you opened it%s; your change was not stored. Reload the post and make your change again.", post.Name, by)
	changed.ChangedBy, changed.Stale, changed.Post = author, true, post.Name
	return changed
}

func namesOf(phases []v1alpha1.PostPhase) string {
	words := map[v1alpha1.PostPhase]string{v1alpha1.PhaseDraft: "a draft", v1alpha1.PhaseScheduled: "a scheduled post"}
	if len(phases) == 1 {
		return words[phases[0]]
	}
	return words[phases[0]] + " or " + words[phases[1]]
}

func tooLate(id string) *Error {
	return errorf(CodeConflict, "post %s is being delivered and can no longer be changed", id)
}

// deliveryStarted reports whether a post's delivery may have started. It returns false if the read fails.
func (s *Service) deliveryStarted(ctx context.Context, c *change) bool {
	post, err := s.read(ctx, c.caller, c.id)
	return err == nil && (posting.Of(post).Started() || post.Status.Finished)
}

// already completes a change to a post that is already in the wanted state: because it is unchanged, was changed by an
// identical request, or was written and the response lost.
func (s *Service) already(ctx context.Context, c *change, post *v1alpha1.Post) *v1alpha1.Post {
	switch {
	case c.reservations == nil:
	case c.lost:
		s.changed(ctx, c, post)
	default:
		c.reservations.release(ctx)
	}
	return post
}

// changed updates the index, releases usage that the post no longer needs, and records the action.
func (s *Service) changed(ctx context.Context, c *change, post *v1alpha1.Post) {
	find := s.inMemory(post.Namespace)
	s.wrote(ctx, post, find)
	if !c.before.Spec.Draft {
		for _, counter := range plan.LimitsOf(s.Owner(post.Namespace)).Counters(c.before, find, 0) {
			s.settle(ctx, post, counter, func(stored *v1alpha1.Usage) {
				usage.Settle(stored, plan.UsesOfStored(&counter, c.reservations.post, find, 0))
			})
		}
	}
	if c.act == ActPublished || c.act == ActScheduled {
		now := s.Clock.Now()
		s.recent.add(contentBy(post.Namespace, c.caller.Author, &post.Spec), recentPost{post.Name, now}, now)
	}
	if c.unrecorded && lastAuthor(c.before) == c.caller.Author {
		return
	}
	s.Acted(ctx, c.caller, c.act, post)
}

// abort ends a change that was not stored and returns the error. If the response to a write was lost, the change may
// have been stored, so the usage remains reserved and the manager corrects it.
func (s *Service) abort(ctx context.Context, c *change, why error) error {
	if c.reservations == nil {
		return why
	}
	// After a rejection the post differs from the version that was read: the lost write cannot take effect.
	if _, refused := errors.AsType[*Error](why); c.lost && !refused {
		return fmt.Errorf("%w: %w", ErrMaybeChanged, why)
	}
	c.reservations.release(ctx)
	return why
}
