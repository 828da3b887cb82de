// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command perf measures Herald against its floor, the Kubernetes API itself, and prints one table; docs/performance.md
// describes the benchmarks. `make bench` runs it. Missing a goal is not a failure. With the argument soak (`make
// soak`), it runs for hours instead, and missing a goal is a failure.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/test/perf/internal/bare"
)

func main() {
	os.Exit(start())
}

func start() int {
	// The libraries log retries. Permanent errors are also returned.
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "bare":
		err = bare.Main(ctx, os.Args[2], os.Stdin, os.Stdout)
	case len(os.Args) == 2 && os.Args[1] == "soak":
		err = soak(ctx, os.Getenv("SOAK"))
	case len(os.Args) > 1:
		printUsage(os.Stderr)
		return 2
	default:
		err = bench(ctx)
	}
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "interrupted; nothing is left running")
		return 130
	default:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
}

// bench runs the selected benchmarks, prints the table and writes bin/bench.json.
func bench(ctx context.Context) error {
	set, err := readSettings(os.Getenv)
	if err != nil {
		printUsage(os.Stderr)
		return err
	}
	return inSession(ctx, set, func(s *session) error {
		report := newReport(set, s.version(ctx))
		for _, b := range benchmarks() {
			if !set.wanted[b.id] {
				continue
			}
			s.logf("%s: %s", b.id, b.title)
			if err := b.run(ctx, s, report, b.id); err != nil {
				return fmt.Errorf("%s: %w", b.id, err)
			}
		}
		report.print(os.Stdout)
		return report.write(filepath.Join(s.root, "bin", "bench.json"))
	})
}

// inSession starts all processes, runs work, and stops them.
func inSession(ctx context.Context, set settings, work func(*session) error) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	dir := set.logs
	if dir == "" {
		if dir, err = os.MkdirTemp("", "herald-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	s := &session{settings: set, root: root, out: os.Stdout}
	if err := s.open(ctx, dir); err != nil {
		return err
	}
	return errors.Join(work(s), s.stack.Stop())
}

// benchmark fills one or more rows of the table.
type benchmark struct {
	id, title string
	run       func(ctx context.Context, s *session, r *report, id string) error
}

func benchmarks() []benchmark {
	return []benchmark{
		{"B1", "create posts through the REST API until the manager accepts them", runB1},
		{"B2", "deliver posts to two accounts each, all due at the same time", runB2},
		{"B2M", "deliver posts with an image to two accounts each, all due at the same time", runB2},
		{"B3", "deliver posts when they are due", runB3},
		{"B3M", "deliver posts with an image when they are due", runB3},
		{"B4", "list posts", runB4},
		{"B7", "deliver crowds of posts that are due at the same time, to platforms that respond after half a second", runB7},
		{"B8", "list archived posts", runB8},
		{"B-MCP", "list posts as an agent", runMCP},
		{"B5", "use memory: without posts, and while videos are uploaded", runB5},
		{"B6", "start the manager with many finished posts, and posts that are due or have an unknown outcome", runB6},
		{hostileID, "deliver posts next to a hostile team", runHostile},
		{"B9", "reject bodies that are expensive to parse", runB9},
		{"B10", "deliver posts when they are due, with notification receivers that hang, fail and redirect", runB10},
		{"B11", "upload videos due at the same time with one, two and four managers that share uploads", runB11},
		{"B12", "grow from a thousand waiting posts of one team to 100,000 of a thousand teams", runB12},
		{"B13", "replace managers that share posts by shards, or one that delivers all of them", runB13},
	}
}

func benchmarkIDs() []string {
	var ids []string
	for _, b := range benchmarks() {
		ids = append(ids, b.id)
	}
	return ids
}
