// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/measure"
)

// StartHerald starts the manager and the apiserver with their defaults and returns once both do their work.
func (s *Stack) StartHerald(ctx context.Context) error {
	if len(s.herald) > 0 {
		return errors.New("herald is already started")
	}
	manager, err := s.start(Manager, s.options.Herald, s.managerArgs()...)
	if err != nil {
		return err
	}
	s.herald = append(s.herald, manager)
	apiserver, err := s.startAPIServer(0)
	if err != nil {
		return err
	}
	if err := manager.waitFor(ctx, answers("http://"+s.address(portManagerHealth)+"/readyz")); err != nil {
		return err
	}
	if err := apiserver.waitFor(ctx, answers("http://"+s.address(portAPIServerMetrics)+"/readyz")); err != nil {
		return err
	}
	return s.waitForWork(ctx, manager)
}

// StartAPIServer starts the apiserver without the manager, on a processor of its own, and returns once it serves.
func (s *Stack) StartAPIServer(ctx context.Context) (*Process, error) {
	if len(s.herald) > 0 {
		return nil, errors.New("herald is already started")
	}
	apiserver, err := s.startAPIServer(measure.ServerProcessor)
	if err != nil {
		return nil, err
	}
	err = apiserver.waitFor(ctx, answers("http://"+s.address(portAPIServerMetrics)+"/readyz"))
	return apiserver, err
}

func (s *Stack) startAPIServer(processor int) (*Process, error) {
	apiserver, err := s.startOn(processor, APIServer, s.options.Herald, s.apiserverArgs()...)
	if err == nil {
		s.herald = append(s.herald, apiserver)
	}
	return apiserver, err
}

// StopHerald ends the manager and the apiserver.
func (s *Stack) StopHerald() error {
	var err error
	for _, p := range slices.Backward(s.herald) {
		err = errors.Join(err, p.Stop())
	}
	s.herald = nil
	return err
}

func (s *Stack) mediaArgs() []string {
	return []string{
		"--media-endpoint", "http://" + s.address(portStore), "--media-bucket", mediaBucket,
		"--media-credentials", s.storeKeyFile(), "--media-path-style",
	}
}

func (s *Stack) managerArgs() []string {
	args := []string{
		"manager", "--kubeconfig", s.Kubeconfig(Manager), "--platforms-config", s.platformsFile(),
		"--leader-election-namespace", systemNamespace, "--leader-identity", "bench",
		"--metrics-bind-address", s.address(portManagerMetrics), "--health-probe-bind-address", s.address(portManagerHealth),
		"--webhook-bind-address", s.address(portManagerWebhook), "--webhook-hosts", "127.0.0.1",
		"--post-workers", strconv.Itoa(s.options.PostWorkers),
	}
	args = append(args, s.mediaArgs()...)
	args = append(args, s.ManagerFlags...)
	if s.options.Pprof {
		args = append(args, "--pprof-bind-address", s.address(portManagerPprof))
	}
	return args
}

func (s *Stack) apiserverArgs() []string {
	args := []string{
		"apiserver", "--kubeconfig", s.Kubeconfig(APIServer), "--platforms-config", s.platformsFile(),
		"--listen", s.address(portSite), "--metrics-bind-address", s.address(portAPIServerMetrics), "--shutdown-delay", "0s",
		"--requests-per-minute", "0",
	}
	args = append(args, s.mediaArgs()...)
	if s.options.Pprof {
		args = append(args, "--pprof-bind-address", s.address(portAPIServerPprof))
	}
	return args
}

// waitForWork waits until the manager leads and its caches are there: until it has looked at a draft.
func (s *Stack) waitForWork(ctx context.Context, manager *Process) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "canary"}}
	if err := client.IgnoreAlreadyExists(s.Kubernetes.Create(ctx, namespace)); err != nil {
		return fmt.Errorf("create the canary's namespace: %w", err)
	}
	draft := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, GenerateName: "canary-"},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText, Draft: true,
			Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "none"}, Caption: "canary"}},
		},
	}
	if err := s.Kubernetes.Create(ctx, draft); err != nil {
		return fmt.Errorf("create a canary: %w", err)
	}
	err := manager.waitFor(ctx, func(ctx context.Context) error {
		if err := s.Kubernetes.Get(ctx, client.ObjectKeyFromObject(draft), draft); err != nil {
			return err
		}
		if draft.Status.Phase == "" {
			return errors.New("the manager has not looked at a new post yet")
		}
		return nil
	})
	return errors.Join(err, s.Kubernetes.Delete(ctx, draft))
}
