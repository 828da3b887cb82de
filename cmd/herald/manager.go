// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/controllers/team"
	"github.com/herald-social/herald/internal/transport"
)

// At shutdown the manager waits for calls under way and records their results. The
// pod's termination grace must be longer than gracefulShutdown, which is longer than a
// call (60 s at most, see each platform's Capabilities) and the recording of its
// result (60 s) together.
const (
	gracefulShutdown = 130 * time.Second

	// Leases are short, for a quick hand-over: the claim, and not the lease, keeps
	// two managers from publishing twice.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second

	// managerName is the name of the lease, the owner of the fields that the manager
	// writes, and what it calls itself to the Kubernetes API.
	managerName = "herald-manager"
)

// managerFlags are the flags of `herald manager`; those that the manager itself and
// the controllers know stand in options, posts and keepUnusedMedia.
type managerFlags struct {
	commonFlags

	options         ctrl.Options
	posts           post.Options
	keepUnusedMedia time.Duration

	leaderNamespace string
	leaderIdentity  string
	namespace       string
	kubeQPS         float64
	kubeBurst       int
	ffmpeg          string
	webhook         webhookFlags
}

func parseManagerFlags(args []string) (*managerFlags, error) {
	f := &managerFlags{}
	flags := newFlagSet("manager")
	f.add(flags, "/metrics")
	flags.BoolVar(&f.options.LeaderElection, "leader-elect", true, "work only while holding the lease, so that another replica can take over")
	flags.StringVar(&f.leaderNamespace, "leader-election-namespace", "herald-system", "namespace of the lease")
	flags.StringVar(&f.leaderIdentity, "leader-identity", "", "name to hold the lease under; a stable one lets a restarted process go on at once (default: host name and pid)")
	flags.StringVar(&f.options.HealthProbeBindAddress, "health-probe-bind-address", ":8082", "address of /healthz and /readyz")
	flags.StringVar(&f.namespace, "namespace", "herald-system", "namespace of the manager's own service account")
	flags.IntVar(&f.posts.MaxConcurrentReconciles, "post-workers", 256, "how many posts are worked on at once")
	flags.Float64Var(&f.kubeQPS, "kube-api-qps", -1, "requests a second to the Kubernetes API; -1 leaves pacing to its priority and fairness")
	flags.IntVar(&f.kubeBurst, "kube-api-burst", 0, "burst above --kube-api-qps")
	flags.DurationVar(&f.posts.PrepareAhead, "prepare-ahead", 30*time.Minute, "how long before its time the files of a scheduled post are uploaded, as far as they stay hidden; big ones begin earlier")
	flags.DurationVar(&f.posts.StartingDeadline, "starting-deadline", time.Hour, "how late a scheduled post may still go out, and how long temporary refusals are tried again")
	flags.DurationVar(&f.keepUnusedMedia, "keep-unused-media", 24*time.Hour, "how long media files are kept that no post refers to")
	flags.StringVar(&f.ffmpeg, "ffmpeg", defaultFFmpeg, "program that takes the thumbnails of videos for YouTube, a name in PATH or a path; without it, or if empty, videos go out without")
	f.webhook.add(flags)
	if err := parse(flags, args); err != nil {
		return nil, err
	}
	if f.posts.MaxConcurrentReconciles < 1 {
		return nil, usageError{fmt.Errorf("--post-workers=%d: want 1 or more", f.posts.MaxConcurrentReconciles)}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"keep-unused-media", f.keepUnusedMedia}, {"prepare-ahead", f.posts.PrepareAhead}, {"starting-deadline", f.posts.StartingDeadline}} {
		if d.value <= 0 {
			return nil, usageError{fmt.Errorf("--%s=%s: want more than zero", d.flag, d.value)}
		}
	}
	var err error
	if f.ffmpeg, err = findFFmpeg(f.ffmpeg); err != nil {
		return nil, usageError{err}
	}
	return f, nil
}

// defaultFFmpeg is the default name of ffmpeg.
const defaultFFmpeg = "ffmpeg"

// findFFmpeg returns the path of the program; "" if the name is empty, or if the
// default program is not installed.
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
	case name == defaultFFmpeg:
		return "", nil
	default:
		return "", fmt.Errorf("--ffmpeg=%s: want a program that can be run, or nothing for no thumbnails: %w", name, err)
	}
}

// runManager runs the reconcilers until ctx ends.
func runManager(ctx context.Context, args []string) error {
	f, err := parseManagerFlags(args)
	if err != nil {
		return err
	}
	logger, err := f.setupLog()
	if err != nil {
		return err
	}
	log := logr.FromSlogHandler(logger.Handler())
	ctrl.SetLogger(log)

	config, err := f.kubeConfig(managerName)
	if err != nil {
		return err
	}
	if err := checkCluster(ctx, config, logger); err != nil {
		return err
	}
	config.QPS, config.Burst = float32(f.kubeQPS), f.kubeBurst
	identity, err := f.identity()
	if err != nil {
		return err
	}
	out := transport.New(transport.Options{Registerer: metrics.Registry})
	registry, err := loadPlatforms(f.platformsConfig, out, true)
	if err != nil {
		return err
	}
	mgr, err := newManager(config, f, identity)
	if err != nil {
		return err
	}
	if err := f.webhook.setup(mgr, f.namespace, f.posts.StartingDeadline, registry); err != nil {
		return err
	}
	if err := setupControllers(ctx, mgr, f, registry, identity); err != nil {
		return err
	}
	log.Info("starting", "version", version, "postWorkers", f.posts.MaxConcurrentReconciles, "kubeAPIQPS", f.kubeQPS,
		"startingDeadline", f.posts.StartingDeadline.String())
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("the manager stopped: %w", err)
	}
	return nil
}

func newManager(config *rest.Config, f *managerFlags, identity string) (ctrl.Manager, error) {
	options := f.options
	options.Scheme = runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(options.Scheme))
	utilruntime.Must(v1alpha1.AddToScheme(options.Scheme))
	options.Metrics.BindAddress = f.metricsAddress
	options.PprofBindAddress = f.pprofAddress
	options.GracefulShutdownTimeout = new(gracefulShutdown)
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = new(leaseDuration), new(renewDeadline), new(retryPeriod)
	// The process ends as soon as the manager has stopped.
	options.LeaderElectionReleaseOnCancel = true
	// Finished posts are not cached: they cost no memory.
	options.Cache.ByObject = map[client.Object]cache.ByObject{
		&v1alpha1.Post{}:      {Field: fields.OneTermNotEqualSelector("status.finished", "true")},
		&rbacv1.RoleBinding{}: team.RoleBindings(),
	}
	options.Client.FieldOwner = managerName
	// Secrets are never cached.
	options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}
	var err error
	if options.WebhookServer, err = f.webhook.server(); err != nil {
		return nil, err
	}
	if options.LeaderElection {
		if options.LeaderElectionResourceLockInterface, err = leaseLock(config, f.leaderNamespace, identity); err != nil {
			return nil, fmt.Errorf("cannot set up leader election: %w", err)
		}
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the manager: %w", err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return nil, fmt.Errorf("cannot add the checks of health: %w", err)
	}
	return mgr, nil
}

// leaseLock is the lease that the leader holds. Its client gives up early enough for
// another try before the lease is lost.
func leaseLock(config *rest.Config, namespace, identity string) (resourcelock.Interface, error) {
	config = rest.CopyConfig(config)
	config.Timeout = renewDeadline / 2
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: managerName},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, nil
}

// identity names this process. A restart keeps the name only if
// --leader-identity says so.
func (f *managerFlags) identity() (string, error) {
	if f.leaderIdentity != "" {
		return f.leaderIdentity, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("cannot tell this host's name; set --leader-identity: %w", err)
	}
	return fmt.Sprintf("%s_%d", host, os.Getpid()), nil
}
