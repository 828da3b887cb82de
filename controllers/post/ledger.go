// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// ledger writes the status of posts. A claim is one try; a result is written
// with patience, and what could not be written is remembered for as long as
// the process lives.
type ledger struct {
	client    client.Client
	live      client.Reader
	clock     clock.WithTicker
	recordFor time.Duration
	taken     *taken
	log       logr.Logger

	mu sync.Mutex
	// written holds the resourceVersion of our last write of a post, so that
	// an older copy from the cache is not acted upon.
	written map[types.NamespacedName]string
	// results of calls that could not be recorded yet, by attempt.
	results map[string]*shipment
	// unsent holds attempts whose claim failed in a way that may have landed
	// all the same: this process knows that nothing was sent.
	unsent map[string]time.Time
}

func newLedger(o Options, taken *taken) *ledger {
	return &ledger{
		client: o.Client, live: o.APIReader, clock: o.Clock, recordFor: o.RecordFor, taken: taken,
		log:     ctrl.Log.WithName("ledger"),
		written: map[types.NamespacedName]string{},
		results: map[string]*shipment{},
		unsent:  map[string]time.Time{},
	}
}

// stale reports whether a copy from the cache is older than our last write.
func (l *ledger) stale(post *v1alpha1.Post) bool {
	key := client.ObjectKeyFromObject(post)
	l.mu.Lock()
	defer l.mu.Unlock()
	wrote, ok := l.written[key]
	if !ok {
		return false
	}
	if older(post.ResourceVersion, wrote) {
		return true
	}
	delete(l.written, key)
	return false
}

// forget drops what is remembered of a post that has left the cache.
func (l *ledger) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.written, key)
}

// older compares resourceVersions, which are increasing numbers for every
// resource that the API server itself stores.
func older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}

func (l *ledger) wrote(post *v1alpha1.Post) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written[client.ObjectKeyFromObject(post)] = post.ResourceVersion
}

// claim stores the attempts of the shipments: one write under the
// resourceVersion that was read, never retried. After an error that leaves
// open whether it landed, the attempts are remembered as never sent.
func (l *ledger) claim(ctx context.Context, post *v1alpha1.Post, shipments []*shipment) error {
	err := l.client.Status().Update(ctx, post)
	if err == nil {
		l.wrote(post)
		return nil
	}
	if mayHaveLanded(err) {
		now := l.clock.Now()
		l.mu.Lock()
		maps.DeleteFunc(l.unsent, func(_ string, at time.Time) bool { return now.Sub(at) > unsentFor })
		for _, sh := range shipments {
			l.unsent[sh.attempt] = now
		}
		l.mu.Unlock()
	}
	return fmt.Errorf("cannot claim the delivery: %w", err)
}

// unsentFor is how long it is remembered that nothing was sent for a claim
// that may have landed. An attempt that is found open later is looked for.
const unsentFor = time.Hour

// mayHaveLanded reports whether a write that failed may have taken effect.
func mayHaveLanded(err error) bool {
	return !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) &&
		!apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsTooManyRequests(err) &&
		!posting.TooLarge(err)
}

// keep remembers a result that could not be written.
func (l *ledger) keep(sh *shipment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.results[sh.attempt] = sh
}

// recall returns, and forgets, what this process knows of open attempts of a
// post without having been able to write it. What ends the doubt about one that
// was closed meanwhile is among it.
func (l *ledger) recall(post *v1alpha1.Post) []*shipment {
	l.mu.Lock()
	defer l.mu.Unlock()
	var known []*shipment
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if t.Attempt == nil {
			continue
		}
		open := attempt.IsOpen(t.Attempt)
		if sh, ok := l.results[t.Attempt.ID]; ok {
			delete(l.results, t.Attempt.ID)
			if open || attempt.EndsDoubt(t.Attempt, sh.result, posting.Cards(&post.Spec)) {
				known = append(known, sh)
			}
		} else if _, ok := l.unsent[t.Attempt.ID]; ok && open {
			delete(l.unsent, t.Attempt.ID)
			known = append(known, &shipment{
				index: int(t.Index), attempt: t.Attempt.ID,
				result: platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient,
					"the claim was stored but its answer was lost, so nothing was sent; trying again")},
			})
		}
	}
	return known
}

// record enters results into the ledger of a post and stores it, trying for
// as long as recordFor; then the results are kept for the next pass. post is
// brought up to what was written.
func (l *ledger) record(ctx context.Context, post *v1alpha1.Post, batch []*shipment) error {
	ctx, cancel := context.WithTimeout(ctx, l.recordFor)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := l.tryRecord(ctx, post, batch)
		if err == nil {
			return nil
		}
		l.log.Error(err, "cannot record results yet; trying on", "post", client.ObjectKeyFromObject(post), "uid", post.UID)
		select {
		case <-l.clock.After(pause):
		case <-ctx.Done():
			for _, sh := range batch {
				l.keep(sh)
			}
			return fmt.Errorf("cannot record results: %w", err)
		}
	}
}

// Pauses between two tries of writing a result.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
)

// tryRecord writes results once; after a conflict it takes the post as it
// stands now and enters them there.
func (l *ledger) tryRecord(ctx context.Context, post *v1alpha1.Post, batch []*shipment) error {
	for {
		next := post.DeepCopy()
		l.enter(next, batch)
		err := l.client.Status().Update(ctx, next)
		switch {
		case err == nil:
			*post = *next
			l.wrote(post)
			l.taken.note(post)
			return nil
		case apierrors.IsNotFound(err):
			l.log.Info("the post was removed while it was being published", "post", client.ObjectKeyFromObject(post), "uid", post.UID)
			return nil
		case apierrors.IsInvalid(err), posting.TooLarge(err):
			return l.recordBare(ctx, post, batch, err)
		case !apierrors.IsConflict(err):
			return err
		}
		var fresh v1alpha1.Post
		if err := l.live.Get(ctx, client.ObjectKeyFromObject(post), &fresh); err != nil {
			return client.IgnoreNotFound(err)
		}
		if fresh.UID != post.UID {
			return nil
		}
		*post = fresh
	}
}

// enter puts results into the ledger entries that they belong to.
func (l *ledger) enter(post *v1alpha1.Post, batch []*shipment) {
	now := l.clock.Now()
	for _, sh := range batch {
		t := posting.Target(post, sh.index)
		if t == nil {
			continue
		}
		if err := attempt.Record(t, sh.attempt, sh.result, posting.Cards(&post.Spec), now); err != nil {
			l.log.Info("a result came too late to be recorded", "target", sh.index, "attempt", sh.attempt,
				"outcome", sh.result.Outcome, "externalID", sh.result.ExternalID, "why", err.Error())
		}
	}
	describe(post, now)
}

// recordBare is the last resort when the API server refuses the full status:
// the ids of what was published, and the names of what platforms work on, are
// written alone onto the post as it stands. What is not among these is found
// out by asking.
func (l *ledger) recordBare(ctx context.Context, post *v1alpha1.Post, batch []*shipment, refused error) error {
	l.log.Error(refused, "the status was refused; writing alone what only this process knows", "uid", post.UID)
	var fresh v1alpha1.Post
	if err := l.live.Get(ctx, client.ObjectKeyFromObject(post), &fresh); err != nil {
		return client.IgnoreNotFound(err)
	}
	now := l.clock.Now()
	for _, sh := range batch {
		if t := posting.Target(&fresh, sh.index); t != nil && !attempt.Bare(t, sh.attempt, sh.result, posting.Cards(&fresh.Spec), now) {
			l.log.Info("a result is not recorded", "target", sh.index, "attempt", sh.attempt, "outcome", sh.result.Outcome)
		}
	}
	if err := l.client.Status().Update(ctx, &fresh); err != nil {
		return err
	}
	*post = fresh
	l.wrote(post)
	l.taken.note(post)
	return nil
}

// write stores the derived status of the scope's post if anything changed.
func (s *scope) write(ctx context.Context) (changed bool, err error) {
	describe(s.post, s.Clock.Now())
	if v1alpha1.SemanticEqual(s.stored, s.post.Status) {
		return false, nil
	}
	if err := s.Client.Status().Update(ctx, s.post); err != nil {
		return false, fmt.Errorf("cannot write the status: %w", err)
	}
	s.ledger.wrote(s.post)
	s.stored = *s.post.Status.DeepCopy()
	return true, nil
}

// recoverResults writes what this process knows of open attempts. It reports
// false if the pass must end here, because the post has changed.
func (s *scope) recoverResults(ctx context.Context) (goOn bool, err error) {
	known := s.ledger.recall(s.post)
	if len(known) == 0 {
		return true, nil
	}
	if err := s.ledger.record(context.WithoutCancel(ctx), s.post, known); err != nil {
		return false, err
	}
	return false, nil
}
