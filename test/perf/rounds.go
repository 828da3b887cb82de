// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/herald-social/herald/test/perf/internal/measure"
)

// side is one half of a round: the floor or Herald. It returns the posts per second, and the CPU time of each process
// per post, in milliseconds.
type side func(ctx context.Context, round int) (rate float64, cpu map[string]float64, err error)

// comparison is the result of alternating rounds. Rates are in posts per second.
type comparison struct {
	Ratio       float64            `json:"ratio"`
	Goal        float64            `json:"goal"`
	Met         bool               `json:"met"`
	FloorPerS   float64            `json:"floor_per_s"`
	HeraldPerS  float64            `json:"herald_per_s"`
	Posts       int                `json:"posts"`
	InFlight    int                `json:"in_flight"`
	Ratios      []float64          `json:"ratios"`
	FloorRates  []float64          `json:"floor_rates"`
	HeraldRates []float64          `json:"herald_rates"`
	FloorCPU    map[string]float64 `json:"floor_cpu_ms_per_post"`
	HeraldCPU   map[string]float64 `json:"herald_cpu_ms_per_post"`
}

// compare alternates between the floor and Herald and reverses their order in each round, which cancels out changes in
// the machine's performance. The ratio is the median of the ratios per round: conditions are similar for both halves of
// a round.
func (s *session) compare(ctx context.Context, id string, floor, herald side) (comparison, error) {
	var c comparison
	for round := range s.rounds {
		var rates [2]float64
		for i := range rates {
			which := (i + round) % 2
			rate, cpu, err := []side{floor, herald}[which](ctx, round)
			if err := errors.Join(err, s.stack.StopHerald()); err != nil {
				return c, err
			}
			if err := s.clear(ctx); err != nil {
				return c, err
			}
			rates[which] = rate
			s.logf("  %s round %d: %s %.1f/s", id, round+1, []string{"floor", "Herald"}[which], rate)
			if which == 0 {
				c.FloorCPU = cpu
			} else {
				c.HeraldCPU = cpu
			}
		}
		s.logf("  %s round %d: ratio %.2f", id, round+1, rates[1]/rates[0])
		c.FloorRates = append(c.FloorRates, measure.Rounded(rates[0], 1))
		c.HeraldRates = append(c.HeraldRates, measure.Rounded(rates[1], 1))
		c.Ratios = append(c.Ratios, measure.Rounded(rates[1]/rates[0], 3))
	}
	c.Ratio = measure.Rounded(measure.Median(c.Ratios), 3)
	c.FloorPerS, c.HeraldPerS = measure.Median(c.FloorRates), measure.Median(c.HeraldRates)
	return c, nil
}
