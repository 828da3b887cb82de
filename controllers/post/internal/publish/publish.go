// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publish claims targets, sends each exactly once, and records what came of
// it. It is the only package of the program that calls platforms.Publisher.Publish
// and so the only one that can make anything public.
package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/dispatch"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/ratelimit"
	"github.com/herald-social/herald/posting/record"
)

// Points of the protocol at which a test may kill the process.
const (
	PointBeforeClaim = "before-claim"
	PointAfterClaim  = "after-claim"
	PointAfterAnswer = "after-answer"
	PointAfterRecord = "after-record"
)

// Publisher publishes posts. All of it is required.
type Publisher struct {
	// Client writes to the API server, and APIReader reads from it.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.WithTicker
	// NewID makes ids of attempts; they never repeat.
	NewID func() string
	// SendWindow is how long after its claim a call may be begun.
	SendWindow time.Duration
	// RecordFor is how long a pass tries to record a result.
	RecordFor time.Duration
	// Scheduler holds the accounts' turns, and Claims bounds the claims that are written at once.
	Scheduler *dispatch.Scheduler
	Claims    *dispatch.CongestionWindow
	// Owners knows which platform ids belong to which target.
	Owners Owners
	// DeadlineShift returns what moves the deadlines of a namespace's posts.
	DeadlineShift func(ctx context.Context, namespace string) *delivery.Deadlines
	// Changed is called when a status was stored, with what it was before.
	Changed func(ctx context.Context, post *v1alpha1.Post, before *v1alpha1.PostStatus)
	// ClaimExpired is called when a claim was not stored within SendWindow, so that nothing is sent.
	ClaimExpired func()
	// Failpoint is called at the named points.
	Failpoint func(point string)
	Log       logr.Logger
}

// Owners knows which platform ids belong to which target of which post.
type Owners interface {
	// Record remembers the platform ids in a post.
	Record(post *v1alpha1.Post)
	// Reserve makes a platform id of an account a target's own before that is written
	// anywhere.
	Reserve(platform v1alpha1.Platform, account, externalID string, post types.UID, target int32) bool
}

// Delivery is one target on its way: what was claimed and what came of it.
type Delivery struct {
	// Target is the index in spec.targets.
	Target int
	Conn   *v1alpha1.Connection
	To     platforms.Publisher
	Token  platforms.Token
	// Checkpoint names what was prepared for the call, and Secret carries authority
	// over it.
	Checkpoint, Secret string
	// SecretHash identifies what the Secret of the post's uploads keeps of it.
	SecretHash string
	// Unverified is set if it was prepared ahead of time, and the platform may have
	// forgotten it since.
	Unverified bool
	// Ambiguous is set if what was prepared is visible already: nothing is sent, and
	// the claim is made for the lookup that follows.
	Ambiguous *platforms.Error
	// Attempt is the id of the attempt, once it is claimed.
	Attempt string
	// Result is what came of the call.
	Result platforms.Result
}

// Gate names what keeps the calls to one account apart.
func (d *Delivery) Gate() string { return string(d.Conn.UID) }

func (d *Delivery) result() delivery.Result {
	return delivery.Result{Target: d.Target, Attempt: d.Attempt, Result: d.Result}
}

func results(batch []*Delivery) []delivery.Result {
	all := make([]delivery.Result, len(batch))
	for i, d := range batch {
		all[i] = d.result()
	}
	return all
}

// Hooks is the pass over the post that is published.
type Hooks interface {
	// Job returns what is published next for a delivery, of this version of the post.
	Job(post *v1alpha1.Post, d *Delivery) platforms.Job
	// ContentHash identifies that.
	ContentHash(post *v1alpha1.Post, d *Delivery) string
	// Ready puts what was prepared into a job.
	Ready(ctx context.Context, d *Delivery, job *platforms.Job) *platforms.Error
	// Withheld reports whether nothing may be claimed any more. It is asked when a claim's
	// turn to be written has come, which may be seconds after the pass began.
	Withheld(ctx context.Context) bool
	// Answered is told of the answer to a call, before the account's turn passes
	// on. It may be called from many goroutines at once.
	Answered(d *Delivery)
	// Next returns the deliveries that can follow those of a batch at once: the next
	// cards of trees. recorded is the post with the batch entered.
	Next(ctx context.Context, recorded *v1alpha1.Post, batch []*Delivery) []*Delivery
	// Claimed is told of deliveries whose claim is stored, and Recorded of those
	// whose result is.
	Claimed(batch []*Delivery)
	Recorded(ctx context.Context, batch []*Delivery)
}

// run is the publication of some targets of one post.
type run struct {
	*Publisher

	hooks Hooks
	post  *v1alpha1.Post
	cache *WriteCache
}

// Publish claims deliveries in one write, sends them side by side, each exactly
// once, and records what came of them. post is brought up to what is stored.
func (p *Publisher) Publish(ctx context.Context, pass Hooks, post *v1alpha1.Post, memory *WriteCache, deliveries []*Delivery) error {
	r := &run{Publisher: p, hooks: pass, post: post, cache: memory}
	if err := r.secure(ctx); err != nil {
		return err
	}
	r.Failpoint(PointBeforeClaim)
	if err := r.claim(ctx, deliveries); err != nil {
		return err
	}
	r.Failpoint(PointAfterClaim)
	return r.sendAndRecord(ctx, deliveries)
}

// secure makes sure that the post cannot vanish while a call is under way, and that
// no resolution of an earlier attempt can be taken for one of the next. Posts made
// by the apiserver need neither write.
func (r *run) secure(ctx context.Context) error {
	_, resolution := r.post.Annotations[v1alpha1.SettleAnnotation]
	if controllerutil.ContainsFinalizer(r.post, v1alpha1.DeliveryFinalizer) && !resolution {
		return nil
	}
	status := r.post.Status.DeepCopy()
	base := r.post.DeepCopy()
	if controllerutil.AddFinalizer(r.post, v1alpha1.DeliveryFinalizer) {
		metav1.SetMetaDataAnnotation(&r.post.ObjectMeta, v1alpha1.ArmedAnnotation, record.Arm(r.post))
	}
	delete(r.post.Annotations, v1alpha1.SettleAnnotation)
	if err := r.Client.Patch(ctx, r.post, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot prepare the post for delivery: %w", err)
	}
	r.post.Status = *status
	return nil
}

// ErrWithheld is that nothing was claimed, since the pass said so when it was to be written.
var ErrWithheld = errors.New("nothing may be claimed any more")

// claim stores an attempt for each delivery in one write, under the resourceVersion
// that was read. It is never retried: whatever the error, nothing is sent. It waits for
// its turn first, since the time in which the calls must begin counts from the attempts.
func (r *run) claim(ctx context.Context, deliveries []*Delivery) error {
	ended, err := r.Claims.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("cannot claim the delivery: %w", err)
	}
	written := false
	defer func() { ended(written) }()
	if r.hooks.Withheld(ctx) {
		return ErrWithheld
	}
	if err := r.open(r.post, deliveries); err != nil {
		return err
	}
	ctx, span := tracing.Child(ctx, "claim")
	defer span.End()
	span.Number(tracing.Targets, len(deliveries))
	err = r.storeClaim(ctx, r.post, r.cache, deliveries)
	written = err == nil || mayHaveLanded(err)
	if err != nil {
		span.Fail(string(apierrors.ReasonForError(err)))
		return err
	}
	r.hooks.Claimed(deliveries)
	return nil
}

// open enters into a post that deliveries are about to be sent.
func (r *run) open(post *v1alpha1.Post, deliveries []*Delivery) error {
	claims := make([]delivery.TargetClaim, len(deliveries))
	for i, d := range deliveries {
		d.Attempt = r.NewID()
		claims[i] = delivery.TargetClaim{Target: d.Target, Secret: d.Secret != "", SecretHash: d.SecretHash, Claim: attempt.Claim{
			ID: d.Attempt, ContentHash: r.hooks.ContentHash(post, d), AccountID: d.Conn.Spec.AccountID, Checkpoint: d.Checkpoint, Window: r.SendWindow,
		}}
	}
	return delivery.RecordClaims(post, claims, r.Clock.Now())
}

// sendAndRecord makes the claimed calls side by side and records their results as
// they come. It outlives the pass's context: a call that has begun is waited for,
// and its result is recorded, also while the process shuts down.
func (r *run) sendAndRecord(ctx context.Context, deliveries []*Delivery) error {
	detached := context.WithoutCancel(ctx)
	ended := make(chan *Delivery, len(deliveries))
	var calls sync.WaitGroup
	begin := func(claimed []*Delivery) {
		// What is sent is the post as the claim's write returned it; recording moves
		// r.post on while other calls are still to begin.
		post := *r.post
		for _, d := range claimed {
			calls.Go(func() {
				d.Result = r.traced(detached, &post, d)
				r.hooks.Answered(d)
				if !hasNextCard(&post, d) {
					r.Scheduler.Release(r.key(), d.Gate())
				}
				ended <- d
			})
		}
	}
	begin(deliveries)
	defer calls.Wait()
	slow := r.Clock.NewTimer(slowAfter)
	defer slow.Stop()
	for left := len(deliveries); left > 0; {
		batch := r.nextBatch(ended, left, slow.C(), deliveries)
		left -= len(batch)
		next, err := r.record(ctx, batch)
		if err != nil {
			// What is still under way is kept and recorded by the next pass.
			calls.Wait()
			close(ended)
			for d := range ended {
				r.cache.AddResult(d.result())
			}
			return err
		}
		left += len(next)
		begin(next)
	}
	return nil
}

func (r *run) key() string { return client.ObjectKeyFromObject(r.post).String() }

const (
	// together is how close two results must come to be recorded in one write.
	together = 100 * time.Millisecond
	// slowAfter is how long posts to several accounts wait for one account's call;
	// then they go to the others first.
	slowAfter = 2 * time.Second
)

// nextBatch waits for a result and for those that come right behind it. When slow
// ticks, other posts no longer wait for the calls that have not ended.
func (r *run) nextBatch(ended <-chan *Delivery, left int, slow <-chan time.Time, deliveries []*Delivery) []*Delivery {
	var batch []*Delivery
	for len(batch) == 0 {
		select {
		case d := <-ended:
			batch = append(batch, d)
		case <-slow:
			for _, d := range deliveries {
				r.Scheduler.Slow(r.key(), d.Gate())
			}
		}
	}
	if left == 1 {
		return batch
	}
	timer := r.Clock.NewTimer(together)
	defer timer.Stop()
	for len(batch) < left {
		select {
		case d := <-ended:
			batch = append(batch, d)
		case <-timer.C():
			return batch
		}
	}
	return batch
}

// traced is send with a span around it.
func (r *run) traced(ctx context.Context, post *v1alpha1.Post, d *Delivery) platforms.Result {
	ctx, span := tracing.Child(ctx, "publish")
	defer span.End()
	span.Number(tracing.Target, d.Target)
	span.Text(tracing.Platform, string(d.Conn.Spec.Platform))
	span.Text(tracing.Connection, d.Conn.Name)
	span.Text(tracing.Attempt, d.Attempt)
	result := r.send(ctx, post, d)
	span.Text(tracing.Outcome, string(result.Outcome))
	if result.Err != nil {
		span.Fail(string(result.Err.Class))
	}
	return result
}

// send makes one call, if its window is still open.
func (r *run) send(ctx context.Context, post *v1alpha1.Post, d *Delivery) platforms.Result {
	a := posting.Target(post, d.Target).Attempt
	if a == nil || a.ID != d.Attempt || !attempt.MaySend(a, r.Clock.Now()) {
		return platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient,
			"the time to send had passed when the claim was stored")}
	}
	if d.Ambiguous != nil {
		return platforms.Result{Outcome: platforms.Unknown, Err: d.Ambiguous}
	}
	ctx, cancel := context.WithTimeout(ctx, d.To.Capabilities().CallTimeout)
	defer cancel()
	job := r.hooks.Job(post, d)
	job.Checkpoint, job.Secret = a.Checkpoint, d.Secret
	if err := r.hooks.Ready(ctx, d, &job); err != nil {
		return platforms.Result{Outcome: platforms.NotSent, Err: ratelimit.Sanitize(err, d.Token, r.Clock.Now())}
	}
	result := ratelimit.SanitizeResult(d.To.Publish(ctx, job), d.Token, r.Clock.Now())
	if d.Unverified && result.Outcome == platforms.Refused && result.Err != nil && result.Err.Class == platforms.ClassPermanent {
		// It may have been refused because the platform forgot what was prepared.
		// The next attempt verifies that first.
		again := *result.Err
		again.Class = platforms.ClassTransient
		result.Err = &again
	}
	if result.Outcome == platforms.Posted && result.ExternalID != "" {
		// Before the gate opens for a post with the same words, which may look it up.
		r.Owners.Reserve(d.Conn.Spec.Platform, d.Conn.Spec.AccountID, result.ExternalID, post.UID, int32(d.Target)) //nolint:gosec // a post has at most 100 targets
	}
	r.Failpoint(PointAfterAnswer)
	return result
}

// hasNextCard reports whether the card that a delivery published is followed by another
// one. The account's gate is kept for it: nothing comes between the cards of a tree.
func hasNextCard(post *v1alpha1.Post, d *Delivery) bool {
	a := posting.Target(post, d.Target).Attempt
	return d.Result.Outcome == platforms.Posted && d.Result.ExternalID != "" && a != nil && int(a.Card)+1 < posting.Cards(&post.Spec)
}
