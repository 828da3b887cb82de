// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"

	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/test/perf/internal/measure"
)

// atRest is the size of unchanging objects in the control plane, in bytes: the size of etcd's database without its
// history, and of the API server's heap after a garbage collection.
type atRest struct {
	etcd, kubeAPIServer float64
}

// atRest measures the total size of all objects in the control plane.
func (s *session) atRest(ctx context.Context) (atRest, error) {
	stored, err := s.stack.StoredBytes(ctx)
	if err != nil {
		return atRest{}, err
	}
	client, err := rest.HTTPClientFor(s.stack.Config)
	if err != nil {
		return atRest{}, err
	}
	// The query runs a garbage collection first.
	if _, err := get(ctx, client, s.stack.Config.Host+"/debug/pprof/heap?gc=1"); err != nil {
		return atRest{}, err
	}
	page, err := get(ctx, client, s.stack.Config.Host+"/metrics")
	if err != nil {
		return atRest{}, err
	}
	heap, err := measure.Heap(bytes.NewReader(page))
	return atRest{float64(stored), heap}, err
}

// perObject returns the increase since before, divided by the number of objects.
func (a atRest) perObject(before atRest, objects int) atRest {
	return atRest{(a.etcd - before.etcd) / float64(objects), (a.kubeAPIServer - before.kubeAPIServer) / float64(objects)}
}
