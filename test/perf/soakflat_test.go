// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestMedians(t *testing.T) {
	t.Parallel()
	const length = 100 * time.Second
	for name, tc := range map[string]struct {
		reason string
		value  func(second int) float64
		flat   bool
	}{
		"Flat":    {"constant memory", func(int) float64 { return 300 }, true},
		"Noise":   {"values vary with the requests in flight", func(second int) float64 { return 300 + float64(second%7) }, true},
		"Within":  {"a quarter and a hundred more are allowed", func(second int) float64 { return 300 + float64(second/80)*174 }, true},
		"Grown":   {"one for each request is a leak", func(second int) float64 { return 300 + float64(second)*5 }, false},
		"OnePeak": {"a single value does not move a median", func(second int) float64 { return 300 + float64(second/99)*5000 }, true},
		"Restarts": {"the first and the third fifth are not compared", func(second int) float64 {
			if second < 20 || second/20 == 2 {
				return 9000
			}
			return 300
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &series{quantity: goroutines}
			for second := range 100 {
				s.at, s.values = append(s.at, time.Duration(second)*time.Second), append(s.values, tc.value(second))
			}
			if second, last, flat := s.medians(length); flat != tc.flat {
				t.Errorf("%s: flat is %t, with %.0f and %.0f", tc.reason, flat, second, last)
			}
		})
	}
	if _, _, flat := (&series{quantity: goroutines}).medians(length); flat {
		t.Error("a process without measurements counts as flat")
	}
}
