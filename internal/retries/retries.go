// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retries is the backoff of controllers. Work that fails while the Kubernetes API, the store or a platform is
// unavailable continues soon after the recovery, however long the outage was: the default backoff of controller-runtime
// doubles up to 17 minutes.
package retries

import (
	"math/rand/v2"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// First is the longest pause before the first retry. Each following pause is twice as long.
	First = 50 * time.Millisecond
	// Most is the longest pause, and so the longest delay after an outage of posts that became due in it. Ten thousand
	// failing posts make less than a thousand requests per second with it.
	Most = 15 * time.Second
)

// Limiter returns the rate limiter for a controller's queue. Each queue needs its own.
func Limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return spread{workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](First, Most)}
}

// spread shortens pauses by a random part of up to a half: objects that failed at the same moment are not retried at
// the same moment.
type spread struct {
	workqueue.TypedRateLimiter[reconcile.Request]
}

// When implements workqueue.TypedRateLimiter.
func (s spread) When(request reconcile.Request) time.Duration {
	pause := s.TypedRateLimiter.When(request)
	return pause/2 + rand.N(pause/2) //nolint:gosec // the jitter need not be unpredictable
}
