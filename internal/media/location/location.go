// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package location removes the location of a photo or video, whether coordinates or a name, while the file is read. It
// does not change pixels or frames, and the file keeps its length, so that all offsets and ranges remain valid.
package location

import (
	"errors"
	"fmt"
	"io"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
)

const (
	// budget limits the bytes read from a file: twice the probe's limit, since it also covers the tables of location
	// tracks.
	budget = 64 << 20
	// longestPart limits metadata in memory, in bytes. Cameras and programs write at most a few hundred kilobytes.
	longestPart = 1 << 20
)

// Version identifies the rules of this package. Copies made under different rules are not used.
const Version = "1"

// UnreadableError is the reason a file cannot be searched for its location. Another file is needed.
type UnreadableError struct {
	// Message describes the problem, phrased to follow the name of the file.
	Message string
}

func (p *UnreadableError) Error() string { return "the file " + p.Message }

// Find returns the patches that remove the location from a file with the given size and type. The error is an
// *UnreadableError if the file is at fault; any other comes from reading it. The file must have been probed: like
// players, Find skips invalid parts.
func Find(r io.ReaderAt, size int64, mimeType string) (Patches, error) {
	c := &cleaner{file: store.NewBlockReader(r, size, budget)}
	switch v1alpha1.MimeType(mimeType) {
	case v1alpha1.MimeJPEG:
		c.cleanAppended(c.picture(0))
	case v1alpha1.MimePNG:
		c.png()
	case v1alpha1.MimeWebP:
		c.webp()
	case v1alpha1.MimeMP4, v1alpha1.MimeQuickTime:
		c.film(span{0, size})
	default:
		return Patches{}, fmt.Errorf("files of type %q cannot be searched for a location", mimeType)
	}
	switch failure := c.file.Failure(); {
	case errors.Is(failure, store.ErrReadBudget):
		return Patches{}, &UnreadableError{fmt.Sprintf("is too complex: its location does not follow from the first %d MiB of its structure", budget>>20)}
	case failure != nil:
		return Patches{}, failure
	case c.problem != nil:
		return Patches{}, c.problem
	}
	return c.found.patches()
}

// cleaner collects the patches for one file. A read error ends the search of a part just as the end of the file does;
// the store.BlockReader stores the error.
type cleaner struct {
	file    *store.BlockReader
	found   collection
	problem *UnreadableError
	buffer  []byte
	// boxes counts the boxes of videos, and unpacked counts the bytes of decompressed text.
	boxes    int
	unpacked int64
}

func (c *cleaner) failf(format string, args ...any) {
	if c.problem == nil {
		c.problem = &UnreadableError{fmt.Sprintf(format, args...)}
	}
}

func (c *cleaner) ended() bool { return c.problem != nil || c.file.Failure() != nil }

// read reads a few bytes at the given offset. It returns false if they are missing.
func (c *cleaner) read(data []byte, at int64) bool {
	if at < 0 || at > c.file.Size()-int64(len(data)) {
		return false
	}
	_, err := c.file.ReadAt(data, at)
	return err == nil
}

// span is a part of a file, given by offsets.
type span struct{ start, end int64 }

func (s span) length() int64 { return s.end - s.start }

// part is contiguous data that may be spread over several spans of the file.
type part []span

func (p part) length() (total int64) {
	for _, s := range p {
		total += s.length()
	}
	return total
}

// load reads a part into memory. It returns false if the part is missing or too long.
func (c *cleaner) load(p part) ([]byte, bool) {
	length := p.length()
	if length > longestPart || length > c.file.Size() {
		return nil, false
	}
	data := make([]byte, length)
	rest := data
	for _, s := range p {
		if !c.read(rest[:s.length()], s.start) {
			return nil, false
		}
		rest = rest[s.length():]
	}
	return data, true
}

// edit records the changes that clean makes to a part. If the part is too long for memory, the file is at fault.
func (c *cleaner) edit(p part, clean func(data []byte)) {
	if p.length() > longestPart {
		c.failf("has metadata of more than %d MiB, too much to search for its location", longestPart>>20)
		return
	}
	before, ok := c.load(p)
	if !ok {
		return
	}
	after := append([]byte(nil), before...)
	clean(after)
	c.rewrite(p, before, after)
}

func (c *cleaner) rewrite(p part, before, after []byte) {
	for at := 0; at < len(after); {
		if before[at] == after[at] {
			at++
			continue
		}
		end := at + 1
		// Changes that are close together are one patch.
		for next := end; next < len(after) && next-end < patchCosts; next++ {
			if before[next] != after[next] {
				end = next + 1
			}
		}
		c.change(p, int64(at), after[at:end])
		at = end
	}
}

func (c *cleaner) change(p part, at int64, data []byte) {
	for _, s := range p {
		if at >= s.length() {
			at -= s.length()
			continue
		}
		n := min(s.length()-at, int64(len(data)))
		c.found.replace(s.start+at, data[:n])
		if data, at = data[n:], 0; len(data) == 0 {
			return
		}
	}
}

func (c *cleaner) fill(p part, with byte) {
	for _, s := range p {
		c.found.fill(s, with)
	}
}
