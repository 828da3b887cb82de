// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/limits"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

type reporter struct {
	o        *Options
	preparer *prepare.Preparer
	limits   *limits.Recorder
	recorder *recorder
	queue    *postQueue
}

// reasonPostedWithNote is the event reason for a post that was published with a deviation, which the message describes.
const reasonPostedWithNote = "PostedWithNote"

func (r *reporter) changed(ctx context.Context, post *v1alpha1.Post, before *v1alpha1.PostStatus) {
	r.o.Metrics.Deliveries.Changed(post, before)
	logTargets(ctrllog.FromContext(ctx), post, before, r.o.Clock.Now())
}

// claimStarted measures an armed post's lateness.
func (r *reporter) claimStarted(d *publish.Delivery, due time.Time) {
	r.o.Metrics.Deliveries.ObserveLateness(d.Conn, due, r.o.Clock.Now())
}

func (r *reporter) result(ctx context.Context, p *reconciliation, d *publish.Delivery) {
	logResult(p, d, r.o.Clock.Now())
	t := p.Target(d.Target)
	if t == nil || d.Result.Withheld {
		return // the next reconciliation reports what is in the way
	}
	if d.Result.Outcome == platforms.Posted {
		r.limit(ctx, p, d)
	}
	defer r.watchQuota(ctx, d)
	r.reportNote(p, t, d.Result.Note)
	switch {
	case d.Result.Outcome == platforms.Posted && !attempt.Settled(t):
		return // a card; the event follows when the tree is complete
	case d.Result.Outcome == platforms.Posted:
		r.recorder.posted(p, t, "published to %s as %s")
		r.pictures(ctx, p, d.Target, false)
		return
	}
	r.alert(ctx, p, d)
	if a := t.Attempt; attempt.IsOpen(a) && a.ID == d.Attempt && a.OperationID != "" {
		return // the platform is still processing it; the event follows the outcome
	}
	r.recorder.target(p, t)
}

func (r *reporter) reportNote(p *reconciliation, t *v1alpha1.TargetStatus, note string) {
	if note != "" {
		r.recorder.warn(targetSubject(p.Post, int(t.Index), p.conn(int(t.Index))), reasonPostedWithNote, fmt.Sprintf("target %d (%s): %s", t.Index, t.Platform, note))
	}
}

// unlisted counts a platform error whose code is missing from the platform's error table.
func (r *reporter) unlisted(platform v1alpha1.Platform, operation string, err *platforms.Error) {
	if err != nil && err.Unlisted {
		r.o.Unlisted.Inc(string(platform), operation, err.Code)
	}
}

func (r *reporter) preparation(ctx context.Context, p *reconciliation, d *publish.Delivery, ahead bool) {
	t, err := p.Target(d.Target), d.Result.Err
	r.unlisted(d.Conn.Spec.Platform, unlisted.Prepare, err)
	p.log.Info("not prepared", append(targetFields(p.Post, t), "ahead", ahead, "class", err.Class, "problem", err.Error(), "cause", err.Err)...)
	if ahead {
		r.recorder.warn(targetSubject(p.Post, d.Target, d.Conn), v1alpha1.ReasonPreparationFailed, fmt.Sprintf("target %d (%s): %s", d.Target, d.Conn.Spec.Platform, err.Error()))
		r.alert(ctx, p, d)
		return
	}
	r.alert(ctx, p, d)
	r.recorder.target(p, t)
	r.watchQuota(ctx, d)
}

func (r *reporter) lookup(ctx context.Context, p *reconciliation, a *delivery.LookupAnswer) {
	t := p.Target(a.Target)
	r.o.Metrics.Deliveries.Settled(t)
	r.reportNote(p, t, a.Note)
	r.unlisted(t.Platform, unlisted.Lookup, a.Err)
	r.unlisted(t.Platform, unlisted.Lookup, a.Refused)
	switch posted := attempt.Posted(t); {
	case posted && t.Attempt.OperationID != "":
		p.log.Info(logPublished, append(targetFields(p.Post, t), "externalID", t.ExternalID)...)
		r.recorder.posted(p, t, "published to %s as %s")
		r.pictures(ctx, p, a.Target, false)
	case posted:
		p.log.Info("found by a lookup", append(targetFields(p.Post, t), "externalID", t.ExternalID)...)
		r.recorder.posted(p, t, "found on %s as %s")
		r.pictures(ctx, p, a.Target, !a.Certain)
	case !attempt.IsOpen(t.Attempt):
		r.recorder.target(p, t)
	}
	r.reportConnection(ctx, p, a, t)
}

// reportConnection updates the Connection after a lookup's outcome, as the response to the call would have done.
func (r *reporter) reportConnection(ctx context.Context, p *reconciliation, a *delivery.LookupAnswer, t *v1alpha1.TargetStatus) {
	d := &publish.Delivery{Target: a.Target, Conn: p.conn(a.Target), Token: platforms.Token{App: a.App}, Attempt: t.Attempt.ID}
	switch {
	case d.Conn == nil || a.Err != nil:
		return
	case a.Refused != nil:
		d.Result = platforms.Result{Outcome: platforms.Refused, Err: a.Refused}
		r.alert(ctx, p, d)
	case a.Matches == 1 && a.Certain:
		d.Result = platforms.Result{Outcome: platforms.Posted}
		r.limit(ctx, p, d)
	default:
		return
	}
	r.watchQuota(ctx, d)
}

func (r *reporter) alert(ctx context.Context, p *reconciliation, d *publish.Delivery) {
	if err := d.Result.Err; err != nil && (err.Class == platforms.ClassRefresh || err.Class == platforms.ClassReconnect) {
		r.reportRefusedToken(ctx, d.Conn, d.Attempt)
	}
	r.limit(ctx, p, d)
}

// reportRefusedToken drops the cached token of a connection and requests a probe. The attempt's id serves as the value
// of the probe annotation, since each request needs a new one.
func (r *reporter) reportRefusedToken(ctx context.Context, conn *v1alpha1.Connection, attempt string) {
	r.o.Tokens.Forget(conn)
	r.requestProbe(ctx, conn, attempt)
}

func (r *reporter) limit(ctx context.Context, p *reconciliation, d *publish.Delivery) {
	r.observeLimits(p, d)
	limited, change, err := r.limits.Record(ctx, d)
	if err != nil {
		// The limit remains in this process's memory; other processes receive it with the platform's next response.
		p.log.Error(err, "cannot record the platform's response in the connection", "connection", d.Conn.Name)
	}
	if limited != nil {
		p.log.Info("the limit of an account has changed", "connection", limited.Name, "platform", limited.Spec.Platform,
			"limited", change.Begun, "reason", change.Reason, "message", change.Message)
		r.recorder.limited(limited, change)
	}
}

// observeLimits applies a response's rate limits before they are recorded, and enqueues the posts that wait for them.
func (r *reporter) observeLimits(p *reconciliation, d *publish.Delivery) {
	r.queue.wakeApp(d.Conn.Spec.Platform, r.limits.Observe(p.key, d))
}

func (r *reporter) requestProbe(ctx context.Context, conn *v1alpha1.Connection, token string) {
	base := conn
	conn = conn.DeepCopy()
	if conn.Annotations == nil {
		conn.Annotations = map[string]string{}
	}
	conn.Annotations[v1alpha1.ProbeAnnotation] = token
	if err := r.o.Client.Patch(ctx, conn, client.MergeFrom(base)); err != nil {
		ctrllog.FromContext(ctx).Error(err, "cannot request a check of the connection", "connection", conn.Name)
	}
}

// watchQuota requests a probe of the account's quota if this process counts it as low, or if the platform reports that
// it is used up. It does nothing for platforms that cannot report a quota.
func (r *reporter) watchQuota(ctx context.Context, d *publish.Delivery) {
	if _, supported := r.o.Platforms[d.Conn.Spec.Platform].(platforms.AccountInspector); !supported {
		return
	}
	err := d.Result.Err
	if d.Result.Outcome == platforms.Posted && r.limits.RecordPublication(d.Conn) || err != nil && err.Class == platforms.ClassQuota {
		r.requestProbe(ctx, d.Conn, d.Attempt)
	}
}

// pictures warns the post's owner about the pictures of a published post: a chosen thumbnail that is missing, or an
// image that looks blank. For uncertain, see WithoutThumbnail.
func (r *reporter) pictures(ctx context.Context, p *reconciliation, target int, uncertain bool) {
	conn := p.conn(target)
	if conn == nil {
		return
	}
	t, platform := &prepare.Target{Post: p.Post, Index: target, Conn: conn, Media: p.media}, conn.Spec.Platform
	if why := r.preparer.WithoutThumbnail(ctx, t, uncertain); why != "" {
		r.recorder.warn(targetSubject(p.Post, target, conn), v1alpha1.ReasonThumbnailNotSet, fmt.Sprintf(
			"target %d: the video is online on %s without the chosen thumbnail, because %s; set a picture there manually", target, platform, why))
	}
	for _, name := range r.preparer.Blank(ctx, t) {
		r.recorder.warn(mediaSubject(p.Post, target, name, p.media[name]), v1alpha1.ReasonPictureBlank, fmt.Sprintf(
			"target %d: the image %q is blank on %s: it is white on a transparent background, which Herald made white because the platform does not support transparency; "+
				"put a colour behind it and post it again", target, name, platform))
	}
}
