// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command perf measures Herald against its floor, the Kubernetes API itself, and prints one table; docs/performance.md
// says what is measured and how. It is run by `make bench`. It never fails for a figure: goals are met or missed.
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

	"github.com/herald-social/herald/hack/local/process"
	"github.com/herald-social/herald/hack/local/workspace"
	"github.com/herald-social/herald/test/perf/internal/bare"
)

const usage = `Usage: make bench, or bin/perf

Environment:
  BENCH                which benchmarks, such as B1,B3 (default: all)
  BENCH_SCALE          factor on the number of posts, and on the size of films, such as 0.1 for a quick look (1)
  BENCH_ROUNDS         rounds, each with the floor and Herald once (3)
  BENCH_IN_FLIGHT      B2: posts worked on at once, by the floor and by Herald (256)
  BENCH_B1_POSTS       B1: posts in a round (4000)
  BENCH_B2_POSTS       B2, B2M: posts in a round (5000)
  BENCH_B3_MINUTES     B3, B3M: how long, with 100 posts a minute (3)
  BENCH_B4_POSTS       B4: posts, of one team and then of 1,000 teams (100000)
  BENCH_B4_REQUESTS    B4: requests for each kind of page (20000)
  BENCH_B5_PLATFORM    B5: where the film goes: youtube, or x, which takes 512 MiB (youtube)
  BENCH_FAIR_POSTS     FAIR: posts of another team that are due at once (4000)
  BENCH_REST_REQUESTS  REST: requests in a round (40000)
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
	// What clients have to say beside their errors is of no use here.
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
	checkout, err := workspace.Find(".")
	if err != nil {
		return err
	}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = checkout.Path("bin")
	}
	dir := os.Getenv("BENCH_LOGS")
	if dir == "" {
		if dir, err = os.MkdirTemp("", "herald-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	s := &session{settings: set, root: checkout.Root, spawner: process.NewSpawner(), out: os.Stdout}
	if err := s.open(ctx, checkout, assets, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stack.Stop()) }()
	report := newReport(set, s.stack.Version(ctx))
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
	return report.write(filepath.Join(checkout.Root, "bin", "bench.json"))
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
		{"B5", "take memory: without posts, and while a film goes to a platform", runB5},
		{"FAIR", "deliver one post beside those of others", runFair},
		{"REST", "answer requests that no other process has a part in", runREST},
		{"UPLOAD", "upload films as large as they may be, and verify them", runUpload},
	}
}
