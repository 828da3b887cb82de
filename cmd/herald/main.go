// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command herald contains all of Herald in one binary. Its first argument selects the part to run. This package parses
// flags and wires the parts together.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/cmd/herald/internal/process"
	"github.com/herald-social/herald/cmd/herald/internal/release"
	"github.com/herald-social/herald/internal/media/rendition"
)

// Exit codes. A usage error has its own code, as with flag.ExitOnError, so that a supervisor can distinguish it from a
// transient failure.
const (
	exitFailure = 1
	exitUsage   = 2
	// exitStopped means that `herald release` found an active manager. Repeating the command would interfere with it.
	exitStopped = 3
)

type command struct {
	name    string
	summary string
	// run returns nil when ctx stopped it, a process.UsageError for an invalid command line, and flag.ErrHelp after
	// printing help.
	run func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"apiserver", "serve the HTTP API and the web application", runAPIServer},
		{"config", "check a configuration file: herald config check FILE", runConfig},
		{"manager", "deliver posts, and reconcile teams, keys and connections", runManager},
		{"release", "remove finalizers before Herald is uninstalled, so that its objects can be deleted", runRelease},
		{"signin-link", "print a one-time link to sign in to the web application", runSignInLink},
		{"token", "create a token for an API key", runToken},
		{"version", "print the version", runVersion},
	}
}

// profiledEvery is the sampling interval of memory profiles in bytes. With Go's default of 512 KiB, samples take up
// more than 1 MiB in a process with a small heap.
const profiledEvery = 4 << 20

func main() {
	if rendition.IsChild(os.Args[1:]) {
		os.Exit(rendition.DecodeMain(os.Args[1:]))
	}
	runtime.MemProfileRate = profiledEvery
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// During shutdown, a second signal kills the process immediately.
	context.AfterFunc(ctx, stop)
	os.Exit(dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// dispatch runs the subcommand in args[0] and returns the exit code.
func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		printUsage(stderr)
		return exitUsage
	}
	if args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		printUsage(stdout)
		return 0
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return report(c.name, c.run(ctx, args[1:]), stderr)
		}
	}
	fmt.Fprintf(stderr, "herald: unknown command %q\n\n", args[0])
	printUsage(stderr)
	return exitUsage
}

// report prints an error and returns the exit code for it.
func report(name string, err error, stderr io.Writer) int {
	var usage process.UsageError
	var mistakes *config.Mistakes
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "herald %s: %v\nSee `herald %s --help`.\n", name, err, name)
		return exitUsage
	case errors.As(err, &mistakes):
		// Each line starts with the file name, as editors and pipelines expect.
		many := "mistakes"
		if len(mistakes.List) == 1 {
			many = "mistake"
		}
		fmt.Fprintf(stderr, "%v\nherald %s: the configuration has %d %s\n", mistakes, name, len(mistakes.List), many)
		return exitFailure
	case errors.As(err, new(*release.Stopped)):
		fmt.Fprintf(stderr, "herald %s: %v\n", name, err)
		return exitStopped
	default:
		fmt.Fprintf(stderr, "herald %s: %v\n", name, err)
		return exitFailure
	}
}

func printUsage(out io.Writer) {
	fmt.Fprint(out, "Herald publishes one post to several social platforms, never twice and never lost.\n\nUsage: herald COMMAND [flags]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(out, "  %-11s %s\n", c.name, c.summary)
	}
	fmt.Fprint(out, "  help        print this text\n\n`herald COMMAND --help` lists the flags of a command.\n")
}

func runVersion(_ context.Context, args []string) error {
	flags := process.NewFlagSet("version")
	if err := process.Parse(flags, args); err != nil {
		return err
	}
	_, err := fmt.Println("herald", version)
	return err
}
