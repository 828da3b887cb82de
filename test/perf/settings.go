// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
)

// settings are the sizes of a run. The goals are stated for the defaults.
type settings struct {
	wanted      map[string]bool
	scale       float64
	rounds      int
	inFlight    int
	b1Posts     int
	b2Posts     int
	b3Minutes   float64
	b4Posts     int
	b4Asks      int
	filmBytes   int64
	teams       int
	connections int
	pprof       string
}

// restInFlight is how many requests are in flight in B1 and B4.
const restInFlight = 32

func readSettings(getenv func(string) string) (settings, error) {
	s := settings{wanted: map[string]bool{}, pprof: getenv("BENCH_PPROF")}
	var known []string
	for _, b := range benchmarks() {
		known = append(known, b.id)
		s.wanted[b.id] = getenv("BENCH") == ""
	}
	for id := range strings.SplitSeq(getenv("BENCH"), ",") {
		if id = strings.ToUpper(strings.TrimSpace(id)); id == "" {
			continue
		}
		if _, ok := s.wanted[id]; !ok {
			return s, fmt.Errorf("BENCH names %q; there are %s", id, strings.Join(known, ", "))
		}
		s.wanted[id] = true
	}
	r := reader{getenv: getenv}
	s.scale = r.number("BENCH_SCALE", 1)
	s.rounds = r.whole("BENCH_ROUNDS", 3)
	s.inFlight = r.whole("BENCH_IN_FLIGHT", 256)
	s.teams = r.whole("BENCH_TEAMS", 4)
	s.connections = r.whole("BENCH_CONNECTIONS", 200)
	s.b1Posts = s.scaled(r.whole("BENCH_B1_POSTS", 4000))
	s.b2Posts = s.scaled(r.whole("BENCH_B2_POSTS", 5000))
	s.b4Posts = s.scaled(r.whole("BENCH_B4_POSTS", 100_000))
	s.b4Asks = s.scaled(r.whole("BENCH_B4_REQUESTS", 20_000))
	s.filmBytes = min(max(int64(float64(v1alpha1.MaxVideoBytes)*s.scale), leastFilm), v1alpha1.MaxVideoBytes)
	s.b3Minutes = s.scale * r.number("BENCH_B3_MINUTES", 3)
	if r.err == nil && s.connections/s.teams < 2 {
		r.err = fmt.Errorf("%d connections for %d teams: each team needs two", s.connections, s.teams)
	}
	return s, r.err
}

func (s *settings) scaled(n int) int { return max(int(float64(n)*s.scale), 1) }

// reader reads numbers and keeps the first error.
type reader struct {
	getenv func(string) string
	err    error
}

func (r *reader) number(name string, otherwise float64) float64 {
	text := r.getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseFloat(text, 64)
	if (err != nil || n <= 0) && r.err == nil {
		r.err = fmt.Errorf("%s=%s: want a number above zero", name, text)
	}
	return n
}

func (r *reader) whole(name string, otherwise int) int {
	n := r.number(name, float64(otherwise))
	if n != float64(int(n)) && r.err == nil {
		r.err = fmt.Errorf("%s=%s: want a whole number", name, r.getenv(name))
	}
	return int(n)
}
