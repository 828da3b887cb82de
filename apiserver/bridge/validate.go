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
	"github.com/herald-social/herald/apiserver/cost"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/rules"
)

// postValidation is a post that is judged before it is stored.
type postValidation struct {
	post *v1alpha1.Post
	// planned is the post as the team's plan counts it. It differs from post in the
	// time alone: one that was a draft and goes out at once does so now, and not when
	// it was created.
	planned *v1alpha1.Post
	// requested is the post as it was to be published, if it waits for a person as a draft:
	// what is wrong with it is said at once, to those who can mend it. Nil for any other.
	requested *v1alpha1.Post
	// problems are those of the request that the post does not show.
	problems []string
	// unread say which parts of the request could not be read, with paths.
	unread []string
	// stored is the post before it is changed; nil for a new one.
	stored *v1alpha1.Post
	now    time.Time
}

// validate refuses a post that breaks a rule, that the team's plan does not allow, or
// whose accounts are not ready, which ready tells of the connections that the post
// names. It returns what the post takes, of which nothing is reserved yet, and the
// connections.
func (s *Service) validate(ctx context.Context, j *postValidation, ready func(named map[string]*v1alpha1.Connection) error) (*reservations, *lookup, error) {
	connections := s.lookup(j.post.Namespace)
	find := connections.in(ctx)
	needs, err := s.withinPlan(ctx, j.planned, find)
	if err != nil {
		return nil, nil, err
	}
	if err := s.obeysRules(ctx, j, connections); err != nil {
		return nil, nil, err
	}
	if err := needs.check(ctx, v1alpha1.ResourceTikTokDrafts); err != nil {
		return nil, nil, err
	}
	notReady := ready(connections.known)
	// Only now, because a check may just have learnt what a TikTok account can
	// choose; but what is wrong comes before what is not ready.
	if errs := rules.ValidateOptions(j.post, rules.Env{Connection: connections.latest, Capabilities: s.Capabilities}); len(errs) > 0 {
		refused := invalid(errs)
		refused.Code = CodeTikTokPrivacy
		return nil, nil, refused
	}
	if notReady != nil {
		return nil, nil, notReady
	}
	return needs, connections, nil
}

// filesOfRefused bounds the files that are read of a post whose other fields are invalid, so that one answer names their faults,
// too: as many as a post shows outside a thread (TikTok's images). More are read only when the rest is valid, because each costs a read.
const filesOfRefused = 35

// obeysRules refuses a post that breaks a rule, and names all that is wrong with it: with the request, the post itself, its
// options as far as they are known, and its files.
func (s *Service) obeysRules(ctx context.Context, j *postValidation, connections *lookup) error {
	asked := j.post
	if j.requested != nil {
		asked = j.requested
	}
	env := rules.Env{Connection: connections.in(ctx), Media: assumeValid(asked), Capabilities: s.Capabilities, Stored: j.stored, Converts: s.converts(j.post.Namespace)}
	problems := func() field.ErrorList {
		errs := checkTime(asked)
		if asked.Spec.Category != "" { // what is wrong otherwise follows from it
			errs = append(errs, rules.Validate(asked, env)...)
		}
		return j.readable(append(errs, rules.ValidateTime(asked, j.now)...))
	}
	errs := problems()
	if connections.err != nil {
		return fmt.Errorf("read a connection: %w", connections.err)
	}
	wrong := len(errs) > 0 || len(j.unread) > 0 || len(j.problems) > 0
	names := posting.MediaNames(&asked.Spec)
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

// readable leaves out what the rules find because a part of the request could not be read: it is said already.
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

// within reports whether a path is another one, or leads into what that one names.
func within(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// RefusePost words what is wrong with a request to create a post of which a part could not be read. unread says what, with paths,
// and more how much else. The error also names what the rules find in the rest, so that one answer names every mistake.
func (s *Service) RefusePost(ctx context.Context, caller Caller, in CreatePost, unread []string, more int) error {
	if err := require(caller, ScopeDraft); err != nil {
		return err
	}
	refused := &Error{Code: CodeValidation, Message: JoinFirst(slices.Concat(unread, in.Problems), more)}
	if more > 0 {
		return refused
	}
	cost.From(ctx).Parts(len(in.Spec.Targets))
	post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace}, Spec: in.Spec}
	if slices.ContainsFunc(unread, func(problem string) bool { return strings.HasPrefix(problem, "draft: ") }) {
		post.Spec.Draft, post.Spec.ScheduledAt = true, nil // a draft breaks the fewest rules
	}
	j := &postValidation{post: post, planned: post, problems: in.Problems, unread: unread, now: s.Clock.Now()}
	if found, ok := errors.AsType[*Error](s.obeysRules(ctx, j, s.lookup(post.Namespace))); ok {
		return found
	}
	return refused
}
