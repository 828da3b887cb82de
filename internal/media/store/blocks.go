// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io"
)

const (
	// firstRead is the size of a read at a new position. In a fragmented video, every fragment is visited, and one such
	// read usually covers all of a fragment's metadata.
	firstRead = 8 << 10
	// maxRead limits the size of one read. A read that directly follows another is twice as long, up to this.
	maxRead = 128 << 10
	// cachedBlocks is the number of recent reads that are cached: readers alternate between the start, the end and the
	// current position. Together with maxRead, it limits the memory per file to 1 MiB.
	cachedBlocks = 8
)

// ErrReadBudget aborts reading a file whose structure never ends.
var ErrReadBudget = errors.New("too much of the file would have to be read")

// BlockReader reads a file for callers that need a few parts of it: in blocks, with a cache of the last ones and a
// limit on the total. It is not safe for concurrent use.
type BlockReader struct {
	from io.ReaderAt
	size int64
	// budget is the total number of bytes that may be read, and read is the number of bytes read so far.
	budget, read int64
	cached       []fileBlock
	err          error
}

type fileBlock struct {
	at   int64
	data []byte
}

func (b fileBlock) end() int64 { return b.at + int64(len(b.data)) }

// NewBlockReader returns a BlockReader for a file of the given size; it reads at most budget bytes of the file.
func NewBlockReader(from io.ReaderAt, size, budget int64) *BlockReader {
	return &BlockReader{from: from, size: size, budget: budget}
}

// Size returns the length of the file.
func (b *BlockReader) Size() int64 { return b.size }

// Failure returns the reader's first error, which parsers may hide in another error: ErrReadBudget, or an error from
// reading.
func (b *BlockReader) Failure() error { return b.err }

// ReadAt implements io.ReaderAt.
func (b *BlockReader) ReadAt(p []byte, off int64) (int, error) {
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

// block returns at least one byte of the file, starting at the given offset. If that is not cached, it reads; wanted is
// the number of bytes that the caller needs.
func (b *BlockReader) block(at int64, wanted int) ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	length := int64(max(firstRead, min(wanted, maxRead)))
	for i, kept := range b.cached {
		if kept.at <= at && at < kept.end() {
			copy(b.cached[1:i+1], b.cached[:i])
			b.cached[0] = kept
			return kept.data[at-kept.at:], nil
		}
		if kept.end() == at {
			length = max(length, min(2*int64(len(kept.data)), maxRead))
		}
	}
	length = min(length, b.size-at)
	if b.read += length; b.read > b.budget {
		b.err = ErrReadBudget
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
	b.cached = append(b.cached, fileBlock{})
	copy(b.cached[1:], b.cached)
	b.cached[0] = fileBlock{at: at, data: data}
	return data, nil
}

// room returns memory for another block. If the cache is full, it drops the least recently used block.
func (b *BlockReader) room(length int64) []byte {
	if len(b.cached) == cachedBlocks {
		last := b.cached[cachedBlocks-1].data
		b.cached = b.cached[:cachedBlocks-1]
		if int64(cap(last)) >= length {
			return last[:length]
		}
	}
	return make([]byte, length)
}
