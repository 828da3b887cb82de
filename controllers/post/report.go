// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// reporter tells people, connections and metrics what came of calls.
type reporter struct {
	o        *Options
	preparer *prepare.Preparer
	limits   *rateLimits
	recorder *recorder
	// observeLimits takes what an answer told, for the posts that wait for it.
	observeLimits func(p *reconciliation, d *publish.Delivery)
}

// reasonPostedWithNote is the reason of the event about a post that is online and
// not quite as it was asked for.
const reasonPostedWithNote = "PostedWithNote"

// result reports what came of a call, which is recorded.
func (r *reporter) result(ctx context.Context, p *reconciliation, d *publish.Delivery) {
	logResult(p, d, r.o.Clock.Now())
	t := posting.Target(p.post, d.Target)
	if t == nil {
		return
	}
	if d.Result.Outcome == platforms.Posted {
		r.limit(ctx, p, d)
	}
	defer r.watchQuota(ctx, d)
	r.reportNote(p, t, d.Result.Note)
	switch {
	case d.Result.Outcome == platforms.Posted && !attempt.Settled(t):
		return // a card; it is told when the tree is complete
	case d.Result.Outcome == platforms.Posted:
		r.recorder.posted(p, t, "published to %s as %s")
		r.pictures(ctx, p, d.Target, false)
		return
	}
	r.alert(ctx, p, d)
	if a := t.Attempt; attempt.IsOpen(a) && a.ID == d.Attempt && a.OperationID != "" {
		return // the platform works on it; it is told when that is done
	}
	r.recorder.target(p, t)
}

// reportNote tells what people should know of a post that is online.
func (r *reporter) reportNote(p *reconciliation, t *v1alpha1.TargetStatus, note string) {
	if note != "" {
		r.recorder.warn(targetSubject(p.post, int(t.Index), p.conn(int(t.Index))), reasonPostedWithNote, fmt.Sprintf("target %d (%s): %s", t.Index, t.Platform, note))
	}
}

// unlisted counts an error of a platform if its code is in no table.
func (r *reporter) unlisted(platform v1alpha1.Platform, operation string, err *platforms.Error) {
	if err != nil && err.Unlisted {
		r.o.Unlisted.Count(string(platform), operation, err.Code)
	}
}

// problem is an error's message, or "" without one.
func problem(err *platforms.Error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// preparation reports that a preparation failed.
func (r *reporter) preparation(ctx context.Context, p *reconciliation, d *publish.Delivery, ahead bool) {
	t, err := posting.Target(p.post, d.Target), d.Result.Err
	r.unlisted(d.Conn.Spec.Platform, unlisted.Prepare, err)
	p.log.Info("not prepared", append(targetFields(p.post, t), "ahead", ahead, "class", err.Class, "problem", err.Error(), "cause", err.Err)...)
	if ahead {
		r.recorder.warn(targetSubject(p.post, d.Target, d.Conn), v1alpha1.ReasonPreparationFailed, fmt.Sprintf("target %d (%s): %s", d.Target, d.Conn.Spec.Platform, err.Error()))
		r.alert(ctx, p, d)
		return
	}
	r.alert(ctx, p, d)
	r.recorder.target(p, t)
	r.watchQuota(ctx, d)
}

// lookup reports what a lookup found, which is recorded.
func (r *reporter) lookup(ctx context.Context, p *reconciliation, a *delivery.LookupAnswer) {
	t := posting.Target(p.post, a.Target)
	r.o.Metrics.settled(t)
	r.reportNote(p, t, a.Note)
	r.unlisted(t.Platform, unlisted.Lookup, a.Err)
	r.unlisted(t.Platform, unlisted.Lookup, a.Refused)
	switch posted := attempt.Posted(t); {
	case posted && t.Attempt.OperationID != "":
		p.log.Info(logPublished, append(targetFields(p.post, t), "externalID", t.ExternalID)...)
		r.recorder.posted(p, t, "published to %s as %s")
		r.pictures(ctx, p, a.Target, false)
	case posted:
		p.log.Info("found by a lookup", append(targetFields(p.post, t), "externalID", t.ExternalID)...)
		r.recorder.posted(p, t, "found on %s as %s")
		r.pictures(ctx, p, a.Target, !a.Certain)
	case !attempt.IsOpen(t.Attempt):
		r.recorder.target(p, t)
	}
	r.reportConnection(ctx, p, a, t)
}

// reportConnection tells the connection what its platform said in the end of a call
// that it had taken: what an answer to the call itself would have told.
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

// alert tells the connection of a token that was refused, and of a limit.
func (r *reporter) alert(ctx context.Context, p *reconciliation, d *publish.Delivery) {
	if err := d.Result.Err; err != nil && (err.Class == platforms.ClassRefresh || err.Class == platforms.ClassReconnect) {
		r.reportRefusedToken(ctx, d.Conn, d.Attempt)
	}
	r.limit(ctx, p, d)
}

// reportRefusedToken asks for a check of a connection whose token was refused. The attempt's id
// serves as the token of the request.
func (r *reporter) reportRefusedToken(ctx context.Context, conn *v1alpha1.Connection, attempt string) {
	r.o.Tokens.Forget(conn)
	r.requestProbe(ctx, conn, attempt)
}

// limit records in the connection what its platform told of limits.
func (r *reporter) limit(ctx context.Context, p *reconciliation, d *publish.Delivery) {
	r.observeLimits(p, d)
	limited, change, err := r.limits.record(ctx, d)
	if err != nil {
		// This process knows it all the same; another is told by the platform.
		p.log.Error(err, "cannot record what the platform said of the connection", "connection", d.Conn.Name)
	}
	if limited != nil {
		p.log.Info("the limit of an account has changed", "connection", limited.Name, "platform", limited.Spec.Platform,
			"limited", change.Begun, "reason", change.Reason, "message", change.Message)
		r.recorder.limited(limited, change)
	}
}

// requestProbe asks the connection controller to check a connection.
func (r *reporter) requestProbe(ctx context.Context, conn *v1alpha1.Connection, token string) {
	base := conn
	conn = conn.DeepCopy()
	if conn.Annotations == nil {
		conn.Annotations = map[string]string{}
	}
	conn.Annotations[v1alpha1.ProbeAnnotation] = token
	if err := r.o.Client.Patch(ctx, conn, client.MergeFrom(base)); err != nil {
		ctrllog.FromContext(ctx).Error(err, "cannot ask for a check of the connection", "connection", conn.Name)
	}
}

// watchQuota asks for a check of what is left of the account's limits when, by
// count, it has become little, or when the platform says that it is used up.
func (r *reporter) watchQuota(ctx context.Context, d *publish.Delivery) {
	if _, tells := r.o.Platforms[d.Conn.Spec.Platform].(platforms.AccountInspector); !tells {
		return
	}
	err := d.Result.Err
	if d.Result.Outcome == platforms.Posted && r.limits.countLow(d.Conn) || err != nil && err.Class == platforms.ClassQuota {
		r.requestProbe(ctx, d.Conn, d.Attempt)
	}
}

// pictures tells the owner of a post that is online what of its pictures is not as it was
// meant: a chosen thumbnail is missing, or an image shows nothing. uncertain is as in
// WithoutThumbnail.
func (r *reporter) pictures(ctx context.Context, p *reconciliation, target int, uncertain bool) {
	conn := p.conn(target)
	if conn == nil {
		return
	}
	t, platform := &prepare.Target{Post: p.post, Index: target, Conn: conn, Media: p.media}, conn.Spec.Platform
	if why := r.preparer.WithoutThumbnail(ctx, t, uncertain); why != "" {
		r.recorder.warn(targetSubject(p.post, target, conn), v1alpha1.ReasonThumbnailNotSet, fmt.Sprintf(
			"target %d: the video is online on %s without the chosen thumbnail, because %s; set a picture there by hand", target, platform, why))
	}
	for _, name := range r.preparer.Blank(ctx, t) {
		r.recorder.warn(mediaSubject(p.post, target, name, p.media[name]), v1alpha1.ReasonPictureBlank, fmt.Sprintf(
			"target %d: the image %q shows nothing on %s: it is white on a transparent ground, and got a white one, since the platform takes no transparency; "+
				"put a colour behind it and post it again", target, name, platform))
	}
}
