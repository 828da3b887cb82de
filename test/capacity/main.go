// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command capacity simulates a year of a thousand teams' posts. It runs the production code that makes decisions, in
// simulated time. Writes, calls and uploads take as long as measured in docs/performance.md. The same load always gives
// the same result. `make capacity` prints the tables in docs/capacity.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// year returns the load in docs/capacity.md. It starts on a Monday. Posts stay in the cluster for two days, so there
// are fewer than the 150,000 objects of a kind that SIG Scalability tests. With the default of seven days, there would
// be more.
func year() Load {
	return Load{Teams: 1000, PostsPerMonth: 1000 * thousand, InCluster: 2 * day, Start: time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC), Days: 360, Seed: 1}
}

// gcPercent trades memory for speed: the heap grows to a few gigabytes.
const gcPercent = 400

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	load := year()
	flag.IntVar(&load.Teams, "teams", load.Teams, "number of teams")
	flag.IntVar(&load.PostsPerMonth, "posts", load.PostsPerMonth, "posts of all teams in 30 days")
	flag.IntVar(&load.Days, "days", load.Days, "simulated days, at least 30")
	arms := flag.Bool("arm", false, "claim crowds ahead (delivery.armCrowds)")
	flag.Parse()
	// The simulation allocates mostly short-lived objects, so less frequent collections save time.
	debug.SetGCPercent(gcPercent)
	costs := measured()
	r, err := Simulate(load, costs, *arms, Broken{})
	if err != nil {
		return err
	}
	if r.Violations > 0 {
		return fmt.Errorf("%d guarantees were violated; the first: %s", r.Violations, r.Violation)
	}
	report(os.Stdout, r, &costs)
	return reportCells(os.Stdout, load)
}
