// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Outcomes of an attempt or a notification.
const (
	delivered = "delivered"
	failed    = "failed"
	expired   = "expired"
)

// Metrics counts notifications.
type Metrics struct {
	attempts *prometheus.CounterVec
	// reading returns the number of failing notifiers, and the age of the oldest waiting notification.
	reading atomic.Pointer[func() (failing int, oldest time.Duration)]
}

// NewMetrics creates the metrics and registers them with r, unless r is nil. It panics if they are already registered.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{attempts: promauto.With(r).NewCounterVec(prometheus.CounterOpts{
		Name: "herald_notifications_total",
		Help: "Notifications of Notifiers, by format and outcome: delivered, failed (attempts, which are repeated) or expired (not delivered within a day).",
	}, []string{"format", "outcome"})}
	for _, format := range []v1alpha1.NotifierFormat{v1alpha1.FormatStandardWebhooks, v1alpha1.FormatSlack, v1alpha1.FormatEmail} {
		for _, outcome := range []string{delivered, failed, expired} {
			m.attempts.WithLabelValues(string(format), outcome)
		}
	}
	promauto.With(r).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "herald_notifiers_failing",
		Help: "Notifiers whose receiver did not accept the last notification, except suspended ones. Reported by the leader.",
	}, func() float64 {
		count, _ := m.read()
		return float64(count)
	})
	promauto.With(r).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "herald_notification_oldest_seconds",
		Help: "Time since the event of the notification that waits longest, except those of suspended Notifiers. Reported by the leader.",
	}, func() float64 {
		_, oldest := m.read()
		return oldest.Seconds()
	})
	return m
}

func (m *Metrics) increment(format v1alpha1.NotifierFormat, outcome string) {
	m.attempts.WithLabelValues(string(format), outcome).Inc()
}

func (m *Metrics) observe(read func() (int, time.Duration)) { m.reading.Store(&read) }

func (m *Metrics) read() (int, time.Duration) {
	if read := m.reading.Load(); read != nil {
		return (*read)()
	}
	return 0, 0
}

// observe returns the values of the gauges.
func (r *Reconciler) observe() (failing int, oldest time.Duration) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := r.Clock.Now()
	for _, w := range r.workers {
		isFailing, waits := w.lag(now)
		if isFailing {
			failing++
		}
		oldest = max(oldest, waits)
	}
	return failing, oldest
}

// lag reports whether the receiver failed to accept the last notification, and how long the oldest one has been
// waiting. A suspended Notifier does not lag.
func (w *worker) lag(now time.Time) (isFailing bool, oldest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notifier.Spec.Suspend {
		return false, 0
	}
	if n, since := w.queue.Pending(); n > 0 {
		oldest = now.Sub(since)
	}
	return w.failing != "", oldest
}
