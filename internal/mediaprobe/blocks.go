// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mediaprobe

import (
	"errors"
	"fmt"
	"io"
)

const (
	// blockBytes is how much is read at a time: enough that a file's structure
	// takes few requests, little enough that it costs little.
	blockBytes = 64 << 10
	// keptBlocks is how many blocks are held: readers go back and forth between
	// the beginning, the end and where they are.
	keptBlocks = 8
	// budget is how many bytes may be read of one file in all. The structure of
	// a video of an hour takes a few megabytes.
	budget = 32 << 20
)

// errTooMuch ends the reading of a file whose structure never ends.
var errTooMuch = errors.New("too much of the file would have to be read")

// blocks is a file that is read in blocks, the last few of which are kept. It
// is not for several goroutines.
type blocks struct {
	from io.ReaderAt
	size int64
	kept []block
	read int64
	err  error
}

type block struct {
	at   int64
	data []byte
}

func newBlocks(from io.ReaderAt, size int64) *blocks { return &blocks{from: from, size: size} }

// failure returns the first error of reading that is not about the file's
// content: callers hide it in errors of their own.
func (b *blocks) failure() error { return b.err }

// ReadAt implements io.ReaderAt.
func (b *blocks) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("cannot read before the start of a file, at %d", off)
	}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at >= b.size {
			return n, io.EOF
		}
		data, err := b.block(at - at%blockBytes)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], data[at%blockBytes:])
	}
	return n, nil
}

// block returns the block that begins at an offset.
func (b *blocks) block(at int64) ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	for i, kept := range b.kept {
		if kept.at == at {
			copy(b.kept[1:i+1], b.kept[:i])
			b.kept[0] = kept
			return kept.data, nil
		}
	}
	length := min(blockBytes, b.size-at)
	if b.read += length; b.read > budget {
		b.err = errTooMuch
		return nil, b.err
	}
	data := make([]byte, length)
	if n, err := b.from.ReadAt(data, at); int64(n) < length {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		b.err = fmt.Errorf("cannot read %d bytes at %d: %w", length, at, err)
		return nil, b.err
	}
	if len(b.kept) < keptBlocks {
		b.kept = append(b.kept, block{})
	}
	copy(b.kept[1:], b.kept)
	b.kept[0] = block{at: at, data: data}
	return data, nil
}
