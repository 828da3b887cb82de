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
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/posting"
)

const (
	postPrefix = "p"
	// idLength is the number of base32 characters after an id's prefix: 125 bits, which cannot be guessed.
	idLength = 25
	// createTries limits the attempts after lost responses. The fixed name makes them idempotent.
	createTries = 3
	// lastYear is the last year that v1alpha1.Time can hold.
	lastYear = 2999
)

// CreatePost creates a post and returns it.
func (s *Service) CreatePost(ctx context.Context, caller Caller, in CreatePost) (PostDetail, error) {
	if err := s.RequireSubscription(caller); err != nil {
		return PostDetail{}, err
	}
	if err := require(caller, ScopeDraft); err != nil {
		return PostDetail{}, err
	}
	limits.MeterFrom(ctx).Parts(len(in.Spec.Targets))
	now := s.Clock.Now()
	post, err := newPost(caller, &in, s.shardOf(caller), now)
	if err != nil {
		return PostDetail{}, err
	}
	if trace := tracing.Traceparent(ctx); trace != "" {
		post.Annotations[v1alpha1.TraceparentAnnotation] = trace
	}
	j := &postValidation{post: post, planned: post, problems: in.Problems, now: now, version1: caller.Version1}
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
		// A concurrent request with the same key may have been served in the meantime, and may have used up the quota that
		// this request was denied.
		if served, found, failed := s.earlier(ctx, post); found && failed == nil {
			return served, nil
		}
	}
	return detail, err
}

// createNew creates a post. reused is the error for a reused key; errors about the post take precedence.
func (s *Service) createNew(ctx context.Context, caller Caller, j *postValidation, reused *Error) (PostDetail, error) {
	if err := s.requireRoom(j.post); err != nil {
		return PostDetail{}, err
	}
	needs, connections, err := s.validate(ctx, j, func(named map[string]*v1alpha1.Connection) error {
		switch {
		case reused != nil:
			return reused // problems of the post itself take precedence
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
	defer done() // the index has the post by then
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

// createReserved creates a post after reserving its usage, and releases the usage if the post was definitely not
// created. replayed is true if a concurrent identical request created the post first. After a lost response it remains
// false, because the post is most likely this request's own.
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

func (s *Service) requireReady(ctx context.Context, connections map[string]*v1alpha1.Connection) error {
	problems := notReady(ctx, connections, s.Readiness)
	if len(problems) == 0 {
		return nil
	}
	return problems[0]
}

// notReady returns the errors for connections that cannot be posted to: first those that must be reconnected, then
// those whose readiness is unknown.
func notReady(ctx context.Context, connections map[string]*v1alpha1.Connection, check func(context.Context, *v1alpha1.Connection) readiness.Result) []*Error {
	var mu sync.Mutex
	problems := map[readiness.State][]string{}
	var wg sync.WaitGroup
	for _, connection := range connections {
		wg.Go(func() {
			ctx, span := tracing.Child(ctx, "check connection")
			defer span.End()
			span.Text(tracing.Connection, connection.Name)
			span.Text(tracing.Platform, string(connection.Spec.Platform))
			result := check(ctx, connection)
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
	var refused []*Error
	if len(problems[readiness.Reconnect]) > 0 {
		refused = append(refused, errorf(CodeReconnectRequired, "nothing was posted; %s. Connect the account again, then resend the post.",
			JoinProblems(problems[readiness.Reconnect])))
	}
	if len(problems[readiness.Unavailable]) > 0 {
		refused = append(refused, errorf(CodeReadinessUnavailable, "nothing was posted; %s. Resend the post later.",
			JoinProblems(problems[readiness.Unavailable])))
	}
	return refused
}

// createOnce creates a resource at most once over all retries: its name cannot be guessed, so an existing resource with
// that name is the one that an earlier attempt created. existing reads it. If a retry is rejected after a lost
// response, the lost create may still have succeeded: it may have used up the ResourceQuota, which the API server
// checks before the name.
func createOnce[T any](ctx context.Context, create, existing func() (T, error)) (created T, err error) {
	var lostErr error
	for range createTries {
		created, err = create()
		switch {
		case apierrors.IsAlreadyExists(err):
			return existing()
		case err == nil, ctx.Err() != nil:
			return created, err
		case answerLost(err):
			lostErr = err
		case lostErr == nil:
			return created, err
		default:
			if created, err = existing(); err != nil {
				return created, lostErr // the lost create may still take effect
			}
			return created, nil
		}
	}
	return created, err
}

// answerLost reports whether a failed write may have taken effect.
func answerLost(err error) bool {
	var status apierrors.APIStatus
	if posting.TooLarge(err) {
		return false
	}
	return !errors.As(err, &status) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err)
}
