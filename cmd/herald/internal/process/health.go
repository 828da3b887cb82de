// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/internal/apiclock"
)

// started is a readiness check. A manager is ready if it is working or could take over the lease: its caches are filled
// and it is not shutting down.
type started struct {
	// synced waits until the caches are filled or the context is done.
	synced func(context.Context) bool
	// clock is the process's clock. If nil, the time counts as known.
	clock   *apiclock.Clock
	running atomic.Bool
}

// Start implements manager.Runnable. controller-runtime starts the caches first.
func (s *started) Start(ctx context.Context) error {
	s.running.Store(true)
	<-ctx.Done()
	s.running.Store(false)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a replica that waits for the lease is ready to take
// over.
func (*started) NeedLeaderElection() bool { return false }

// syncTimeout is how long a probe waits for the caches, which are polled ten times a second.
const syncTimeout = 200 * time.Millisecond

// Check is a probe check; see apiserver.ProbeChecks.
func (s *started) Check(r *http.Request) error {
	if !s.running.Load() {
		return errors.New("the process has not started to work yet, or is stopping")
	}
	ctx, cancel := context.WithTimeout(r.Context(), syncTimeout)
	defer cancel()
	if !s.synced(ctx) {
		return errors.New("the caches are not filled yet")
	}
	if s.clock != nil {
		return s.clock.Check(r)
	}
	return nil
}

// healthTimeout is the timeout for a request's header.
const healthTimeout = 5 * time.Second

// errUnanswered is the readiness error while the process waits for the Kubernetes API.
var errUnanswered = errors.New("the Kubernetes API has not answered yet")

func listenHealth(ctx context.Context, endpoint configv1alpha1.Endpoint) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", endpoint.BindAddress)
	if err != nil {
		return nil, fmt.Errorf("health.bindAddress: %w", err)
	}
	return listener, nil
}

// AddProbes serves a manager's probes, from before it fills its caches until after it has stopped. controller-runtime's
// own probes would expose the checks and their errors to every client (/readyz/NAME, ?verbose). alive is the check for
// /livez. now is the process's clock; if nil, the time counts as known.
func AddProbes(ctx context.Context, mgr ctrl.Manager, endpoint configv1alpha1.Endpoint, alive healthz.Checker, now *apiclock.Clock) error {
	ready := &started{synced: mgr.GetCache().WaitForCacheSync, clock: now}
	if err := mgr.Add(ready); err != nil || endpoint.Off() {
		return err
	}
	listener, err := listenHealth(ctx, endpoint)
	if err != nil {
		return err
	}
	log := slog.New(logr.ToSlogHandler(mgr.GetLogger()))
	return mgr.Add(&manager.Server{
		Name: "health probes", Listener: listener, Server: &http.Server{ReadHeaderTimeout: healthTimeout, Handler: apiserver.ProbeHandler(log, apiserver.ProbeChecks{Alive: alive, Ready: ready.Check})},
	})
}

// ServeWaiting serves the probes of a process that waits for a dependency: alive but not ready. stop frees the address.
func ServeWaiting(ctx context.Context, endpoint configv1alpha1.Endpoint, log *slog.Logger) (stop func(), err error) {
	if endpoint.Off() {
		return func() {}, nil
	}
	listener, err := listenHealth(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: healthTimeout, Handler: apiserver.ProbeHandler(log, apiserver.ProbeChecks{
		Alive: healthz.Ping, Ready: func(*http.Request) error { return errUnanswered },
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.ErrorContext(ctx, "Probes are not answered", "error", err)
		}
	}()
	return func() {
		_ = server.Close() // the kubelet repeats a probe that is cut off
		<-ended
	}, nil
}
