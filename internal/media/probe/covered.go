// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bufio"
	"io"
	"slices"

	"github.com/herald-social/herald/internal/media/store"
)

// A JPEG that lacks its last two bytes, the end marker, may still have every pixel: viewers show it. It was not cut off
// in transit, because the length of an upload is signed. A file that was cut off before the upload lacks pixels. Only
// the length of the coded pixels distinguishes the two cases, so this code walks through them without decoding a
// picture.

type jpegTable struct {
	marker  byte
	content span
}

// appendTable appends a table and keeps the last 16: twice the possible number of codes.
func appendTable(tables []jpegTable, table jpegTable) []jpegTable {
	const most = 16
	if len(tables) == most {
		tables = slices.Delete(tables, 0, 1)
	}
	return append(tables, table)
}

// jpegComplete reports whether a JPEG has all of its pixels. It searches for the end marker after the first parts: the
// preview that cameras put into the metadata also has an end marker.
func jpegComplete(file *store.BlockReader, parts *imageParts) (whole bool, damage string) {
	if parts.pixels == 0 {
		return false, ""
	}
	mark := string([]byte{jpegMark, jpegEOI})
	if contains(file, span{max(parts.pixels, file.Size()-endBytes), file.Size()}, mark) {
		return true, ""
	}
	covered, at := covered(file, parts)
	return covered || contains(file, span{at, file.Size()}, mark), ""
}

// covered reports whether a JPEG's scans contain every pixel, and how far it read. It does not support progressive
// pictures, whose scans refine each other.
func covered(file *store.BlockReader, parts *imageParts) (whole bool, at int64) {
	frame, ok := readFrame(file, parts)
	if !ok || frame.unreadable(true) != "" || frame.kind > jpegExtended {
		return false, parts.pixels
	}
	w := &jpegWalk{file: file, frame: &frame, scanned: map[byte]bool{}}
	for _, table := range parts.tables {
		w.table(table)
	}
	w.seek(parts.pixels)
	for scan := parts.scan; w.scan(scan); {
		if len(w.scanned) == len(frame.components) {
			return w.ended(), min(w.at, file.Size())
		}
		if scan, ok = w.nextScan(); !ok {
			break
		}
	}
	return false, min(w.at, file.Size())
}

// ended reports whether the coded pixels end here. Data appended to an incomplete picture may look like pixels.
func (w *jpegWalk) ended() bool {
	const filling = 7 // bits after the last code
	return w.count <= filling && !w.fill()
}

// jpegExtended is the last marker of a frame whose pixels are in a single pass.
const jpegExtended = 0xc1

type jpegWalk struct {
	file    *store.BlockReader
	frame   *jpegFrame
	scanned map[byte]bool
	// codes are the codes, by number: the first array for a block's first value, the second for the others.
	codes    [2][maxComponents]*huffman
	interval int

	from *bufio.Reader
	at   int64
	// count is the number of valid bits in bits, which are the lowest ones. marker is the marker that ended them.
	bits   uint32
	count  uint
	marker byte
	// output receives the consumed bits, unless it is nil.
	output *bitWriter
}

func (w *jpegWalk) seek(at int64) {
	w.from, w.at = bufio.NewReader(io.NewSectionReader(w.file, at, w.file.Size()-at)), at
	w.bits, w.count, w.marker = 0, 0, 0
}

// table loads a table. It ignores an invalid one.
func (w *jpegWalk) table(table jpegTable) {
	const longest = 1 << 12
	data := make([]byte, min(table.content.end-table.content.start, longest))
	if _, err := w.file.ReadAt(data, table.content.start); err != nil {
		return
	}
	if table.marker == jpegDRI && len(data) >= 2 {
		w.interval = int(data[0])<<8 | int(data[1])
	}
	for table.marker == jpegDHT && len(data) > 0 {
		code, rest := newHuffman(data)
		if code == nil {
			return
		}
		if class, number := data[0]>>4, data[0]&0xf; class < 2 && number < maxComponents {
			w.codes[class][number] = code
		}
		data = rest
	}
}

// nextScan advances to the next scan, and loads the tables that precede it.
func (w *jpegWalk) nextScan() (scan span, ok bool) {
	r := &jpegReader{from: w.from, at: w.at}
	defer func() { w.seek(r.at) }()
	marker, ok := w.marker, true
	if marker == 0 {
		marker, ok = r.marker()
	}
	for ; ok && marker != jpegEOI; marker, ok = r.marker() {
		if marker == jpegTEM || marker >= jpegRST0 && marker < jpegEOI {
			continue
		}
		segment, _, known := r.segment()
		if !known || marker == jpegSOS {
			return segment, known
		}
		w.table(jpegTable{marker, segment})
	}
	return span{}, false
}

// scan walks through a scan (ITU-T T.81, section A.2), and reports whether it is complete.
func (w *jpegWalk) scan(at span) bool {
	const perChannel = 2
	head := make([]byte, min(at.end-at.start, 1+perChannel*maxComponents))
	if _, err := w.file.ReadAt(head, at.start); err != nil || len(head) == 0 {
		return false
	}
	channels := int(head[0])
	if channels == 0 || channels > len(w.frame.components) || len(head) < 1+perChannel*channels {
		return false
	}
	units, groups := w.units(head, channels)
	return units != nil && w.pixels(groups, units)
}

// units returns the blocks in one group of a scan, and the number of groups. It returns nil if the scan is invalid.
func (w *jpegWalk) units(head []byte, channels int) (units []unit, groups int) {
	const perChannel = 2
	across, down := w.frame.units(1, 1)
	for i := range channels {
		id, tables := head[1+perChannel*i], head[2+perChannel*i]
		n := slices.IndexFunc(w.frame.components, func(c jpegComponent) bool { return c.id == id })
		if n < 0 || tables>>4 >= maxComponents || tables&0xf >= maxComponents {
			return nil, 0
		}
		c, u := w.frame.components[n], unit{w.codes[0][tables>>4], w.codes[1][tables&0xf]}
		if u.first == nil || u.others == nil {
			return nil, 0
		}
		count := c.across * c.down
		if channels == 1 { // blocks are not interleaved, and those beyond the edge are omitted
			across, down = w.frame.units(c.across, c.down)
			count = 1
		}
		for range count {
			units = append(units, u)
		}
		w.scanned[id] = true
	}
	return units, across * down
}

// unit is a block: the code for its first value, and the code for the others.
type unit struct{ first, others *huffman }

// units returns a picture's size in units: those of all channels, or the blocks of one channel with the given sampling.
func (f *jpegFrame) units(across, down int) (columns, rows int) {
	const block = 8
	maxAcross, maxDown := 1, 1
	for _, c := range f.components {
		maxAcross, maxDown = max(maxAcross, c.across), max(maxDown, c.down)
	}
	round := func(length, sampled, most int) int { return (length*sampled + block*most - 1) / (block * most) }
	return round(f.width, across, maxAcross), round(f.height, down, maxDown)
}

func (w *jpegWalk) pixels(groups int, units []unit) bool {
	for n := range groups {
		if w.interval > 0 && n > 0 && n%w.interval == 0 && !w.restart() {
			return false
		}
		if !w.group(units) {
			return false
		}
	}
	return true
}

func (w *jpegWalk) group(units []unit) bool {
	for _, u := range units {
		if !w.block(u) {
			return false
		}
	}
	return true
}

func (w *jpegWalk) restart() bool {
	for w.marker == 0 {
		if !w.fill() && w.marker == 0 {
			return false
		}
		w.count = 0
	}
	restarts := w.marker >= jpegRST0 && w.marker < jpegRST0+jpegRestarts
	w.bits, w.count, w.marker = 0, 0, 0
	return restarts
}

// block walks through a block (ITU-T T.81, section F.2.2).
func (w *jpegWalk) block(u unit) bool {
	const values, most, long = 64, 16, 15
	size, ok := w.symbol(u.first)
	if !ok || size > most || !w.skip(uint(size)) {
		return false
	}
	for at := 1; at < values; at++ {
		symbol, ok := w.symbol(u.others)
		if !ok {
			return false
		}
		zeros, size := symbol>>4, symbol&0xf
		if size == 0 && zeros != long {
			return true // The rest is zero.
		}
		if at += int(zeros); at >= values || !w.skip(uint(size)) {
			return false
		}
	}
	return true
}

// fill reads eight more bits, or returns false if there are none before the next marker.
func (w *jpegWalk) fill() bool {
	if w.marker != 0 {
		return false
	}
	b, err := w.from.ReadByte()
	if err != nil {
		return false
	}
	w.at++
	for marked := b == jpegMark; marked; {
		next, err := w.from.ReadByte()
		if err != nil {
			return false
		}
		w.at++
		if next == jpegStuffed {
			break
		}
		if next != jpegMark {
			w.marker = next
			return false
		}
	}
	w.bits, w.count = w.bits<<8|uint32(b), w.count+8
	return true
}

// skip skips bits, at most 16.
func (w *jpegWalk) skip(count uint) bool {
	for w.count < count {
		if !w.fill() {
			return false
		}
	}
	w.consume(count)
	return true
}

func (w *jpegWalk) consume(count uint) {
	w.count -= count
	if w.output != nil {
		w.output.write(w.bits>>w.count&(1<<count-1), count)
	}
}

func (w *jpegWalk) symbol(code *huffman) (symbol byte, ok bool) {
	if w.count >= 8 || w.fill() {
		if found := code.short[w.bits>>(w.count-8)&0xff]; found.length > 0 {
			w.consume(uint(found.length))
			return found.symbol, true
		}
	}
	value := 0
	for length := range code.last {
		if w.count == 0 && !w.fill() {
			return 0, false
		}
		w.consume(1)
		value = value<<1 | int(w.bits>>w.count&1)
		if value <= code.last[length] {
			if at := code.from[length] + value; at >= 0 && at < len(code.symbols) {
				return code.symbols[at], true
			}
			return 0, false
		}
	}
	return 0, false
}
