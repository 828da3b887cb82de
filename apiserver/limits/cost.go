// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"sync/atomic"
)

// Amounts of work that cost as much as one request.
const (
	// bytesEach is the number of body bytes to decode and validate.
	bytesEach = 64 << 10
	// partsEach is the number of a post's targets and of resources that are read to validate it. These reads run
	// concurrently and nothing is written.
	partsEach = 10
)

// Meter adds up the work that one request causes in this process and the Kubernetes API, beyond the usual work, so that
// it can be charged. Its unit is the request: a page of posts costs one. It is safe for concurrent use; a nil Meter
// does nothing.
type Meter struct{ bytes, parts, whole atomic.Int64 }

// CostOfBytes returns the cost of n bytes of a body in requests, rounded down.
func CostOfBytes(n int) int { return n / bytesEach }

// Bytes adds a request's body.
func (m *Meter) Bytes(n int) {
	if m != nil {
		m.bytes.Add(int64(n))
	}
}

// Parts adds a post's targets, or resources read to validate it.
func (m *Meter) Parts(n int) {
	if m != nil {
		m.parts.Add(int64(n))
	}
}

// Whole adds work that costs as much as a request, such as checking a file in the store.
func (m *Meter) Whole(n int) {
	if m != nil {
		m.whole.Add(int64(n))
	}
}

// Requests returns the sum in requests, rounded down: zero for usual requests.
func (m *Meter) Requests() int {
	if m == nil {
		return 0
	}
	return int(m.bytes.Load()/bytesEach + m.parts.Load()/partsEach + m.whole.Load())
}

type meterKey struct{}

// WithMeter returns a context with a new meter.
func WithMeter(ctx context.Context) (context.Context, *Meter) {
	m := &Meter{}
	return context.WithValue(ctx, meterKey{}, m), m
}

// MeterFrom returns a context's meter, or nil.
func MeterFrom(ctx context.Context) *Meter {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}
