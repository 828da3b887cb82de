// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"bytes"
	"sync/atomic"
)

// Output keeps what a process writes, up to a number of bytes, drops the rest, and says when
// there is one. It does not embed the buffer, whose ReadFrom would take what Write refuses.
type Output struct {
	buffer    bytes.Buffer
	most      int
	full      func()
	truncated atomic.Bool
}

// NewOutput returns an Output that keeps at most so many bytes, and calls full, which may be
// nil, once there are more.
func NewOutput(most int, full func()) *Output {
	return &Output{most: most, full: full}
}

// Write implements io.Writer, and takes everything.
func (o *Output) Write(p []byte) (int, error) {
	take := min(len(p), o.most-o.buffer.Len())
	o.buffer.Write(p[:take])
	if take < len(p) && !o.truncated.Swap(true) && o.full != nil {
		o.full()
	}
	return len(p), nil
}

// Truncated reports whether there was more than is kept.
func (o *Output) Truncated() bool { return o.truncated.Load() }

// Bytes is what was kept. It is read when the process has ended.
func (o *Output) Bytes() []byte { return o.buffer.Bytes() }

// String is Bytes as a text.
func (o *Output) String() string { return o.buffer.String() }
