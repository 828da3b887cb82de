// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/test/perf/internal/measure"
)

const (
	neighbourNamespace = "neighbour"
	neighbourAccount   = "system:serviceaccount:" + neighbourNamespace + ":operator"
	// neighbourObjects is the number of ConfigMaps, of neighbourBytes each, in each list that the neighbour reads.
	neighbourObjects, neighbourBytes = 200, 4 << 10
	// queueEvery is the sampling interval of the queue.
	queueEvery = 2 * time.Second
)

// operator is another operator in the cluster that keeps the priority level workload-low busy.
type operator struct {
	answered, rejected atomic.Int64
	// queued is the largest number of its requests that were queued in the API server in any sample.
	queued atomic.Int64
	stop   context.CancelFunc
	all    sync.WaitGroup
}

// withNeighbour runs a benchmark alongside another operator that makes the configured number of concurrent requests,
// and adds a row for it. If none is configured, the benchmark runs alone.
func (s *session) withNeighbour(ctx context.Context, r *report, id string, work func() error) error {
	if s.neighbour == 0 {
		return work()
	}
	o, err := s.startNeighbour(ctx)
	if err != nil {
		return err
	}
	err = work()
	o.end()
	if err == nil {
		o.report(r, id)
	}
	return err
}

// startNeighbour starts the operator.
func (s *session) startNeighbour(ctx context.Context) (*operator, error) {
	for _, object := range neighbourObjectsOf() {
		if err := client.IgnoreAlreadyExists(s.stack.Kubernetes.Create(ctx, object)); err != nil {
			return nil, fmt.Errorf("prepare the neighbour: %w", err)
		}
	}
	config := rest.CopyConfig(s.stack.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: neighbourAccount, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	o := &operator{}
	ctx, o.stop = context.WithCancel(ctx)
	for range s.neighbour {
		o.all.Go(func() { o.list(ctx, api) })
	}
	o.all.Go(func() { o.sample(ctx, s) })
	return o, nil
}

// list keeps listing ConfigMaps.
func (o *operator) list(ctx context.Context, api kubernetes.Interface) {
	for ctx.Err() == nil {
		_, err := api.CoreV1().ConfigMaps(neighbourNamespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		switch {
		case err == nil:
			o.answered.Add(1)
		case apierrors.IsTooManyRequests(err):
			o.rejected.Add(1)
		}
	}
}

// sample records the number of requests queued at the neighbour's priority level.
func (o *operator) sample(ctx context.Context, s *session) {
	ticks := time.NewTicker(queueEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if waiting, err := s.queued(ctx, "workload-low"); err == nil && int64(waiting) > o.queued.Load() {
			o.queued.Store(int64(waiting))
		}
	}
}

// report adds the neighbour's row. Each round checks that Herald has not lost its lease: a manager that does exits.
func (o *operator) report(r *report, id string) {
	r.limit(id, "requests of a neighbour at workload-low: answered, rejected, and most in the queue",
		fmt.Sprintf("%d, %d, %d", o.answered.Load(), o.rejected.Load(), o.queued.Load()), "some wait", o.queued.Load() > 0)
}

// end stops the neighbour.
func (o *operator) end() {
	o.stop()
	o.all.Wait()
}

// queued returns the number of requests queued at one of the API server's priority levels.
func (s *session) queued(ctx context.Context, level string) (float64, error) {
	page, err := s.metrics(ctx)
	if err != nil {
		return 0, err
	}
	return measure.Sum(page, "apiserver_flowcontrol_current_inqueue_requests", map[string]string{"priority_level": level})
}

// neighbourObjectsOf returns the neighbour's namespace, RBAC objects and ConfigMaps.
func neighbourObjectsOf() []client.Object {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: neighbourNamespace}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: neighbourNamespace, Name: "operator"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: neighbourAccount}},
		},
	}
	for i := range neighbourObjects {
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: neighbourNamespace, Name: fmt.Sprintf("listed-%d", i)},
			Data:       map[string]string{"text": strings.Repeat("a", neighbourBytes)},
		})
	}
	return objects
}
