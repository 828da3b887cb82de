// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/internal/headroom"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/posting/rules"
)

// apiserverHeadroom is how many bytes the apiserver's heap may grow under load before
// garbage is collected. Listing 20 posts leaves about 7 KB of garbage.
const apiserverHeadroom = 96 << 20

// apiserverFlags are the flags of `herald apiserver`.
type apiserverFlags struct {
	kubeconfig      string
	platformsConfig string
	listen          string
	metricsAddress  string
	pprofAddress    string
	siteURL         string
	shutdownDelay   time.Duration
	shutdownTimeout time.Duration
	media           *mediaFlags
	log             *logFlags

	requestsPerMinute int
	usageNamespace    string
}

func parseAPIServerFlags(args []string) (*apiserverFlags, error) {
	f := &apiserverFlags{}
	flags := newFlagSet("apiserver")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; empty inside a cluster")
	flags.StringVar(&f.platformsConfig, "platforms-config", "", "YAML file that says how to reach the platforms")
	flags.StringVar(&f.listen, "listen", ":8080", "address to serve the API on")
	flags.StringVar(&f.metricsAddress, "metrics-bind-address", ":8081", "address of /metrics, /healthz and /readyz; 0 for none")
	addPprofFlag(flags, &f.pprofAddress)
	flags.StringVar(&f.siteURL, "site-url", "", "address under which clients reach this server, such as https://herald.example.com; empty takes --listen")
	flags.DurationVar(&f.shutdownDelay, "shutdown-delay", 3*time.Second, "how long to go on serving, not ready any more, before stopping")
	flags.DurationVar(&f.shutdownTimeout, "shutdown-timeout", 20*time.Second, "how long requests under way may take once stopping")
	flags.IntVar(&f.requestsPerMinute, "requests-per-minute", 600, "how many requests each API key may make; 0 for no limit")
	addUsageFlag(flags, &f.usageNamespace)
	f.media = addMediaFlags(flags)
	f.log = addLogFlags(flags)
	if err := parse(flags, args); err != nil {
		return nil, err
	}
	if f.shutdownDelay < 0 || f.shutdownTimeout < 0 {
		return nil, usageError{errors.New("--shutdown-delay and --shutdown-timeout: want zero or more")}
	}
	f.siteURL = strings.TrimRight(f.siteURL, "/")
	return f, nil
}

// runAPIServer serves the HTTP API until ctx ends.
func runAPIServer(ctx context.Context, args []string) error {
	f, err := parseAPIServerFlags(args)
	if err != nil {
		return err
	}
	log, err := f.log.logger()
	if err != nil {
		return err
	}
	klog.SetLogger(logr.FromSlogHandler(log.Handler()))

	config, err := kubeConfig(f.kubeconfig, -1, 0)
	if err != nil {
		return err
	}
	// This process uses only the platforms' capabilities: it has neither their
	// secrets nor any token, and calls none of them.
	platforms, err := loadPlatforms(f.platformsConfig, transport.New(transport.Options{}), false)
	if err != nil {
		return err
	}
	files, err := f.media.store()
	if err != nil {
		return err
	}
	listener, metricsListener, err := listenAPIServer(ctx, f)
	if err != nil {
		return err
	}
	if err := servePprof(ctx, f.pprofAddress, log); err != nil {
		return err
	}
	server, err := apiserver.New(apiserver.Config{
		Kubernetes:      config,
		UserAgent:       config.UserAgent + " apiserver",
		Limits:          rules.LimitsOf(platforms),
		Files:           files,
		Verify:          (&probe.Verifier{Store: files, Clock: clock.RealClock{}}).Verify,
		SiteURL:         f.site(listener),
		Listener:        listener,
		MetricsListener: metricsListener,
		ShutdownDelay:   f.shutdownDelay,
		ShutdownTimeout: f.shutdownTimeout,
		Registry:        newRegistry(),
		Clock:           clock.RealClock{},
		Log:             log,

		RequestsPerMinute: f.requestsPerMinute,
		UsageNamespace:    f.usageNamespace,
		Started:           keepHeadroom,
	})
	if err != nil {
		return fmt.Errorf("cannot set up the apiserver: %w", err)
	}
	log.InfoContext(ctx, "Starting", "version", version, "baseUrl", f.site(listener)+rest.Prefix)
	return server.Run(ctx)
}

// newRegistry returns a registry with the metrics of the process itself.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// keepHeadroom makes the process collect garbage less often, unless the environment
// sets GOGC. It runs after the start, whose garbage does not count.
func keepHeadroom() {
	if os.Getenv("GOGC") == "" {
		headroom.Keep(apiserverHeadroom)
	}
}

// site is the address under which clients reach the server.
func (f *apiserverFlags) site(listener net.Listener) string {
	if f.siteURL != "" {
		return f.siteURL
	}
	return "http://" + listener.Addr().String()
}

// listenAPIServer opens both listeners; the second is nil if it is not wanted.
func listenAPIServer(ctx context.Context, f *apiserverFlags) (api, metrics net.Listener, err error) {
	var config net.ListenConfig
	if api, err = config.Listen(ctx, "tcp", f.listen); err != nil {
		return nil, nil, fmt.Errorf("--listen: %w", err)
	}
	if f.metricsAddress == "0" {
		return api, nil, nil
	}
	if metrics, err = config.Listen(ctx, "tcp", f.metricsAddress); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("--metrics-bind-address: %w", err), api.Close())
	}
	return api, metrics, nil
}
