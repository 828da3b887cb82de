// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
)

// newConnections returns the connection controller. Until ctx is done, it also stores the renewed tokens that the
// previous process could not store, without waiting for the lease or the caches.
func newConnections(ctx context.Context, mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration, registry platforms.Registry,
	store *credentials.Store, tokens connection.Tokens, teams *quota.Teams, errs *unlisted.Counter, now *apiclock.Clock,
) (*connection.Reconciler, error) {
	folder, err := unsavedTokens(c.Credentials.Unsaved, mgr.GetLogger())
	if err != nil {
		return nil, err
	}
	r, err := connection.New(connection.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: now, Events: mgr.GetEventRecorder("herald-connection"),
		Platforms: registry, Store: store, Renewed: tokens.Cache.Renewed, Owned: teams.Owned, Owner: teams.Owner, Namespaces: c.Namespaces,
		Spool: folder, Grace: c.ShutdownTimeout.Duration, Metrics: connection.NewMetrics(metrics.Registry, now), Unlisted: errs,
		MaxConcurrentReconciles: c.Concurrency.Connections,
	})
	if err != nil {
		return nil, err
	}
	go r.Recover(ctrl.LoggerInto(ctx, mgr.GetLogger().WithName("connection")))
	return r, nil
}

// unsavedTokens opens the folder for renewed tokens that have not been stored yet. If no folder is configured, it logs
// that and returns nil.
func unsavedTokens(c configv1alpha1.Unsaved, log logr.Logger) (*credentials.Spool, error) {
	if c.Off() {
		log.Info("a renewed token is lost if the Kubernetes API does not accept it before this process ends, and its account must be reconnected: " +
			"no folder is configured for it (set credentials.unsaved)")
		return nil, nil //nolint:nilnil // nil persists none
	}
	key, err := config.SecretReader("credentials.unsaved.keyFile", c.KeyFile, slog.New(logr.ToSlogHandler(log)))
	if err != nil {
		return nil, err
	}
	folder, err := credentials.OpenSpool(c.Directory, key, log.WithName("unsaved-tokens"))
	if err != nil {
		return nil, fmt.Errorf("credentials.unsaved: %w", err)
	}
	return folder, nil
}
