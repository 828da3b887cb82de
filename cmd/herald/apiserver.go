// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/request"
	apirest "github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/cmd/herald/internal/cluster"
	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/cmd/herald/internal/process"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/tracing"
)

// apiserverHeadroom is the number of bytes by which the heap grows under load between garbage collections. Listing 20
// posts allocates about 7 KB.
const apiserverHeadroom = 96 << 20

// runAPIServer serves the REST API and the web application until ctx is done.
func runAPIServer(ctx context.Context, args []string) error {
	f := &process.Flags{}
	flags := process.NewFlagSet("apiserver")
	f.Add(flags, configv1alpha1.APIServerKind)
	if err := process.Parse(flags, args); err != nil {
		return err
	}
	processLog, err := f.SetupLog()
	if err != nil {
		return err
	}
	log := processLog.Logger
	c, err := process.ReadConfig(f, config.APIServer)
	if err != nil {
		return err
	}
	process.WatchAPIServerConfig(ctx, f, c, processLog)
	tracer, flush := process.StartTracing(ctx, &c.Tracing, kube.FieldOwner, version, log)
	defer flush()
	api, err := cluster.Await(ctx, f.Kubeconfig, kube.FieldOwner+"/"+version, c.Health, log)
	if err != nil || ctx.Err() != nil {
		return err
	}
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	server, err := newAPIServer(running, end, c, f.Config, api, tracer, log)
	if err != nil {
		return err
	}
	go func() {
		if err := api.DefinitionWatch(log).Start(running); err != nil {
			end(err)
		}
	}()
	err = server.Run(running)
	if ctx.Err() == nil {
		err = errors.Join(err, context.Cause(running))
	}
	return err
}

// newAPIServer returns the server with open listeners. It also starts serving metrics and profiles; if the metrics
// server fails later, it calls end with the error. file is the path of the configuration.
func newAPIServer(ctx context.Context, end context.CancelCauseFunc, c *configv1alpha1.APIServerConfiguration, file string, api *cluster.API,
	tracer *tracing.Tracer, log *slog.Logger,
) (*apiserver.Server, error) {
	out, secrets := toPlatforms(&c.Web, metrics.Registry, log)
	platforms, err := loadPlatforms(&c.Platforms, out, secrets, api.Clock)
	if err != nil {
		return nil, err
	}
	files, err := openStore(c.Media)
	if err != nil {
		return nil, err
	}
	options := apiserver.Config{
		Kubernetes: api.Config, UserAgent: api.UserAgent,
		Capabilities: platforms.Capabilities,
		SiteURL:      strings.TrimRight(c.SiteURL, "/"),
		Verify:       verifier(files, api.Clock).Verify,
		Registry:     metrics.Registry,
		Clock:        api.Clock, Log: log, Tracer: tracer,
		Check:         api.Clock.Check,
		ShutdownDelay: c.Shutdown.Delay.Duration, ShutdownTimeout: c.Shutdown.Timeout.Duration,
		RequestsPerMinute: c.RequestsPerMinute, MaxConnections: c.MaxConnections, MaxConnectionsPerAddress: c.MaxConnectionsPerAddress,
		Proxies:    proxiesOf(c.TrustedProxies),
		Namespaces: c.Namespaces,
		MCP:        c.MCP.Enabled,
		Version:    version,
		Started:    tuneGC,
	}
	if c.Media != nil {
		options.Small = smallPictures(files)
		options.Files, options.Parts, options.Requests, options.Bucket = files, files, archive.New(files), files
	}
	if options.Web, err = webConfig(c, file, api.Namespace); err != nil {
		return nil, err
	}
	if options.Web != nil {
		options.Web.Platforms, options.Web.Apps, options.Web.StoreOrigins = platforms, appsOf(&c.Platforms, secrets), storeOrigins(c.Media)
	}
	if options.TLS, err = serveTLS(ctx, c.TLS, log); err != nil {
		return nil, err
	}
	if err := openListeners(ctx, c, &options); err != nil {
		return nil, err
	}
	if err := process.ServeProfiles(ctx, c.Profiling, log); err != nil {
		return nil, err
	}
	if err := serveMetrics(ctx, end, &c.Metrics, api.Config); err != nil {
		return nil, err
	}
	server, err := apiserver.New(options)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the apiserver: %w", err)
	}
	log.InfoContext(ctx, "Starting", "version", version, "baseUrl", options.SiteURL+apirest.Prefix)
	return server, nil
}

// proxiesOf parses networks that the configuration has already validated.
func proxiesOf(networks []string) request.Proxies {
	var proxies request.Proxies
	for _, network := range networks {
		if prefix, err := netip.ParsePrefix(network); err == nil {
			proxies = append(proxies, prefix)
		}
	}
	return proxies
}

// serveTLS returns the TLS configuration for a certificate in two files, or nil for HTTP. The certificate is reloaded
// when the files change.
func serveTLS(ctx context.Context, c *configv1alpha1.TLS, log *slog.Logger) (*tls.Config, error) {
	if c == nil {
		return nil, nil //nolint:nilnil // nil is HTTP
	}
	watcher, err := certwatcher.New(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	go func() {
		if err := watcher.Start(ctx); err != nil {
			log.ErrorContext(ctx, "The certificate is no longer reloaded when it changes", "error", err)
		}
	}()
	return &tls.Config{GetCertificate: watcher.GetCertificate, MinVersion: tls.VersionTLS12}, nil
}

// serveMetrics serves the metrics until ctx is done, if they are enabled. As in the manager, the process exits if that
// fails, because no alert would work.
func serveMetrics(ctx context.Context, end context.CancelCauseFunc, c *configv1alpha1.Metrics, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("cannot reach the Kubernetes API: %w", err)
	}
	server, err := metricsserver.NewServer(process.MetricsOptions(c), config, client)
	if err != nil {
		return fmt.Errorf("cannot serve the metrics: %w", err)
	}
	if server == nil {
		return nil
	}
	go func() {
		if err := server.Start(ctx); err != nil {
			end(fmt.Errorf("metrics.bindAddress: %w", err))
		}
	}()
	return nil
}

// tuneGC makes garbage collections less frequent, unless GOGC is set. It is called after startup, so that allocations
// during startup do not count.
func tuneGC() {
	if os.Getenv("GOGC") == "" {
		process.SetMinHeapGrowth(apiserverHeadroom)
	}
}

// openListeners opens both listeners; the second remains nil if it is not enabled. The address of the first is the
// default for siteURL.
func openListeners(ctx context.Context, c *configv1alpha1.APIServerConfiguration, options *apiserver.Config) (err error) {
	var listen net.ListenConfig
	if options.Listener, err = listen.Listen(ctx, "tcp", c.BindAddress); err != nil {
		return fmt.Errorf("bindAddress: %w", err)
	}
	if options.SiteURL == "" {
		scheme := "http://"
		if options.TLS != nil {
			scheme = "https://"
		}
		options.SiteURL = scheme + options.Listener.Addr().String()
	}
	if c.Health.Off() {
		return nil
	}
	if options.HealthListener, err = listen.Listen(ctx, "tcp", c.Health.BindAddress); err != nil {
		return errors.Join(fmt.Errorf("health.bindAddress: %w", err), options.Listener.Close())
	}
	return nil
}
