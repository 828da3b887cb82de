// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/controllers/post/internal/records"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// execute runs the actions in order, and stops after the first one that has stored something.
func (r *Reconciler) execute(ctx context.Context, p *reconciliation, f *delivery.Facts, actions []delivery.Action) error {
	for _, action := range actions {
		var err error
		var again bool // whether the action has added facts that change the decision
		switch a := action.(type) {
		case delivery.Record:
			err = r.recordResults(ctx, p, f)
		case delivery.Resolve:
			err = r.resolve(ctx, p, f, a.Value)
		case delivery.Lookup:
			err = r.lookup(ctx, p, f, a.Targets)
		case delivery.Prepare:
			return r.startPreparations(ctx, p, f, a)
		case delivery.StopPreparing, delivery.ReportPreparation:
			r.endPreparations(ctx, p, f, action)
		case delivery.FindEarlier:
			r.findEarlier(ctx, p, f)
			again = true
		case delivery.ReadOriginal:
			again, err = true, r.retries.readOriginal(ctx, p, f)
		case delivery.ReserveRetry:
			again, err = true, r.retries.reserve(ctx, p, f, a.Targets)
		case delivery.Claim:
			again, err = r.withTokens(ctx, p, a.Targets, r.claim)
		case delivery.Arm:
			again, err = r.withTokens(ctx, p, a.Targets, r.armer.arm)
		case delivery.TakeBack:
			again, err = true, r.armer.closeGroups(ctx, a.Groups)
		case delivery.Write:
			err = r.write(ctx, p, &a)
		case delivery.Release:
			err = r.release(ctx, p)
		case delivery.Wait:
			p.wait = a
			p.requeueBy(p.quotaRetryAt)
			p.requeueBy(p.state.warnAt)
			p.requeueBy(p.armAt)
			p.requeueBy(p.claimAt)
		}
		switch {
		case err != nil || p.wrote:
			return err
		case again:
			return r.decideAgain(ctx, p, f)
		}
	}
	return nil
}

// recordResults stores the results of calls, and then emits their events.
func (r *Reconciler) recordResults(ctx context.Context, p *reconciliation, f *delivery.Facts) error {
	p.wrote = true
	if err := r.publisher.Record(context.WithoutCancel(ctx), p.Post, &p.state.publish, f.Results); err != nil {
		return err
	}
	r.recorder.published(p, &p.stored)
	r.recorder.failed(p, &p.stored)
	return nil
}

// findEarlier adds an earlier post's outcome to the facts. It queries the archive until it gets a response.
func (r *Reconciler) findEarlier(ctx context.Context, p *reconciliation, f *delivery.Facts) {
	if p.state.earlier != nil {
		f.Earlier = *p.state.earlier
		return
	}
	found, asked := r.records.Find(ctx, p.Post)
	p.calledPlatform = p.calledPlatform || asked
	if found.State == delivery.EarlierFetched {
		p.state.earlier = &found
	}
	f.Earlier = found
}

// decideAgain runs delivery.Decide on the stored status and the facts that this reconciliation has added.
func (r *Reconciler) decideAgain(ctx context.Context, p *reconciliation, f *delivery.Facts) error {
	p.Post.Status = *p.stored.DeepCopy()
	return r.execute(ctx, p, f, p.decide(f))
}

// write stores the status. If it changed, write emits the decision's event, and the final event of each target that the
// decision failed. decided is nil if no decision was made: the caller then emits its own events.
func (r *Reconciler) write(ctx context.Context, p *reconciliation, decided *delivery.Write) error {
	before := p.stored
	if err := r.finalizers.EnsureAtEnd(ctx, p.Post); err != nil {
		return err //nolint:wrapcheck // the error names the operation
	}
	changed, err := r.publisher.Write(ctx, p.Post, &p.state.publish, &p.stored)
	if changed {
		p.markStored()
		if p.Post.Status.Earlier != nil {
			r.owners.Record(p.Post)
		}
	}
	if decided != nil {
		r.announce(p, &before, withDefaultMessage(p.Post, decided.Event), changed || posting.TooLarge(err)) // the owner needs the event even if the status is too large to store
	}
	for i := range p.Post.Status.Targets {
		if t := &p.Post.Status.Targets[i]; err == nil && attempt.Settled(t) {
			p.state.prepare.Drop(int(t.Index))
		}
	}
	return err
}

// announce emits the events of a decision if the status has changed. The warning that a post has no Team is delayed
// until conditions.NoTeamGrace after the post's creation, and dropped if a Team owns the namespace by then.
func (r *Reconciler) announce(p *reconciliation, before *v1alpha1.PostStatus, e delivery.Event, news bool) {
	late := !p.state.warnAt.IsZero()
	p.state.warnAt = time.Time{}
	if news {
		r.recorder.failed(p, before)
	}
	at := p.Post.CreationTimestamp.Add(conditions.NoTeamGrace)
	switch {
	case e.Reason != v1alpha1.ReasonNoTeam && !news, !news && !late:
	case e.Reason == v1alpha1.ReasonNoTeam && at.After(p.now):
		p.state.warnAt = at
	default:
		r.recorder.event(p.Post, e)
	}
}

// resolve applies a user's resolutions to targets with an unknown outcome, and then removes the annotation. Nothing
// is claimed before the annotation is removed, so a resolution never applies to a later attempt.
func (r *Reconciler) resolve(ctx context.Context, p *reconciliation, f *delivery.Facts, value string) error {
	asking, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	confirm := func(t *v1alpha1.TargetStatus, found attempt.Resolution) delivery.Confirmation {
		return r.lookups.Confirm(asking, f, t, found)
	}
	for _, problem := range delivery.RecordResolutions(p.Post, value, confirm, &f.Settings, p.now) {
		r.recorder.warn(postSubject(p.Post), "InvalidResolution", problem.Error())
	}
	if err := r.write(ctx, p, nil); err != nil {
		return err
	}
	r.owners.Record(p.Post)
	return removeAnnotation(ctx, r.o.Client, p, v1alpha1.SettleAnnotation)
}

// lookup looks up open attempts and records the responses. It never publishes.
func (r *Reconciler) lookup(ctx context.Context, p *reconciliation, f *delivery.Facts, targets []int) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopping before looking up: %w", err)
	}
	var accounts []account
	for _, i := range targets {
		if t := p.Target(i); t.Attempt != nil {
			accounts = append(accounts, account{t.Platform, t.Attempt.AccountID})
		}
	}
	if ready, err := r.arrivals.mayLookUp(ctx, p.key.Namespace, accounts); err != nil || !ready {
		p.wait = delivery.Wait{Until: r.o.Clock.Now().Add(catchUpPause)}
		return err
	}
	p.calledPlatform = true
	answers := r.lookups.Lookup(ctx, f, targets)
	r.o.Failpoint(PointAfterLookup)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped while looking up: %w", err)
	}
	for _, a := range answers {
		t := p.Target(a.Target)
		timing, _ := f.Timing(t.Platform)
		r.lookups.Claim(p.Post, a)
		if err := delivery.RecordLookup(p.Post, a, timing, r.suspensions.shift(ctx, p.key.Namespace), r.o.Clock.Now()); err != nil {
			return err
		}
		what := "looked up a call whose response was lost"
		if t.Attempt.OperationID != "" {
			what = "looked up a call that the platform had accepted"
		}
		p.log.Info(what, "uid", p.Post.UID, "target", a.Target, "attempt", t.Attempt.ID,
			"matches", a.Matches, "problem", problem(a.Err), "outcome", t.Attempt.Outcome)
	}
	if p.Post.DeletionTimestamp.IsZero() {
		listCandidates(ctx, r.lookups, p, f, targets)
	}
	if err := r.write(ctx, p, nil); err != nil {
		return err
	}
	r.owners.Record(p.Post)
	for _, a := range answers {
		r.reporter.lookup(ctx, p, a)
		if t := p.Target(a.Target); a.Last && attempt.Undecided(t) && !p.Post.DeletionTimestamp.IsZero() {
			r.recorder.abandoned(p, t)
		}
	}
	return nil
}

// readTokens reads targets' tokens, once per connection. It reports unusable credentials, which Decide handles.
func (r *Reconciler) readTokens(ctx context.Context, p *reconciliation, targets []int) (unusable bool) {
	for _, i := range targets {
		conn := p.conn(i)
		_, read := p.tokens[conn.Name]
		if read || p.credentials[conn.Name] != nil {
			continue
		}
		token, err := r.o.Tokens.Token(ctx, conn)
		if err != nil {
			p.credentials[conn.Name] = err
			unusable = true
			continue
		}
		p.tokens[conn.Name] = token
	}
	return unusable
}

// withTokens reads the tokens of targets, and then claims the targets. It claims none if it reports unusable
// credentials.
func (r *Reconciler) withTokens(ctx context.Context, p *reconciliation, targets []int, claim func(context.Context, *reconciliation, []int) error) (unusable bool, err error) {
	if r.readTokens(ctx, p, targets) {
		return true, nil
	}
	return false, claim(ctx, p, targets)
}

// claim claims the targets whose gates it acquires, sends them, and records the results.
func (r *Reconciler) claim(ctx context.Context, p *reconciliation, targets []int) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopping before a claim: %w", err)
	}
	if ready, err := r.arrivals.caughtUp(ctx, p.key.Namespace); err != nil || !ready {
		p.claimAt = r.o.Clock.Now().Add(catchUpPause)
		return err
	}
	deliveries, err := r.acquireGates(ctx, p, targets)
	if err != nil || len(deliveries) == 0 {
		return err
	}
	defer r.scheduler.Done(p.key.String())
	within, err := r.plans.enforceLimits(ctx, p, deliveries)
	if err != nil {
		return r.deferForQuota(ctx, p, within, err)
	}
	p.state.quotaBackoff = nil
	if len(within) == 0 {
		return r.write(ctx, p, nil)
	}
	entered := p.Post
	if len(within) < len(deliveries) {
		entered = p.Post.DeepCopy()
	}
	err = r.publisher.Publish(ctx, r.deliveries.hooks(p), p.Post, &p.state.publish, within)
	if errors.Is(err, publish.ErrReleased) {
		return nil // its next holder claims the post
	}
	if errors.Is(err, publish.ErrWithheld) {
		r.queue.enqueue(p.key) // the next reconciliation reports the reason
		if len(within) < len(deliveries) {
			return r.write(ctx, p, nil) // stores the rejected targets, whose events are already emitted
		}
		return nil
	}
	p.wrote = true
	if err == nil && entered != p.Post {
		r.reporter.changed(ctx, entered, &p.stored) // the claim has stored the rejected targets
	}
	if errors.Is(err, publish.ErrDropped) {
		r.recorder.warn(postSubject(p.Post), reasonRecordDropped, publish.ErrDropped.Error())
	}
	return err
}

// reasonRecordDropped is the event reason for an unsent post: the API server dropped fields of its claim.
const reasonRecordDropped = "RecordDropped"

// acquireGates acquires the gates of all the post's connections at once, so that one claim covers all targets. A target
// whose connection is slow, or occurs twice in the post, is claimed later.
func (r *Reconciler) acquireGates(ctx context.Context, p *reconciliation, targets []int) (entered []*publish.Delivery, err error) {
	first := map[string]*publish.Delivery{}
	var gates []string
	for _, i := range targets {
		d := r.deliveries.delivery(p, i)
		if gate := d.Gate(); first[gate] == nil {
			first[gate] = d
			gates = append(gates, gate)
			if err := r.sharding.setGate(ctx, d, p.rollback.DetectedAt); err != nil {
				return nil, err
			}
		}
	}
	waiter := dispatch.Waiter{ID: p.key.String(), Team: p.key.Namespace, Due: p.Due(), Wake: func() { r.queue.enqueue(p.key) }}
	for _, gate := range r.scheduler.TryAcquire(waiter, gates) {
		entered = append(entered, first[gate])
	}
	return entered, nil
}

// usageBackoff is the retry backoff for counting plan usage: one second for transient errors, and at most one minute,
// so a post is at most that much late once counting works again.
var usageBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 10, Cap: time.Minute}

// deferForQuota blocks targets whose plan usage cannot be counted, since nothing may be sent without being counted. The
// retry time is kept in memory: storing it would mean a write to each of the team's posts at every retry.
func (r *Reconciler) deferForQuota(ctx context.Context, p *reconciliation, deliveries []*publish.Delivery, why error) error {
	p.log.Error(why, "cannot count the team's plan usage; retrying", "uid", p.Post.UID)
	for _, d := range deliveries {
		t := p.Target(d.Target)
		if attempt.Settled(t) {
			continue
		}
		attempt.Block(t, v1alpha1.Blocked{
			Reason:  v1alpha1.ReasonUsageUnavailable,
			Problem: "the team's plan usage cannot be counted",
			Remedy:  "check that the CustomResourceDefinition usages.social.herald.dev is installed and that the manager may write Usages (config/rbac); its log has the error",
		})
	}
	if p.state.quotaBackoff == nil {
		p.state.quotaBackoff = new(usageBackoff)
	}
	p.quotaRetryAt = r.o.Clock.Now().Add(p.state.quotaBackoff.Step())
	return r.write(ctx, p, nil)
}

func (r *Reconciler) release(ctx context.Context, p *reconciliation) error {
	if !controllerutil.ContainsFinalizer(p.Post, v1alpha1.DeliveryFinalizer) {
		return nil
	}
	err := r.finalizers.Release(ctx, p.Post)
	if waits := new(records.WaitError); errors.As(err, &waits) {
		p.wait = delivery.Wait{Until: r.o.Clock.Now().Add(waits.Pause)}
		return nil
	}
	p.wrote = true
	return err //nolint:wrapcheck // the error names the operation
}
