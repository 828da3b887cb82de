// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/cost"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/posting"
)

const (
	// postPrefix begins the id of a post.
	postPrefix = "p"
	// idLength is how many characters of 5 bits follow the prefix of an id:
	// 125 bits, so that no id can be guessed.
	idLength = 25
	// createTries is how often a create is sent whose answer was lost. The
	// post's name makes the tries one: only the first can succeed.
	createTries = 3
	// lastYear is the last one that v1alpha1.Time can hold.
	lastYear = 2999
)

// CreatePost creates a post and returns it as it reads now.
func (s *Service) CreatePost(ctx context.Context, caller Caller, in CreatePost) (PostDetail, error) {
	if err := s.RequireSubscription(caller); err != nil {
		return PostDetail{}, err
	}
	if err := require(caller, ScopeDraft); err != nil {
		return PostDetail{}, err
	}
	cost.From(ctx).Parts(len(in.Spec.Targets))
	now := s.Clock.Now()
	post, err := newPost(caller, &in, now)
	if err != nil {
		return PostDetail{}, err
	}
	if trace := tracing.Traceparent(ctx); trace != "" {
		post.Annotations[v1alpha1.TraceparentAnnotation] = trace
	}
	j := &postValidation{post: post, planned: post, problems: in.Problems, now: now}
	if s.requiresReview(caller) {
		j.requested = convertToDraft(post)
	}
	detail, found, err := s.earlier(ctx, post)
	reused, isReused := errors.AsType[*Error](err)
	if !isReused && (found || err != nil) {
		return detail, err
	}
	if in.UnlessRepeated && !post.Spec.Draft {
		end, err := s.unlessRepeated(ctx, &caller, post)
		if err != nil {
			return PostDetail{}, err
		}
		defer end()
	}
	detail, err = s.createNew(ctx, caller, j, reused)
	if _, refused := errors.AsType[*Error](err); refused && !isReused {
		// The same request may have been served meanwhile, and have taken what this
		// one did not get.
		if served, found, failed := s.earlier(ctx, post); found && failed == nil {
			return served, nil
		}
	}
	return detail, err
}

// createNew creates a post that was not there a moment ago. If its key was used
// for another request, reused says so; other refusals come before.
func (s *Service) createNew(ctx context.Context, caller Caller, j *postValidation, reused *Error) (PostDetail, error) {
	if err := s.requireRoom(j.post); err != nil {
		return PostDetail{}, err
	}
	needs, connections, err := s.validate(ctx, j, func(named map[string]*v1alpha1.Connection) error {
		switch {
		case reused != nil:
			return reused // what is wrong with the post by itself comes before
		case j.post.Spec.Draft:
			return nil
		default:
			return s.requireReady(ctx, named)
		}
	})
	if err != nil {
		return PostDetail{}, err
	}
	done, full := s.admitPost(j.post)
	if full != nil {
		return PostDetail{}, full
	}
	defer done() // the index has it by then
	created, replayed, err := s.createReserved(ctx, needs, j.post)
	if err != nil {
		return PostDetail{}, err
	}
	s.wrote(ctx, created, connections.latest)
	s.Observe(created)
	if !replayed {
		s.Acted(ctx, caller, ActCreated, created)
	}
	detail := s.detail(created, connections.latest)
	detail.Replayed = replayed
	return detail, nil
}

// createReserved creates a post that counts: what it takes is reserved before, and
// given back if the post certainly did not come into being. replayed says that the
// same request, sent at the same time, was first. After a lost answer it stays false:
// the post is most likely our own.
func (s *Service) createReserved(ctx context.Context, needs *reservations, post *v1alpha1.Post) (created *v1alpha1.Post, replayed bool, err error) {
	if err := needs.reserve(ctx); err != nil {
		needs.release(ctx)
		return nil, false, err
	}
	tries, existed := 0, false
	created, err = createOnce(ctx,
		func() (*v1alpha1.Post, error) {
			tries++
			return s.Posts.Create(ctx, post)
		},
		func() (*v1alpha1.Post, error) {
			existed = true
			return s.Posts.Get(ctx, post.Namespace, post.Name)
		})
	switch {
	case err == nil:
		err = requireSame(created, post)
	case answerLost(err):
		return nil, false, fmt.Errorf("%w: %w", ErrUncertain, err)
	default:
		if refused := s.refused(post.Namespace, err); refused != nil {
			err = refused
		} else {
			err = fmt.Errorf("create a post: %w", err)
		}
	}
	if err != nil {
		needs.release(ctx)
		return nil, false, err
	}
	if existed {
		needs.transfer(ctx, created)
	}
	return created, existed && tries == 1, nil
}

// requireReady refuses a post to connections that cannot be posted to. All are
// checked side by side.
func (s *Service) requireReady(ctx context.Context, connections map[string]*v1alpha1.Connection) error {
	var mu sync.Mutex
	problems := map[readiness.State][]string{}
	var wg sync.WaitGroup
	for _, connection := range connections {
		wg.Go(func() {
			ctx, span := tracing.Child(ctx, "check connection")
			defer span.End()
			span.Text(tracing.Connection, connection.Name)
			span.Text(tracing.Platform, string(connection.Spec.Platform))
			result := s.Readiness(ctx, connection)
			span.Text(tracing.Outcome, result.State.String())
			if result.State == readiness.Ready {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			problems[result.State] = append(problems[result.State],
				fmt.Sprintf("connection %q (%s): %s", connection.Name, connection.Spec.Platform, result.Message))
		})
	}
	wg.Wait()
	for _, p := range problems {
		slices.Sort(p)
	}
	switch {
	case len(problems[readiness.Reconnect]) > 0:
		return errorf(CodeReconnectRequired, "nothing was posted; %s. Connect the account again, then resend the post.",
			JoinProblems(problems[readiness.Reconnect]))
	case len(problems[readiness.Unavailable]) > 0:
		return errorf(CodeReadinessUnavailable, "nothing was posted; %s. Resend the post later.",
			JoinProblems(problems[readiness.Unavailable]))
	default:
		return nil
	}
}

// createOnce creates a resource, once, however often the answer is lost: its name
// cannot be guessed, so what already has it is this very resource, which existing
// reads. A refusal after a lost answer says nothing of the lost create, which may have
// taken the last place of a ResourceQuota: that is asked before the name is.
func createOnce[T any](ctx context.Context, create, existing func() (T, error)) (made T, err error) {
	var lost error
	for range createTries {
		made, err = create()
		switch {
		case apierrors.IsAlreadyExists(err):
			return existing()
		case err == nil, ctx.Err() != nil:
			return made, err
		case answerLost(err):
			lost = err
		case lost == nil:
			return made, err
		default:
			if made, err = existing(); err != nil {
				return made, lost // it may come yet
			}
			return made, nil
		}
	}
	return made, err
}

// answerLost reports whether a write may have taken effect although it failed.
func answerLost(err error) bool {
	var status apierrors.APIStatus
	if posting.TooLarge(err) {
		return false
	}
	return !errors.As(err, &status) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err)
}
