// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"
	"sort"
)

const (
	// maxPatches limits the patches per file. Cameras record one location per second, so this is enough for a day.
	maxPatches = 100_000
	// maxBytes limits the bytes that patches insert, not counting fills.
	maxBytes = 1 << 20
	// patchCosts is the approximate memory of a patch. Changes that are closer together become one patch.
	patchCosts = 32
)

type patch struct {
	at, length int64
	// data are the new bytes. If nil, the patch fills with a byte.
	data []byte
	with byte
}

func (p *patch) end() int64 { return p.at + p.length }

// Patches remove the location from one file. The zero value leaves a file unchanged.
type Patches struct{ list []patch }

// Empty reports whether the patches leave the file unchanged.
func (p Patches) Empty() bool { return len(p.list) == 0 }

// Bytes returns the number of replaced bytes.
func (p Patches) Bytes() (total int64) {
	for i := range p.list {
		total += p.list[i].length
	}
	return total
}

// Weight returns the approximate memory of the patches.
func (p Patches) Weight() int64 {
	total := int64(patchCosts)
	for i := range p.list {
		total += 2*patchCosts + int64(len(p.list[i].data))
	}
	return total
}

// Ranges iterates over the replaced parts of the file, as half-open ranges, in order.
func (p Patches) Ranges() iter.Seq2[int64, int64] {
	return func(yield func(int64, int64) bool) {
		for i := range p.list {
			if !yield(p.list[i].at, p.list[i].end()) {
				return
			}
		}
	}
}

// Reader returns a reader of the patched file, given a reader of the file's content that starts at offset.
func (p Patches) Reader(from io.ReadCloser, offset int64) io.ReadCloser {
	if p.Empty() {
		return from
	}
	next := sort.Search(len(p.list), func(i int) bool { return p.list[i].end() > offset })
	return &patched{ReadCloser: from, at: offset, left: p.list[next:]}
}

// patched is a file that is patched while it is read. left are the patches that end after the offset at.
type patched struct {
	io.ReadCloser

	at   int64
	left []patch
}

// Read implements io.Reader.
func (r *patched) Read(data []byte) (int, error) {
	n, err := r.ReadCloser.Read(data)
	data = data[:n]
	end := r.at + int64(n)
	for len(r.left) > 0 && r.left[0].at < end {
		p := &r.left[0]
		from, to := max(p.at, r.at), min(p.end(), end)
		into := data[from-r.at : to-r.at]
		if p.data != nil {
			copy(into, p.data[from-p.at:])
		} else {
			for i := range into {
				into[i] = p.with
			}
		}
		if p.end() > end {
			break
		}
		r.left = r.left[1:]
	}
	r.at = end
	return n, err //nolint:wrapcheck // the error comes from the file
}

type collection struct {
	list  []patch
	bytes int
	over  bool
}

func (c *collection) replace(at int64, data []byte) {
	if len(data) == 0 {
		return
	}
	if even := bytes.Count(data, data[:1]) == len(data); even {
		c.fill(span{at, at + int64(len(data))}, data[0])
		return
	}
	c.bytes += len(data)
	c.add(patch{at: at, length: int64(len(data)), data: bytes.Clone(data)})
}

func (c *collection) fill(s span, with byte) {
	if s.length() <= 0 {
		return
	}
	if len(c.list) > 0 {
		if last := &c.list[len(c.list)-1]; last.data == nil && last.with == with && last.end() == s.start {
			last.length += s.length()
			return
		}
	}
	c.add(patch{at: s.start, length: s.length(), with: with})
}

func (c *collection) add(p patch) {
	if c.over = c.over || len(c.list) == maxPatches || c.bytes > maxBytes; !c.over {
		c.list = append(c.list, p)
	}
}

// patches returns the patches in order. If a file makes two of them overlap, the first one applies.
func (c *collection) patches() (Patches, error) {
	if c.over {
		return Patches{}, &UnreadableError{fmt.Sprintf("contains its location in more than %d places", maxPatches)}
	}
	slices.SortStableFunc(c.list, func(a, b patch) int { return cmp.Compare(a.at, b.at) })
	kept := c.list[:0]
	for _, p := range c.list {
		if len(kept) == 0 || kept[len(kept)-1].end() < p.at {
			kept = append(kept, p)
			continue
		}
		last := &kept[len(kept)-1]
		switch beyond := p.end() - last.end(); {
		case beyond <= 0:
		case p.data == nil && last.data == nil && p.with == last.with:
			last.length += beyond
		default:
			if p.data != nil {
				p.data = p.data[int64(len(p.data))-beyond:]
			}
			p.at, p.length = last.end(), beyond
			kept = append(kept, p)
		}
	}
	return Patches{slices.Clip(kept)}, nil
}
