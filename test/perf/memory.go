// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

const (
	// settled is for how long a process's memory must not have become less, and settleLimit how long that is waited for.
	settled, settleLimit = 5 * time.Second, time.Minute
	// heapEvery paces the question what the heaps hold.
	heapEvery = 500 * time.Millisecond
)

// resting is what a process takes of memory while nothing happens, in MiB.
type resting struct {
	Resident float64 `json:"resident_mib"`
	Heap     float64 `json:"heap_mib"`
}

func inMiB(bytes int64) float64 { return measure.Rounded(float64(bytes)/(1<<20), 1) }

// watchHeaps asks both processes again and again what their heaps hold, until it is stopped, and returns how much more
// than before that was at the most, in MiB.
func (s *session) watchHeaps(ctx context.Context, before map[string]resting) map[string]float64 {
	more := map[string]float64{}
	for waitUntil(ctx, time.Now().Add(heapEvery)) == nil {
		for name := range before {
			// The last question is cut off in its middle.
			if heap, err := s.heapNow(ctx, name); err == nil {
				more[name] = max(more[name], measure.Rounded(inMiB(heap)-before[name].Heap, 1))
			}
		}
	}
	return more
}

// resting waits until manager and apiserver take no less memory any more, and returns how much that is. What they hold
// from their start would hide what an upload takes.
func (s *session) resting(ctx context.Context) (map[string]resting, error) {
	found := map[string]resting{}
	for _, p := range s.stack.Herald() {
		if err := s.collect(ctx, p.Name); err != nil {
			return nil, err
		}
		heap, err := s.heapNow(ctx, p.Name)
		if err != nil {
			return nil, err
		}
		least, err := s.least(ctx, p)
		if err != nil {
			return nil, err
		}
		found[p.Name] = resting{Resident: inMiB(least), Heap: inMiB(heap)}
		s.sayf("  %s at rest: %.1f MiB, of which the heap holds %.1f", p.Name, found[p.Name].Resident, found[p.Name].Heap)
	}
	return found, nil
}

// least waits until a process takes no less memory any more, and returns how much that is, in bytes.
func (s *session) least(ctx context.Context, p *stack.Process) (int64, error) {
	least, _ := p.Memory()
	begun := time.Now()
	for since := begun; time.Since(since) < settled && time.Since(begun) < settleLimit; {
		if err := waitUntil(ctx, time.Now().Add(pollEvery)); err != nil {
			return 0, err
		}
		if now, _ := p.Memory(); now < least {
			least, since = now, time.Now()
		}
	}
	return least, nil
}

// heapNow is what the heap of the manager or the apiserver holds now, garbage included, in bytes.
func (s *session) heapNow(ctx context.Context, process string) (int64, error) {
	address := map[string]string{stack.Manager: s.stack.ManagerMetricsURL(), stack.APIServer: s.stack.APIServerMetricsURL()}[process]
	const held = "go_memstats_heap_alloc_bytes"
	samples, err := scrape(ctx, http.DefaultClient, address, held)
	if err == nil && len(samples) != 1 {
		err = fmt.Errorf("the metrics of the %s have %d samples of %s", process, len(samples), held)
	}
	if err != nil {
		return 0, err
	}
	return int64(samples[0].Value), nil
}

// collect has the manager or the apiserver collect its garbage.
func (s *session) collect(ctx context.Context, process string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.stack.ProfileURLs()[process]+"/heap?gc=1", http.NoBody)
	if err != nil {
		return err
	}
	return answered(request, nil)
}
