// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// reflectors are the watches of a kind whose objects are not cached, one per scope.
type reflectors struct {
	all []*cache.Reflector
	// synced is closed after every scope's initial list.
	synced chan struct{}
}

// newReflectors returns a reflector for each scope. Its store calls listed after each list.
func newReflectors(served configv1alpha1.Namespaces, newReflector func(namespace string, listed func()) *cache.Reflector) reflectors {
	names := served.Scopes()
	r := reflectors{synced: make(chan struct{})}
	var waiting atomic.Int64
	waiting.Store(int64(len(names)))
	for _, namespace := range names {
		first := sync.OnceFunc(func() {
			if waiting.Add(-1) == 0 {
				close(r.synced)
			}
		})
		r.all = append(r.all, newReflector(namespace, first))
	}
	return r
}

// onForbidden calls listed when the Kubernetes API refuses a list or a watch of a single namespace. The namespace or its
// Role was deleted, which must not delay the start of a process that serves other namespaces.
func onForbidden(namespace string, listed func(), source *cache.ListWatch) *cache.ListWatch {
	if namespace == metav1.NamespaceAll {
		return source
	}
	onAnswer(source, func() func(error) {
		return func(err error) {
			if apierrors.IsForbidden(err) {
				listed()
			}
		}
	})
	return source
}

func (r *reflectors) run(ctx context.Context) { runAll(ctx, r.all) }

func runAll[W interface{ RunWithContext(ctx context.Context) }](ctx context.Context, watches []W) {
	var running sync.WaitGroup
	for _, watch := range watches {
		running.Go(func() { watch.RunWithContext(ctx) })
	}
	running.Wait()
}
