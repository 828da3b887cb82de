// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command herald-sandbox serves the simulated platforms for local runs and tests. It is not part of Herald's image.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/herald-social/herald/sandbox"
)

const (
	// headerTimeout is the timeout for a request's header. Bodies may take longer, because they may be videos.
	headerTimeout = 10 * time.Second
	// shutdownGrace is how long running requests may take after the sandbox is told to stop.
	shutdownGrace = 3 * time.Second
)

// Exit codes, as in herald: a usage error has its own code.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal kills the process immediately.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type config struct {
	listen  string
	options sandbox.Options
}

// run serves the sandbox until ctx is done and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stdout, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "herald-sandbox: %v\nSee `herald-sandbox --help`.\n", err)
		return exitUsage
	}
	if err := listenAndServe(ctx, c); err != nil {
		fmt.Fprintf(stderr, "herald-sandbox: %v\n", err)
		return exitFailure
	}
	return 0
}

// parse parses the command line. Help goes to stdout, logs to stderr.
func parse(args []string, stdout, stderr io.Writer) (config, error) {
	var (
		c     config
		level slog.Level
		flags = flag.NewFlagSet("herald-sandbox", flag.ContinueOnError)
	)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.listen, "listen", "127.0.0.1:9100", "address to serve on")
	flags.StringVar(&c.options.StateDir, "state-dir", "", "folder for published posts; empty keeps them in memory only")
	flags.StringVar(&c.options.SiteURL, "site-url", "", "the sandbox's address for browsers, in links to posts and pictures; empty uses the address of each request")
	plain := flags.String("plain-hosts", "", "comma-separated hosts from which files are fetched over plain HTTP even if the platform requires HTTPS")
	strict := flags.Bool("strict", false, "reject parameters and fields that a simulator does not know, even if the platform ignores them")
	format := flags.String("log-format", "text", "format of the log: text or json")
	flags.TextVar(&level, "log-level", slog.LevelInfo, "minimum level to log: debug, info, warn or error")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, "herald-sandbox serves simulated social platforms over HTTP.\n\nUsage: herald-sandbox [flags]\n\n")
			flags.SetOutput(stdout)
			flags.PrintDefaults()
		}
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q; a flag begins with dashes", flags.Arg(0))
	}
	c.options.Lenient = !*strict
	c.options.PlainHosts = strings.FieldsFunc(*plain, func(r rune) bool { return r == ',' })
	options := &slog.HandlerOptions{Level: level}
	switch *format {
	case "text":
		c.options.Logger = slog.New(slog.NewTextHandler(stderr, options))
	case "json":
		c.options.Logger = slog.New(slog.NewJSONHandler(stderr, options))
	default:
		return c, fmt.Errorf("--log-format=%s: want text or json", *format)
	}
	return c, nil
}

func listenAndServe(ctx context.Context, c config) error {
	server, err := sandbox.New(c.options)
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", c.listen)
	if err != nil {
		return errors.Join(fmt.Errorf("--listen=%s: %w", c.listen, err), server.Close())
	}
	c.options.Logger.Info("serving the simulated platforms", "address", "http://"+listener.Addr().String())
	return serve(ctx, listener, server, c.options.Logger)
}

// serve serves until ctx is done. It closes the sandbox before the HTTP server, which ends requests that a fault
// delays.
func serve(ctx context.Context, listener net.Listener, server *sandbox.Server, logger *slog.Logger) error {
	httpServer := &http.Server{
		Handler:           server,
		ReadHeaderTimeout: headerTimeout,
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
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err := httpServer.Shutdown(grace); err != nil {
		return errors.Join(fmt.Errorf("stop the sandbox: %w", err), httpServer.Close(), closed)
	}
	return closed
}
