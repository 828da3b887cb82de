// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
)

// settings are the sizes of a run, and its input and output files. The goals apply to the default sizes.
type settings struct {
	wanted      map[string]bool
	scale       float64
	rounds      int
	inFlight    int
	b1Posts     int
	b2Posts     int
	neighbour   int
	b3Minutes   float64
	b4Posts     int
	b4Asks      int
	b6Posts     int
	b7Posts     int
	b8Posts     int
	b10Minutes  float64
	b11Videos   int
	filmBytes   int64
	teams       int
	connections int
	pprof, logs string
	assets      string
}

// restInFlight is the number of concurrent requests in B1 and B4.
const restInFlight = 32

// variables returns the settings by environment variable.
func (s *settings) variables(ids *string) *flag.FlagSet {
	v := flag.NewFlagSet("", flag.ContinueOnError)
	common := slices.DeleteFunc(benchmarkIDs(), func(id string) bool { return id == hostileID })
	v.StringVar(ids, "BENCH", strings.Join(common, ","), "benchmarks to run; "+hostileID+" runs alone")
	v.Float64Var(&s.scale, "BENCH_SCALE", 1, "factor for the number of posts and the size of videos, such as 0.1 for a quick estimate")
	v.IntVar(&s.rounds, "BENCH_ROUNDS", 3, "rounds, each with the floor and Herald once")
	v.IntVar(&s.inFlight, "BENCH_IN_FLIGHT", 256, "B2: posts processed at once, by the floor and by Herald")
	v.IntVar(&s.b1Posts, "BENCH_B1_POSTS", 4000, "B1: posts in a round")
	v.IntVar(&s.b2Posts, "BENCH_B2_POSTS", 5000, "B2, B2M: posts in a round")
	v.IntVar(&s.neighbour, "BENCH_NEIGHBOUR", 0, "B2, B2M: requests that another operator keeps in flight, at the API server's priority level workload-low")
	v.Float64Var(&s.b3Minutes, "BENCH_B3_MINUTES", 3, "B3, B3M: duration in minutes, with 100 posts per minute")
	v.IntVar(&s.b4Posts, "BENCH_B4_POSTS", 100_000, "B4: posts, in one team and then in 1,000 teams")
	v.IntVar(&s.b4Asks, "BENCH_B4_REQUESTS", 20_000, "B4: requests for each kind of page")
	v.IntVar(&s.b6Posts, "BENCH_B6_POSTS", 100_000, "B6: posts in the team, one in 200 of them due")
	v.IntVar(&s.b7Posts, "BENCH_B7_POSTS", 5000, "B7: posts in the largest crowd")
	v.IntVar(&s.b8Posts, "BENCH_B8_POSTS", 1_000_000, "B8: archived posts, in one team and then in 1,000 teams")
	v.Float64Var(&s.b10Minutes, "BENCH_B10_MINUTES", 1, "B10: minutes per kind of receiver in a round, with 100 posts per minute")
	v.IntVar(&s.b11Videos, "BENCH_B11_VIDEOS", 1000, "B11: videos in a round")
	v.IntVar(&s.teams, "BENCH_TEAMS", 4, "teams that the accounts belong to")
	v.IntVar(&s.connections, "BENCH_CONNECTIONS", 200, "connected accounts")
	v.StringVar(&s.pprof, "BENCH_PPROF", "", "folder for CPU profiles of manager, apiserver and kube-apiserver; none if not set")
	v.StringVar(&s.logs, "BENCH_LOGS", "", "folder for the logs of all processes; none if not set")
	v.StringVar(&s.assets, "KUBEBUILDER_ASSETS", "bin", "folder with etcd and kube-apiserver")
	return v
}

// printUsage prints the settings and their defaults.
func printUsage(out io.Writer) {
	fmt.Fprint(out, "Usage: make bench, or bin/perf\n\nEnvironment:\n")
	new(settings).variables(new(string)).VisitAll(func(f *flag.Flag) {
		fmt.Fprintf(out, "  %-20s %s", f.Name, f.Usage)
		if f.DefValue != "" {
			fmt.Fprintf(out, " (%s)", f.DefValue)
		}
		fmt.Fprintln(out)
	})
}

func readSettings(getenv func(string) string) (s settings, err error) {
	var ids string
	s.variables(&ids).VisitAll(func(f *flag.Flag) {
		if text := getenv(f.Name); text != "" && err == nil {
			err = set(f, text)
		}
	})
	if err == nil && s.connections/s.teams < 2 {
		err = fmt.Errorf("%d connections for %d teams: each team needs two", s.connections, s.teams)
	}
	if err != nil {
		return s, err
	}
	s.wanted = map[string]bool{}
	for _, id := range benchmarkIDs() {
		s.wanted[id] = false
	}
	for id := range strings.SplitSeq(strings.ToUpper(ids), ",") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		if _, ok := s.wanted[id]; !ok {
			return s, fmt.Errorf("BENCH names %q; there are %s", id, strings.Join(benchmarkIDs(), ", "))
		}
		s.wanted[id] = true
	}
	if s.wanted[hostileID] && strings.Contains(ids, ",") {
		return s, fmt.Errorf("%s limits requests and the other benchmarks do not: run it alone", hostileID)
	}
	for _, size := range []*int{&s.b1Posts, &s.b2Posts, &s.b4Posts, &s.b4Asks, &s.b6Posts, &s.b7Posts, &s.b8Posts, &s.b11Videos} {
		*size = s.scaled(*size)
	}
	s.b3Minutes, s.b10Minutes = s.b3Minutes*s.scale, s.b10Minutes*s.scale
	s.filmBytes = min(max(int64(float64(v1alpha1.MaxVideoBytes)*s.scale), leastFilm), v1alpha1.MaxVideoBytes)
	return s, nil
}

func (s *settings) scaled(n int) int { return max(int(float64(n)*s.scale), 1) }

// set parses a setting. Numbers must be positive.
func set(f *flag.Flag, text string) error {
	if err := f.Value.Set(text); err != nil {
		return fmt.Errorf("%s=%s: %w", f.Name, text, err)
	}
	zero := false
	switch n := f.Value.(flag.Getter).Get().(type) {
	case int:
		zero = n <= 0
	case float64:
		zero = n <= 0
	}
	if zero {
		return fmt.Errorf("%s=%s: want a number greater than zero", f.Name, text)
	}
	return nil
}
