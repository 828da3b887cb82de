// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/posting/rules"
)

const (
	// idLength is how many characters of 5 bits follow the "p" of a post's id:
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
	now := s.Clock.Now()
	post := newPost(caller.Namespace, in, now)
	connections := s.lookup(caller.Namespace)
	find := connections.in(ctx)
	errs := checkRequest(in)
	errs = append(errs, rules.Validate(post, rules.Env{Connection: find, Limits: s.Limits})...)
	errs = append(errs, rules.ValidateTime(post, now)...)
	if connections.err != nil {
		return PostDetail{}, fmt.Errorf("read a connection: %w", connections.err)
	}
	if len(errs) > 0 {
		return PostDetail{}, invalid(errs)
	}
	if !in.Draft {
		if err := s.requireReady(ctx, connections.known); err != nil {
			return PostDetail{}, err
		}
	}
	created, err := s.store(ctx, post)
	if err != nil {
		if refused := refusedByKubernetes(err); refused != nil {
			return PostDetail{}, refused
		}
		if answerLost(err) {
			return PostDetail{}, &UncertainError{Err: err}
		}
		return PostDetail{}, fmt.Errorf("create a post: %w", err)
	}
	s.wrote(ctx, created)
	return s.detail(created, connections.latest), nil
}

// newPost is the resource for a request.
func newPost(namespace string, in CreatePost, now time.Time) *v1alpha1.Post {
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   namespace,
			Name:        "p" + strings.ToLower(rand.Text()[:idLength]),
			Labels:      map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI},
			Annotations: map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(now).String()},
			Finalizers:  []string{v1alpha1.DeliveryFinalizer},
		},
		Spec: v1alpha1.PostSpec{
			Category: in.Category,
			Draft:    in.Draft,
			Targets:  make([]v1alpha1.PostTarget, len(in.Targets)),
		},
	}
	if in.ScheduledAt != nil {
		post.Spec.ScheduledAt = v1alpha1.NewTimePtr(*in.ScheduledAt)
	}
	for i, target := range in.Targets {
		post.Spec.Targets[i] = v1alpha1.PostTarget{
			ConnectionRef: v1alpha1.LocalReference{Name: target.ConnectionID},
			Caption:       target.Caption,
		}
	}
	return post
}

// checkRequest refuses what cannot be told from the resource any more: the
// combinations of options that the contract names, whatever the platform of the
// target, and a time that the resource cannot hold.
func checkRequest(in CreatePost) field.ErrorList {
	var errs field.ErrorList
	if in.ScheduledAt != nil && in.ScheduledAt.UTC().Year() > lastYear {
		errs = append(errs, field.Forbidden(field.NewPath("scheduled_at"), fmt.Sprintf("must not lie after the year %d", lastYear)))
	}
	for i := range in.Targets {
		path := field.NewPath("targets").Index(i)
		errs = append(errs, checkOptions(&in.Targets[i].TikTok, path)...)
	}
	return errs
}

func checkOptions(options *TikTokOptions, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if options.AutoAddMusic != nil {
		errs = append(errs, field.Forbidden(path.Child("tiktok_auto_add_music"), "only a post of category image may have it; leave it out"))
	}
	if options.AllowDuet != nil {
		errs = append(errs, field.Forbidden(path.Child("tiktok_allow_duet"), "only a post of category video may have it; leave it out"))
	}
	if options.AllowStitch != nil {
		errs = append(errs, field.Forbidden(path.Child("tiktok_allow_stitch"), "only a post of category video may have it; leave it out"))
	}
	if options.Draft != nil && *options.Draft && options.PrivacyLevel != nil {
		errs = append(errs, field.Forbidden(path.Child("tiktok_privacy_level"), "cannot stand beside tiktok_draft; leave one of the two out"))
	}
	return errs
}

// requireReady refuses a post to connections that cannot be posted to. All are
// checked side by side.
func (s *Service) requireReady(ctx context.Context, connections map[string]*v1alpha1.Connection) error {
	var mu sync.Mutex
	problems := map[readiness.Verdict][]string{}
	check := func(connection *v1alpha1.Connection) {
		finding := s.Readiness.Check(ctx, connection)
		if finding.Verdict == readiness.Ready {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		problems[finding.Verdict] = append(problems[finding.Verdict],
			fmt.Sprintf("connection %q (%s): %s", connection.Name, connection.Spec.Platform, finding.Message))
	}
	var wg sync.WaitGroup
	for _, connection := range connections {
		if len(connections) == 1 {
			check(connection)
			break
		}
		wg.Go(func() { check(connection) })
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

// store creates the post, once, however often the answer is lost: the name
// cannot be guessed, so what already has it is this very post.
func (s *Service) store(ctx context.Context, post *v1alpha1.Post) (*v1alpha1.Post, error) {
	var err error
	for range createTries {
		var created *v1alpha1.Post
		created, err = s.Posts.Create(ctx, post)
		switch {
		case err == nil:
			return created, nil
		case apierrors.IsAlreadyExists(err):
			return s.Posts.Get(ctx, post.Namespace, post.Name)
		case ctx.Err() != nil, !answerLost(err):
			return nil, err
		}
	}
	return nil, err
}

// answerLost reports whether a write may have taken effect although it failed.
func answerLost(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err)
}
