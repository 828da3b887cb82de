// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// watchFor is how long one watch lasts. The Kubernetes API ends it then, and it is taken
	// up where it was: that it could be is the proof that nothing was missed. Between two such
	// proofs a watch of keys may say nothing for hours, and one that a proxy holds open without
	// its other end says nothing for ever.
	watchFor = 90 * time.Second
	// cutAfter ends a watch from this side that the other one did not end.
	cutAfter = watchFor + 30*time.Second
)

// contact notes when the Kubernetes API has last answered a watch: with all that there is, or
// with all that has happened since. It is safe for concurrent use.
type contact struct {
	clock clock.PassiveClock
	at    atomic.Pointer[time.Time]
}

// LastContact is when what is in memory was last known to be all that there is; zero before that.
func (c *contact) LastContact() time.Time {
	if at := c.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// observe is a source of lists and watches whose answers are noted. What an answer tells is as old
// as its question.
func (c *contact) observe(source *cache.ListWatch) *cache.ListWatch {
	list, watch := source.ListWithContextFunc, source.WatchFuncWithContext
	note := func(asked time.Time, err error) {
		if err == nil {
			c.at.Store(&asked)
		}
	}
	source.ListWithContextFunc = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		asked := c.clock.Now()
		found, err := list(ctx, options)
		note(asked, err)
		return found, err
	}
	source.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
		options.TimeoutSeconds = new(int64(watchFor.Seconds()))
		ctx, cut := context.WithTimeout(ctx, cutAfter)
		asked := c.clock.Now()
		events, err := watch(ctx, options)
		note(asked, err)
		if err != nil {
			cut()
			return nil, err
		}
		return bounded{events, cut}, nil
	}
	return source
}

// bounded is a watch that ends with its context.
type bounded struct {
	apiwatch.Interface
	cut context.CancelFunc
}

// Stop ends it.
func (b bounded) Stop() {
	b.Interface.Stop()
	b.cut()
}
