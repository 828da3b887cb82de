// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// defaultGCPercent is Go's default percentage, and the smallest one that is set.
const defaultGCPercent = 100

// minGCChange is the smallest change to the percentage that is applied, in percent: setting it stops the process for a
// few microseconds.
const minGCChange = 10

// SetMinHeapGrowth reduces the number of garbage collections in a server with a small heap. Go collects when the heap
// has doubled since the last collection: for a small heap, that is many times per second under load, and on one or two
// CPUs each may delay a request by several milliseconds. A fixed percentage (GOGC) would also multiply a large heap,
// and a memory limit (GOMEMLIMIT) is only an upper limit.
//
// From now on, a heap of any size grows by at least the given number of bytes before a collection. A process that
// allocates little does not grow: Go collects at least every two minutes, and returns free memory.
func SetMinHeapGrowth(bytes uint64) {
	k := &gcTuner{
		bytes: bytes, percent: defaultGCPercent,
		samples: []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}},
	}
	k.adjust()
}

// gcTuner sets the percentage after each collection.
type gcTuner struct {
	bytes   uint64
	percent int
	samples []metrics.Sample
}

// gcSentinel is unreachable, so that each collection finalizes it.
type gcSentinel struct{ _ *byte }

func (k *gcTuner) adjust() {
	metrics.Read(k.samples)
	var held uint64
	for _, sample := range k.samples {
		if sample.Value.Kind() == metrics.KindUint64 {
			held += sample.Value.Uint64()
		}
	}
	if want := gcPercent(k.bytes, held); want*100 < k.percent*(100-minGCChange) || want*100 > k.percent*(100+minGCChange) {
		debug.SetGCPercent(want)
		k.percent = want
	}
	runtime.AddCleanup(&gcSentinel{}, (*gcTuner).adjust, k)
}

// gcPercent returns the GOGC that lets a heap of held bytes grow by bytes, or double, whichever is more.
func gcPercent(bytes, held uint64) int {
	// Go lets every heap grow to 4 MiB times the percentage.
	const least = 4 << 20
	return int(max(bytes/(max(held, least)/defaultGCPercent), defaultGCPercent)) //nolint:gosec // the memory of a machine, divided by 42 KB
}
