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

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/internal/headroom"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/transport"
)

// apiserverHeadroom is how many bytes the apiserver's heap may grow under load before
// garbage is collected. Listing 20 posts leaves about 7 KB of garbage.
const apiserverHeadroom = 96 << 20

// apiserverFlags are the flags of `herald apiserver`; those that the server itself
// knows stand in config.
type apiserverFlags struct {
	commonFlags

	listen string
	config apiserver.Config
}

func parseAPIServerFlags(args []string) (*apiserverFlags, error) {
	f := &apiserverFlags{}
	flags := newFlagSet("apiserver")
	f.add(flags, "/metrics, /healthz and /readyz")
	flags.StringVar(&f.listen, "listen", ":8080", "address to serve the API on")
	flags.StringVar(&f.config.SiteURL, "site-url", "", "address under which clients reach this server, such as https://herald.example.com; empty takes --listen")
	flags.DurationVar(&f.config.ShutdownDelay, "shutdown-delay", 3*time.Second, "how long to go on serving, not ready any more, before stopping")
	flags.DurationVar(&f.config.ShutdownTimeout, "shutdown-timeout", 20*time.Second, "how long requests under way may take once stopping")
	flags.IntVar(&f.config.RequestsPerMinute, "requests-per-minute", 600, "how many requests each API key may make; 0 for no limit")
	if err := parse(flags, args); err != nil {
		return nil, err
	}
	if f.config.ShutdownDelay < 0 || f.config.ShutdownTimeout < 0 {
		return nil, usageError{errors.New("--shutdown-delay and --shutdown-timeout: want zero or more")}
	}
	return f, nil
}

// runAPIServer serves the HTTP API until ctx ends.
func runAPIServer(ctx context.Context, args []string) error {
	f, err := parseAPIServerFlags(args)
	if err != nil {
		return err
	}
	log, err := f.setupLog()
	if err != nil {
		return err
	}
	config := &f.config
	if config.Kubernetes, err = f.kubeConfig(kube.FieldOwner); err != nil {
		return err
	}
	if err := checkCluster(ctx, config.Kubernetes, log); err != nil {
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
	if err := f.openListeners(ctx); err != nil {
		return err
	}
	if err := servePprof(ctx, f.pprofAddress, log); err != nil {
		return err
	}
	config.UserAgent = config.Kubernetes.UserAgent
	config.Capabilities = platforms.Capabilities
	config.Files = files
	config.Verify = (&probe.Verifier{Store: files, Clock: clock.RealClock{}}).Verify
	config.Registry = prometheus.NewRegistry()
	config.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	config.Clock, config.Log = clock.RealClock{}, log
	config.Started = keepHeadroom
	server, err := apiserver.New(*config)
	if err != nil {
		return fmt.Errorf("cannot set up the apiserver: %w", err)
	}
	log.InfoContext(ctx, "Starting", "version", version, "baseUrl", config.SiteURL+rest.Prefix)
	return server.Run(ctx)
}

// keepHeadroom makes the process collect garbage less often, unless the environment
// sets GOGC. It runs after the start, whose garbage does not count.
func keepHeadroom() {
	if os.Getenv("GOGC") == "" {
		headroom.Keep(apiserverHeadroom)
	}
}

// openListeners opens both listeners; the second stays nil if it is not wanted.
// Clients reach the server at the first unless the flags say otherwise.
func (f *apiserverFlags) openListeners(ctx context.Context) (err error) {
	var listen net.ListenConfig
	if f.config.Listener, err = listen.Listen(ctx, "tcp", f.listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if f.config.SiteURL = strings.TrimRight(f.config.SiteURL, "/"); f.config.SiteURL == "" {
		f.config.SiteURL = "http://" + f.config.Listener.Addr().String()
	}
	if f.metricsAddress == "0" {
		return nil
	}
	if f.config.MetricsListener, err = listen.Listen(ctx, "tcp", f.metricsAddress); err != nil {
		return errors.Join(fmt.Errorf("--metrics-bind-address: %w", err), f.config.Listener.Close())
	}
	return nil
}
