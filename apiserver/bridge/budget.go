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

// Posts are stored, and files announced, within the team's budget. What is there is known
// from watches, and what this replica is about to add is counted beside it, so that no
// request waits for another and none costs a write. No replica exceeds a limit by itself;
// what others create it sees when the watch tells, so that together they may exceed it by
// what they create before. Kubernetes' own count of the objects (controllers/team) has no
// such gap.

// seenWithin is how long a file that was registered is counted although the watch does not
// tell of it: it came a moment ago, or was uploaded at once.
const seenWithin = 10 * time.Second

// creations are the objects of one kind that this replica is creating.
type creations struct {
	mu sync.Mutex
	// under are those of each namespace, by name.
	under map[string]map[string]*flight
}

// flight is an object that is being created, by one request or by several under one key.
type flight struct {
	bytes    int64
	requests int
	// landed is when the last of them ended well; zero before.
	landed time.Time
}

func newFlights() *creations { return &creations{under: map[string]map[string]*flight{}} }

// admit enters an object unless fits refuses it. fits learns how many others are under way,
// and their bytes, of those that known does not report: it gets their names. land ends the
// request.
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
		if over := other.requests == 0 && (is || now.Sub(other.landed) >= seenWithin); over {
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

// clear forgets a namespace in which nothing is under way; its caller holds the lock.
func (f *creations) clear(namespace string) {
	if len(f.under[namespace]) == 0 {
		delete(f.under, namespace)
	}
}

// admitPost counts a post that is about to be created, or refuses it. done is called when
// the index has it, or when it certainly is not created.
func (s *Service) admitPost(post *v1alpha1.Post) (done func(), refused *Error) {
	bytes := posting.Footprint(post)
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

// requireRoom refuses a post for which there is no room as things stand, before anything
// else is looked at.
func (s *Service) requireRoom(post *v1alpha1.Post) error {
	done, refused := s.admitPost(post)
	if refused != nil {
		return refused
	}
	done()
	return nil
}

// requireRoomToChange refuses a change that makes a post larger than there is room for, and
// the release of a draft of a team that has more unfinished posts than it may. One that
// makes it smaller is never refused.
func (s *Service) requireRoomToChange(before, after *v1alpha1.Post) error {
	was, is := posting.Footprint(before), posting.Footprint(after)
	tally, _ := s.Index.Tally(after.Namespace, nil)
	wants := []plan.Demand{{Item: v1alpha1.BudgetPostBytes, Used: tally.Bytes, More: is - was}}
	if is <= was {
		wants = nil
	}
	if before.Spec.Draft && !after.Spec.Draft {
		// The draft is one of them already: what is more than allowed is refused, and
		// what is as many is not.
		wants = append(wants, plan.Demand{Item: v1alpha1.BudgetUnfinishedPosts, Used: tally.Unfinished, More: 0})
	}
	if refused := s.fits(after.Namespace, wants...); refused != nil {
		return refused
	}
	return nil
}

// admitFile counts a file that is about to be announced, or refuses it.
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

// requireRoomForKey refuses one more API key than the team may have.
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

// fits words the first field of which there is not enough.
func (s *Service) fits(namespace string, wants ...plan.Demand) *Error {
	team := s.Owner(namespace)
	if team == nil {
		return nil // it is refused for that
	}
	budget := plan.BudgetOf(team)
	if lacks := budget.Shortage(team.Name, wants...); lacks != "" {
		return errorf(CodeSubscriptionRequired, "%s", lacks)
	}
	return nil
}

// Budget returns how much of its budget a team uses, as far as the watches have told; nil
// for a namespace that no team owns.
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

// Bounded words that Kubernetes stores no more objects of a kind in a team's namespace,
// because of a ResourceQuota; nil if the error is another. team may be nil.
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

// refused words what the Kubernetes API refused about an object of a namespace; nil if the
// error is the service's own trouble.
func (s *Service) refused(namespace string, err error) *Error {
	if err == nil {
		return nil
	}
	if bounded := Bounded(s.Owner(namespace), err); bounded != nil {
		return bounded
	}
	return refusedByKubernetes(err)
}
