// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestGCPercent(t *testing.T) {
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		reason      string
		bytes, held uint64
		want        int
	}{
		"little live memory":  {"the heap may grow by more than its size", 64 * mib, 16 * mib, 400},
		"as much live memory": {"Go's own percentage suffices", 64 * mib, 64 * mib, 100},
		"a large heap":        {"a large heap is collected as Go would", 64 * mib, 640 * mib, 100},
		"an empty heap":       {"Go lets a heap grow to 4 MiB times the percentage", 64 * mib, 0, 1600},
		"no limit":            {"less than Go's own is never set", 0, mib, 100},
		"overflow near":       {"the most that a machine has does not overflow", 1 << 62, 1 << 40, 1 << 22 * 100},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gcPercent(tc.bytes, tc.held); got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// TestSetMinHeapGrowth grows and shrinks the heap and checks Go's goal.
func TestSetMinHeapGrowth(t *testing.T) {
	before := debug.SetGCPercent(defaultGCPercent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	const headroom = 64 << 20
	SetMinHeapGrowth(headroom)
	goal := func() (percent, growth uint64) {
		samples := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/heap/goal:bytes"}, {Name: "/gc/heap/live:bytes"}}
		metrics.Read(samples)
		return samples[0].Value.Uint64(), samples[1].Value.Uint64() - samples[2].Value.Uint64()
	}
	eventually := func(what string, done func(percent, growth uint64) bool) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for {
			runtime.GC()
			percent, growth := goal()
			if done(percent, growth) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: GOGC is %d%%, a growth of %d bytes", what, percent, growth)
			}
		}
	}
	near := func(_, growth uint64) bool { return growth > headroom*8/10 && growth < headroom*12/10 }
	eventually("at first", near)
	ballast := make([]byte, 8<<20)
	eventually("with 8 MiB more", near)
	runtime.KeepAlive(ballast)
	large := make([]byte, 3*headroom)
	eventually("with more than the headroom", func(percent, _ uint64) bool { return percent == defaultGCPercent })
	runtime.KeepAlive(large)
	eventually("after that is gone", near)
}
