// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/ratelimit"
)

// Each event is a write to the API server. In a burst, warnings about waiting posts are dropped, since the posts'
// conditions report the same. The final event of a post or target is never dropped, only delayed. Each team has its own
// limits, so a noisy team does not silence others.
const (
	warningsPerSecond = 5
	warningsBurst     = 50
	// allWarningsPerSecond and allWarningsBurst limit all teams' warnings: a tenth of the API server's writes of posts.
	allWarningsPerSecond = 20
	allWarningsBurst     = 500
	// Each team may emit finalBurst final events at once, and then finalPerSecond. See finalPace for all teams.
	finalPerSecond = 20
	finalBurst     = 100
	// From manyTeams teams on, a team's limits are dropped after quietFor without an event, when they are full again
	// anyway.
	manyTeams = 1000
	quietFor  = time.Minute
)

const actionDeliver = "Deliver"

type recorder struct {
	events events.EventRecorder
	clock  clock.Clock

	// warnings and finals limit the events of all teams.
	warnings *rate.Limiter
	finals   *finalPace

	mu    sync.Mutex
	teams map[string]*eventBudget
}

type eventBudget struct {
	warnings, final *rate.Limiter
	used            time.Time
}

// newRecorder returns a recorder. busy reports whether posts wait for their turn.
func newRecorder(to events.EventRecorder, clk clock.Clock, busy func() bool) *recorder {
	return &recorder{
		events: to, clock: clk, teams: map[string]*eventBudget{},
		warnings: rate.NewLimiter(allWarningsPerSecond, allWarningsBurst), finals: newFinalPace(clk, busy),
	}
}

func (r *recorder) budget(namespace string) *eventBudget {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.teams[namespace]
	if of == nil {
		if len(r.teams) >= manyTeams {
			maps.DeleteFunc(r.teams, func(_ string, of *eventBudget) bool { return now.Sub(of.used) > quietFor })
		}
		of = &eventBudget{warnings: rate.NewLimiter(warningsPerSecond, warningsBurst), final: rate.NewLimiter(finalPerSecond, finalBurst)}
		r.teams[namespace] = of
	}
	of.used = now
	return of
}

// subject is the object of an event. Events about different subjects never share a series.
type subject struct {
	namespace string
	// about is the event's regarding object, or a field of it. related is nil if no other object is involved.
	about, related runtime.Object
}

// postSubject returns the subject for events about a post. A delayed event keeps only the reference in memory.
func postSubject(post *v1alpha1.Post) subject {
	return subject{namespace: post.Namespace, about: reference("Post", post)}
}

func connectionSubject(conn *v1alpha1.Connection) subject {
	return subject{namespace: conn.Namespace, about: conn}
}

// targetSubject returns the subject for events about a target of a post, related to its connection. The field path
// distinguishes targets of one connection, like the path of a container in the events of a Pod.
func targetSubject(post *v1alpha1.Post, target int, conn *v1alpha1.Connection) subject {
	about := reference("Post", post)
	about.FieldPath = field.NewPath("spec", "targets").Index(target).String()
	s := subject{namespace: post.Namespace, about: about}
	switch {
	case conn != nil:
		s.related = reference("Connection", conn)
	case target < len(post.Spec.Targets):
		s.related = reference("Connection", &metav1.ObjectMeta{Namespace: post.Namespace, Name: post.Spec.Targets[target].ConnectionRef.Name})
	}
	return s
}

func mediaSubject(post *v1alpha1.Post, target int, name string, file *v1alpha1.Media) subject {
	s := targetSubject(post, target, nil)
	if file == nil {
		file = &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: post.Namespace, Name: name}}
	}
	s.related = reference("Media", file)
	return s
}

// deletedSubject returns the subject for events about a post that is being deleted, or a target of it. A terminating
// namespace does not accept new events; the event is then about the namespace itself, and related to the post.
func deletedSubject(s subject, post *v1alpha1.Post, namespaceEnds bool) subject {
	if !namespaceEnds {
		return s
	}
	return subject{namespace: post.Namespace, about: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: post.Namespace}}, related: s.about}
}

func reference(kind string, to metav1.Object) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kind,
		Namespace: to.GetNamespace(), Name: to.GetName(), UID: to.GetUID(), ResourceVersion: to.GetResourceVersion(),
	}
}

func (r *recorder) event(post *v1alpha1.Post, e delivery.Event) {
	switch {
	case e.Reason == "":
	case post.Status.Finished:
		r.emitFinal(postSubject(post), e)
	case e.Warning:
		r.warn(postSubject(post), e.Reason, e.Message)
	}
}

func withDefaultMessage(post *v1alpha1.Post, e delivery.Event) delivery.Event {
	if ready := meta.FindStatusCondition(post.Status.Conditions, v1alpha1.ConditionReady); e.Message == "" && ready != nil {
		e.Message = ready.Message
	}
	return e
}

func (r *recorder) warn(s subject, reason, message string) {
	if r.events == nil {
		return
	}
	if now := r.clock.Now(); r.budget(s.namespace).warnings.AllowN(now, 1) && r.warnings.AllowN(now, 1) {
		r.emit(s, delivery.Event{Warning: true, Reason: reason, Message: message})
	}
}

// emitFinal emits the final event of a post or a target: immediately, or as soon as the limits of the team and of all
// teams allow.
func (r *recorder) emitFinal(s subject, e delivery.Event) {
	if r.events == nil {
		return
	}
	emit := func() { r.finals.add(s.namespace, func() { r.emit(s, e) }) }
	pause := reserve(r.budget(s.namespace).final, r.clock.Now())
	if pause == 0 {
		emit()
		return
	}
	go func() {
		<-r.clock.After(pause)
		emit()
	}()
}

func reserve(pace *rate.Limiter, now time.Time) time.Duration {
	return pace.ReserveN(now, 1).DelayFrom(now)
}

func (r *recorder) emit(s subject, e delivery.Event) {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	r.events.Eventf(s.about, s.related, kind, e.Reason, actionDeliver, "%s", e.Message)
}

func (r *recorder) posted(p *reconciliation, t *v1alpha1.TargetStatus, format string) {
	r.emitFinal(targetSubject(p.Post, int(t.Index), p.conn(int(t.Index))), delivery.Event{
		Reason: v1alpha1.ReasonPosted, Message: fmt.Sprintf("target %d: "+format, t.Index, t.Platform, t.ExternalURL),
	})
}

// target emits the reason and message of a target that is not published, as its final event if it is settled.
func (r *recorder) target(p *reconciliation, t *v1alpha1.TargetStatus) {
	s := targetSubject(p.Post, int(t.Index), p.conn(int(t.Index)))
	e := delivery.Event{Warning: true, Reason: t.Reason, Message: fmt.Sprintf("target %d (%s): %s", t.Index, t.Platform, t.Message)}
	if attempt.Settled(t) {
		r.emitFinal(s, e)
		return
	}
	r.warn(s, e.Reason, e.Message)
}

func (r *recorder) published(p *reconciliation, before *v1alpha1.PostStatus) {
	for _, t := range settledSince(p.Post, before) {
		if attempt.Posted(t) {
			r.posted(p, t, "published to %s as %s")
		}
	}
}

func (r *recorder) failed(p *reconciliation, before *v1alpha1.PostStatus) {
	for _, t := range settledSince(p.Post, before) {
		if !attempt.Posted(t) {
			r.target(p, t)
		}
	}
}

func settledSince(post *v1alpha1.Post, before *v1alpha1.PostStatus) (settled []*v1alpha1.TargetStatus) {
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		was := slices.ContainsFunc(before.Targets, func(was v1alpha1.TargetStatus) bool { return was.Index == t.Index && attempt.Settled(&was) })
		if attempt.Settled(t) && !was {
			settled = append(settled, t)
		}
	}
	return settled
}

// abandoned warns that the outcome of a target remains unknown, because its post is being deleted.
func (r *recorder) abandoned(p *reconciliation, t *v1alpha1.TargetStatus) {
	r.emitFinal(deletedSubject(targetSubject(p.Post, int(t.Index), p.conn(int(t.Index))), p.Post, p.namespaceTerminating), delivery.Event{
		Warning: true, Reason: v1alpha1.ReasonOutcomeAbandoned, Message: fmt.Sprintf(
			"post %q was deleted before the outcome of target %d was known: check account %s on %s for a post made after %s",
			p.Post.Name, t.Index, t.Attempt.AccountID, t.Platform, t.Attempt.StartedAt),
	})
}

// RecordUnavailable implements records.Events.
func (r *recorder) RecordUnavailable(post *v1alpha1.Post, why error) {
	r.warn(postSubject(post), v1alpha1.ReasonRecordUnavailable, fmt.Sprintf(
		"the post is kept for up to an hour, until the record that prevents a second publication is stored: %v", why))
}

// Reapplied implements records.Events.
func (r *recorder) Reapplied(post *v1alpha1.Post) {
	r.event(post, withDefaultMessage(post, delivery.Event{Warning: true, Reason: v1alpha1.ReasonCancelled}))
}

// RecordAbandoned implements records.Events.
func (r *recorder) RecordAbandoned(post *v1alpha1.Post, namespaceEnds bool) {
	r.emitFinal(deletedSubject(postSubject(post), post, namespaceEnds), delivery.Event{
		Warning: true, Reason: v1alpha1.ReasonRecordAbandoned, Message: fmt.Sprintf(
			"post %q was deleted without a record of its outcome, because the store of media files was unavailable: if it is created again, it is published again", post.Name),
	})
}

func (r *recorder) limited(conn *v1alpha1.Connection, change ratelimit.Change) {
	switch {
	case !change.Begun:
		r.emitFinal(connectionSubject(conn), delivery.Event{Reason: v1alpha1.ReasonRateLimitEnded, Message: change.Message})
	case change.Reason == v1alpha1.ReasonAccountRestricted:
		r.warn(connectionSubject(conn), change.Reason, change.Message)
	default:
		r.warn(connectionSubject(conn), v1alpha1.ReasonRateLimited, change.Reason+": "+change.Message)
	}
}
