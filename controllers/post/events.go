// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"cmp"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/posting/delivery"
)

// Each event is a write to the API server. Good news of a team is told as long as it
// comes at a pace that a person can read; in a burst the conditions, which cost nothing
// more, tell it alone. Warnings have a budget of their own. Each team has both, so that a
// noisy one silences no other.
const (
	newsPerSecond     = 2
	newsBurst         = 20
	warningsPerSecond = 5
	warningsBurst     = 50
	// allPerSecond and allBurst bound what all teams together are told, of each of the
	// two: a tenth of what the API server writes of posts.
	allPerSecond = 20
	allBurst     = 500
	// manyTeams is from how many teams on those are forgotten that have told nothing for
	// quietFor: by then their budgets are whole again.
	manyTeams = 1000
	quietFor  = time.Minute
)

// maxNote is the greatest length of an event's note that the API takes.
const maxNote = 1000

// recorder tells the owners of posts and connections what happens, as events.
type recorder struct {
	events events.EventRecorder
	clock  clock.PassiveClock

	mu    sync.Mutex
	all   eventBudget
	teams map[string]*eventBudget
}

// eventBudget is that of one team, or of all.
type eventBudget struct {
	news, warnings *rate.Limiter
	used           time.Time
}

func newRecorder(to events.EventRecorder, clk clock.PassiveClock) *recorder {
	return &recorder{
		events: to, clock: clk, teams: map[string]*eventBudget{},
		all: eventBudget{news: rate.NewLimiter(allPerSecond, allBurst), warnings: rate.NewLimiter(allPerSecond, allBurst)},
	}
}

// budget reports whether another event of a team may be told.
func (r *recorder) budget(namespace string, warning bool) bool {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.teams[namespace]
	if of == nil {
		if len(r.teams) >= manyTeams {
			maps.DeleteFunc(r.teams, func(_ string, of *eventBudget) bool { return now.Sub(of.used) > quietFor })
		}
		of = &eventBudget{news: rate.NewLimiter(newsPerSecond, newsBurst), warnings: rate.NewLimiter(warningsPerSecond, warningsBurst)}
		r.teams[namespace] = of
	}
	of.used = now
	if warning {
		return of.warnings.AllowN(now, 1) && r.all.warnings.AllowN(now, 1)
	}
	return of.news.AllowN(now, 1) && r.all.news.AllowN(now, 1)
}

// namespaceOf is the namespace of the team that an event is about.
func namespaceOf(about runtime.Object) string {
	object, err := meta.Accessor(about)
	if err != nil {
		return ""
	}
	return cmp.Or(object.GetNamespace(), object.GetName()) // a namespace is in none
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
	if r.events != nil && r.budget(namespaceOf(about), false) {
		r.events.Eventf(about, nil, corev1.EventTypeNormal, reason, "Deliver", "%s", text.TruncateBytes(message, maxNote))
	}
}

// warn tells that something needs attention.
func (r *recorder) warn(about runtime.Object, reason, message string) {
	if r.events != nil && r.budget(namespaceOf(about), true) {
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

// recordAbandoned tells that a post goes without a record. In a namespace that is being
// deleted there can be no new event, as above.
func (r *recorder) recordAbandoned(post *v1alpha1.Post, namespaceEnds bool) {
	about := runtime.Object(post)
	if namespaceEnds {
		about = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: post.Namespace}}
	}
	r.warn(about, v1alpha1.ReasonRecordAbandoned, fmt.Sprintf(
		"post %q was deleted while the store of media files did not answer, so that nothing keeps what became of it: if it is created again, it is published again", post.Name))
}

// limited tells, on a connection, that its platform takes no calls for a while.
func (r *recorder) limited(conn *v1alpha1.Connection) {
	reason := v1alpha1.ReasonRateLimited
	if c := meta.FindStatusCondition(conn.Status.Conditions, v1alpha1.ConditionPublishingRefused); c != nil && c.Reason == v1alpha1.ReasonAccountRestricted {
		reason = v1alpha1.ReasonAccountRestricted
	}
	r.warn(conn, reason, fmt.Sprintf("nothing is sent before %s: %s", conn.Status.RateLimitedUntil, conn.Status.RateLimitedMessage))
}
