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

// changeTries is how often a change is written again because the manager wrote the
// post's status in between, or because an answer was lost.
const changeTries = 5

// ErrMaybeChanged is the service's own trouble after which a change of a post may have
// been stored all the same: the person looks at the post before they try again.
var ErrMaybeChanged = errors.New("change a post, which may be changed nevertheless")

// Version names what a post asks for at this moment. A person's change is made on the
// condition that it is still the same. Unlike a resourceVersion it stays the same while
// the manager notes how the post stands.
func Version(post *v1alpha1.Post) string {
	return string(post.UID) + "." + strconv.FormatInt(post.Generation, 10)
}

func isVersion(version string) func(*v1alpha1.Post) bool {
	return func(post *v1alpha1.Post) bool { return Version(post) == version }
}

// UpdateDraft replaces what a draft asks for; it stays a draft. version is the Version of
// the post that the person saw. If somebody else changed the post meanwhile, the error is
// a CONFLICT and nothing is stored. A draft that asks for this already stays as it is.
func (s *Service) UpdateDraft(ctx context.Context, caller Caller, id, version string, spec v1alpha1.PostSpec) (*v1alpha1.Post, error) {
	spec.Draft = true
	return s.change(ctx, &change{
		caller: caller, id: id, seen: isVersion(version), act: ActEdited, from: []v1alpha1.PostPhase{v1alpha1.PhaseDraft},
		spec: func(v1alpha1.PostSpec) v1alpha1.PostSpec { return spec }, validate: s.validateChange,
	})
}

// Publish publishes a draft, or a scheduled post, with what spec says: at a time that
// lies in the future or, if that is nil, at once. All rules of a new post are held, and
// its accounts must be ready. version is as in UpdateDraft. A post that asks for exactly
// this already is returned as it is: a request that comes twice takes effect once.
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

// EditScheduled replaces what a scheduled post asks for before its delivery begins; it
// stays scheduled, for the time that spec says. All rules of a new post are held;
// accounts that the post did not name before must be ready. version is as in
// UpdateDraft.
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

// Reschedule moves a scheduled post to another time in the future. Only the time and the
// plan are judged: a post that waits for something to be mended can be moved too. version
// is as in UpdateDraft.
func (s *Service) Reschedule(ctx context.Context, caller Caller, id, version string, at time.Time) (*v1alpha1.Post, error) {
	return s.move(ctx, &change{caller: caller, id: id, seen: isVersion(version)}, at)
}

// Move is Reschedule for a person who saw no more of the post than when it was to be
// published, as a calendar shows it: from. Changes of anything else do not count.
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

// change is what a person wants of a post that exists.
type change struct {
	caller Caller
	id     string
	act    Act
	// seen reports whether a post is as the person saw it.
	seen func(*v1alpha1.Post) bool
	// from are the phases in which it can be done.
	from []v1alpha1.PostPhase
	// spec returns what the post is to ask for, given what it asks for now.
	spec func(now v1alpha1.PostSpec) v1alpha1.PostSpec
	// validate refuses what is not allowed, and returns what the post then takes.
	validate func(ctx context.Context, before *v1alpha1.Post, j *postValidation) (*reservations, error)

	// before is the post before the change, and needs what it takes then; both are nil
	// before it was judged.
	before       *v1alpha1.Post
	reservations *reservations
	// lost says that the answer to a write was lost, so that it may have taken effect.
	lost bool
}

// change makes a change, once, however often it is tried: each write is made on the
// condition that the post is as it was read, and a post that is as it should be is left
// alone. What the post takes is counted before, and given back if nothing was stored.
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
		wanted.Spec.Cancelled = false
		wanted.Spec.OnUnknownOutcome = cmp.Or(wanted.Spec.OnUnknownOutcome, post.Spec.OnUnknownOutcome)
		if v1alpha1.SemanticEqual(post.Spec, wanted.Spec) && !posting.Cancelled(post) {
			return s.already(ctx, c, post), nil
		}
		if refused := c.refuse(post); refused != nil {
			return nil, s.abort(ctx, c, refused)
		}
		if err := s.reserve(ctx, c, post, wanted); err != nil {
			return nil, err
		}
		signed(&wanted.ObjectMeta, c.caller)
		written, err := s.Posts.Update(ctx, post, wanted)
		switch {
		case err == nil:
			s.changed(ctx, c, written)
			return written, nil
		case apierrors.IsConflict(err):
			last = errorf(CodeConflict, "post %s is being changed at the same time; nothing of yours was stored. Try again.", c.id)
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

// reserve judges a change, once, and reserves what the post then takes.
func (s *Service) reserve(ctx context.Context, c *change, before, wanted *v1alpha1.Post) error {
	if c.reservations != nil {
		return nil
	}
	if wanted.Spec.Category != before.Spec.Category {
		return invalid(field.ErrorList{field.Forbidden(field.NewPath("spec", "category"), "a post's category cannot be changed; make a new post instead")})
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

// validateChange judges a post like a new one. Of the accounts of a scheduled post only
// those are asked that it did not name before: the manager watches the others.
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

// newIn returns the connections that a post did not name before.
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

// validateTime judges the time of a post, and what it takes of the plan then.
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

// refuse says why a post as it stands cannot be changed; nil if it can.
func (c *change) refuse(post *v1alpha1.Post) *Error {
	phase := posting.PhaseOf(post)
	switch {
	case post.DeletionTimestamp != nil:
		return noSuchPost(c.id)
	case phase == v1alpha1.PhaseProcessing:
		return tooLate(c.id)
	case !slices.Contains(c.from, phase):
		return errorf(CodeConflict, "post %s is %s by now, and this can be done with %s only; nothing was changed", c.id, phase, namesOf(c.from))
	case !c.seen(post):
		by := ""
		if author := post.Annotations[v1alpha1.LastAuthorAnnotation]; author != "" {
			by = ", last by " + author
		}
		return errorf(CodeConflict, "post %s was changed since you opened it%s; nothing of yours was stored. Look at it as it is now, and make your change again.", c.id, by)
	default:
		return nil
	}
}

func namesOf(phases []v1alpha1.PostPhase) string {
	words := map[v1alpha1.PostPhase]string{v1alpha1.PhaseDraft: "a draft", v1alpha1.PhaseScheduled: "a scheduled post"}
	if len(phases) == 1 {
		return words[phases[0]]
	}
	return words[phases[0]] + " or " + words[phases[1]]
}

func tooLate(id string) *Error {
	return errorf(CodeConflict, "post %s is being delivered and cannot be changed any more", id)
}

// deliveryStarted reports whether the delivery of a post has begun, as far as can be told.
func (s *Service) deliveryStarted(ctx context.Context, c *change) bool {
	post, err := s.read(ctx, c.caller, c.id)
	return err == nil && (posting.Started(post) || post.Status.Finished)
}

// already ends a change of a post that is as it should be: because it was, because the
// same request came twice, or because the answer to a write was lost.
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

// changed ends a change that was stored: lists show it, what the post took before and does
// not take any more is given back, and it leaves its trail.
func (s *Service) changed(ctx context.Context, c *change, post *v1alpha1.Post) {
	find := s.inMemory(post.Namespace)
	s.wrote(ctx, post, find)
	if !c.before.Spec.Draft {
		for _, counter := range plan.LimitsOf(s.Owner(post.Namespace)).Counters(c.before, find, 0) {
			s.settle(ctx, post, counter, func(stored *v1alpha1.Usage) {
				usage.Settle(stored, plan.Stored(&counter, c.reservations.post, find, 0))
			})
		}
	}
	if c.act == ActPublished || c.act == ActScheduled {
		now := s.Clock.Now()
		s.recent.add(contentBy(post.Namespace, c.caller.Author, &post.Spec), recentPost{post.Name, now}, now)
	}
	s.Acted(ctx, c.caller, c.act, post)
}

// abort ends a change that was not stored and returns why. One whose answer was lost
// may have been stored: then what is counted stays, and the manager finds out.
func (s *Service) abort(ctx context.Context, c *change, why error) error {
	if c.reservations == nil {
		return why
	}
	// After a refusal the post is not as it was any more when it was read, so that no
	// write can come into effect later.
	if _, refused := errors.AsType[*Error](why); c.lost && !refused {
		return fmt.Errorf("%w: %w", ErrMaybeChanged, why)
	}
	c.reservations.release(ctx)
	return why
}
