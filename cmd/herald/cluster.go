// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/preflight"
	"github.com/herald-social/herald/config/crd"
)

const (
	// apiPatience is how long a starting process waits for the Kubernetes API, alive but not ready. Upgrading a control
	// plane takes a few minutes. A process that exited instead would wait up to five more minutes in Kubernetes' restart
	// backoff.
	apiPatience = 15 * time.Minute
	// apiPause is the pause between two attempts.
	apiPause = 2 * time.Second
	// apiSilence is the interval of the log line about the wait.
	apiSilence = time.Minute
)

// waitForCluster waits until the Kubernetes API responds. It returns an error if the API or its CRDs are too old for
// this version.
func waitForCluster(ctx context.Context, health configv1alpha1.Endpoint, config *rest.Config, log *slog.Logger) error {
	stop, err := serveWaiting(ctx, health, log)
	if err != nil {
		return err
	}
	defer stop()
	return waitForAPI(ctx, clock.RealClock{}, log, func() error { return checkCluster(ctx, config, log) })
}

// waitForAPI repeats a check until the Kubernetes API responds or ctx ends, which is not an error.
func waitForAPI(ctx context.Context, clk clock.Clock, log *slog.Logger, check func() error) error {
	begun := clk.Now()
	var told time.Time
	for ctx.Err() == nil {
		err := check()
		waited := clk.Since(begun)
		switch {
		case !errors.Is(err, preflight.ErrUnavailable):
			if err == nil && !told.IsZero() {
				log.InfoContext(ctx, "The Kubernetes API can be used; starting", "waited", waited)
			}
			return err
		case waited >= apiPatience:
			return fmt.Errorf("gave up after %s: %w", apiPatience, err)
		case told.IsZero() || clk.Since(told) >= apiSilence:
			told = clk.Now()
			log.WarnContext(ctx, "The Kubernetes API cannot be used yet; waiting for it, not ready", "error", err, "for", apiPatience-waited)
		}
		select {
		case <-clk.After(apiPause):
		case <-ctx.Done():
		}
	}
	return nil
}

// checkCluster returns an error if the Kubernetes API or its CRDs are too old for this version. It only logs a warning
// if the process is not allowed to read the CRDs.
func checkCluster(ctx context.Context, config *rest.Config, log *slog.Logger) error {
	err := preflight.Check(ctx, config, crd.Definitions)
	if errors.Is(err, preflight.ErrUnread) {
		log.WarnContext(ctx, "Going on without a comparison of the resource definitions", "error", err)
		return nil
	}
	return err
}

// watchCluster returns a watch of the CRDs for the lifetime of a process.
func watchCluster(config *rest.Config, log *slog.Logger) *preflight.Watch {
	return &preflight.Watch{Config: config, Definitions: crd.Definitions, Clock: clock.RealClock{}, Log: log}
}
