// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"fmt"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/posting/delivery"
)

// Each event is a write to the API server. Good news is told as long as it comes at
// a pace that a person can read; in a burst the conditions, which cost nothing more,
// tell it alone. Warnings have a budget of their own.
const (
	newsPerSecond     = 2
	newsBurst         = 20
	warningsPerSecond = 5
	warningsBurst     = 50
)

// maxNote is the greatest length of an event's note that the API takes.
const maxNote = 1000

// recorder tells the owners of posts and connections what happens, as events.
type recorder struct {
	events   events.EventRecorder
	clock    clock.PassiveClock
	news     *rate.Limiter
	warnings *rate.Limiter
}

func newRecorder(to events.EventRecorder, clk clock.PassiveClock) *recorder {
	return &recorder{
		events: to, clock: clk,
		news:     rate.NewLimiter(newsPerSecond, newsBurst),
		warnings: rate.NewLimiter(warningsPerSecond, warningsBurst),
	}
}

// event tells an event of a decision.
func (r *recorder) event(post *v1alpha1.Post, e delivery.Event) {
	switch {
	case e.Reason == "":
	case e.Warning:
		r.warn(post, e.Reason, e.Message)
	default:
		r.tell(post, e.Reason, e.Message)
	}
}

// tell tells good news.
func (r *recorder) tell(about runtime.Object, reason, message string) {
	if r.events != nil && r.news.AllowN(r.clock.Now(), 1) {
		r.events.Eventf(about, nil, corev1.EventTypeNormal, reason, "Deliver", "%s", text.TruncateBytes(message, maxNote))
	}
}

// warn tells that something needs attention.
func (r *recorder) warn(about runtime.Object, reason, message string) {
	if r.events != nil && r.warnings.AllowN(r.clock.Now(), 1) {
		r.events.Eventf(about, nil, corev1.EventTypeWarning, reason, "Deliver", "%s", text.TruncateBytes(message, maxNote))
	}
}

// abandoned tells of a target of a post that goes that nobody will find out whether it is
// published. In a namespace that is being deleted there can be no new event, so that the
// namespace itself, which is in none, is what it is about.
func (r *recorder) abandoned(post *v1alpha1.Post, t *v1alpha1.TargetStatus, namespaceEnds bool) {
	about := runtime.Object(post)
	if namespaceEnds {
		about = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: post.Namespace}}
	}
	r.warn(about, v1alpha1.ReasonOutcomeAbandoned, fmt.Sprintf(
		"post %q was deleted before it could be found out whether target %d was published: look at account %s on %s for a post made after %s",
		post.Name, t.Index, t.Attempt.AccountID, t.Platform, t.Attempt.StartedAt))
}

// limited tells, on a connection, that its platform takes no calls for a while.
func (r *recorder) limited(conn *v1alpha1.Connection) {
	r.warn(conn, v1alpha1.ReasonRateLimited, fmt.Sprintf("nothing is sent before %s: %s", conn.Status.RateLimitedUntil, conn.Status.RateLimitedMessage))
}
