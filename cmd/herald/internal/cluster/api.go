// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster connects a process to the Kubernetes API: it finds the API, waits for it, follows its clock, and
// determines which namespaces can be served.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/preflight"
	"github.com/herald-social/herald/cmd/herald/internal/process"
	"github.com/herald-social/herald/config/crd"
	"github.com/herald-social/herald/internal/apiclock"
)

// API is the connection to the Kubernetes API.
type API struct {
	*rest.Config

	// Namespace is this process's namespace, from its pod or from the kubeconfig's context.
	Namespace string
	// Clock follows the clock of the Kubernetes API. It is nil in one-shot commands.
	Clock *apiclock.Clock
}

// Connect finds the Kubernetes API and this process's namespace. It does not send a request. kubeconfig is the path of
// a file, or empty inside a cluster.
func Connect(kubeconfig, userAgent string) (*API, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	// Without a kubeconfig, the loader uses the pod's service account for both.
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find the Kubernetes API (name a kubeconfig with --kubeconfig, or run inside a cluster): %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("cannot determine the namespace of this process: %w", err)
	}
	config.UserAgent = userAgent
	// With compression, each watch would hold a 40 KiB decompressor, and the API server would compress every event.
	config.DisableCompression = true
	return &API{Config: config, Namespace: namespace}, nil
}

// Await connects a long-running process: it follows the clock of the Kubernetes API until ctx is done, and waits until
// the API responds. Meanwhile, it serves the probes on health. It returns an error if the API or its CRDs are too old
// for this version, but not if ctx ends first.
func Await(ctx context.Context, kubeconfig, userAgent string, health configv1alpha1.Endpoint, log *slog.Logger) (*API, error) {
	a, err := Connect(kubeconfig, userAgent)
	if err != nil {
		return nil, err
	}
	a.syncClock(ctx, log)
	stop, err := process.ServeWaiting(ctx, health, log)
	if err != nil {
		return nil, err
	}
	defer stop()
	return a, waitForAPI(ctx, clock.RealClock{}, log, func() error { return a.check(ctx, log) })
}

// syncClock makes the process follow the clock of the Kubernetes API, starting with its first response. Clients created
// from the configuration after this call measure the offset, at least once a minute until ctx is done.
func (a *API) syncClock(ctx context.Context, log *slog.Logger) {
	a.Clock = apiclock.New(apiclock.Options{Base: baseClock(), Registerer: metrics.Registry, Log: log})
	a.Wrap(a.Clock.Wrap)
	config := rest.CopyConfig(a.Config)
	go func() {
		if err := a.Clock.Watch(ctx, config); err != nil {
			log.ErrorContext(ctx, "The clock is no longer compared with the Kubernetes API's clock at regular intervals, only on other requests", "error", err)
		}
	}()
}

const (
	// apiTimeout is how long a starting process waits for the Kubernetes API, alive but not ready. Upgrading a control
	// plane takes a few minutes. A process that exited instead would wait up to five more minutes in Kubernetes' restart
	// backoff.
	apiTimeout = 15 * time.Minute
	// apiPause is the pause between two attempts.
	apiPause = 2 * time.Second
	// apiSilence is the interval between log lines about the wait.
	apiSilence = time.Minute
)

// waitForAPI repeats a check until the Kubernetes API responds or ctx ends, which is not an error.
func waitForAPI(ctx context.Context, clk clock.Clock, log *slog.Logger, check func() error) error {
	started := clk.Now()
	var loggedAt time.Time
	for ctx.Err() == nil {
		err := check()
		waited := clk.Since(started)
		switch {
		case !errors.Is(err, preflight.ErrUnavailable):
			if err == nil && !loggedAt.IsZero() {
				log.InfoContext(ctx, "The Kubernetes API can be used; starting", "waited", waited)
			}
			return err
		case waited >= apiTimeout:
			return fmt.Errorf("gave up after %s: %w", apiTimeout, err)
		case loggedAt.IsZero() || clk.Since(loggedAt) >= apiSilence:
			loggedAt = clk.Now()
			log.WarnContext(ctx, "The Kubernetes API cannot be used yet; waiting for it, not ready", "error", err, "for", apiTimeout-waited)
		}
		select {
		case <-clk.After(apiPause):
		case <-ctx.Done():
		}
	}
	return nil
}

// check returns an error if the Kubernetes API or its CRDs are too old for this version. It only logs a warning if the
// process is not allowed to read the CRDs.
func (a *API) check(ctx context.Context, log *slog.Logger) error {
	err := preflight.Check(ctx, a.Config, crd.Definitions)
	if errors.Is(err, preflight.ErrUnread) {
		log.WarnContext(ctx, "Continuing without a comparison of the resource definitions", "error", err)
		return nil
	}
	return err
}

// DefinitionWatch returns a watch of the CRDs for the lifetime of a process.
func (a *API) DefinitionWatch(log *slog.Logger) *preflight.Watch {
	return &preflight.Watch{Config: a.Config, Definitions: crd.Definitions, Clock: clock.RealClock{}, Log: log}
}
