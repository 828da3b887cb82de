// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command perf measures Herald against its floor, the Kubernetes API itself, and prints one table; docs/performance.md
// says what is measured and how. `make bench` runs it. A missed goal is no failure.
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

const usage = `Usage: make bench, or bin/perf

Environment:
  BENCH                which benchmarks, such as B1,B3 (default: all)
  BENCH_SCALE          factor on the number of posts and the size of films, such as 0.1 for a quick look (1)
  BENCH_ROUNDS         rounds, each with the floor and Herald once (3)
  BENCH_IN_FLIGHT      B2: posts worked on at once, by the floor and by Herald (256)
  BENCH_B1_POSTS       B1: posts in a round (4000)
  BENCH_B2_POSTS       B2, B2M: posts in a round (5000)
  BENCH_B3_MINUTES     B3, B3M: how long, with 100 posts a minute (3)
  BENCH_B4_POSTS       B4: posts, of one team and then of 1,000 teams (100000)
  BENCH_B4_REQUESTS    B4: requests for each kind of page (20000)
  BENCH_TEAMS          teams that the accounts belong to (4)
  BENCH_CONNECTIONS    connected accounts (200)
  BENCH_PPROF          folder for CPU profiles of manager and apiserver; none if not set
  BENCH_LOGS           folder for the logs of all processes; none if not set
  KUBEBUILDER_ASSETS   folder with etcd and kube-apiserver (bin)
`

func main() {
	os.Exit(start())
}

func start() int {
	// The libraries log retries. An error that lasts comes back as an error.
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "bare":
		err = bare.Main(ctx, os.Args[2], os.Stdin, os.Stdout)
	case len(os.Args) > 1:
		fmt.Fprint(os.Stderr, usage)
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

// bench runs the benchmarks that are wanted, prints the table and writes bin/bench.json.
func bench(ctx context.Context) (err error) {
	set, err := readSettings(os.Getenv)
	if err != nil {
		return fmt.Errorf("%w\n\n%s", err, usage)
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	dir := os.Getenv("BENCH_LOGS")
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
	defer func() { err = errors.Join(err, s.stack.Stop()) }()
	report := newReport(set, s.version(ctx))
	for _, b := range benchmarks() {
		if !set.wanted[b.id] {
			continue
		}
		s.sayf("%s: %s", b.id, b.title)
		if err := b.run(ctx, s, report); err != nil {
			return fmt.Errorf("%s: %w", b.id, err)
		}
	}
	report.print(os.Stdout)
	return report.write(filepath.Join(root, "bin", "bench.json"))
}

// benchmark is one line of the table, or some.
type benchmark struct {
	id, title string
	run       func(context.Context, *session, *report) error
}

func benchmarks() []benchmark {
	return []benchmark{
		{"B1", "create posts through the REST API until the manager has accepted them", runB1},
		{"B2", "deliver posts to two accounts each, all due at one instant", runB2},
		{"B2M", "deliver posts of a picture to two accounts each, all due at one instant", runB2M},
		{"B3", "deliver posts at their time", runB3},
		{"B3M", "deliver posts of a picture at their time", runB3M},
		{"B4", "list posts", runB4},
		{"B5", "take memory: without posts, and while films are uploaded", runB5},
	}
}
