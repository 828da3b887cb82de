// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/herald-social/herald/api/v1alpha1"
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

	leaseName = "herald-manager"
)

// managerFlags are the flags of `herald manager`.
type managerFlags struct {
	kubeconfig      string
	platformsConfig string

	leaderElect     bool
	leaderNamespace string
	leaderIdentity  string

	metricsAddress string
	pprofAddress   string
	probeAddress   string

	namespace        string
	usageNamespace   string
	postWorkers      int
	kubeQPS          float64
	kubeBurst        int
	startingDeadline time.Duration
	prepareAhead     time.Duration
	keepUnusedMedia  time.Duration
	ffmpeg           string

	webhook webhookFlags
	media   *mediaFlags
	log     *logFlags
}

func parseManagerFlags(args []string) (*managerFlags, error) {
	f := &managerFlags{}
	flags := newFlagSet("manager")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; empty inside a cluster")
	flags.StringVar(&f.platformsConfig, "platforms-config", "", "YAML file that says how to reach the platforms")
	flags.BoolVar(&f.leaderElect, "leader-elect", true, "work only while holding the lease, so that another replica can take over")
	flags.StringVar(&f.leaderNamespace, "leader-election-namespace", "herald-system", "namespace of the lease")
	flags.StringVar(&f.leaderIdentity, "leader-identity", "", "name to hold the lease under; a stable one lets a restarted process go on at once (default: host name and pid)")
	flags.StringVar(&f.metricsAddress, "metrics-bind-address", ":8081", "address of /metrics; 0 for none")
	addPprofFlag(flags, &f.pprofAddress)
	flags.StringVar(&f.probeAddress, "health-probe-bind-address", ":8082", "address of /healthz and /readyz")
	flags.StringVar(&f.namespace, "namespace", "herald-system", "namespace of the manager's own service account")
	addUsageFlag(flags, &f.usageNamespace)
	flags.IntVar(&f.postWorkers, "post-workers", 256, "how many posts are worked on at once")
	flags.Float64Var(&f.kubeQPS, "kube-api-qps", -1, "requests a second to the Kubernetes API; -1 leaves pacing to its priority and fairness")
	flags.IntVar(&f.kubeBurst, "kube-api-burst", 0, "burst above --kube-api-qps")
	flags.DurationVar(&f.prepareAhead, "prepare-ahead", 30*time.Minute, "how long before its time the files of a scheduled post are uploaded, as far as they stay hidden; big ones begin earlier")
	flags.DurationVar(&f.startingDeadline, "starting-deadline", time.Hour, "how late a scheduled post may still go out, and how long temporary refusals are tried again")
	flags.DurationVar(&f.keepUnusedMedia, "keep-unused-media", 24*time.Hour, "how long media files are kept that no post refers to")
	flags.StringVar(&f.ffmpeg, "ffmpeg", defaultFFmpeg, "program that takes the thumbnails of videos for YouTube, a name in PATH or a path; without it, or if empty, videos go out without")
	f.webhook.add(flags)
	f.media = addMediaFlags(flags)
	f.log = addLogFlags(flags)
	if err := parse(flags, args); err != nil {
		return nil, err
	}
	if err := f.check(flags); err != nil {
		return nil, usageError{err}
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

func (f *managerFlags) check(flags *flag.FlagSet) error {
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case f.postWorkers < 1:
		return fmt.Errorf("--post-workers=%d: want 1 or more", f.postWorkers)
	case f.keepUnusedMedia <= 0:
		return fmt.Errorf("--keep-unused-media=%s: want more than zero", f.keepUnusedMedia)
	case f.prepareAhead <= 0:
		return fmt.Errorf("--prepare-ahead=%s: want more than zero", f.prepareAhead)
	case f.startingDeadline <= 0:
		return fmt.Errorf("--starting-deadline=%s: want more than zero", f.startingDeadline)
	default:
		return nil
	}
}

// runManager runs the reconcilers until ctx ends.
func runManager(ctx context.Context, args []string) error {
	f, err := parseManagerFlags(args)
	if err != nil {
		return err
	}
	logger, err := f.log.logger()
	if err != nil {
		return err
	}
	log := logr.FromSlogHandler(logger.Handler())
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	config, err := kubeConfig(f.kubeconfig, f.kubeQPS, f.kubeBurst)
	if err != nil {
		return err
	}
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
	if err := f.webhook.setup(mgr, f.namespace, f.startingDeadline, registry); err != nil {
		return err
	}
	if err := setupControllers(ctx, mgr, f, registry, identity); err != nil {
		return err
	}
	log.Info("starting", "version", version, "postWorkers", f.postWorkers, "kubeAPIQPS", f.kubeQPS, "startingDeadline", f.startingDeadline.String())
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("the manager stopped: %w", err)
	}
	return nil
}

// kubeConfig returns the configuration of the client of the Kubernetes API.
func kubeConfig(path string, qps float64, burst int) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if path == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the Kubernetes API (name a kubeconfig with --kubeconfig, or run inside a cluster): %w", err)
	}
	config.QPS, config.Burst = float32(qps), burst
	config.UserAgent = "herald/" + version
	return config, nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

func newManager(config *rest.Config, f *managerFlags, identity string) (ctrl.Manager, error) {
	graceful, lease, renew, retry := gracefulShutdown, leaseDuration, renewDeadline, retryPeriod
	options := ctrl.Options{
		Scheme:                  newScheme(),
		Metrics:                 metricsserver.Options{BindAddress: f.metricsAddress},
		PprofBindAddress:        f.pprofAddress,
		HealthProbeBindAddress:  f.probeAddress,
		GracefulShutdownTimeout: &graceful,
		LeaseDuration:           &lease,
		RenewDeadline:           &renew,
		RetryPeriod:             &retry,
		// The process ends as soon as the manager has stopped.
		LeaderElectionReleaseOnCancel: true,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			// Finished posts are not cached: they cost no memory.
			&v1alpha1.Post{}: {Field: fields.OneTermNotEqualSelector("status.finished", "true")},
		}},
		// Secrets are never cached.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}
	var err error
	if options.WebhookServer, err = f.webhook.server(); err != nil {
		return nil, err
	}
	if f.leaderElect {
		lock, err := leaderLock(config, f.leaderNamespace, identity)
		if err != nil {
			return nil, err
		}
		options.LeaderElection = true
		options.LeaderElectionResourceLockInterface = lock
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("cannot add the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("cannot add the readiness check: %w", err)
	}
	return mgr, nil
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

func leaderLock(config *rest.Config, namespace, identity string) (resourcelock.Interface, error) {
	clients, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), "leader-election"))
	if err != nil {
		return nil, fmt.Errorf("cannot set up leader election: %w", err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, leaseName,
		clients.CoreV1(), clients.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return nil, fmt.Errorf("cannot set up leader election: %w", err)
	}
	return lock, nil
}
