// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof" // it adds itself to the default mux, which this program serves nowhere
	"time"

	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/metricsauth"
)

// MetricsOptions returns the options of either process's metrics server. Without a certificate folder, a certificate is
// generated on every start: clients authenticate by token and do not have to verify the server name.
func MetricsOptions(c *configv1alpha1.Metrics) metricsserver.Options {
	options := metricsserver.Options{BindAddress: BindAddress(c.Endpoint)}
	if !c.Plain {
		options.SecureServing, options.CertDir, options.FilterProvider = true, c.CertDir, metricsauth.Filter
	}
	return options
}

// BindAddress converts an endpoint to controller-runtime's format, where "0" disables it.
func BindAddress(e configv1alpha1.Endpoint) string {
	if e.Off() {
		return "0"
	}
	return e.BindAddress
}

// pprofHeaderTimeout is the timeout for a request's header.
const pprofHeaderTimeout = 10 * time.Second

// ServeProfiles serves profiles until ctx is done, if they are enabled.
func ServeProfiles(ctx context.Context, endpoint configv1alpha1.Endpoint, log *slog.Logger) error {
	if endpoint.Off() {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", endpoint.BindAddress)
	if err != nil {
		return fmt.Errorf("profiling.bindAddress: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: pprofHeaderTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // profiles need no graceful shutdown
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.ErrorContext(ctx, "Profiles are served no longer", "error", err)
		}
	}()
	return nil
}
