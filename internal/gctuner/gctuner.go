// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gctuner makes a server with a small heap collect garbage less often. Go
// collects when the heap has grown by as much as it held after the last collection:
// for a small heap, that is many times a second under load, and on one or two
// processors a request may wait several milliseconds for each. A fixed percentage
// (GOGC) would also multiply a large heap, and a memory limit (GOMEMLIMIT) bounds a
// heap from above only.
package gctuner

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// goDefault is Go's initial percentage, and the least that is set.
const goDefault = 100

// coarse is how many percent the percentage must be off to be set again, which stops
// the process for some microseconds.
const coarse = 10

// SetMinHeapGrowth lets the heap grow by at least so many bytes before garbage is collected,
// however little it holds, until the process ends. A process that allocates little
// does not grow: Go collects every two minutes in any case, and returns free memory.
func SetMinHeapGrowth(bytes uint64) {
	k := &tuner{
		bytes: bytes, percent: goDefault,
		samples: []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}},
	}
	k.adjust()
}

// tuner sets the percentage after each collection.
type tuner struct {
	bytes   uint64
	percent int
	samples []metrics.Sample
}

// sentinel is referenced by nothing, so that each collection finds it.
type sentinel struct{ _ *byte }

func (k *tuner) adjust() {
	metrics.Read(k.samples)
	var held uint64
	for _, sample := range k.samples {
		if sample.Value.Kind() == metrics.KindUint64 {
			held += sample.Value.Uint64()
		}
	}
	if want := percentage(k.bytes, held); want*100 < k.percent*(100-coarse) || want*100 > k.percent*(100+coarse) {
		debug.SetGCPercent(want)
		k.percent = want
	}
	runtime.AddCleanup(&sentinel{}, (*tuner).adjust, k)
}

// percentage returns the GOGC with which a heap that holds so much grows by bytes, or
// by as much as it holds, whichever is more.
func percentage(bytes, held uint64) int {
	// Go lets every heap grow to 4 MiB times the percentage.
	const least = 4 << 20
	return int(max(bytes/(max(held, least)/goDefault), goDefault)) //nolint:gosec // what a machine has, divided by 42 KB
}
