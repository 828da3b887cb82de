// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cost adds up what one request makes this process and the Kubernetes API do, beyond
// what every request does, so that it can be charged for that. Its unit is the request: a page
// of posts costs one.
package cost

import (
	"context"
	"sync/atomic"
)

// What costs as much as another request.
const (
	// bytesEach are bytes of a body: what decoding and judging them takes.
	bytesEach = 64 << 10
	// partsEach are targets of a post, and resources that are read to judge it. Reads go
	// side by side and write nothing.
	partsEach = 10
)

// Meter adds up. It is safe for concurrent use, and a nil one adds up nothing.
type Meter struct{ bytes, parts, whole atomic.Int64 }

// OfBytes is how many requests so many bytes of a body are worth, rounded down.
func OfBytes(n int) int { return n / bytesEach }

// Bytes adds the body of a request.
func (m *Meter) Bytes(n int) {
	if m != nil {
		m.bytes.Add(int64(n))
	}
}

// Parts adds targets of a post, or resources that are read to judge it.
func (m *Meter) Parts(n int) {
	if m != nil {
		m.parts.Add(int64(n))
	}
}

// Whole adds what costs as much as a request by itself: a file that is examined in the store.
func (m *Meter) Whole(n int) {
	if m != nil {
		m.whole.Add(int64(n))
	}
}

// Requests is how many requests the sum is worth, rounded down: zero for all that is usual.
func (m *Meter) Requests() int {
	if m == nil {
		return 0
	}
	return int(m.bytes.Load()/bytesEach + m.parts.Load()/partsEach + m.whole.Load())
}

type meterKey struct{}

// With returns a context in which everything adds to one meter.
func With(ctx context.Context) (context.Context, *Meter) {
	m := &Meter{}
	return context.WithValue(ctx, meterKey{}, m), m
}

// From returns the meter of a context; nil if it has none.
func From(ctx context.Context) *Meter {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}
