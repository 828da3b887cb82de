// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// watchTimeout is the timeout of a watch: the Kubernetes API then ends it, and the watch resumes from its last
	// version. A successful resumption proves that no event was missed. Between two resumptions a watch of keys may be
	// silent for hours, and one that a proxy keeps open after the other end has disconnected is silent forever.
	watchTimeout = 90 * time.Second
	// cutAfter is when the client ends a watch that the server has not ended.
	cutAfter = watchTimeout + 30*time.Second
)

// contact records when the Kubernetes API last responded to a watch: with all objects, or with all events since. It is
// safe for concurrent use.
type contact struct {
	clock clock.PassiveClock
	at    atomic.Pointer[time.Time]
	// denied is set while the Kubernetes API refuses the watch, because the namespace or its Role is gone.
	denied atomic.Bool
}

// LastContact returns when the cache was last known to be complete, or zero if it never was.
func (c *contact) LastContact() time.Time {
	if at := c.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// observe wraps a source's lists and watches and records their responses. A response counts from the time of its
// request.
func (c *contact) observe(source *cache.ListWatch) *cache.ListWatch {
	onAnswer(source, func() func(error) {
		asked := c.clock.Now()
		return func(err error) {
			switch {
			case err == nil:
				c.at.Store(&asked)
				c.denied.Store(false)
			case apierrors.IsForbidden(err): // any other error does not show that the permissions are back
				c.denied.Store(true)
			}
		}
	})
	watch := source.WatchFuncWithContext
	source.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
		options.TimeoutSeconds = new(int64(watchTimeout.Seconds()))
		ctx, cut := context.WithTimeout(ctx, cutAfter)
		events, err := watch(ctx, options)
		if err != nil {
			cut()
			return nil, err
		}
		return bounded{events, cut}, nil
	}
	return source
}

// onAnswer calls asked before each list and watch of a source, and then passes the result to the function that asked
// returned.
func onAnswer(source *cache.ListWatch, asked func() (answered func(error))) {
	list, watch := source.ListWithContextFunc, source.WatchFuncWithContext
	source.ListWithContextFunc = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		answered := asked()
		found, err := list(ctx, options)
		answered(err)
		return found, err
	}
	source.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
		answered := asked()
		events, err := watch(ctx, options)
		answered(err)
		return events, err
	}
}

// bounded is a watch that ends with its context.
type bounded struct {
	apiwatch.Interface
	cut context.CancelFunc
}

func (b bounded) Stop() {
	b.Interface.Stop()
	b.cut()
}
