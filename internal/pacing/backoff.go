// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"math/rand/v2"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The backoff of controllers. Work that fails while the Kubernetes API, the store or a platform is unavailable resumes
// soon after the recovery, regardless of the length of the outage. controller-runtime's default backoff doubles up to
// 17 minutes.
const (
	// FirstRetry is the longest pause before the first retry. Each following pause is twice as long.
	FirstRetry = 50 * time.Millisecond
	// MaxRetry is the longest pause, and so the longest delay after an outage for posts that became due during it. With
	// it, ten thousand failing posts make fewer than a thousand requests per second.
	MaxRetry = 15 * time.Second
)

// NewRateLimiter returns the rate limiter for a controller's queue. Each queue needs a separate one.
func NewRateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return jittered{workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](FirstRetry, MaxRetry)}
}

// jittered shortens pauses by a random part of up to half, so that simultaneous failures are not retried together.
type jittered struct {
	workqueue.TypedRateLimiter[reconcile.Request]
}

// When implements workqueue.TypedRateLimiter.
func (s jittered) When(request reconcile.Request) time.Duration {
	pause := s.TypedRateLimiter.When(request)
	return pause/2 + rand.N(pause/2) //nolint:gosec // the jitter need not be unpredictable
}
