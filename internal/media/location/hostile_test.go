// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/internal/media/location"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/must"
)

// maxAllocated limits the bytes that are allocated while one file is searched, whether or not they are freed, in
// addition to an amount proportional to the file.
const maxAllocated = 32 << 20

// FuzzFind checks for any file that the patches lie within it, and that the patched file has no location and the same
// facts according to the probe.
func FuzzFind(f *testing.F) {
	types := []string{jpegType, pngType, webpType, mp4Type, movType}
	for _, seed := range files(f) {
		f.Add(seed.data, byte(slices.Index(types, seed.mimeType)))
	}
	f.Fuzz(func(t *testing.T, data []byte, kind byte) {
		mimeType := types[int(kind)%len(types)]
		size := int64(len(data))
		var found location.Patches
		var err error
		if n := mediatest.Allocated(func() { found, err = location.Find(bytes.NewReader(data), size, mimeType) }); n > maxAllocated+64*uint64(size) {
			t.Errorf("%d bytes were allocated for a file of %d", n, size)
		}
		if problem := new(location.UnreadableError); errors.As(err, &problem) {
			return
		}
		if err != nil {
			t.Fatalf("reading from memory cannot fail: %v", err)
		}
		last := int64(0)
		for start, end := range found.Ranges() {
			if start < last || end <= start || end > size {
				t.Fatalf("a patch from %d to %d follows one up to %d, in a file of %d bytes", start, end, last, size)
			}
			last = end
		}
		after := apply(t, found, data, 0)
		if again, err := location.Find(bytes.NewReader(after), size, mimeType); err != nil || !again.Empty() {
			t.Errorf("the cleaned file has a location: %v, %v", slices.Collect(starts(again)), err)
		}
		before, err := probe.Probe(bytes.NewReader(data), size, mimeType)
		if err != nil {
			return
		}
		facts, err := probe.Probe(bytes.NewReader(after), size, mimeType)
		if err != nil || facts.MIMEType != before.MIMEType || facts.Duration != before.Duration || facts.Width*facts.Height != before.Width*before.Height {
			t.Errorf("the file is %+v (%v), and was %+v", facts, err, before)
		}
	})
}

// FuzzReader checks that a patched file is the same regardless of the sizes of the reads.
func FuzzReader(f *testing.F) {
	f.Add(uint16(3), uint16(1))
	f.Add(uint16(700), uint16(300))
	data := placed(f)
	found, err := location.Find(bytes.NewReader(data), int64(len(data)), jpegType)
	if err != nil || found.Empty() {
		f.Fatal(found, err)
	}
	f.Fuzz(func(t *testing.T, from, length uint16) {
		whole := apply(t, found, data, 0)
		start := min(int(from), len(data))
		end := min(start+int(length), len(data))
		body := found.Reader(io.NopCloser(bytes.NewReader(data[start:end])), int64(start))
		if part, err := io.ReadAll(body); err != nil || !bytes.Equal(part, whole[start:end]) {
			t.Errorf("bytes %d to %d differ (%v)", start, end, err)
		}
	})
}

// hostile returns files that make large claims or are expensive to search.
func hostile(tb testing.TB) map[string]file {
	tb.Helper()
	const all = 0xffffffff
	track := func(tables ...any) []byte {
		return movie(make([]byte, 100), box("trak", box("mdia", box("minf", box("stbl", join(box("stsd", words(0, 1), box("gpmd", make([]byte, 8))), join(tables...)))))))
	}
	tags := func(length int, tag uint16) []byte {
		data := join("MM\x00*", words(8), []byte{0xff, 0xff})
		for len(data) < length {
			data = append(data, directory(binary.BigEndian, 0, 0, field{tag, 4, 1000, words(8, 8)})[2:14]...)
		}
		return data
	}
	return map[string]file{
		"samples that are not there": {
			"a table may be unlimited", mp4Type,
			track(box("stsc", words(0, 1, 1, all, 1)), box("stsz", words(0, all, all)), box("stco", words(0, all), make([]byte, 1<<20))), nil, nil,
		},
		"chunks without an end": {
			"each chunk is scanned", mp4Type,
			track(box("stsc", words(0, 1, 1, 1, 1)), box("stsz", words(0, 1, all)), box("stco", words(0, 1<<20), make([]byte, 4<<20))), nil, nil,
		},
		"boxes in boxes": {"a film has a depth", mp4Type, func() []byte {
			var nested []byte
			for i := range 100_000 {
				nested = append(nested, join(words(uint32(8*(100_000-i))), []string{"udta", "meta", "uuid"}[i%3])...)
			}
			return join(movie(nil), nested)
		}(), nil, nil},
		"directories in directories": {"each leads to a thousand", jpegType, photo(tb, segment(0xe1, "Exif\x00\x00", tags(60_000, 0x014a))), nil, nil},
		"places in places":           {"each is the place", pngType, drawing(tb, chunk("eXIf", tags(1<<20, 0x8825)), nil), nil, nil},
		"metadata in metadata":       {"nested XMP is cleaned repeatedly", pngType, drawing(tb, chunk("eXIf", tags(1<<20, 0x02bc)), nil), nil, nil},
		"compressed zeros": {
			"two kilobytes become two megabytes", pngType,
			drawing(tb, bytes.Repeat(chunk("zTXt", "Raw profile type exif\x00\x00", compressed(make([]byte, 4<<20))), 200), nil), nil, nil,
		},
		"pictures without an end": {"each has but a head", jpegType, join(photo(tb), strings.Repeat("\xff\xd8\xff\xd9", 1<<20)), nil, nil},
		"films without an end":    {"films without an end", jpegType, join(photo(tb), strings.Repeat("\x00\x00\x00\x08ftyp!", 1<<18)), nil, nil},
		"xmp of attributes": {
			"an element has a million", webpType,
			web(tb, webChunk("XMP ", "<x xmlns:a='b' ", strings.Repeat("a:GPS='1' ", 200_000), "/>")), nil, nil,
		},
		"long xmp": {"a part that is too long for memory is cleared", webpType, web(tb, webChunk("XMP ", "<x>", make([]byte, 3<<20), "<exif:GPSLatitude>47</exif:GPSLatitude>")), nil, nil},
	}
}

// TestHostile checks that no file exceeds the limits on memory and reads.
func TestHostile(t *testing.T) {
	for name, f := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			from := &counted{from: bytes.NewReader(f.data)}
			var err error
			n := mediatest.Allocated(func() { _, err = location.Find(from, int64(len(f.data)), f.mimeType) })
			if n > 2*maxAllocated {
				t.Errorf("%s: %d bytes were allocated for a file of %d", f.reason, n, len(f.data))
			}
			if problem := new(location.UnreadableError); err != nil && !errors.As(err, &problem) {
				t.Errorf("%s: %v", f.reason, err)
			}
			if most := int64(64 << 20); from.read > most {
				t.Errorf("%s: %d bytes were read", f.reason, from.read)
			}
			t.Logf("%d bytes allocated, %d read of %d: %v", n, from.read, len(f.data), err)
		})
	}
}

// counted counts the reads of a file.
type counted struct {
	from io.ReaderAt
	read int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.from.ReadAt(p, off)
	c.read += int64(n)
	return n, err
}

// sparse is a file with a short head, followed only by frames.
type sparse struct {
	head []byte
	size int64
	read int64
}

const frame = 0x5a

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	if off >= s.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), s.size-off)]
	for i := range p {
		p[i] = frame
	}
	if off < int64(len(s.head)) {
		copy(p, s.head[off:])
	}
	s.read += int64(len(p))
	return len(p), nil
}

// gibibyte returns a video of 1 GiB with a box of coordinates and, every second for an hour, a location among the
// frames.
func gibibyte() *sparse {
	const size, seconds, length, every = 1 << 30, 3600, 4 << 10, 256 << 10
	describe := func(from uint32) []byte {
		track := samples{handler: "meta", id: 2, format: box("gpmd", make([]byte, 8))}
		for i := range uint32(seconds) {
			track.offsets, track.sizes = append(track.offsets, from+i*every), append(track.sizes, length)
		}
		film := movie(nil, trak(track), box("udta", box("\xa9xyz", "+47.2+008.5/")))
		const brand, noMedia = 20, 8
		return join(film[:brand], film[brand+noMedia:])
	}
	head := describe(0)
	head = describe(uint32(len(head) + 8))
	return &sparse{head: join(head, words(uint32(size-len(head))), "mdat"), size: size}
}

// TestGibibyte checks that a large video is searched using only its description, and patched in a single read, in
// constant memory.
func TestGibibyte(t *testing.T) {
	film := gibibyte()
	var found location.Patches
	var err error
	if n := mediatest.Allocated(func() { found, err = location.Find(film, film.size, mp4Type) }); n > 4<<20 {
		t.Errorf("%d bytes were allocated to search it", n)
	}
	must.Succeed(t, err)
	t.Logf("%d bytes of %d were read to search it; %d are replaced", film.read, film.size, found.Bytes())
	if film.read > 256<<10 {
		t.Errorf("%d bytes were read to search it", film.read)
	}
	if want := int64(3600 * 4 << 10); found.Bytes() < want {
		t.Errorf("%d bytes are replaced, want %d and the box", found.Bytes(), want)
	}
	film.read = 0
	var after zeros
	n := mediatest.Allocated(func() {
		_, err = io.Copy(&after, found.Reader(io.NopCloser(io.NewSectionReader(film, 0, film.size)), 0))
	})
	must.Succeed(t, err)
	t.Logf("%d bytes were allocated to read it", n)
	if n > 1<<20 {
		t.Errorf("%d bytes were allocated to read it", n)
	}
	if film.read != film.size {
		t.Errorf("%d bytes were read of %d: one pass is enough", film.read, film.size)
	}
	if after.frames != film.size-int64(len(film.head))-3600*4<<10 {
		t.Errorf("%d bytes of frames remain", after.frames)
	}
}

// zeros counts the remaining bytes of frames.
type zeros struct{ frames int64 }

func (z *zeros) Write(p []byte) (int, error) {
	z.frames += int64(bytes.Count(p, []byte{frame}))
	return len(p), nil
}

// BenchmarkFind searches a 1 GiB video.
func BenchmarkFind(b *testing.B) {
	film := gibibyte()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := location.Find(film, film.size, mp4Type); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(film.read)/float64(b.N), "read-B/op")
}

// BenchmarkReader patches a 1 GiB video while it is read.
func BenchmarkReader(b *testing.B) {
	film := gibibyte()
	found, err := location.Find(film, film.size, mp4Type)
	must.Succeed(b, err)
	b.ReportAllocs()
	b.SetBytes(film.size)
	for b.Loop() {
		if _, err := io.Copy(io.Discard, found.Reader(io.NopCloser(io.NewSectionReader(film, 0, film.size)), 0)); err != nil {
			b.Fatal(err)
		}
	}
}
