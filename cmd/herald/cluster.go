// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/cmd/herald/internal/preflight"
	"github.com/herald-social/herald/config/crd"
)

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
