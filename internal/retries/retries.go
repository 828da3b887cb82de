// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retries says when a controller tries again what has failed. What fails while the Kubernetes API, the store or
// a platform is away goes on soon after that is back, however long it was away: the default of controller-runtime
// doubles its pauses up to 17 minutes.
package retries

import (
	"math/rand/v2"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// First is the longest pause before the first retry. Each one after that is twice as long.
	First = 50 * time.Millisecond
	// Most is the longest pause of all: so late goes out, at the worst, what came due in an outage. Ten thousand posts
	// that fail make less than a thousand requests a second with it.
	Most = 15 * time.Second
)

// Limiter returns what a controller's queue needs to know. Each queue has one of its own.
func Limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return spread{workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](First, Most)}
}

// spread shortens pauses by up to a half, by chance: what failed at one moment does not come back at one moment.
type spread struct {
	workqueue.TypedRateLimiter[reconcile.Request]
}

// When implements workqueue.TypedRateLimiter.
func (s spread) When(request reconcile.Request) time.Duration {
	pause := s.TypedRateLimiter.When(request)
	return pause/2 + rand.N(pause/2) //nolint:gosec // nothing depends on that it cannot be guessed
}
