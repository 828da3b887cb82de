// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

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
	"net/http/pprof" // it adds itself to the default mux, which this program serves nowhere
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// newFlagSet returns a flag set whose errors are left to report and whose help goes to stdout, where `--help | less`
// finds it.
func newFlagSet(name string) *flag.FlagSet {
	flags := flag.NewFlagSet("herald "+name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// parse parses args. It prints help when asked to and turns everything else that is wrong into a usageError; a stray
// argument is wrong too, since it is most often a flag without its dashes.
func parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		fmt.Printf("Usage: %s [flags]\n\n", flags.Name())
		flags.PrintDefaults()
		return err
	}
	if err != nil {
		return usageError{err}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("unexpected argument %q; a flag begins with dashes", flags.Arg(0))}
	}
	return nil
}

// commonFlags are the flags that both long-running parts of Herald have.
type commonFlags struct {
	kubeconfig      string
	platformsConfig string
	metricsAddress  string
	pprofAddress    string
	logFormat       string
	logLevel        slog.Level
	media           mediaFlags
}

func (f *commonFlags) add(flags *flag.FlagSet, metricsPaths string) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; empty inside a cluster")
	flags.StringVar(&f.platformsConfig, "platforms-config", "", "YAML file that says how to reach the platforms")
	flags.StringVar(&f.metricsAddress, "metrics-bind-address", ":8081", "address of "+metricsPaths+"; 0 for none")
	flags.StringVar(&f.pprofAddress, "pprof-bind-address", "", "address of /debug/pprof, for measuring only: profiles show what is in memory, so keep it off the network; empty for none")
	flags.StringVar(&f.logFormat, "log-format", "text", "format of the log: text or json")
	flags.TextVar(&f.logLevel, "log-level", slog.LevelInfo, "least level to log: debug, info, warn or error")
	f.media.add(flags)
}

// setupLog returns the logger that the flags ask for, which writes to stderr. What Kubernetes' libraries log goes there
// as well.
func (f *commonFlags) setupLog() (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: f.logLevel}
	var handler slog.Handler
	switch f.logFormat {
	case "text":
		handler = slog.NewTextHandler(os.Stderr, options)
	case "json":
		handler = slog.NewJSONHandler(os.Stderr, options)
	default:
		return nil, usageError{fmt.Errorf("--log-format=%s: want text or json", f.logFormat)}
	}
	klog.SetLogger(logr.FromSlogHandler(handler))
	return slog.New(handler), nil
}

// kubeConfig returns the configuration of the client of the Kubernetes API, to which the process calls itself by the name.
func (f *commonFlags) kubeConfig(name string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if f.kubeconfig == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the Kubernetes API (name a kubeconfig with --kubeconfig, or run inside a cluster): %w", err)
	}
	config.UserAgent = name + "/" + version
	return config, nil
}

// pprofHeaderTimeout is how long a client may take to send a request's header.
const pprofHeaderTimeout = 10 * time.Second

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
