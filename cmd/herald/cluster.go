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
	// apiPatience is how long a process that starts waits for the Kubernetes API, alive
	// and not ready. An upgrade of a control plane takes some minutes; a process that
	// ends each time would be held back by Kubernetes for up to five minutes after it.
	apiPatience = 15 * time.Minute
	// apiPause is the pause between two tries.
	apiPause = 2 * time.Second
	// apiSilence is how often the log says that it still waits.
	apiSilence = time.Minute
)

// waitForCluster waits until the Kubernetes API answers, and refuses one that is too old
// for this version, or that serves resource definitions of an older one.
func waitForCluster(ctx context.Context, health configv1alpha1.Endpoint, config *rest.Config, log *slog.Logger) error {
	stop, err := serveWaiting(ctx, health, log)
	if err != nil {
		return err
	}
	defer stop()
	return waitForAPI(ctx, clock.RealClock{}, log, func() error { return checkCluster(ctx, config, log) })
}

// waitForAPI repeats a check until the Kubernetes API answers it, or ctx ends, which is no error.
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

// checkCluster refuses a Kubernetes API that is too old for this version, or that
// serves resource definitions of an older one. Where those may not be read, it only
// says so.
func checkCluster(ctx context.Context, config *rest.Config, log *slog.Logger) error {
	err := preflight.Check(ctx, config, crd.Definitions)
	if errors.Is(err, preflight.ErrUnread) {
		log.WarnContext(ctx, "Going on without a comparison of the resource definitions", "error", err)
		return nil
	}
	return err
}

// watchCluster looks after the resource definitions while a process runs.
func watchCluster(config *rest.Config, log *slog.Logger) *preflight.Watch {
	return &preflight.Watch{Config: config, Definitions: crd.Definitions, Clock: clock.RealClock{}, Log: log}
}
