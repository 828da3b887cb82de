// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"

	"github.com/go-logr/logr"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/herald-social/herald/controllers/apikey"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/controllers/media"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/controllers/team"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/thumbnail"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/platforms"
)

// setupControllers wires every reconciler into the manager: one line each, in
// the order in which a new installation needs them.
func setupControllers(ctx context.Context, mgr ctrl.Manager, f *managerFlags, registry platforms.Registry, identity string) error {
	now := clock.RealClock{}
	files, err := f.media.store()
	if err != nil {
		return err
	}
	store := credentials.NewStore(mgr.GetAPIReader(), mgr.GetClient(), now, identity)
	directory, counts, err := plans(ctx, mgr, f.usageNamespace, now)
	if err != nil {
		return err
	}
	if err := team.SetupWithManager(mgr, team.Options{
		Clock: now, ManagerNamespace: f.namespace, UsageNamespace: f.usageNamespace, Owner: directory.Owner, Quota: counts,
	}); err != nil {
		return err
	}
	if err := apikey.SetupWithManager(mgr, apikey.Options{Clock: now}); err != nil {
		return err
	}
	if err := connection.SetupWithManager(mgr, connection.Options{
		Platforms: registry, Store: store, Clock: now, Owner: directory.Owner, Metrics: connection.NewMetrics(metrics.Registry, now),
	}); err != nil {
		return err
	}
	if err := media.SetupWithManager(ctx, mgr, media.Options{
		Store:   files,
		Verify:  (&probe.Verifier{Store: files, Clock: now}).Verify,
		Source:  fetch.New(fetch.Options{}),
		Timing:  media.Timing{UnusedAfter: f.keepUnusedMedia},
		Clock:   now,
		Metrics: media.NewMetrics(metrics.Registry),
	}); err != nil {
		return err
	}
	posts, err := post.New(post.Options{
		Files:                   files,
		Renditions:              rendition.NewMaker(files),
		Thumbnails:              thumbnails(mgr.GetLogger(), files, f.ffmpeg),
		Client:                  mgr.GetClient(),
		APIReader:               mgr.GetAPIReader(),
		Platforms:               registry,
		Tokens:                  connection.Tokens{Cache: credentials.NewCache(store, now)},
		Clock:                   now,
		NewID:                   rand.Text,
		Plans:                   &post.Plans{Owner: directory.Owner, Quota: counts},
		Events:                  mgr.GetEventRecorder("herald-post"),
		Metrics:                 post.NewMetrics(metrics.Registry),
		MaxConcurrentReconciles: f.postWorkers,
		PrepareAhead:            f.prepareAhead,
		StartingDeadline:        f.startingDeadline,
		Failpoint:               crashPoint(),
	})
	if err != nil {
		return fmt.Errorf("cannot set up the post controller: %w", err)
	}
	return posts.SetupWithManager(mgr) //nolint:contextcheck // nothing is asked while it is set up
}

// thumbnails is what takes pictures out of videos by the program at a path; nil
// without one.
func thumbnails(log logr.Logger, files rendition.Store, path string) post.Thumbnails {
	if path == "" {
		log.Info("videos on YouTube get no chosen thumbnails: there is no ffmpeg (install it, or name it with --ffmpeg)")
		return nil
	}
	return thumbnail.NewMaker(files, thumbnail.FFmpeg{Path: path})
}

// addUsageFlag adds the flag by which manager and apiserver find the same counts.
func addUsageFlag(flags *flag.FlagSet, namespace *string) {
	flags.StringVar(namespace, "usage-namespace", quota.DefaultNamespace, "namespace in which is counted what the teams' plans limit; the same for manager and apiserver")
}

// plans makes what finds the team of a namespace, and what counts what its plan
// limits.
func plans(ctx context.Context, mgr ctrl.Manager, namespace string, now clock.PassiveClock) (*quota.Teams, *quota.Store, error) {
	directory, err := quota.NewTeams(ctx, mgr.GetCache(), mgr.GetFieldIndexer())
	if err != nil {
		return nil, nil, err
	}
	configMaps, err := typedcorev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a client for ConfigMaps: %w", err)
	}
	return directory, quota.NewStore(configMaps, namespace, now), nil
}
