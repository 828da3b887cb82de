// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command local runs all of Herald on this machine: a Kubernetes control plane, an S3 store, the simulated platforms,
// and Herald's own manager and apiserver, each in its own process. `make run` builds all of them and runs it.
//
//	bin/local run     starts everything and keeps it running until Ctrl-C
//	bin/local reset   removes the state of earlier runs
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Exit codes, following shell conventions.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

const usage = `Usage: make run, or make run-reset

Environment:
  HERALD_PORT          port of the site, 8080 if not set
  KUBEBUILDER_ASSETS   folder with etcd and kube-apiserver to use instead of building them
`

// errInterrupted is the cause of a context that is cancelled by Ctrl-C or a termination signal.
var errInterrupted = errors.New("interrupted")

// parentPoll is the interval at which to check whether the parent process has exited.
const parentPoll = 250 * time.Millisecond

// app is the state that both commands share.
type app struct {
	// root is the checkout; its folder .local contains all of a run's state.
	root string
	// lock is open as long as this process owns .local.
	lock *os.File
	// force is closed by a second request to stop, which skips the graceful shutdown.
	force <-chan struct{}
}

func main() {
	os.Exit(start())
}

func start() int {
	commands := map[string]func(*app, context.Context) error{"run": (*app).run, "reset": (*app).reset}
	if len(os.Args) != 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, usage)
		return exitUsage
	}
	// The libraries log retries. Permanent errors are also returned.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, force := interruptible()
	root, err := os.Getwd()
	if err == nil {
		err = commands[os.Args[1]](&app{root: root, force: force}, ctx)
	}
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

// interruptible returns a context that is cancelled by the first Ctrl-C or termination signal, and a channel that the
// second one closes.
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
	go func() {
		// make forwards SIGTERM, and the terminal sends Ctrl-C to all processes, but a killed make does not send a
		// signal.
		parent := os.Getppid()
		for range time.Tick(parentPoll) {
			if os.Getppid() != parent {
				cancel(errInterrupted)
			}
		}
	}()
	// Otherwise writing to a closed pipe would end this process immediately.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return ctx, force
}

// state returns a path in the folder with a run's state.
func (a *app) state(name string) string { return filepath.Join(a.root, ".local", name) }

// step runs one step and prints its duration. A cancelled step prints nothing.
func step(name string, work func() error) error {
	started := time.Now()
	err := work()
	mark := "✓"
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		mark = "✗"
	}
	fmt.Printf("  %s %-24s %6.1f s\n", mark, name, time.Since(started).Seconds())
	return err
}
