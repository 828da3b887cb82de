// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// EXIF is a graph of directories in the format of a TIFF file (EXIF 2.32, section 4.5; TIFF 6.0, section 2). Its author
// controls it, so the traversal is limited.
const (
	exifName = "Exif\x00\x00"

	tiffHeader  = 8
	entryLength = 12
	countLength = 2
	nextLength  = 4
	// maxDirectories limits the number of directories. Photos have six.
	maxDirectories = 32
	// maxValues limits the offsets read from one entry.
	maxValues = 1024
	// maxWork limits the work per pass, in entries and values. Photos have a few hundred.
	maxWork = 1 << 16
	// workOf is the number of bytes of nested metadata that count as one entry.
	workOf = 64
	// maxPasses limits the passes over the metadata. Overlapping directories may need more than one.
	maxPasses = 4
)

// Tags of entries (EXIF 2.32, section 4.6; TIFF 6.0, appendix A).
const (
	tagXMP         = 0x02bc
	tagStrips      = 0x0111
	tagStripBytes  = 0x0117
	tagSubs        = 0x014a
	tagPreview     = 0x0201
	tagPreviewSize = 0x0202
	tagIPTC        = 0x83bb
	tagPhotoshop   = 0x8649
	tagExif        = 0x8769
	tagGPS         = 0x8825
	tagInterop     = 0xa005
)

// cleanExif removes the location (GPS) directory from metadata, and place names from nested metadata. If that fails to
// remove the location because the metadata is tangled, it clears all of it.
func cleanExif(data []byte) {
	if bytes.HasPrefix(data, []byte(exifName)) {
		data = data[len(exifName):]
	}
	for range maxPasses {
		t, ok := newTIFF(data)
		if !ok {
			return
		}
		found := t.clean()
		if t.work < 0 {
			break
		}
		if !found {
			return
		}
	}
	clear(data)
}

func isTIFF(data []byte) bool {
	return bytes.HasPrefix(data, []byte("II*\x00")) || bytes.HasPrefix(data, []byte("MM\x00*"))
}

type tiff struct {
	data  []byte
	order binary.ByteOrder
	// directories are the directories found, and used are the spans that belong to them.
	directories []directory
	used        []span
	places      []int64
	// work is the remaining amount of work.
	work int64
}

type directory struct {
	at int64
	// entries is the number of entries present; whole means that none is missing.
	entries int64
	whole   bool
	places  int
}

// entry is an entry in a directory; at is the position of its value or, for a long value, of the value's offset.
type entry struct {
	tag, kind uint16
	count     uint32
	at        int64
}

func newTIFF(data []byte) (*tiff, bool) {
	if len(data) < tiffHeader || !isTIFF(data) {
		return nil, false
	}
	t := &tiff{data: data, order: binary.BigEndian, used: []span{{0, tiffHeader}}, work: maxWork}
	if data[0] == 'I' {
		t.order = binary.LittleEndian
	}
	return t, true
}

// clean makes one pass, and reports whether it found a location directory.
func (t *tiff) clean() bool {
	t.walk(int64(t.order.Uint32(t.data[4:])))
	if len(t.places) == 0 || t.work < 0 {
		return false
	}
	t.used = union(t.used)
	for _, at := range t.places {
		t.empty(at)
	}
	for i := range t.directories {
		if t.directories[i].places > 0 {
			t.drop(&t.directories[i])
		}
	}
	return true
}

func (t *tiff) walk(first int64) {
	visited := map[int64]bool{}
	for waiting := []int64{first}; len(waiting) > 0 && len(t.directories) < maxDirectories; waiting = waiting[1:] {
		at := waiting[0]
		d, ok := t.directory(at)
		if !ok || visited[at] {
			continue
		}
		visited[at] = true
		t.used = append(t.used, span{at, at + countLength})
		for i := range d.entries {
			t.work--
			if t.work < 0 {
				return
			}
			waiting = append(waiting, t.visit(&d, t.entry(&d, i))...)
		}
		t.directories = append(t.directories, d)
		if end := at + countLength + d.entries*entryLength; d.whole && end+nextLength <= int64(len(t.data)) {
			t.used = append(t.used, span{end, end + nextLength})
			waiting = append(waiting, int64(t.order.Uint32(t.data[end:])))
		}
	}
}

func (t *tiff) directory(at int64) (d directory, ok bool) {
	if at < tiffHeader || at+countLength > int64(len(t.data)) {
		return d, false
	}
	claimed := int64(t.order.Uint16(t.data[at:]))
	d = directory{at: at, entries: min(claimed, (int64(len(t.data))-at-countLength)/entryLength)}
	d.whole = d.entries == claimed
	return d, true
}

func (t *tiff) entry(d *directory, i int64) entry {
	at := d.at + countLength + i*entryLength
	return entry{t.order.Uint16(t.data[at:]), t.order.Uint16(t.data[at+2:]), t.order.Uint32(t.data[at+4:]), at + 8}
}

// visit records an entry's spans, and returns its directories. It does not follow a location directory.
func (t *tiff) visit(d *directory, e entry) (leads []int64) {
	if e.tag == tagGPS {
		d.places++
		t.places = append(t.places, int64(t.order.Uint32(t.data[e.at:])))
		return nil
	}
	value := t.value(e)
	t.used = append(t.used, span{e.at - 8, e.at + 4}, value)
	within := t.data[value.start:value.end]
	switch e.tag {
	case tagExif, tagInterop, tagSubs:
		return t.numbers(e)
	case tagStrips, tagPreview:
		t.pixels(d, e)
	case tagXMP, tagIPTC, tagPhotoshop:
		if t.work -= value.length() / workOf; t.work >= 0 {
			cleanWithin(e.tag, within)
		}
	}
	return nil
}

// cleanWithin cleans nested metadata in another format. It skips EXIF inside Photoshop resources, to bound the recursion.
func cleanWithin(tag uint16, data []byte) {
	switch tag {
	case tagXMP:
		cleanXMP(data)
	case tagIPTC:
		cleanIPTC(data)
	default:
		cleanResources(data, false)
	}
}

// pixels records the spans of a preview. One entry holds its position and another its length.
func (t *tiff) pixels(d *directory, placed entry) {
	t.work -= d.entries
	sized := map[uint16]uint16{tagStrips: tagStripBytes, tagPreview: tagPreviewSize}[placed.tag]
	for i := range d.entries {
		e := t.entry(d, i)
		if e.tag != sized {
			continue
		}
		at, lengths := t.numbers(placed), t.numbers(e)
		for j := range min(len(at), len(lengths)) {
			t.used = append(t.used, t.within(at[j], lengths[j]))
		}
		return
	}
}

func (t *tiff) value(e entry) span {
	sizes := [...]int64{1, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4} // by type
	size := int64(1)
	if int(e.kind) < len(sizes) {
		size = sizes[e.kind]
	}
	length := size * int64(e.count)
	if length <= nextLength {
		return span{e.at, e.at + nextLength}
	}
	return t.within(int64(t.order.Uint32(t.data[e.at:])), length)
}

func (t *tiff) within(at, length int64) span {
	start := min(at, int64(len(t.data)))
	return span{start, min(start+length, int64(len(t.data)))}
}

func (t *tiff) numbers(e entry) (all []int64) {
	const short = 3
	value := t.value(e)
	t.work -= min(int64(e.count), maxValues)
	for at := value.start; t.work >= 0 && len(all) < min(int(e.count), maxValues); {
		switch {
		case e.kind == short && at+2 <= value.end:
			all = append(all, int64(t.order.Uint16(t.data[at:])))
			at += 2
		case e.kind != short && at+4 <= value.end:
			all = append(all, int64(t.order.Uint32(t.data[at:])))
			at += 4
		default:
			return all
		}
	}
	return all
}

// empty fills a location directory and its entries' values with zeros, except for other directories' spans.
func (t *tiff) empty(at int64) {
	d, ok := t.directory(at)
	if !ok {
		return
	}
	all := []span{{at, min(at+countLength+d.entries*entryLength+nextLength, int64(len(t.data)))}}
	for i := range d.entries {
		all = append(all, t.value(t.entry(&d, i)))
	}
	for _, s := range union(all) {
		for _, u := range t.used {
			if u.end <= s.start {
				continue
			}
			if u.start >= s.end {
				break
			}
			if s.start < u.start {
				clear(t.data[s.start:u.start])
			}
			s.start = min(u.end, s.end)
		}
		clear(t.data[s.start:s.end])
	}
}

// drop removes a directory's location entries. The entries after them move up, as does the next directory's offset.
func (t *tiff) drop(d *directory) {
	start := d.at + countLength
	end := start + d.entries*entryLength
	kept := start
	for i := range d.entries {
		at := start + i*entryLength
		if t.order.Uint16(t.data[at:]) != tagGPS {
			copy(t.data[kept:], t.data[at:at+entryLength])
			kept += entryLength
		}
	}
	t.order.PutUint16(t.data[d.at:], uint16((kept-start)/entryLength)) //nolint:gosec // there were no more before
	if d.whole && end+nextLength <= int64(len(t.data)) {
		copy(t.data[kept:], t.data[end:end+nextLength])
		kept, end = kept+nextLength, end+nextLength
	}
	clear(t.data[kept:end])
}

func union(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	joined := spans[:0]
	for _, s := range spans {
		if s.length() <= 0 {
			continue
		}
		if last := len(joined) - 1; last >= 0 && s.start <= joined[last].end {
			joined[last].end = max(joined[last].end, s.end)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}
