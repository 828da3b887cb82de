// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/herald-social/herald/sandbox"
)

const (
	// sandboxHeaderTimeout is how long a client may take to send a request's header. Bodies may take their time: a video
	// is one.
	sandboxHeaderTimeout = 10 * time.Second
	// sandboxGrace is how long answers under way may take to end when the sandbox is stopped.
	sandboxGrace = 3 * time.Second
)

// runSandbox serves the simulated platforms until ctx ends.
func runSandbox(ctx context.Context, args []string) error {
	flags := newFlagSet("sandbox")
	listen := flags.String("listen", "127.0.0.1:9100", "address to serve on")
	stateDir := flags.String("state-dir", "", "folder that keeps what was published; empty keeps it in memory only")
	siteURL := flags.String("site-url", "", "the sandbox's own address, as browsers reach it; empty takes the address of each request")
	logs := addLogFlags(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	logger, err := logs.logger()
	if err != nil {
		return err
	}
	server, err := sandbox.New(sandbox.Options{StateDir: *stateDir, SiteURL: *siteURL, Logger: logger})
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", *listen)
	if err != nil {
		return errors.Join(fmt.Errorf("serve the sandbox: %w", err), server.Close())
	}
	logger.Info("serving the simulated platforms", "address", "http://"+listener.Addr().String())
	return serveSandbox(ctx, listener, server, logger)
}

// serveSandbox serves until ctx ends. The sandbox is closed before the HTTP server, since that ends requests which wait
// on purpose.
func serveSandbox(ctx context.Context, listener net.Listener, server *sandbox.Server, logger *slog.Logger) error {
	httpServer := &http.Server{
		Handler:           server,
		ReadHeaderTimeout: sandboxHeaderTimeout,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- httpServer.Serve(listener) }()
	select {
	case err := <-served:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	logger.Info("stopping")
	closed := server.Close()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), sandboxGrace)
	defer cancel()
	if err := httpServer.Shutdown(grace); err != nil {
		return errors.Join(fmt.Errorf("stop the sandbox: %w", err), httpServer.Close(), closed)
	}
	return closed
}
