// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/go-logr/logr"
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

// setupControllers adds every reconciler to the manager, in the order in which a
// new installation needs them.
func setupControllers(ctx context.Context, mgr ctrl.Manager, f *managerFlags, registry platforms.Registry, identity string) error {
	now := clock.RealClock{}
	files, err := f.media.store()
	if err != nil {
		return err
	}
	cached, live := mgr.GetClient(), mgr.GetAPIReader()
	store := credentials.NewStore(live, cached, now, identity)
	teams, err := quota.NewTeams(ctx, mgr.GetCache(), mgr.GetFieldIndexer())
	if err != nil {
		return err
	}
	counts := quota.NewStore(quota.NewAPI(live, cached))
	posts := f.posts
	posts.Client, posts.APIReader, posts.Clock, posts.Events = cached, live, now, mgr.GetEventRecorder("herald-post")
	posts.Platforms = registry
	posts.Tokens = connection.Tokens{Cache: credentials.NewCache(store, now)}
	posts.Files, posts.Renditions, posts.Thumbnails = files, rendition.NewMaker(files), thumbnails(mgr.GetLogger(), files, f.ffmpeg)
	posts.NewID = rand.Text
	posts.Plans = &post.Plans{Owner: teams.Owner, Quota: counts}
	posts.Metrics = post.NewMetrics(metrics.Registry)
	posts.Failpoint = crashPoint()
	setup := func(c interface{ SetupWithManager(mgr ctrl.Manager) error }, err error) error {
		if err != nil {
			return err
		}
		return c.SetupWithManager(mgr)
	}
	return errors.Join(
		setup(team.New(team.Options{
			Client: cached, APIReader: live, Clock: now, Events: mgr.GetEventRecorder("herald-team"),
			ManagerNamespace: f.namespace, Owner: teams.Owner, Quota: counts,
		})),
		setup(apikey.New(apikey.Options{
			Client: cached, APIReader: live, Clock: now, Events: mgr.GetEventRecorder("herald-apikey"),
		})),
		setup(connection.New(connection.Options{
			Client: cached, APIReader: live, Clock: now, Events: mgr.GetEventRecorder("herald-connection"),
			Platforms: registry, Store: store, Owner: teams.Owner, Metrics: connection.NewMetrics(metrics.Registry, now),
		})),
		setup(media.New(media.Options{
			Client: cached, APIReader: live, Clock: now, Events: mgr.GetEventRecorder("herald-media"),
			Store:       files,
			Verify:      (&probe.Verifier{Store: files, Clock: now}).Verify,
			Source:      fetch.New(fetch.Options{}),
			UnusedAfter: f.keepUnusedMedia,
			Metrics:     media.NewMetrics(metrics.Registry),
		})),
		setup(post.New(posts)),
	)
}

// thumbnails returns what takes pictures out of videos with the program at a
// path; nil without one.
func thumbnails(log logr.Logger, files rendition.Store, path string) post.Thumbnails {
	if path == "" {
		log.Info("videos on YouTube get no chosen thumbnails: there is no ffmpeg (install it, or name it with --ffmpeg)")
		return nil
	}
	return thumbnail.NewMaker(files, thumbnail.FFmpeg{Path: path})
}
