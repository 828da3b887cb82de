// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/herald-social/herald/internal/media/location"
	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/must"
)

// sparse is a file with a short head; the rest are frames.
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

// gibibyte returns a film of this size with a box of coordinates and, every second for an hour, a location among the
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

// TestGibibyte checks that a large film is searched by its description, and is patched while it is read once, in
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
		t.Errorf("%d bytes of frames were left", after.frames)
	}
}

// zeros counts how many bytes of frames are left.
type zeros struct{ frames int64 }

func (z *zeros) Write(p []byte) (int, error) {
	z.frames += int64(bytes.Count(p, []byte{frame}))
	return len(p), nil
}

// BenchmarkFind searches a film of 1 GiB.
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

// BenchmarkReader patches a film of 1 GiB while it is read.
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
