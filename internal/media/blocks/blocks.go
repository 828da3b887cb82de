// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package blocks reads a file for those who need a few parts of it: in blocks, of which it
// keeps the last ones, and no more of the file than it was allowed to.
package blocks

import (
	"errors"
	"fmt"
	"io"
)

const (
	// firstRead is how much is read where nothing was read before. A film in
	// fragments is visited at each of them, and one such read mostly holds all
	// that a fragment says of itself.
	firstRead = 8 << 10
	// mostRead bounds one read. A read that follows another one directly is twice
	// as long as that, up to this.
	mostRead = 128 << 10
	// cachedBlocks is how many of the last reads are held: readers go back and
	// forth between the beginning, the end and where they are. With mostRead it
	// bounds the memory that a file takes, to 1 MiB.
	cachedBlocks = 8
)

// ErrTooMuch ends the reading of a file whose structure never ends.
var ErrTooMuch = errors.New("too much of the file would have to be read")

// Reader reads a file in blocks and keeps the last few. One goroutine may use it.
type Reader struct {
	from io.ReaderAt
	size int64
	// budget is how many bytes may be read in all, and read how many were.
	budget, read int64
	cached       []block
	err          error
}

type block struct {
	at   int64
	data []byte
}

func (b block) end() int64 { return b.at + int64(len(b.data)) }

// New returns a Reader of a file of this size that reads no more than budget bytes of it.
func New(from io.ReaderAt, size, budget int64) *Reader {
	return &Reader{from: from, size: size, budget: budget}
}

// Size is how long the file is.
func (b *Reader) Size() int64 { return b.size }

// Failure returns the first error of the reader itself, which callers hide in
// errors of their own: ErrTooMuch, or one of reading the file.
func (b *Reader) Failure() error { return b.err }

// ReadAt implements io.ReaderAt.
func (b *Reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("cannot read before the start of a file, at %d", off)
	}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at >= b.size {
			return n, io.EOF
		}
		data, err := b.block(at, len(p)-n)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], data)
	}
	return n, nil
}

// block returns at least one byte of the file from an offset on. If none is held,
// it reads; wanted is how many bytes the caller needs.
func (b *Reader) block(at int64, wanted int) ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	length := int64(max(firstRead, min(wanted, mostRead)))
	for i, kept := range b.cached {
		if kept.at <= at && at < kept.end() {
			copy(b.cached[1:i+1], b.cached[:i])
			b.cached[0] = kept
			return kept.data[at-kept.at:], nil
		}
		if kept.end() == at {
			length = max(length, min(2*int64(len(kept.data)), mostRead))
		}
	}
	length = min(length, b.size-at)
	if b.read += length; b.read > b.budget {
		b.err = ErrTooMuch
		return nil, b.err
	}
	data := b.room(length)
	if n, err := b.from.ReadAt(data, at); int64(n) < length {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		b.err = fmt.Errorf("cannot read %d bytes at %d: %w", length, at, err)
		return nil, b.err
	}
	b.cached = append(b.cached, block{})
	copy(b.cached[1:], b.cached)
	b.cached[0] = block{at: at, data: data}
	return data, nil
}

// room returns memory for another block. If as many are held as allowed, it drops
// the least recently used one.
func (b *Reader) room(length int64) []byte {
	if len(b.cached) == cachedBlocks {
		last := b.cached[cachedBlocks-1].data
		b.cached = b.cached[:cachedBlocks-1]
		if int64(cap(last)) >= length {
			return last[:length]
		}
	}
	return make([]byte, length)
}
