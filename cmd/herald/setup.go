// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/process"
	"github.com/herald-social/herald/controllers/apikey"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/controllers/postschedule"
	"github.com/herald-social/herald/controllers/team"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
)

func setup(ctx context.Context, mgr ctrl.Manager, hook *admissionWebhook, c *configv1alpha1.ManagerConfiguration, absent configv1alpha1.Namespaces,
	namespace string, registry platforms.Registry, apps credentials.Apps, identity string, tracer *tracing.Tracer, stop *installation.Suspension, now *apiclock.Clock,
) error {
	teams, err := quota.NewTeams(ctx, mgr.GetCache(), mgr.GetFieldIndexer())
	if err != nil {
		return err
	}
	if err := hook.register(ctx, mgr, c, registry, teams); err != nil {
		return err
	}
	leading, err := leadingManager(ctx, mgr, c)
	if err != nil {
		return err
	}
	if err := kubeclient.IndexMedia(ctx, leading.GetFieldIndexer()); err != nil {
		return err
	}
	return setupControllers(ctx, leading, c, absent, namespace, registry, apps, identity, tracer, teams, stop, now)
}

// setupControllers adds every reconciler to the manager, in the order that a new installation needs.
func setupControllers(ctx context.Context, mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration, absent configv1alpha1.Namespaces, namespace string,
	registry platforms.Registry, apps credentials.Apps, identity string, tracer *tracing.Tracer, teams *quota.Teams, stop *installation.Suspension, now *apiclock.Clock,
) error {
	files, err := openStore(c.Media)
	if err != nil {
		return err
	}
	own, err := account(ctx, mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	cached, live := mgr.GetClient(), mgr.GetAPIReader()
	bucket, err := addBucket(mgr, files, c.Media)
	if err != nil {
		return err
	}
	store := credentials.NewStore(live, cached, now, identity, apps)
	counts := quota.NewUsageStore(quota.NewAPI(live, cached))
	kept := archive.New(files)
	posts := postOptions(c)
	images, err := setRenditions(&posts, mgr.GetLogger(), files, c.Thumbnails.FFmpeg)
	if err != nil {
		return err
	}
	if posts.Rollback, err = addRollbackDetector(mgr, files, c, namespace, now); err != nil {
		return err
	}
	posts.Client, posts.APIReader, posts.Clock, posts.Events = cached, live, now, mgr.GetEventRecorder("herald-post")
	posts.Platforms, posts.Apps, posts.Tracer, posts.Stopping = registry, apps, tracer, ctx.Done()
	tokens := connection.NewTokens(store, cached, now)
	posts.Tokens, posts.Files, posts.Groups = tokens, files, groupsOf(c, namespace, live)
	posts.Owned, posts.TeamMedia, posts.Suspension, posts.SuspendAll = teams.Owned, teams.Media, teams.Suspension, stop
	if c.Delivery.ShareUploads {
		posts.Holder, posts.Managers = identity, c.Replicas
	}
	posts.Plans = &post.Plans{Owner: teams.Owner, Quota: counts}
	accounts, err := newConnections(ctx, mgr, c, registry, store, tokens, teams, posts.Unlisted, now)
	if err != nil {
		return err
	}
	setup := func(c controller, err error) error { return add(mgr, c, err) }
	return errors.Join(
		setup(team.New(team.Options{
			Client: cached, APIReader: live, Clock: now, Events: mgr.GetEventRecorder("herald-team"),
			Manager: own, APIServer: apiserverOf(c.ReleaseName, namespace), ManagerNamespace: namespace, Names: namesOf(c.ReleaseName),
			Namespaces: c.Namespaces, Absent: absent,
			Claimants: teams.Claimants, Owner: teams.Owner, Quota: counts, SuspendAll: stop, SuspensionRetention: c.Delivery.StartingDeadline.Duration, Metrics: team.NewMetrics(metrics.Registry),
			Shards: c.Delivery.Shards, Records: recordsOf(kept, bucket),
			MaxConcurrentReconciles: c.Concurrency.Teams,
		})),
		setup(newAPIKeys(mgr, c, teams, now)),
		setup(newSchedules(mgr, c, teams, now)),
		setup(newNotifiers(mgr, c, teams, now)),
		setup(accounts, nil),
		setup(newMedia(mgr, c, files, bucket, teams, images, now)),
		setupPosts(mgr, c, namespace, identity, kept, files, teams, bucket, posts), //nolint:contextcheck // its watches end with the manager
		setupAssignment(ctx, mgr, c, teams, now),
	)
}

func newAPIKeys(mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration, teams *quota.Teams, now *apiclock.Clock) (*apikey.Reconciler, error) {
	return apikey.New(apikey.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: now, Events: mgr.GetEventRecorder("herald-apikey"), Owned: teams.Owned,
		Namespaces: c.Namespaces, MaxConcurrentReconciles: c.Concurrency.APIKeys,
	})
}

func newSchedules(mgr ctrl.Manager, c *configv1alpha1.ManagerConfiguration, teams *quota.Teams, now *apiclock.Clock) (*postschedule.Reconciler, error) {
	return postschedule.New(postschedule.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: now, Events: mgr.GetEventRecorder("herald-postschedule"),
		Owner: teams.Owner, Owned: teams.Owned, Namespaces: c.Namespaces, StartingDeadline: c.Delivery.StartingDeadline.Duration,
		Metrics: postschedule.NewMetrics(metrics.Registry),
	})
}

type controller interface {
	SetupWithManager(mgr ctrl.Manager) error
}

// add adds a controller to the manager, unless its constructor failed.
func add(mgr ctrl.Manager, c controller, err error) error {
	if err != nil {
		return err
	}
	return c.SetupWithManager(mgr)
}

// groupsOf returns the groups of posts that are claimed before they are due, or nil if none are.
func groupsOf(c *configv1alpha1.ManagerConfiguration, namespace string, live client.Reader) *post.Groups {
	if !c.Delivery.ArmCrowds {
		return nil
	}
	return &post.Groups{Namespace: namespace, Prefix: c.ReleaseName, Owners: leaseOwners(live, namesOf(c.ReleaseName).ClusterRole)}
}

// leaseOwners returns a function that returns a cluster role as the owner of Leases. If the role cannot be read, as in a
// local run, they have no owner.
func leaseOwners(live client.Reader, role string) func(context.Context) []metav1.OwnerReference {
	return func(ctx context.Context) []metav1.OwnerReference {
		var owner rbacv1.ClusterRole
		if err := live.Get(ctx, client.ObjectKey{Name: role}, &owner); err != nil {
			return nil
		}
		return []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: owner.Name, UID: owner.UID}}
	}
}

// postOptions returns the options that depend on nothing but the configuration.
func postOptions(c *configv1alpha1.ManagerConfiguration) post.Options {
	return post.Options{
		MaxConcurrentReconciles: c.Concurrency.Posts, MaxUploads: c.Concurrency.Uploads,
		PrepareAhead: c.Delivery.PrepareAhead.Duration, StartingDeadline: c.Delivery.StartingDeadline.Duration, LongestDelay: c.Delivery.LongestDelay.Duration,
		SendWindow: c.Delivery.SendWindow.Duration, ClockMargin: c.Delivery.ClockMargin.Duration, RecordFor: c.Delivery.RecordFor.Duration,
		Namespaces: c.Namespaces,
		NewID:      rand.Text, Metrics: post.NewMetrics(metrics.Registry), Unlisted: unlisted.New(metrics.Registry), Failpoint: process.CrashPoint(),
	}
}

// setRenditions sets the converters of images and videos, and returns the image renderer. ffmpeg is the program's name.
func setRenditions(posts *post.Options, log logr.Logger, files rendition.FileStore, ffmpeg string) (*rendition.Renderer, error) {
	images := rendition.NewRenderer(files)
	program, err := findFFmpeg(ffmpeg)
	if err != nil {
		return nil, err
	}
	posts.Renditions, posts.Thumbnails = images, thumbnails(log, files, program, images)
	posts.Conversions, posts.Unconverted = conversions(files, program, images)
	images.LimitOwnMemory()
	return images, nil
}

// findFFmpeg returns the path of the program, or "" if the name is empty or the default program is not installed.
func findFFmpeg(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	switch {
	case err == nil:
		return path, nil
	case name == configv1alpha1.DefaultFFmpeg:
		return "", nil
	default:
		return "", fmt.Errorf("thumbnails.ffmpeg is %s; name a program that can be run, or write \"\" for no thumbnails: %w", name, err)
	}
}

// thumbnails returns the Thumbnails that extract images from videos with ffmpeg, or nil without the program.
func thumbnails(log logr.Logger, files rendition.FileStore, program string, images *rendition.Renderer) post.Thumbnails {
	if program == "" {
		log.Info("videos are not converted and get no chosen thumbnails on YouTube: there is no ffmpeg (install it, or set thumbnails.ffmpeg)")
		return nil
	}
	return rendition.NewThumbnailer(files, rendition.FrameExtractor{Path: program}, images.ReserveSlots(rendition.MaxThumbnailData))
}

// conversions returns the Conversions that convert videos with ffmpeg for teams that request it. If conversion is not
// possible, it returns nil and the reason.
func conversions(files rendition.FileStore, program string, images *rendition.Renderer) (converts post.Conversions, why string) {
	switch {
	case program == "":
		return nil, "its manager has no ffmpeg (install it, or name it in thumbnails.ffmpeg of the manager's configuration)"
	case !images.HasMemoryFor(rendition.MaxTranscodeData):
		return nil, fmt.Sprintf("its manager's memory limit is below the %d MiB that the manager and a conversion need (resources.limits.memory in the chart)",
			images.MemoryFor(rendition.MaxTranscodeData)>>20)
	default:
		return rendition.NewTranscoder(files, rendition.FFmpegConverter{Path: program}, images.ReserveSlots(rendition.MaxTranscodeData)), ""
	}
}
