// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gctuner reduces the number of garbage collections of a server with a small heap. Go collects when the heap
// has doubled since the last collection: for a small heap, that is many times per second under load, and on one or two
// processors each may delay a request by several milliseconds. A fixed percentage (GOGC) would also multiply a large
// heap, and a memory limit (GOMEMLIMIT) is an upper limit only.
package gctuner

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// goDefault is Go's initial percentage, and the smallest that is set.
const goDefault = 100

// coarse is the smallest change of the percentage that is applied, in percent: setting it stops the process for some
// microseconds.
const coarse = 10

// SetMinHeapGrowth lets the heap grow by at least the given number of bytes before a collection, even if it is small,
// until the process ends. A process that allocates little does not grow: Go collects at least every two minutes, and
// returns free memory.
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

// sentinel is unreachable, so that each collection finalizes it.
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

// percentage returns the GOGC that lets a heap of held bytes grow by bytes, or double, whichever is more.
func percentage(bytes, held uint64) int {
	// Go lets every heap grow to 4 MiB times the percentage.
	const least = 4 << 20
	return int(max(bytes/(max(held, least)/goDefault), goDefault)) //nolint:gosec // the memory of a machine, divided by 42 KB
}
