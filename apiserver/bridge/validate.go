// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/rules"
)

type postValidation struct {
	post *v1alpha1.Post
	// planned is the post as the plan counts it. It differs from post only in its time: a draft that is published
	// immediately counts now rather than when it was created.
	planned *v1alpha1.Post
	// requested is the original of a post that becomes a draft for review: its problems are reported immediately, to
	// the client that can fix them. It is nil for other posts.
	requested *v1alpha1.Post
	// problems are the request's problems that the post cannot represent.
	problems []string
	// unread lists the parts of the request that could not be parsed, with paths.
	unread []string
	// stored is the post before it is changed; nil for a new post.
	stored *v1alpha1.Post
	now    time.Time
	// version1 is Caller.Version1.
	version1 bool
	// found collects the errors of a validation that continues after each of them; nil if the first one ends it.
	found *[]*Error
}

// collect returns an error that ends the validation. It adds others to found.
func (j *postValidation) collect(err error) error {
	known, ok := errors.AsType[*Error](err)
	if !ok || j.found == nil {
		return err
	}
	*j.found = append(*j.found, known)
	return nil
}

// validate rejects a post that breaks a rule, that the team's plan does not allow, or whose accounts are not ready.
// ready checks the post's connections. validate returns the usage that the post needs, none of it reserved yet, and the
// connections.
func (s *Service) validate(ctx context.Context, j *postValidation, ready func(named map[string]*v1alpha1.Connection) error) (*reservations, *lookup, error) {
	connections := s.lookup(j.post.Namespace, j.version1)
	find := connections.in(ctx)
	needs, err := s.withinPlan(ctx, j.planned, find)
	if err := j.collect(err); err != nil {
		return nil, nil, err
	}
	if err := j.collect(s.obeysRules(ctx, j, connections)); err != nil {
		return nil, nil, err
	}
	if needs != nil {
		if err := j.collect(needs.check(ctx, v1alpha1.ResourceTikTokDrafts)); err != nil {
			return nil, nil, err
		}
	}
	notReady := ready(connections.known)
	// The options are validated after the readiness checks, which may just have read a TikTok account's options. Their
	// errors still take precedence over accounts that are not ready.
	if errs := rules.ValidateOptions(j.post, rules.Env{Connection: connections.latest, Capabilities: s.Capabilities}); len(errs) > 0 {
		refused := invalid(errs)
		refused.Code = CodeTikTokPrivacy
		if err := j.collect(refused); err != nil {
			return nil, nil, err
		}
	}
	if err := j.collect(notReady); err != nil {
		return nil, nil, err
	}
	return needs, connections, nil
}

// filesOfRefused limits the files that are read for a post with other invalid fields, so that one response also reports
// their problems. It is the maximum for a post outside a thread (TikTok's images). Each file costs a read, so more
// files are read only if the other fields are valid.
const filesOfRefused = 35

// obeysRules rejects a post that breaks a rule, and reports all problems: with the request, the post itself, its
// options as far as they are known, and its files.
func (s *Service) obeysRules(ctx context.Context, j *postValidation, connections *lookup) error {
	asked := j.post
	if j.requested != nil {
		asked = j.requested
	}
	env := rules.Env{Connection: connections.in(ctx), Media: assumeValid(asked), Capabilities: s.Capabilities, Stored: j.stored, Converts: s.converts(j.post.Namespace)}
	problems := func() field.ErrorList {
		errs := checkTime(asked)
		if asked.Spec.Category != "" { // without a category, other problems are consequences
			errs = append(errs, rules.Validate(asked, env)...)
			errs = append(errs, rules.ValidateAudiences(asked, env)...)
		}
		return j.readable(append(errs, rules.ValidateTime(asked, j.now)...))
	}
	errs := problems()
	if connections.err != nil {
		return fmt.Errorf("read a connection: %w", connections.err)
	}
	wrong := len(errs) > 0 || len(j.unread) > 0 || len(j.problems) > 0
	names := posting.Of(asked).MediaNames()
	if len(names) > 0 && (!wrong || len(names) <= filesOfRefused) {
		media, err := s.mediaOf(ctx, asked, names)
		if err == nil {
			env.Media = media
			errs = problems()
		} else if !wrong {
			return err
		}
	}
	if wrong {
		errs = append(errs, j.readable(rules.ValidateOptions(asked, env))...)
	} else if len(errs) == 0 {
		return nil
	}
	return invalid(errs, slices.Concat(j.unread, j.problems)...)
}

// readable removes errors that follow from unparsed parts of the request, which have already been reported.
func (j *postValidation) readable(errs field.ErrorList) field.ErrorList {
	if len(j.unread) == 0 {
		return errs
	}
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		at := WirePath(err.Field)
		return slices.ContainsFunc(j.unread, func(problem string) bool {
			path, _, _ := strings.Cut(problem, ": ")
			return within(at, path) || err.Type == field.ErrorTypeRequired && within(path, at)
		})
	})
}

// within reports whether path equals of or is below it.
func within(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// RefusePost returns the error for a request to create a post that could not be parsed completely. unread lists the
// invalid parts with their paths, and more is the number of others. The error also includes the problems in the rest,
// so that one response reports every mistake.
func (s *Service) RefusePost(ctx context.Context, caller Caller, in CreatePost, unread []string, more int) error {
	if err := require(caller, ScopeDraft); err != nil {
		return err
	}
	return s.refuse(ctx, s.unreadPost(caller, &in, unread), more)
}

// unreadPost returns the validation of a new post that could not be parsed completely.
func (s *Service) unreadPost(caller Caller, in *CreatePost, unread []string) *postValidation {
	post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace}, Spec: in.Spec}
	if slices.ContainsFunc(unread, func(problem string) bool { return strings.HasPrefix(problem, "draft: ") }) {
		post.Spec.Draft, post.Spec.ScheduledAt = true, nil // a draft has the fewest rules
	}
	return &postValidation{post: post, planned: post, problems: in.Problems, unread: unread, now: s.Clock.Now(), version1: caller.Version1}
}

// refuse returns the error for a request that could not be parsed completely, with the problems in the rest. more is the
// number of problems that are not listed.
func (s *Service) refuse(ctx context.Context, j *postValidation, more int) error {
	problems := slices.Concat(j.unread, j.problems)
	refused := &Error{Code: CodeValidation, Message: JoinFirst(problems, more), Problems: problemsIn(problems), More: more}
	if more > 0 {
		return refused
	}
	limits.MeterFrom(ctx).Parts(len(j.post.Spec.Targets))
	if found, ok := errors.AsType[*Error](s.obeysRules(ctx, j, s.lookup(j.post.Namespace, j.version1))); ok {
		return found
	}
	return refused
}
