// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// quantity is a resource that a process must not accumulate over time.
type quantity struct {
	name string
	// ratio and more set the bound for the last fifth of a soak: the median in the second fifth times ratio, plus more.
	// They allow for variations between readings.
	ratio, more float64
}

const (
	mib = 1 << 20
	// heapGrowth is the amount by which the heap may grow before a collection: docs/performance.md.
	heapGrowth = 96 * mib
)

var (
	// liveHeap is read after a collection. Posts stay in the cluster for a week, and the manager and the apiserver keep
	// up to 4.5 KB for each. 8 MiB is enough for an hour's posts.
	liveHeap = quantity{"live heap", 1.25, 8 * mib}
	// resident memory depends on the time of the last collection.
	resident = quantity{"resident memory", 1.25, heapGrowth}
	// goroutines and openFiles depend on the requests in flight: four from each of the hostile team's eleven attacks, with
	// a connection and two goroutines each.
	goroutines = quantity{"goroutines", 1.25, 100}
	openFiles  = quantity{"open files", 1.25, 50}
)

// series contains the values of one process's quantity, with the time since the start of the soak.
type series struct {
	process string
	quantity
	at     []time.Duration
	values []float64
}

// medians returns the medians of the second and the last fifth, and reports whether the last one is within the bound.
// flat is false if either fifth has no values.
func (s *series) medians(length time.Duration) (second, last float64, flat bool) {
	within := func(fifth int) (values []float64) {
		from := length * time.Duration(fifth) / soakFifths
		for i, at := range s.at {
			if at >= from && at < from+length/soakFifths {
				values = append(values, s.values[i])
			}
		}
		return values
	}
	before, after := within(1), within(soakFifths-1)
	second, last = measure.Median(before), measure.Median(after)
	return second, last, len(before) > 0 && len(after) > 0 && last <= second*s.ratio+s.more
}

// readings contains the values that were read during a soak.
type readings struct {
	stack  *stack.Stack
	begin  time.Time
	length time.Duration
	all    map[string]*series
}

// readingsPerSoak is the number of readings: twelve in each fifth.
const readingsPerSoak = 60

// sample reads all processes until ctx is done.
func (r *readings) sample(ctx context.Context) {
	r.all = map[string]*series{}
	repeat(ctx, r.length/readingsPerSoak, func(int) {
		for _, p := range r.stack.Processes() {
			r.add(p.Name, openFiles, float64(stack.OpenFiles(p.PID())))
		}
		for _, p := range r.stack.Herald() {
			now, _ := stack.Memory(p.PID())
			r.add(p.Name, resident, float64(now))
			// A process that is being restarted does not answer.
			if heap, err := number(ctx, r.stack.ProfileURL(p.Name)+"/heap?gc=1&debug=1", `# HeapAlloc = (\d+)`); err == nil {
				r.add(p.Name, liveHeap, heap)
			}
			if count, err := number(ctx, r.stack.ProfileURL(p.Name)+"/goroutine?debug=1", `goroutine profile: total (\d+)`); err == nil {
				r.add(p.Name, goroutines, count)
			}
		}
	})
}

func (r *readings) add(process string, q quantity, value float64) {
	key := process + " " + q.name
	if r.all[key] == nil {
		r.all[key] = &series{process: process, quantity: q}
	}
	r.all[key].at = append(r.all[key].at, time.Since(r.begin))
	r.all[key].values = append(r.all[key].values, value)
}

// number returns the number that a profile contains.
func number(ctx context.Context, url, pattern string) (float64, error) {
	page, err := get(ctx, http.DefaultClient, url)
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(pattern).FindSubmatch(page)
	if found == nil {
		return 0, fmt.Errorf("%s does not contain %s", url, pattern)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// flat returns an error if a process has grown.
func (r *readings) flat(logf func(format string, args ...any)) (err error) {
	for _, key := range slices.Sorted(maps.Keys(r.all)) {
		s := r.all[key]
		second, last, ok := s.medians(r.length)
		logf("  %-40s second fifth %s, last fifth %s, ratio %.2f", key, s.format(second), s.format(last), last/max(second, 1))
		if !ok {
			err = errors.Join(err, fmt.Errorf("%s grew from %s to %s, by more than %.2f times and %s", key, s.format(second), s.format(last), s.ratio, s.format(s.more)))
		}
	}
	return err
}

func (q *quantity) format(value float64) string {
	if q.more >= mib {
		return fmt.Sprintf("%.1f MiB", value/mib)
	}
	return fmt.Sprintf("%.0f", value)
}
