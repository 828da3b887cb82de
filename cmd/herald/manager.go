// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/cluster"
	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/cmd/herald/internal/lease"
	"github.com/herald-social/herald/cmd/herald/internal/preflight"
	"github.com/herald-social/herald/cmd/herald/internal/process"
	"github.com/herald-social/herald/controllers/team"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// managerName is the manager's field manager and user agent, regardless of the release's name.
const managerName = "herald-manager"

type managerFlags struct {
	process.Flags

	leaderElect    bool
	leaderIdentity string
}

func parseManagerFlags(args []string) (*managerFlags, error) {
	f := &managerFlags{}
	flags := process.NewFlagSet("manager")
	f.Add(flags, configv1alpha1.ManagerKind)
	flags.BoolVar(&f.leaderElect, "leader-elect", true, "work only while holding the lease, so that another replica can take over")
	flags.StringVar(&f.leaderIdentity, "leader-identity", "", "identity in the lease; a stable one lets a restarted process continue immediately (default: host name and pid)")
	return f, process.Parse(flags, args)
}

// managerPlatforms returns the clients of the platforms in the configuration, and their apps.
func managerPlatforms(c *configv1alpha1.ManagerConfiguration, clk *apiclock.Clock, logger *slog.Logger) (platforms.Registry, credentials.Apps, error) {
	roots, err := config.RootCAs("egress.caBundle", c.Egress.CABundle)
	if err != nil {
		return nil, nil, err
	}
	out := transport.New(transport.Options{Registerer: metrics.Registry, Proxy: http.ProxyFromEnvironment, RootCAs: roots})
	secrets := newSecrets(logger)
	registry, err := loadPlatforms(&c.Platforms, out, secrets, clk)
	return registry, appsOf(&c.Platforms, secrets), err
}

// runManager runs the reconcilers until ctx is done.
func runManager(ctx context.Context, args []string) error {
	f, err := parseManagerFlags(args)
	if err != nil {
		return err
	}
	processLog, err := f.SetupLog()
	if err != nil {
		return err
	}
	logger := processLog.Logger
	c, err := process.ReadConfig(&f.Flags, config.Manager)
	if err != nil {
		return err
	}
	suspend := process.WatchManagerConfig(ctx, &f.Flags, c, processLog)
	tracer, flush := process.StartTracing(ctx, &c.Tracing, managerName, version, logger)
	defer flush()
	api, err := cluster.Await(ctx, f.Kubeconfig, managerName+"/"+version, c.Health, logger)
	if err != nil || ctx.Err() != nil {
		return err
	}
	api.QPS, api.Burst = float32(c.Kubernetes.QPS), c.Kubernetes.Burst
	identity, err := f.identity()
	if err != nil {
		return err
	}
	registry, apps, err := managerPlatforms(c, api.Clock, logger)
	if err != nil {
		return err
	}
	hook := &admissionWebhook{Webhook: c.Webhook, release: c.ReleaseName, namespace: api.Namespace, clock: api.Clock}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	namespaces, err := cluster.NewServedNamespaces(ctx, api.Config, c, clock.RealClock{}, stop, logger)
	if err != nil {
		return err
	}
	mgr, err := newManager(ctx, stop, api, f, c, identity, hook, clock.RealClock{})
	if err != nil {
		return err
	}
	metrics.Registry.MustRegister(lease.NewLeaderMetric(mgr.Elected(), ctx.Done()))
	if err := setup(ctx, mgr, hook, c, namespaces.Absent, api.Namespace, registry, apps, identity, tracer, suspend, api.Clock); err != nil {
		return err
	}
	if err := errors.Join(mgr.Add(stopOnError{api.DefinitionWatch(logger), stop}), mgr.Add(namespaces)); err != nil {
		return fmt.Errorf("cannot watch the resource definitions and the rights: %w", err)
	}
	mgr.GetLogger().Info("starting", "version", version, "namespace", api.Namespace, "release", c.ReleaseName,
		"posts", c.Concurrency.Posts, "kubeAPIQPS", c.Kubernetes.QPS, "startingDeadline", c.Delivery.StartingDeadline.Duration.String())
	return work(ctx, mgr)
}

// stopOnError is a watch whose error starts a graceful shutdown. If it were returned to the manager, the manager would
// keep the lease until the running calls had finished.
type stopOnError struct {
	*preflight.Watch

	stop context.CancelCauseFunc
}

func (o stopOnError) Start(ctx context.Context) error {
	if err := o.Watch.Start(ctx); err != nil {
		o.stop(err)
	}
	return nil
}

// work runs a manager until ctx is done. It returns an error if the lease was lost, the CRDs are older than this
// program, or another namespace can be served.
func work(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("the manager stopped: %w", err)
	}
	if cause := context.Cause(ctx); errors.Is(cause, errLeaseLost) || errors.Is(cause, preflight.ErrOlder) || errors.Is(cause, cluster.ErrNamespaceServed) {
		return cause
	}
	return nil
}

// errLeaseLost is the cause of the shutdown when the lease cannot be renewed.
var errLeaseLost = errors.New("the lease could not be renewed in time, and another manager may lead now; " +
	"check whether the Kubernetes API responds, and whether this account may still write its lease")

// cacheSyncTimeout is how long a process may take to fill its caches, alive but not ready. A million posts take about
// ten minutes. With controller-runtime's default of two minutes, the process would exit and start from scratch.
const cacheSyncTimeout = time.Hour

func managerOptions(c *configv1alpha1.ManagerConfiguration) ctrl.Options {
	options := ctrl.Options{
		Scheme:                  runtime.NewScheme(),
		Metrics:                 process.MetricsOptions(&c.Metrics),
		HealthProbeBindAddress:  "0", // see process.AddProbes
		PprofBindAddress:        process.BindAddress(c.Profiling),
		GracefulShutdownTimeout: &c.ShutdownTimeout.Duration,
		LeaseDuration:           &c.LeaderElection.LeaseDuration.Duration,
		RenewDeadline:           &c.LeaderElection.RenewDeadline.Duration,
		RetryPeriod:             &c.LeaderElection.RetryPeriod.Duration,
		// The process exits as soon as the manager has stopped.
		LeaderElectionReleaseOnCancel: true,
		// A manager that waits for the lease fills its caches, so that it can take over immediately. With several shards,
		// most posts do not wait for the next leader. pacing.PostTimeout is the default for controllers without a
		// ReconciliationTimeout.
		Controller: ctrlconfig.Controller{EnableWarmup: new(c.Delivery.Shards <= 1), ReconciliationTimeout: pacing.PostTimeout, CacheSyncTimeout: cacheSyncTimeout},
	}
	utilruntime.Must(clientgoscheme.AddToScheme(options.Scheme))
	utilruntime.Must(v1alpha1.AddToScheme(options.Scheme))
	// Finished posts are not cached, to save memory. The cache keeps only the used fields of teams' large objects.
	options.Cache = cacheOptions(c)
	options.Cache.ByObject = map[client.Object]cache.ByObject{
		&v1alpha1.Post{}:      {Field: kubeclient.UnfinishedPosts()},
		&rbacv1.RoleBinding{}: namesOf(c.ReleaseName).RoleBindings(),
		// Only the quotas of teams' budgets.
		&corev1.ResourceQuota{}: team.Quotas(),
	}
	options.NewClient = newClient
	options.Client.FieldOwner = managerName
	// Secrets are never cached.
	options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}
	return options
}

// cacheOptions returns the options that all caches of the process share.
func cacheOptions(c *configv1alpha1.ManagerConfiguration) cache.Options {
	return cache.Options{DefaultTransform: kubeclient.TransformForCache, DefaultNamespaces: kubeclient.CacheByNamespace(c.Namespaces)}
}

func newManager(ctx context.Context, stop context.CancelCauseFunc, api *cluster.API, f *managerFlags, c *configv1alpha1.ManagerConfiguration,
	identity string, hook *admissionWebhook, clk clock.WithDelayedExecution,
) (ctrl.Manager, error) {
	options := managerOptions(c)
	alive := healthz.Ping
	if f.leaderElect {
		held, err := lease.New(lease.Options{
			Config: api.Config, Name: types.NamespacedName{Namespace: api.Namespace, Name: leaseOf(c.ReleaseName)},
			Identity: identity, Role: namesOf(c.ReleaseName).ClusterRole, Shards: c.Delivery.Shards, Times: c.LeaderElection, Clock: clk,
			Stop: func() { stop(errLeaseLost) },
		})
		if err != nil {
			return nil, fmt.Errorf("cannot set up leader election: %w", err)
		}
		options.LeaderElection, options.LeaderElectionResourceLockInterface = true, held
		alive = held.Check
		// A stopping process claims no more posts, so another one does not have to wait for the running calls.
		context.AfterFunc(ctx, func() { releaseLease(context.WithoutCancel(ctx), held, c.LeaderElection.RenewDeadline.Duration) })
	}
	if !f.leaderElect && c.Delivery.Shards > 1 {
		return nil, errShardsWithoutLeases
	}
	var err error
	if options.WebhookServer, err = hook.server(); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(api.Config)
	config.Wrap(kubeclient.WrapTransport)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the manager: %w", err)
	}
	if err := process.AddProbes(ctx, mgr, c.Health, alive, api.Clock); err != nil {
		return nil, fmt.Errorf("cannot serve the probes: %w", err)
	}
	return mgr, nil
}

// requestTimeout is the timeout for a controller's requests. The kernel detects a dead connection only after a quarter
// of an hour, but claims and records must be retried sooner.
const requestTimeout = 15 * time.Second

// newClient returns the controllers' client. The caches share one connection for all watches, which is enough for them;
// claims and records use many.
func newClient(config *rest.Config, options client.Options) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.Timeout = requestTimeout
	var err error
	if options.HTTPClient, err = kubeclient.NewHTTPClient(config); err != nil {
		return nil, err
	}
	return client.New(config, options)
}

// releaseLease releases the lease. If that fails, the election releases it after the process has stopped.
func releaseLease(ctx context.Context, held *lease.Lock, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := held.Release(ctx); err != nil {
		ctrl.Log.WithName("lease").Error(err, "cannot release the lease; another manager takes over once this one has stopped")
	}
}

// identity returns the identity for the lease. It survives a restart only if --leader-identity is set.
func (f *managerFlags) identity() (string, error) {
	if f.leaderIdentity != "" {
		return f.leaderIdentity, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("cannot read the host name; set --leader-identity: %w", err)
	}
	return fmt.Sprintf("%s_%d", host, os.Getpid()), nil
}
