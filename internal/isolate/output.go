// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"bytes"
	"sync/atomic"
)

// Output stores a process's output up to a limit, drops the rest, and reports when the limit is exceeded. It does not
// embed the buffer, whose ReadFrom would bypass the limit in Write.
type Output struct {
	buffer    bytes.Buffer
	most      int
	full      func()
	truncated atomic.Bool
}

// NewOutput returns an Output that stores up to most bytes. It calls full, which may be nil, once there are more.
func NewOutput(most int, full func()) *Output {
	return &Output{most: most, full: full}
}

// Write implements io.Writer. It accepts all input.
func (o *Output) Write(p []byte) (int, error) {
	take := min(len(p), o.most-o.buffer.Len())
	o.buffer.Write(p[:take])
	if take < len(p) && !o.truncated.Swap(true) && o.full != nil {
		o.full()
	}
	return len(p), nil
}

// Truncated reports whether output was dropped.
func (o *Output) Truncated() bool { return o.truncated.Load() }

// Bytes returns the stored output. Call it after the process has exited.
func (o *Output) Bytes() []byte { return o.buffer.Bytes() }

// String returns Bytes as a string.
func (o *Output) String() string { return o.buffer.String() }
