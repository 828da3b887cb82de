// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/plan"
)

// Posts and declared files must fit the team's budget. The usage comes from the watches, plus the creations in
// progress on this replica, so requests never wait for each other and the check does not need a write. A single replica
// never exceeds a limit. Several replicas together can exceed it by the number of objects that they create before each
// other's watch events arrive. Kubernetes' own object quota (controllers/team) has no such gap.

// unseenTTL is how long a registered file counts if the watch has not reported it.
const unseenTTL = 10 * time.Second

// creations tracks the objects of one kind that this replica is creating.
type creations struct {
	mu sync.Mutex
	// under maps a namespace to its creations, by object name.
	under map[string]map[string]*flight
}

// flight is the creation of one object, by one request or by several with the same Idempotency-Key.
type flight struct {
	bytes    int64
	requests int
	// landed is when the creation last succeeded; zero if it has not yet.
	landed time.Time
}

func newCreations() *creations { return &creations{under: map[string]map[string]*flight{}} }

// admit registers a creation unless fits rejects it. fits receives the number and the total bytes of the other
// creations in progress, without those that known reports as already counted. land ends the request.
func (f *creations) admit(namespace, name string, bytes int64, now time.Time, known func(names []string) []bool,
	fits func(more, moreBytes int64) *Error,
) (land func(made bool, now time.Time), refused *Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	under := f.under[namespace]
	names := make([]string, 0, len(under))
	for other := range under {
		if other != name {
			names = append(names, other)
		}
	}
	var more, moreBytes int64
	for i, is := range known(names) {
		other := under[names[i]]
		if over := other.requests == 0 && (is || now.Sub(other.landed) >= unseenTTL); over {
			delete(under, names[i])
		} else if !is {
			more++
			moreBytes += other.bytes
		}
	}
	if refused := fits(more, moreBytes); refused != nil {
		f.clear(namespace)
		return nil, refused
	}
	if under == nil {
		under = map[string]*flight{}
		f.under[namespace] = under
	}
	own := under[name]
	if own == nil {
		own = &flight{bytes: bytes}
		under[name] = own
	}
	own.requests++
	return func(made bool, now time.Time) {
		f.mu.Lock()
		defer f.mu.Unlock()
		own.requests--
		if made {
			own.landed = now
		}
		if own.requests == 0 && own.landed.IsZero() && under[name] == own {
			delete(under, name)
			f.clear(namespace)
		}
	}, nil
}

// clear removes a namespace that has no creations. The caller holds the lock.
func (f *creations) clear(namespace string) {
	if len(f.under[namespace]) == 0 {
		delete(f.under, namespace)
	}
}

// admitPost counts a post as being created, or rejects it. The caller calls done when the index has the post or
// creating it has failed.
func (s *Service) admitPost(post *v1alpha1.Post) (done func(), refused *Error) {
	bytes := posting.Of(post).Footprint()
	var tally postindex.Tally
	now := s.Clock.Now()
	land, refused := s.newPosts.admit(post.Namespace, post.Name, bytes, now,
		func(names []string) (known []bool) {
			tally, known = s.Index.Tally(post.Namespace, names)
			return known
		},
		func(more, moreBytes int64) *Error {
			return s.fits(post.Namespace,
				plan.Demand{Item: v1alpha1.BudgetPosts, Used: tally.Posts + more, More: 1},
				plan.Demand{Item: v1alpha1.BudgetPostBytes, Used: tally.Bytes + moreBytes, More: bytes},
				plan.Demand{Item: v1alpha1.BudgetUnfinishedPosts, Used: tally.Unfinished + more, More: 1})
		})
	if refused != nil {
		return nil, refused
	}
	return func() { land(false, now) }, nil
}

// requireRoom rejects a post that currently exceeds the budget, before any other check.
func (s *Service) requireRoom(post *v1alpha1.Post) error {
	done, refused := s.admitPost(post)
	if refused != nil {
		return refused
	}
	done()
	return nil
}

// requireRoomToChange rejects a change that makes a post larger than the budget allows, and the release of a draft
// while the team exceeds its limit on unfinished posts. A change that makes the post smaller always passes.
func (s *Service) requireRoomToChange(before, after *v1alpha1.Post) error {
	was, is := posting.Of(before).Footprint(), posting.Of(after).Footprint()
	tally, _ := s.Index.Tally(after.Namespace, nil)
	wants := []plan.Demand{{Item: v1alpha1.BudgetPostBytes, Used: tally.Bytes, More: is - was}}
	if is <= was {
		wants = nil
	}
	if before.Spec.Draft && !after.Spec.Draft {
		// The draft is already counted, so the check fails above the limit rather than at it.
		wants = append(wants, plan.Demand{Item: v1alpha1.BudgetUnfinishedPosts, Used: tally.Unfinished, More: 0})
	}
	if refused := s.fits(after.Namespace, wants...); refused != nil {
		return refused
	}
	return nil
}

// admitFile counts a file before it is registered, or rejects it.
func (s *Service) admitFile(media *v1alpha1.Media) (done func(made bool), refused *Error) {
	size := plan.FileBytes(&media.Spec)
	var files, bytes int64
	land, refused := s.newFiles.admit(media.Namespace, media.Name, size, s.Clock.Now(),
		func(names []string) (known []bool) {
			if s.Pending == nil {
				return make([]bool, len(names))
			}
			files, bytes, known = s.Pending(media.Namespace, names)
			return known
		},
		func(more, moreBytes int64) *Error {
			return s.fits(media.Namespace,
				plan.Demand{Item: v1alpha1.BudgetPendingFiles, Used: files + more, More: 1},
				plan.Demand{Item: v1alpha1.BudgetPendingFileBytes, Used: bytes + moreBytes, More: size})
		})
	if refused != nil {
		return nil, refused
	}
	return func(made bool) { land(made, s.Clock.Now()) }, nil
}

// requireRoomForKey rejects an API key beyond the team's limit.
func (s *Service) requireRoomForKey(ctx context.Context, namespace string) error {
	keys, err := s.Keys.List(ctx, namespace)
	if err != nil {
		return fmt.Errorf("count the API keys: %w", err)
	}
	if refused := s.fits(namespace, plan.Demand{Item: v1alpha1.BudgetKeys, Used: int64(len(keys)), More: 1}); refused != nil {
		return refused
	}
	return nil
}

// fits returns the error for the first budget item that is exceeded, or nil.
func (s *Service) fits(namespace string, wants ...plan.Demand) *Error {
	team := s.Owner(namespace)
	if team == nil {
		return nil // another check rejects the namespace
	}
	budget := plan.BudgetOf(team)
	if lacks := budget.Shortage(team.Name, wants...); lacks != "" {
		return errorf(CodeSubscriptionRequired, "%s", lacks)
	}
	return nil
}

// Budget returns the team's usage of its budget according to the watches, or nil for a namespace without a team.
func (s *Service) Budget(namespace string) []v1alpha1.BudgetUse {
	team := s.Owner(namespace)
	if team == nil {
		return nil
	}
	budget := plan.BudgetOf(team)
	tally, _ := s.Index.Tally(namespace, nil)
	used := map[v1alpha1.BudgetItem]int64{
		v1alpha1.BudgetPosts: tally.Posts, v1alpha1.BudgetPostBytes: tally.Bytes, v1alpha1.BudgetUnfinishedPosts: tally.Unfinished,
	}
	if s.Pending != nil {
		used[v1alpha1.BudgetPendingFiles], used[v1alpha1.BudgetPendingFileBytes], _ = s.Pending(namespace, nil)
	}
	if s.CountKeys != nil {
		used[v1alpha1.BudgetKeys] = int64(s.CountKeys(namespace))
	}
	uses := make([]v1alpha1.BudgetUse, len(plan.BudgetItems))
	for i, item := range plan.BudgetItems {
		uses[i] = budget.Use(item, used[item])
	}
	return uses
}

// Bounded returns the error for a create that a ResourceQuota in the team's namespace rejected, or nil for other
// errors. team may be nil.
func Bounded(team *v1alpha1.Team, err error) *Error {
	exceeded, ok := quota.ParseExceeded(err)
	switch {
	case !ok:
		return nil
	case exceeded.Quota != v1alpha1.BudgetQuota || team == nil:
		return errorf(CodeSubscriptionRequired, "ResourceQuota %q of the team's namespace allows %d %s, and %d are used; "+
			"delete some, or ask the administrators of the cluster to raise it", exceeded.Quota, exceeded.Limit, exceeded.Kind, exceeded.Used)
	default:
		return errorf(CodeSubscriptionRequired, "%s", plan.QuotaRefusalMessage(exceeded.Kind, team.Name, exceeded.Used, exceeded.Limit))
	}
}

// refused returns the client's error for a request that the Kubernetes API rejected, or nil for an internal error.
func (s *Service) refused(namespace string, err error) *Error {
	if err == nil {
		return nil
	}
	if bounded := Bounded(s.Owner(namespace), err); bounded != nil {
		return bounded
	}
	return refusedByKubernetes(err)
}
