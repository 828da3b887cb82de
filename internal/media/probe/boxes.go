// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"errors"

	"github.com/herald-social/herald/internal/media/store"
)

// An MP4 or QuickTime video consists of boxes (ISO 14496-12, section 4.2): each has a length and a kind, and some
// contain others. They are parsed here without a library. A library allocates an object for each sample that a table
// claims to have, and a path for each box, and the uploader chooses their number. Here, memory does not grow with the
// file.

const (
	// maxBoxes limits the boxes in a video, and so the work. Most videos have a few hundred; an hour in one-second
	// fragments has tens of thousands, and a video with a fragment per frame close to a million.
	maxBoxes = 1_000_000
	// maxTracks limits the tracks in a video. Real videos have fewer than twenty.
	maxTracks = 128
	// The length of a box header in bytes: boxHeader with a 32-bit size, and longBoxHeader with a 64-bit size.
	boxHeader, longBoxHeader = 8, 16
	// longestFields is the number of bytes read from a box that is not a table: the length of a version 1 tkhd.
	longestFields = 96
)

var (
	errCutOff    = errors.New("a part of it reaches beyond its end")
	errTooMany   = errors.New("it has too many parts")
	errTooWide   = errors.New("it has too many tracks")
	errOverlap   = errors.New("a part of it reaches beyond the one it belongs to")
	errNoSize    = errors.New("a part of it is shorter than its own header")
	errShort     = errors.New("a part of it is shorter than its required fields")
	errNoVersion = errors.New("a part of it is of a version that does not exist")
	// errCompressed is returned for the compressed header of an old QuickTime video.
	errCompressed = errors.New("the part that describes it is compressed")
	errNoOrder    = errors.New("a fragment does not start with its track")
)

// box is the position of a box, given by offsets in the file: its content, without its header, is [start, end).
type box struct {
	kind       [4]byte
	start, end int64
}

type boxes struct {
	file *store.BlockReader
	size int64
	seen int
	// scratch is the buffer that fields returns, and table is the buffer for table entries.
	scratch [longestFields]byte
	table   [4096]byte
}

// header reads the header of a box that must not extend beyond end. With an error, it returns the invalid box's kind.
func (b *boxes) header(at, end int64) (box, error) {
	head := b.scratch[:boxHeader]
	if _, err := b.file.ReadAt(head, at); err != nil {
		return box{}, err
	}
	found := box{kind: [4]byte(head[4:]), start: at + boxHeader}
	size := uint64(binary.BigEndian.Uint32(head))
	switch size {
	case 0: // extends to the end of the file
		found.end = end
		return found, nil
	case 1:
		if end-at < longBoxHeader {
			return found, errNoSize
		}
		if _, err := b.file.ReadAt(head, at+boxHeader); err != nil {
			return box{}, err
		}
		found.start, size = at+longBoxHeader, binary.BigEndian.Uint64(head)
	}
	switch {
	case size > uint64(b.size-at): //nolint:gosec // boxes start within the file
		return found, errCutOff
	case int64(size) > end-at: //nolint:gosec // it is within the file
		return found, errOverlap
	}
	found.end = at + int64(size) //nolint:gosec // it is within the file
	if found.end < found.start {
		return found, errNoSize
	}
	return found, nil
}

// fields returns the first bytes of a box's content. They are valid until the next call.
func (b *boxes) fields(of box, length int) ([]byte, error) {
	if of.end-of.start < int64(length) {
		return nil, errShort
	}
	data := b.scratch[:length]
	_, err := b.file.ReadAt(data, of.start)
	return data, err
}

// versioned returns the first bytes of the content of a box that has two versions: some of its numbers take wide bytes,
// 4 or 8. fixed is the number of all other bytes.
func (b *boxes) versioned(of box, fixed, numbers int) (data []byte, wide int, err error) {
	if data, err = b.fields(of, 1); err != nil {
		return nil, 0, err
	}
	if data[0] > 1 {
		return nil, 0, errNoVersion
	}
	wide = 4 << data[0]
	data, err = b.fields(of, fixed+numbers*wide)
	return data, wide, err
}

// entries visits a table's entries, starting at the file offset at. Each has the given length, which is at most a few
// words.
func (b *boxes) entries(of box, at, count, length int64, visit func(entry []byte)) error {
	if count > (of.end-at)/length {
		return errShort
	}
	most := int64(len(b.table)) / length
	for count > 0 {
		some := b.table[:min(count, most)*length]
		if _, err := b.file.ReadAt(some, at); err != nil {
			return err
		}
		at += int64(len(some))
		count -= int64(len(some)) / length
		for ; len(some) > 0; some = some[length:] {
			visit(some[:length])
		}
	}
	return nil
}

// Numbers in boxes are big-endian.
func u16(data []byte) uint16 { return binary.BigEndian.Uint16(data) }
func u32(data []byte) uint32 { return binary.BigEndian.Uint32(data) }

// number reads a number that takes wide bytes, 4 or 8.
func number(data []byte, wide int) uint64 {
	if wide == 4 {
		return uint64(u32(data))
	}
	return binary.BigEndian.Uint64(data)
}
