// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publish claims targets, sends each exactly once, and records the results. No other package of the program
// calls platforms.Publisher.Publish, so no other package can make anything public.
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
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/ratelimit"
	"github.com/herald-social/herald/posting/record"
)

// Failpoints of the publication, where a test may kill the process.
const (
	PointBeforeClaim = "before-claim"
	PointAfterClaim  = "after-claim"
	PointAfterAnswer = "after-answer"
	PointAfterRecord = "after-record"
)

// Publisher publishes posts. All fields are required.
type Publisher struct {
	// Client writes to the API server, and APIReader reads from it without the cache.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.WithTicker
	// NewID returns a unique id for an attempt.
	NewID func() string
	// SendWindow is the time after a claim within which its call must start.
	SendWindow time.Duration
	// RecordFor limits how long a reconciliation retries to record a result.
	RecordFor time.Duration
	// Scheduler holds the gates of the accounts, and Claims limits concurrent writes of claims.
	Scheduler *dispatch.Scheduler
	Claims    *dispatch.CongestionWindow
	// Owners maps platform ids to targets.
	Owners Owners
	// Groups holds the groups of armed posts, or is nil if no post is armed. Recording limits the concurrent writes of
	// their results.
	Groups    *Groups
	Recording *dispatch.RecordLimit
	// Shard is the shard whose posts are published, or nil if there is only one.
	Shard *Shard
	// DeadlineShift returns the suspensions that move the deadlines of a namespace's posts.
	DeadlineShift func(ctx context.Context, namespace string) *delivery.Deadlines
	// Changed is called after a status was stored. before is the previous status.
	Changed func(ctx context.Context, post *v1alpha1.Post, before *v1alpha1.PostStatus)
	// ClaimStarted is called when an armed delivery's call starts, with the time when it was due.
	ClaimStarted func(d *Delivery, due time.Time)
	// ClaimExpired is called when a claim was not stored within SendWindow, so nothing is sent.
	ClaimExpired func()
	// Failpoint is called at the failpoints of this package.
	Failpoint func(point string)
	Log       logr.Logger
}

// Owners maps platform ids to targets of posts.
type Owners interface {
	// Record adds the platform ids of a post's status.
	Record(post *v1alpha1.Post)
	// Reserve assigns an account's platform id to a target before any status has it, unless another target owns it.
	Reserve(platform v1alpha1.Platform, account, externalID string, post types.UID, target int32) bool
}

// Delivery is the delivery of one target to its platform, with its claim and its result.
type Delivery struct {
	// Target is the index in spec.targets.
	Target int
	Conn   *v1alpha1.Connection
	To     platforms.Publisher
	Token  platforms.Token
	// Checkpoint is the platform's reference to the prepared content, and Secret its upload session.
	Checkpoint, Secret string
	// SecretHash is the hash of the upload session in the Secret of the post's uploads.
	SecretHash string
	// Unverified is set if the content was prepared ahead of time, so the platform may have dropped it since.
	Unverified bool
	// Ambiguous is set if the prepared content is already visible: the claim then only opens an attempt for the lookup.
	Ambiguous *platforms.Error
	// Attempt is the id of the attempt, set by the claim.
	Attempt string
	// Result is the result of the call.
	Result platforms.Result
	// turn waits for the turn of an armed call; the returned function ends it. It is nil if the account's gate was
	// acquired before the claim. After the call of turn, refused is the reason for not making the call, or nil.
	turn    func(ctx context.Context, post *v1alpha1.Post) (done func())
	refused *platforms.Error
}

// Gate returns the key of the account's gate.
func (d *Delivery) Gate() string { return string(d.Conn.UID) }

// Hooks connects a publication to the reconciliation that runs it.
type Hooks interface {
	// Job returns the job for a delivery's next call, given this version of the post.
	Job(post *v1alpha1.Post, d *Delivery) platforms.Job
	// ContentHash returns the content hash of that job.
	ContentHash(post *v1alpha1.Post, d *Delivery) string
	// Ready adds the prepared files to a job.
	Ready(ctx context.Context, d *Delivery, job *platforms.Job) *platforms.Error
	// Withheld reports whether claims are suspended. It is called just before each claim, possibly seconds after the
	// reconciliation started.
	Withheld(ctx context.Context) bool
	// Answered is called with a call's result before the account's gate is released. It must be concurrency-safe.
	Answered(d *Delivery)
	// Next returns the deliveries that can follow a batch at once: the next cards of trees. recorded holds its results.
	Next(ctx context.Context, recorded *v1alpha1.Post, batch []*Delivery) []*Delivery
	// Claimed is called with deliveries whose claim is stored, and Recorded with deliveries whose result is stored.
	Claimed(batch []*Delivery)
	Recorded(ctx context.Context, batch []*Delivery)
}

type run struct {
	*Publisher

	hooks Hooks
	post  *v1alpha1.Post
	cache *WriteCache
	// group is the group that the post is claimed in, or nil. The other fields are those of an armed post: the hooks, the
	// claimed deliveries and their places in the queue, its size, and whether its team was suspended when the group was
	// opened.
	group      *group
	armed      ArmedHooks
	deliveries []*Delivery
	calls      []*dispatch.ArmedCall
	bytes      int
	withheld   bool
}

// Publish claims deliveries in one write, sends each exactly once, and records the results in post.
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

// secure adds the finalizer, so that the post cannot vanish during a call, and removes the settle annotation, so that a
// resolution for an earlier attempt never applies to the next one. Posts from the apiserver need neither write.
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

// ErrWithheld is returned when a suspension prevented the claim before it was written.
var ErrWithheld = errors.New("the team is suspended")

// claim stores an attempt for each delivery in one write, at the resourceVersion read. It is never retried: whatever
// the error, nothing is sent. It waits for the congestion window first, since the send window counts from the attempts.
func (r *run) claim(ctx context.Context, deliveries []*Delivery) error {
	ended, err := r.Claims.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("cannot claim the delivery: %w", err)
	}
	written := false
	defer func() { ended(written) }()
	switch {
	case !r.Shard.IsHeld():
		return ErrReleased
	case r.hooks.Withheld(ctx):
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

func (r *run) open(post *v1alpha1.Post, deliveries []*Delivery) error {
	claims := make([]delivery.TargetClaim, len(deliveries))
	now, window, in := r.Clock.Now(), r.SendWindow, ""
	if r.group != nil {
		window, in = delivery.ArmedWindow(r.group.due.Sub(now), r.SendWindow), r.group.ref
	}
	for i, d := range deliveries {
		d.Attempt = r.NewID()
		claims[i] = delivery.TargetClaim{Target: d.Target, Secret: d.Secret != "", SecretHash: d.SecretHash, Claim: attempt.Claim{
			ID: d.Attempt, ContentHash: r.hooks.ContentHash(post, d), AccountID: d.Conn.Spec.AccountID, Checkpoint: d.Checkpoint, Group: in, Shard: r.Shard.version(), Window: window,
		}}
	}
	return delivery.RecordClaims(post, claims, now)
}

// sendAndRecord makes the claimed calls concurrently and records each result as it arrives. It ignores the cancellation
// of ctx: once a call has started, it waits for it and records its result even during shutdown.
func (r *run) sendAndRecord(ctx context.Context, deliveries []*Delivery) error {
	detached := context.WithoutCancel(ctx)
	ended := make(chan *Delivery, len(deliveries))
	var calls sync.WaitGroup
	begin := func(claimed []*Delivery) {
		// The calls use the post as returned by the claim: recording changes r.post while other calls have yet to start.
		post := *r.post
		for _, d := range claimed {
			calls.Go(func() {
				done := r.enter(detached, &post, d)
				d.Result = r.traced(detached, &post, d)
				r.hooks.Answered(d)
				done()
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
			// The next reconciliation records the remaining results.
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

// enter waits for the account's gate, which is already acquired unless the post was armed. done releases it.
func (r *run) enter(ctx context.Context, post *v1alpha1.Post, d *Delivery) (done func()) {
	if d.turn != nil {
		return d.turn(ctx, post)
	}
	return func() {
		if !hasNextCard(post, d) {
			r.Scheduler.Release(r.key(), d.Gate())
		}
	}
}

func (r *run) key() string { return client.ObjectKeyFromObject(r.post).String() }

const (
	// together is the time to wait for another result before a write, so that results that arrive close together share
	// one.
	together = 100 * time.Millisecond
	// slowAfter limits how long posts to several accounts wait for one call before they are sent to other accounts first.
	slowAfter = 2 * time.Second
)

// nextBatch waits for a result, and collects those that follow within together. After slow, posts stop waiting for open
// calls.
func (r *run) nextBatch(ended <-chan *Delivery, left int, slow <-chan time.Time, deliveries []*Delivery) []*Delivery {
	var batch []*Delivery
	for len(batch) == 0 {
		select {
		case d := <-ended:
			batch = append(batch, d)
		case <-slow:
			for _, d := range deliveries {
				r.Scheduler.Slow(r.ticket(d), d.Gate())
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

// send makes one call, unless its send window has passed.
func (r *run) send(ctx context.Context, post *v1alpha1.Post, d *Delivery) platforms.Result {
	a := posting.Of(post).Target(d.Target).Attempt
	if a == nil || a.ID != d.Attempt || !attempt.MaySend(a, r.Clock.Now()) {
		return platforms.Result{Outcome: platforms.NotSent, Withheld: d.turn != nil, Err: platforms.Errorf(platforms.ClassTransient,
			"the time to send had passed when the claim was stored")}
	}
	if !r.Shard.IsHeld() {
		return platforms.Result{Outcome: platforms.NotSent, Withheld: true, Err: released}
	}
	if d.refused != nil {
		return platforms.Result{Outcome: platforms.NotSent, Withheld: true, Err: d.refused}
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
	began := r.Clock.Now()
	result := ratelimit.SanitizeResult(d.To.Publish(ctx, job), d.Token, r.Clock.Now())
	if r.Groups != nil && d.Secret == "" {
		r.Groups.times.observe(d.Conn.Spec.Platform, r.Clock.Since(began))
	}
	if d.Unverified && result.Outcome == platforms.Refused && result.Err != nil && result.Err.Class == platforms.ClassPermanent {
		// The platform may have refused the call because it has dropped the prepared content. As a transient error, it leads
		// to another attempt, which verifies the content first.
		again := *result.Err
		again.Class = platforms.ClassTransient
		result.Err = &again
	}
	if result.Outcome == platforms.Posted && result.ExternalID != "" {
		// Reserve the id before the gate opens for a post with equal text, whose lookup could claim it.
		r.Owners.Reserve(d.Conn.Spec.Platform, d.Conn.Spec.AccountID, result.ExternalID, post.UID, int32(d.Target)) //nolint:gosec // a post has at most 100 targets
	}
	r.Failpoint(PointAfterAnswer)
	return result
}

// hasNextCard reports whether another card follows the one that a delivery published. The account's gate then remains
// acquired, so that nothing is posted between the cards of a tree.
func hasNextCard(post *v1alpha1.Post, d *Delivery) bool {
	a := posting.Of(post).Target(d.Target).Attempt
	return d.Result.Outcome == platforms.Posted && d.Result.ExternalID != "" && a != nil && int(a.Card)+1 < posting.Of(post).Cards()
}
