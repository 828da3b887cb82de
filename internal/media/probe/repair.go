// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bufio"
	"bytes"
	"slices"

	"github.com/herald-social/herald/internal/media/store"
)

// Viewers show as much as they can of a damaged JPEG. Package image/jpeg rejects it, so the damage is removed first.

// Repair returns a decodable JPEG with the intact part of a damaged one. Damaged blocks, up to the next restart marker,
// get the color of the preceding ones. It returns nil if the pixels are not in a single pass.
func Repair(data []byte) []byte {
	file := store.NewBlockReader(bytes.NewReader(data), int64(len(data)), budget)
	parts := jpegParts(file)
	frame, ok := readFrame(file, &parts)
	if !ok || parts.pixels == 0 || frame.unreadable(true) != "" || frame.kind > jpegExtended {
		return nil
	}
	w := &jpegWalk{file: file, frame: &frame, scanned: map[byte]bool{}, output: &bitWriter{out: slices.Clone(data[:parts.pixels])}}
	for _, table := range parts.tables {
		w.table(table)
	}
	w.seek(parts.pixels)
	head := data[parts.scan.start:parts.scan.end]
	const perChannel = 2
	if len(head) < 1+perChannel*len(frame.components) || int(head[0]) != len(frame.components) {
		return nil
	}
	units, groups := w.units(head, len(frame.components))
	if units == nil || !w.repair(groups, units) {
		return nil
	}
	return append(w.output.out, jpegMark, jpegEOI)
}

func scanStarts(data []byte) (starts []int) {
	r := &jpegReader{from: bufio.NewReader(bytes.NewReader(data))}
	for {
		marker, ok := r.marker()
		if !ok {
			return starts
		}
		if marker == jpegTEM || marker >= jpegRST0 && marker <= jpegEOI {
			continue
		}
		if marker == jpegSOS {
			starts = append(starts, int(r.at)-2)
		}
		if _, _, ok := r.segment(); !ok {
			return starts
		}
	}
}

// Shorten returns a JPEG without the last scan that starts within its first decoded bytes, and without any later scans:
// a progressive picture becomes less sharp. It returns nil if nothing would be left.
func Shorten(data []byte, decoded int) []byte {
	starts := scanStarts(data[:decoded])
	if len(starts) < 2 {
		return nil
	}
	return append(slices.Clone(data[:starts[len(starts)-1]]), jpegMark, jpegEOI)
}

// repair walks through all groups of blocks, and fills in invalid ones.
func (w *jpegWalk) repair(groups int, units []unit) bool {
	each := w.interval
	if each == 0 {
		each = groups
	}
	// at is the interval to read next, unless it is lost.
	for n, at := 0, 0; n*each < groups; n++ {
		if n > 0 {
			w.output.mark(byte(jpegRST0 + (n-1)%jpegRestarts))
		}
		if at < n {
			at = n + w.synchronize(n-1)
		}
		left := min(each, groups-n*each)
		for at == n && left > 0 {
			before := *w.output
			if !w.group(units) {
				*w.output = before
				break
			}
			left--
		}
		if left > 0 && !w.output.fill(units, left) {
			return false
		}
	}
	w.output.flush()
	return true
}

// synchronize advances past the next restart marker, and returns the number of lost intervals before it: all of them if
// there is no marker. want is the number of the expected marker.
func (w *jpegWalk) synchronize(want int) (lost int) {
	const all = 1 << 30
	for w.marker == 0 {
		if !w.fill() && w.marker == 0 {
			return all
		}
		w.count = 0
	}
	marker := w.marker
	if marker < jpegRST0 || marker >= jpegRST0+jpegRestarts {
		return all
	}
	w.bits, w.count, w.marker = 0, 0, 0
	return (int(marker-jpegRST0) - want%jpegRestarts + jpegRestarts) % jpegRestarts
}

type bitWriter struct {
	out   []byte
	bits  uint32
	count uint
}

// write adds bits, at most 16.
func (b *bitWriter) write(bits uint32, count uint) {
	b.bits, b.count = b.bits<<count|bits, b.count+count
	for ; b.count >= 8; b.count -= 8 {
		next := byte(b.bits >> (b.count - 8) & 0xff)
		if b.out = append(b.out, next); next == jpegMark {
			b.out = append(b.out, jpegStuffed)
		}
	}
}

func (b *bitWriter) flush() {
	if rest := b.count % 8; rest > 0 {
		b.write(1<<(8-rest)-1, 8-rest)
	}
}

func (b *bitWriter) mark(marker byte) {
	b.flush()
	b.out = append(b.out, jpegMark, marker)
}

// fill adds groups of blocks with the values of the last ones. It returns false if the codes cannot express that.
func (b *bitWriter) fill(units []unit, groups int) bool {
	for _, u := range units {
		if u.first.codes[0].length == 0 || u.others.codes[0].length == 0 {
			return false
		}
	}
	for range groups {
		for _, u := range units {
			b.write(u.first.codes[0].value, u.first.codes[0].length)   // no difference
			b.write(u.others.codes[0].value, u.others.codes[0].length) // and no other values
		}
	}
	return true
}
