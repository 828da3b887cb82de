// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/posting/notify"
)

const (
	// saveEvery is the shortest pause between two writes of a Notifier's status.
	saveEvery = 10 * time.Second
	// saveIdle is how old the stored progress may become while nothing is sent, so that a new leader reads few posts.
	saveIdle = 6 * time.Hour
	// checkEvery is the interval between checks of the Secret, the team, and the deadlines of Connections.
	checkEvery = time.Minute
	// checkMissing is the pause between checks of a new Notifier's Secret that does not exist.
	checkMissing = 2 * time.Second
	// errorPause is the pause after an error from the Kubernetes API.
	errorPause = 5 * time.Second
	// finalSave limits the last write at shutdown.
	finalSave = 5 * time.Second
	// slowAfter is how long a call may take before its receiver uses the slow lane.
	slowAfter = 2 * time.Second
)

// worker sends the notifications of one Notifier.
type worker struct {
	reconciler *Reconciler
	feed       *feed
	key        types.NamespacedName
	uid        types.UID
	stop       context.CancelFunc
	wake       chan struct{}

	mu       sync.Mutex
	queue    *notify.Queue
	notifier *v1alpha1.Notifier
	// requests are the unhandled values of the resend annotation.
	requests []string
	// behind is true if the queue may lack events.
	behind bool
	// dirty is true if the status must be written.
	dirty bool

	// Only run's goroutine uses the following fields.
	savedAt, checkedAt time.Time
	state              state
	isSlow             bool
	// failing is the last error since the last success; empty after a success.
	failing string
	// deliveredAt is the time of the last success, and handled is the last resend request that was handled.
	deliveredAt *v1alpha1.Time
	handled     string
	// goneIn is the generation whose receiver responded with 410, or 0.
	goneIn int64
}

func newWorker(r *Reconciler, f *feed, n *v1alpha1.Notifier) *worker {
	w := &worker{
		reconciler: r, feed: f, key: client.ObjectKeyFromObject(n), uid: n.UID, wake: make(chan struct{}, 1),
		queue: notify.NewQueue(n, r.Clock.Now()), notifier: n, behind: true,
		deliveredAt: n.Status.LastDeliveredAt, handled: n.Status.LastHandledResend,
	}
	w.request(n)
	if c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionFailing); c != nil {
		w.failing, w.isSlow = strings.TrimPrefix(c.Message, failingMessage), true
	}
	if c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Reason == v1alpha1.ReasonReceiverGone {
		w.goneIn = c.ObservedGeneration
	}
	return w
}

func (w *worker) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// update replaces the Notifier after a change by a user.
func (w *worker) update(n *v1alpha1.Notifier) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.Status = w.notifier.Status // only the worker writes it
	w.notifier, w.checkedAt = n, time.Time{}
	w.request(n)
	w.signal()
}

// reread makes the worker read all events again.
func (w *worker) reread() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behind = true
	w.signal()
}

// offer adds the events that the Notifier reports to the queue.
func (w *worker) offer(events ...notify.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.reconciler.Clock.Now()
	for i := range events {
		for _, kind := range w.notifier.Spec.Events {
			if events[i].Type == kind && w.queue.Offer(events[i], now) {
				w.dirty = true
				w.signal()
			}
		}
	}
}

func (w *worker) through() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue.Through()
}

// run sends until ctx is done, and then stores the progress.
func (w *worker) run(ctx context.Context) {
	log := ctrl.Log.WithName("notifier").WithValues("namespace", w.key.Namespace, "name", w.key.Name)
	ctx = ctrl.LoggerInto(ctx, log)
	for ctx.Err() == nil {
		pause, err := w.step(ctx)
		if err != nil && ctx.Err() == nil {
			log.Error(err, "cannot process the notifications; retrying")
			pause = errorPause
		}
		if pause <= 0 {
			continue
		}
		timer := w.reconciler.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
	w.saveFinally(ctx, log)
}

// saveFinally stores the progress at shutdown. A conflict means that another process has taken over.
func (w *worker) saveFinally(ctx context.Context, log logr.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalSave)
	defer cancel()
	if !w.isDirty() || w.state.Reason == "" {
		return
	}
	if err := w.save(ctx); err != nil {
		log.V(1).Info("the progress was not stored; the latest notifications are sent again", "error", err.Error())
	}
}

func (w *worker) isDirty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dirty
}

// step reads events, sends at most one notification, and stores the progress, if they are due. It returns the time
// until the next step.
func (w *worker) step(ctx context.Context) (time.Duration, error) {
	if err := w.catchUp(ctx); err != nil {
		return 0, err
	}
	w.resend()
	now := w.reconciler.Clock.Now()
	if err := w.check(ctx, now); err != nil {
		return 0, err
	}
	sent, wake, err := w.sendNext(ctx, now)
	if err != nil {
		return 0, err
	}
	now = w.reconciler.Clock.Now()
	w.mu.Lock()
	pause := w.checkInterval(now)
	w.mu.Unlock()
	if until := w.savedAt.Add(saveEvery).Sub(now); w.isDirty() || now.Sub(w.through()) > saveIdle {
		if until <= 0 {
			return 0, w.save(ctx)
		}
		pause = min(pause, until)
	}
	switch {
	case sent:
		return 0, nil
	case !wake.IsZero():
		pause = min(pause, wake.Sub(now))
	}
	return max(pause, time.Millisecond), nil
}

// catchUp reads all events again if some may be missing.
func (w *worker) catchUp(ctx context.Context) error {
	w.mu.Lock()
	due := w.behind && !w.feed.current().IsZero() || w.queue.HasSpace()
	w.behind = w.behind && !due
	w.mu.Unlock()
	if !due {
		return nil
	}
	if err := w.read(ctx); err != nil {
		w.reread()
		return err
	}
	return nil
}

// checkInterval returns the pause between two checks. It is shorter while the Secret of a new Notifier is missing, because
// the web application and the API create a Notifier before its Secret. The caller holds mu.
func (w *worker) checkInterval(now time.Time) time.Duration {
	if w.state.Reason == v1alpha1.ReasonSecretNotFound && now.Sub(w.notifier.CreationTimestamp.Time) < checkEvery {
		return checkMissing
	}
	return checkEvery
}

// check updates the Notifier's state, and offers events that depend on the time.
func (w *worker) check(ctx context.Context, now time.Time) error {
	w.mu.Lock()
	due := now.Sub(w.checkedAt) >= w.checkInterval(now)
	w.mu.Unlock()
	if !due {
		return nil
	}
	next, err := w.examine(ctx)
	if err != nil {
		return err
	}
	if err := w.readCache(ctx, &v1alpha1.ConnectionList{}); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkedAt = now
	if next.Summary != w.state.Summary || w.notifier.Status.ObservedGeneration != w.notifier.Generation {
		w.dirty = true
	}
	w.state = next
	return nil
}

// sendNext sends the next notification. It reports whether it sent one, and otherwise when one will be due; zero means
// never.
func (w *worker) sendNext(ctx context.Context, now time.Time) (sent bool, wake time.Time, err error) {
	w.mu.Lock()
	for _, n := range w.queue.Expire(now) {
		w.dirty = true
		w.reconciler.Metrics.increment(w.notifier.Spec.Format, expired)
		ctrl.LoggerFrom(ctx).Info("a notification was not delivered", "id", n.ID, "event", n.Type, "about", n.Name)
	}
	item, wake := w.queue.Next(now)
	w.mu.Unlock()
	if item == nil || w.state.send == nil {
		return false, wake, nil
	}
	leave, err := w.reconciler.lanes.enter(ctx, w.isSlow)
	if err != nil {
		return false, time.Time{}, err
	}
	defer leave()
	begun := w.reconciler.Clock.Now()
	result, err := w.deliver(ctx, item)
	if err != nil {
		return false, time.Time{}, err
	}
	now = w.reconciler.Clock.Now()
	w.isSlow = result.Problem != "" || now.Sub(begun) > slowAfter
	w.record(item, result, now)
	return true, time.Time{}, nil
}

// record records the result of a call.
func (w *worker) record(item *notify.Notification, result notify.Result, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	outcome := delivered
	if result.Problem != "" {
		outcome = failed
	} else {
		w.deliveredAt = v1alpha1.NewTimePtr(now)
	}
	w.reconciler.Metrics.increment(w.notifier.Spec.Format, outcome)
	w.queue.Record(item, result, now)
	w.dirty = true
	w.failing = result.Problem
	if result.Gone {
		w.goneIn, w.checkedAt = w.notifier.Generation, time.Time{}
	}
}

// save writes the status.
func (w *worker) save(ctx context.Context) error {
	n, before, changed := w.compose()
	err := w.reconciler.status.Report(ctx, n, before, &n.Status)
	if err != nil {
		w.restore(ctx, err)
		return err
	}
	w.mu.Lock()
	if w.notifier.Generation == n.Generation {
		w.notifier.ResourceVersion = n.ResourceVersion
	}
	w.notifier.Status = n.Status
	w.mu.Unlock()
	if changed {
		w.reportFailing(n)
	}
	return nil
}

// compose returns the Notifier with its next status, the status before, and whether the Failing condition changes.
func (w *worker) compose() (n *v1alpha1.Notifier, before *v1alpha1.NotifierStatus, changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.reconciler.Clock.Now()
	n = w.notifier.DeepCopy()
	before = n.Status.DeepCopy()
	seen := w.feed.current()
	if w.behind || seen.IsZero() {
		seen = w.queue.Through()
	}
	w.queue.Save(&n.Status, seen)
	n.Status.LastDeliveredAt, n.Status.LastHandledResend = w.deliveredAt, w.handled
	conditions.Apply(&n.Status.Conditions, w.state.Summary, n.Generation, now)
	n.Status.ObservedGeneration = n.Generation
	changed = w.applyFailing(n, now)
	w.dirty, w.savedAt = false, now
	return n, before, changed
}

// restore makes the next step write the status after an error. After a conflict, it reads the resourceVersion for the
// next write; the status remains the worker's.
func (w *worker) restore(ctx context.Context, err error) {
	var n v1alpha1.Notifier
	isRead := apierrors.IsConflict(err) && w.reconciler.APIReader.Get(ctx, w.key, &n) == nil
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dirty = true
	if isRead && n.UID == w.uid {
		n.Status = w.notifier.Status
		w.notifier = &n
	}
}

// failingMessage is the start of the Failing condition's message.
const failingMessage = "the receiver does not accept notifications: "

// applyFailing sets or removes the Failing condition. It reports whether the condition changed. The caller holds mu.
func (w *worker) applyFailing(n *v1alpha1.Notifier, now time.Time) bool {
	if w.failing == "" {
		return meta.RemoveStatusCondition(&n.Status.Conditions, v1alpha1.ConditionFailing)
	}
	was := meta.IsStatusConditionTrue(n.Status.Conditions, v1alpha1.ConditionFailing)
	meta.SetStatusCondition(&n.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionFailing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDeliveryFailed,
		Message: failingMessage + w.failing, ObservedGeneration: n.Generation, LastTransitionTime: metav1.NewTime(now),
	})
	return !was
}

func (w *worker) reportFailing(n *v1alpha1.Notifier) {
	events := w.reconciler.Events
	if events == nil {
		return
	}
	if c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionFailing); c != nil {
		events.Eventf(n, nil, corev1.EventTypeWarning, c.Reason, "Notify", "%s", c.Message)
		return
	}
	events.Eventf(n, nil, corev1.EventTypeNormal, v1alpha1.ReasonDelivering, "Notify", "the receiver accepts notifications again")
}
