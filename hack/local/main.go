// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command local runs all of Herald on this machine: a Kubernetes API server with its etcd, an S3 store, the simulated
// platforms, and Herald's own manager and apiserver, each a process of its own.
//
//	go run ./hack/local build   builds what is missing of it into bin/
//	go run ./hack/local run     builds, starts, and keeps everything running until Ctrl-C
//	go run ./hack/local reset   forgets everything that was run before
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/hack/local/process"
	"github.com/herald-social/herald/hack/local/steps"
	"github.com/herald-social/herald/hack/local/workspace"
)

// Exit codes, after the customs of shells.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

const usage = `Usage: go run ./hack/local COMMAND

  build   builds what is missing of the control plane, the store and Herald into bin/
  run     builds, starts everything and keeps it running until Ctrl-C
  reset   forgets everything that was run before (the folder .local)

Environment:
  HERALD_PORT          port of the site, 8080 if not set
  KUBEBUILDER_ASSETS   folder with etcd and kube-apiserver to use instead of building them
`

// errInterrupted is the cause of the context's end when somebody asked for it.
var errInterrupted = errors.New("interrupted")

// app is what all commands share.
type app struct {
	workspace workspace.Workspace
	steps     *steps.Printer
	spawner   *process.Spawner
	// assets is the value of KUBEBUILDER_ASSETS, sitePort that of HERALD_PORT.
	assets, sitePort string
	// force is closed when somebody does not want to wait for an orderly end.
	force <-chan struct{}
}

func main() {
	os.Exit(start())
}

func start() int {
	commands := map[string]func(*app, context.Context) error{"build": (*app).build, "run": (*app).run, "reset": (*app).reset}
	if len(os.Args) == 2 && (os.Args[1] == "help" || os.Args[1] == "-h" || os.Args[1] == "--help") {
		fmt.Print(usage)
		return 0
	}
	if len(os.Args) != 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, usage)
		return exitUsage
	}
	// The libraries' logs are about retries that the steps wait out; what goes wrong for good comes back as an error.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, force := interruptible()
	a := &app{
		steps:    steps.New(os.Stdout, steps.IsTerminal(os.Stdout, os.Getenv("TERM"))),
		spawner:  process.NewSpawner(),
		assets:   os.Getenv("KUBEBUILDER_ASSETS"),
		sitePort: os.Getenv("HERALD_PORT"),
		force:    force,
	}
	defer a.steps.Close()
	var err error
	if a.workspace, err = workspace.Find("."); err == nil {
		err = commands[os.Args[1]](a, ctx)
	}
	a.steps.Close()
	switch {
	case err == nil:
		return 0
	case errors.Is(context.Cause(ctx), errInterrupted):
		fmt.Println("interrupted; nothing is left running")
		return exitInterrupted
	default:
		fmt.Fprintf(os.Stderr, "\n%v\n", err)
		return exitFailure
	}
}

// interruptible returns a context that ends on the first Ctrl-C or request to end, and a channel that is closed on the
// second.
func interruptible() (context.Context, <-chan struct{}) {
	ctx, cancel := context.WithCancelCause(context.Background())
	force := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		cancel(errInterrupted)
		<-signals
		close(force)
	}()
	go watchParent(func() { cancel(errInterrupted) })
	// Without this, writing to a pipe that nobody reads any more would end this process on the spot.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return ctx, force
}
