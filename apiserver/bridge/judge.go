// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/rules"
)

// judgement is a post that is judged before it is stored.
type judgement struct {
	post *v1alpha1.Post
	// planned is the post as the team's plan counts it. It differs from post in the
	// time alone: one that was a draft and goes out at once does so now, and not when
	// it was created.
	planned *v1alpha1.Post
	// wanted is the post as it was to be published, if it waits for a person as a draft:
	// what is wrong with it is said at once, to those who can mend it. Nil for any other.
	wanted *v1alpha1.Post
	// problems are those of the request that the post does not show.
	problems []string
	// stored is the post before it is changed; nil for a new one.
	stored *v1alpha1.Post
	now    time.Time
}

// judge refuses a post that breaks a rule, that the team's plan does not allow, or
// whose accounts are not ready, which ready tells of the connections that the post
// names. It returns what the post takes, of which nothing is reserved yet, and the
// connections.
func (s *Service) judge(ctx context.Context, j *judgement, ready func(named map[string]*v1alpha1.Connection) error) (*needs, *lookup, error) {
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

// obeysRules refuses a post that breaks a rule. What the post says by itself comes first: its
// files, of which it may name 2,000, are read only if that is right.
func (s *Service) obeysRules(ctx context.Context, j *judgement, connections *lookup) error {
	asked := j.post
	if j.wanted != nil {
		asked = j.wanted
	}
	env := rules.Env{Connection: connections.in(ctx), Media: takenForGood(asked), Capabilities: s.Capabilities, Stored: j.stored}
	errs := checkTime(asked)
	errs = append(errs, rules.Validate(asked, env)...)
	errs = append(errs, rules.ValidateTime(asked, j.now)...)
	if connections.err != nil {
		return fmt.Errorf("read a connection: %w", connections.err)
	}
	if len(errs) > 0 || len(j.problems) > 0 {
		return invalid(errs, j.problems...)
	}
	names := posting.MediaNames(&asked.Spec)
	if len(names) == 0 {
		return nil
	}
	var err error
	if env.Media, err = s.mediaOf(ctx, asked, names); err != nil {
		return err
	}
	if errs := rules.Validate(asked, env); len(errs) > 0 {
		return invalid(errs)
	}
	return nil
}
