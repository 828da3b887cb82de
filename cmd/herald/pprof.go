// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof" // it adds itself to the default mux, which this program serves nowhere
	"time"
)

// pprofHeaderTimeout is how long a client may take to send a request's header.
const pprofHeaderTimeout = 10 * time.Second

// addPprofFlag adds the flag that both long-running parts of Herald have.
func addPprofFlag(flags *flag.FlagSet, address *string) {
	flags.StringVar(address, "pprof-bind-address", "", "address of /debug/pprof, for measuring only: profiles show what is in memory, so keep it off the network; empty for none")
}

// servePprof serves profiles until ctx ends; an empty address serves none.
func servePprof(ctx context.Context, address string, log *slog.Logger) error {
	if address == "" {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--pprof-bind-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: pprofHeaderTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // nothing is lost with it
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.ErrorContext(ctx, "Profiles are served no longer", "error", err)
		}
	}()
	return nil
}
