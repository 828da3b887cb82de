// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"io"
	"time"

	"k8s.io/utils/clock"
)

const (
	// MinSpeed is the average number of bytes per second that a server must deliver.
	MinSpeed = 16 << 10
	// DefaultStallTimeout is how long a download may remain below MinSpeed.
	DefaultStallTimeout = 30 * time.Second
)

// errSlow aborts a download that sends a byte now and then, and would occupy its slot for as long as a 1 GB file.
var errSlow = transient(nil, "the server sends less than %d KiB per second", MinSpeed>>10)

// paced reads a body and aborts if the server is too slow. It has a time budget: waiting uses it up, and each byte
// restores some, so that an otherwise fast server may pause. The time that the reader takes between two reads does not
// count, since the store may be slow.
type paced struct {
	from  io.Reader
	clock clock.WithDelayedExecution
	// full is the initial budget, and left is what remains of it.
	full, left time.Duration
	// end aborts the download. A read that is waiting for the server does not return on its own.
	end context.CancelCauseFunc
}

func (p *paced) Read(b []byte) (int, error) {
	began := p.clock.Now()
	alarm := p.clock.AfterFunc(p.left, func() { p.end(errSlow) })
	n, err := p.from.Read(b)
	alarm.Stop()
	p.left -= p.clock.Since(began)
	if p.left <= 0 {
		p.end(errSlow)
		return n, errSlow
	}
	p.left = min(p.left+time.Duration(n)*time.Second/MinSpeed, p.full)
	return n, err //nolint:wrapcheck // exactly explains it
}
