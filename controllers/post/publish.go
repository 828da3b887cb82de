// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/dispatch"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/ratelimit"
)

// Points of the protocol at which a test may kill the process.
const (
	PointAfterSecret  = "after-secret"
	PointAfterPart    = "after-part"
	PointAfterAhead   = "after-ahead"
	PointAfterPrepare = "after-prepare"
	PointBeforeClaim  = "before-claim"
	PointAfterClaim   = "after-claim"
	PointAfterAnswer  = "after-answer"
	PointAfterRecord  = "after-record"
	PointAfterLook    = "after-look"
)

// together is how close two results must come to be written as one.
const together = 100 * time.Millisecond

// shipment is one target on its way: what was claimed and what came of it.
type shipment struct {
	index     int
	conn      *v1alpha1.Connection
	publisher platforms.Publisher
	token     platforms.Token
	// made is what was prepared for the call; doubt is set if that has turned
	// out to be visible already.
	made made
	// unasked is set if it was made ahead of time, and the platform may have
	// forgotten it since.
	unasked bool
	doubt   *platforms.Error
	attempt string
	result  platforms.Result
}

// publish claims the targets whose turn it is, sends them side by side, each
// exactly once, and records what came of them. It is the only function of the
// program that can make anything public.
func (s *scope) publish(ctx context.Context, ready []int, waited bool) error {
	shipments, unusable := s.load(ctx, ready)
	shipments, unprepared := s.prepare(ctx, shipments)
	shipments = s.enter(shipments)
	if len(shipments) == 0 {
		if !waited && !unusable && !unprepared {
			return nil
		}
		_, err := s.write(ctx)
		return err
	}
	defer s.admission.Done(s.key.String())
	shipments, err := s.withinPlan(ctx, shipments)
	if err != nil {
		return s.cannotCount(ctx, shipments, err)
	}
	if len(shipments) == 0 {
		_, err := s.write(ctx)
		return err
	}
	if err := s.prepareObject(ctx); err != nil {
		return err
	}
	s.Failpoint(PointBeforeClaim)
	if err := s.claim(ctx, shipments); err != nil {
		return err
	}
	s.Failpoint(PointAfterClaim)
	return s.sendAndRecord(ctx, shipments)
}

// load reads the tokens of the targets that are ready. waited tells that the
// ledger notes that one waits for its credentials.
func (s *scope) load(ctx context.Context, ready []int) (shipments []*shipment, waited bool) {
	for _, i := range ready {
		conn := s.connection(i)
		p, _ := s.publisher(conn.Spec.Platform)
		token, err := s.Tokens.Token(ctx, conn)
		if err != nil {
			t := posting.Target(s.post, i)
			waited = s.waitForConnection(i, t, fmt.Sprintf("the credentials of connection %q cannot be used: %v", conn.Name, err)) || waited
			t.NextTryAt = v1alpha1.NewTimePtr(s.Clock.Now().Add(credentialsPause))
			continue
		}
		shipments = append(shipments, &shipment{index: i, conn: conn, publisher: p, token: token})
	}
	return shipments, waited
}

// enter asks for the post's turn: the gates of all its connections at once, so
// that one claim holds all targets. It returns those that may go; a target whose
// connection is slow, or stands in the post twice, is claimed later.
func (s *scope) enter(shipments []*shipment) (entered []*shipment) {
	if len(shipments) == 0 {
		return nil
	}
	first := map[string]*shipment{}
	var gates []string
	for _, sh := range shipments {
		if gate := sh.gate(); first[gate] == nil {
			first[gate] = sh
			gates = append(gates, gate)
		}
	}
	for _, gate := range s.admission.Enter(s.waiter(), gates) {
		entered = append(entered, first[gate])
	}
	return entered
}

// gate names what keeps the calls to one account apart.
func (sh *shipment) gate() string { return string(sh.conn.UID) }

// credentialsPause is how soon credentials that could not be read are tried
// again, if their connection does not change before.
const credentialsPause = 5 * time.Second

func (s *scope) waiter() dispatch.Waiter {
	key := s.key
	return dispatch.Waiter{ID: key.String(), Team: key.Namespace, Due: posting.Due(s.post), Wake: func() { s.enqueue(key) }}
}

// prepareObject makes sure that the post cannot vanish while a call is under
// way and that no verdict on an earlier attempt can be taken for one on the
// next. Posts made by the apiserver need neither write.
func (s *scope) prepareObject(ctx context.Context) error {
	_, outcome := s.post.Annotations[v1alpha1.SettleAnnotation]
	if controllerutil.ContainsFinalizer(s.post, v1alpha1.DeliveryFinalizer) && !outcome {
		return nil
	}
	status := s.post.Status.DeepCopy()
	base := s.post.DeepCopy()
	controllerutil.AddFinalizer(s.post, v1alpha1.DeliveryFinalizer)
	delete(s.post.Annotations, v1alpha1.SettleAnnotation)
	if err := s.Client.Patch(ctx, s.post, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot prepare the post for delivery: %w", err)
	}
	s.post.Status = *status
	return nil
}

// claim stores an attempt for each shipment in one write, under the
// resourceVersion that was read. It is never retried: whatever the error,
// nothing is sent.
func (s *scope) claim(ctx context.Context, shipments []*shipment) error {
	now := s.Clock.Now()
	for _, sh := range shipments {
		if err := s.open(s.post, sh, now); err != nil {
			return err
		}
	}
	describe(s.post, now)
	if err := s.ledger.claim(ctx, s.post, shipments); err != nil {
		return err
	}
	for _, sh := range shipments {
		s.preparations.drop(s.key, sh.index)
	}
	s.stored = *s.post.Status.DeepCopy()
	return nil
}

// open enters into the ledger of a post that a shipment is about to be sent.
func (s *scope) open(post *v1alpha1.Post, sh *shipment, now time.Time) error {
	sh.attempt = s.NewID()
	t := posting.Target(post, sh.index)
	claim := attempt.Claim{
		ID: sh.attempt, ContentHash: s.contentHash(post, sh.index, sh.conn), AccountID: sh.conn.Spec.AccountID,
		Checkpoint: sh.made.checkpoint, Window: s.SendWindow, Card: attempt.NextCard(t),
	}
	if err := attempt.Open(t, claim, now); err != nil {
		return fmt.Errorf("cannot claim target %d: %w", sh.index, err)
	}
	t.Prepared = nil
	if sh.made.secret != "" {
		// The look for a call whose answer was lost needs it.
		t.Prepared = &v1alpha1.Prepared{ContentHash: claim.ContentHash, Checkpoint: sh.made.checkpoint, Secret: true, MadeAt: v1alpha1.NewTime(now)}
		s.keepsSessions = true
	}
	return nil
}

// sendAndRecord makes the claimed calls side by side and writes their results
// as they come. It outlives the pass's context: a call that has begun is
// waited for, and its result is written, also while the process shuts down.
func (s *scope) sendAndRecord(ctx context.Context, shipments []*shipment) error {
	detached := context.WithoutCancel(ctx)
	results := make(chan *shipment, len(shipments))
	var calls sync.WaitGroup
	begin := func(claimed []*shipment) {
		// What is sent is the post as the claim's write returned it; recording
		// results moves s.post on while other calls are still to begin.
		post := *s.post
		for _, sh := range claimed {
			calls.Go(func() {
				sh.result = s.send(detached, &post, sh)
				s.holds.note(sh, s.Clock.Now())
				if !goesOn(&post, sh) {
					s.admission.Release(s.key.String(), sh.gate())
				}
				results <- sh
			})
		}
	}
	begin(shipments)
	defer calls.Wait()
	slow := s.Clock.NewTimer(slowAfter)
	defer slow.Stop()
	for left := len(shipments); left > 0; {
		batch := s.nextBatch(results, left, slow.C(), shipments)
		left -= len(batch)
		next, err := s.record(ctx, batch)
		if err != nil {
			// What is still under way is kept and written by the next pass.
			calls.Wait()
			close(results)
			for sh := range results {
				s.ledger.keep(sh)
			}
			return err
		}
		left += len(next)
		begin(next)
	}
	return nil
}

// slowAfter is how long posts to several accounts wait for one account's call;
// then they go to the others first.
const slowAfter = 2 * time.Second

// nextBatch waits for a result and for those that come right behind it. When
// slow ticks, those calls that have not ended are no longer waited for by others.
func (s *scope) nextBatch(results <-chan *shipment, left int, slow <-chan time.Time, shipments []*shipment) []*shipment {
	var batch []*shipment
	for len(batch) == 0 {
		select {
		case sh := <-results:
			batch = append(batch, sh)
		case <-slow:
			for _, sh := range shipments {
				s.admission.Slow(s.key.String(), sh.gate())
			}
		}
	}
	if left == 1 {
		return batch
	}
	timer := s.Clock.NewTimer(together)
	defer timer.Stop()
	for len(batch) < left {
		select {
		case sh := <-results:
			batch = append(batch, sh)
		case <-timer.C():
			return batch
		}
	}
	return batch
}

// send makes one call, if its window is still open.
func (s *scope) send(ctx context.Context, post *v1alpha1.Post, sh *shipment) platforms.Result {
	a := posting.Target(post, sh.index).Attempt
	now := s.Clock.Now()
	if a == nil || a.ID != sh.attempt || !attempt.MaySend(a, now) {
		return platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient,
			"the time to send had passed when the claim was stored; trying again")}
	}
	if sh.doubt != nil {
		return platforms.Result{Outcome: platforms.Unknown, Err: sh.doubt}
	}
	if a.Number == 1 {
		s.Metrics.late(post, now)
	}
	ctx, cancel := context.WithTimeout(ctx, sh.publisher.Capabilities().CallTimeout)
	defer cancel()
	j := s.job(post, sh.index, sh.conn, sh.token)
	j.Checkpoint, j.Secret = a.Checkpoint, sh.made.secret
	result := sh.publisher.Publish(ctx, j)
	result.Err = ratelimit.WithRetryAt(result.Err, s.Clock.Now())
	if sh.unasked && result.Outcome == platforms.Refused && result.Err != nil && result.Err.Class == platforms.ClassPermanent {
		// It may have been refused for that alone. What is prepared for the next
		// attempt is asked for first.
		again := *result.Err
		again.Class = platforms.ClassTransient
		result.Err = &again
	}
	if result.Outcome == platforms.Posted && result.ExternalID != "" {
		// Before the gate opens for a post with the same words, which may look.
		s.taken.reserve(sh.conn.Spec.Platform, result.ExternalID, owner{post.UID, posting.Target(post, sh.index).Index})
	}
	s.Failpoint(PointAfterAnswer)
	s.Metrics.published(sh.conn.Spec.Platform, result.Outcome)
	return result
}

// record writes a batch of results and tells what came of them. For trees that
// go on, the same write claims the next cards, which it returns. The context is
// that of the pass: a result is written also when it has ended.
func (s *scope) record(ctx context.Context, batch []*shipment) (next []*shipment, err error) {
	for _, sh := range batch {
		s.logResult(sh)
	}
	detached := context.WithoutCancel(ctx)
	if next = s.nextCards(ctx, batch); len(next) > 0 && !s.recordAndClaim(detached, batch, next) {
		next = nil
	}
	if len(next) == 0 {
		if err := s.ledger.record(detached, s.post, batch); err != nil {
			return nil, err
		}
	}
	s.stored = *s.post.Status.DeepCopy()
	s.Failpoint(PointAfterRecord)
	if len(next) > 0 {
		s.Failpoint(PointAfterClaim)
	}
	for _, sh := range batch {
		s.tell(detached, sh)
	}
	s.restOfTrees(batch, next)
	return next, nil
}
