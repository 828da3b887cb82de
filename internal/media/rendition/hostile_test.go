// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/must"
)

// jpegParts writes parts of a JPEG.
type jpegParts struct{ bytes.Buffer }

func (b *jpegParts) segment(marker byte, content []byte) {
	b.Write([]byte{0xff, marker})
	_ = binary.Write(b, binary.BigEndian, uint16(len(content)+2))
	b.Write(content)
}

// sampledJPEG returns an empty progressive JPEG whose color sampling takes a lot of memory.
func sampledJPEG(width, height int, brightness, colour byte) []byte {
	var b jpegParts
	b.Write([]byte{0xff, 0xd8})
	b.segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...))
	b.segment(0xc2, []byte{8, byte(height >> 8), byte(height), byte(width >> 8), byte(width), 3, 1, brightness, 0, 2, colour, 0, 3, colour, 0})
	lengths := make([]byte, 16)
	lengths[0] = 1
	for _, table := range []byte{0x00, 0x10} {
		b.segment(0xc4, append(append([]byte{table}, lengths...), 0))
	}
	b.segment(0xda, []byte{3, 1, 0, 2, 0, 3, 0, 0, 0, 0})
	b.Write(make([]byte, width*height/64*2/8+1000))
	b.Write([]byte{0xff, 0xd9})
	return b.Bytes()
}

// bits writes numbers as a lossless WebP stores them.
type bits struct {
	out   []byte
	value uint64
	count uint
}

func (b *bits) put(value uint64, count uint) {
	b.value |= value << b.count
	b.count += count
	for ; b.count >= 8; b.count -= 8 {
		b.out = append(b.out, byte(b.value))
		b.value >>= 8
	}
}

// uniform writes a code whose first symbols have codes of the same length. For a single symbol, use none.
func (b *bits) uniform(symbols, length int) {
	b.put(0, 1)
	at := bytes.IndexByte([]byte{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, byte(length))
	b.put(uint64(at-3), 4)
	for range at {
		b.put(0, 3)
	}
	b.put(1, 3)
	b.put(1, 1)
	width, field := uint(2), uint64(0)
	for ; symbols-2 >= 1<<width; width += 2 {
		field++
	}
	b.put(field, 3)
	b.put(uint64(symbols-2), width)
}

func (b *bits) none() { b.put(1, 4) }

// reversed reverses the bits of a code.
func reversed(value uint64, count uint) (result uint64) {
	for i := range count {
		result |= (value >> i & 1) << (count - 1 - i)
	}
	return result
}

// groupBomb returns a lossless WebP with many groups of full-size prefix codes. All of its pixels use the first group.
func groupBomb(width, height, groups int) []byte {
	b := &bits{}
	b.put(0x2f, 8)
	b.put(uint64(width-1), 14)
	b.put(uint64(height-1), 14)
	b.put(0, 1+3+1) // opaque, version 0, not transformed
	b.put(1, 1)     // with a cache of colors
	b.put(11, 4)
	b.put(1, 1) // with groups
	side := uint(2)
	tiles := func(length int) int { return (length + 1<<side - 1) >> side }
	for tiles(width)*tiles(height) > 40_000 && side < 9 {
		side++
	}
	b.put(uint64(side-2), 3)
	b.put(0, 1)
	b.uniform(256, 8)
	b.uniform(16, 4)
	for range 3 {
		b.none()
	}
	for i := range tiles(width) * tiles(height) {
		group := 0
		if i < groups {
			group = i
		}
		b.put(reversed(uint64(group&255), 8), 8)
		b.put(reversed(uint64(group>>8), 4), 4)
	}
	for range 5 {
		b.none()
	}
	for range groups - 1 {
		b.uniform(2048, 11)
		for range 3 {
			b.uniform(256, 8)
		}
		b.uniform(32, 5)
	}
	for y := range height {
		for x := range width {
			if tile := (y>>side)*tiles(width) + x>>side; tile > 0 && tile < groups {
				b.put(reversed(uint64(x&255), 11), 11)
				b.put(0, 3*8)
			}
		}
	}
	b.put(0, 7)
	b.out = append(b.out, make([]byte, len(b.out)&1)...)
	var out bytes.Buffer
	out.WriteString("RIFF")
	_ = binary.Write(&out, binary.LittleEndian, uint32(12+len(b.out)))
	out.WriteString("WEBPVP8L")
	_ = binary.Write(&out, binary.LittleEndian, uint32(len(b.out)))
	out.Write(b.out)
	return out.Bytes()
}

// The decoding process limits the cost of a file, regardless of what the file claims, and the reason is reported.
func TestHostileFilesAreRefused(t *testing.T) {
	if !alone(t) {
		return
	}
	for name, tc := range map[string]struct {
		why      string
		data     []byte
		mimeType string
		says     string
	}{
		"a hundred passes more than it needs": {"each is 9 ms for 53 bytes", mediatest.Scans(800, 800, 100), jpegType, "more than 100 passes"},
		"many passes":                         {"20 MB of scans took an hour to decode", mediatest.Scans(5600, 5600, 4000), jpegType, "more than 100 passes"},
		"groups":                              {"135 MB that the header does not declare", groupBomb(204, 204, 2600), webpType, ""},
		"groups and many pixels":              {"the groups exceed the pixels", groupBomb(4280, 4280, 2600), webpType, ""},
		"colours in an unusual way":           {"unusual sampling needs twice the estimate", sampledJPEG(8000, 4000, 0x42, 0x11), jpegType, ""},
		"colours in the usual way":            {"many passes need five times the memory", sampledJPEG(5600, 5600, 0x22, 0x11), jpegType, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := newMemory()
			_, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, tc.data, tc.mimeType), rendition.Target{Types: []string{jpegType}, MaxBytes: 4 << 20, MaxWidth: 1000})
			if most := mostTaken(t); most > 448 && !raced {
				t.Errorf("%s: a process used %d MiB", tc.why, most)
			}
			if tc.says == "" && err == nil {
				return // It fits.
			}
			if problem := new(rendition.ConversionError); !errors.As(err, &problem) || !strings.Contains(problem.Message, tc.says) {
				t.Errorf("%s: %v", tc.why, err)
			}
		})
	}
}

// A JPEG with a hundred scans is accepted.
func TestProgressivePictureIsConverted(t *testing.T) {
	files := newMemory()
	if _, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, mediatest.Scans(80, 80, 99), jpegType), narrow); err != nil {
		t.Error(err)
	}
}

// inOwnProcess is the environment variable that names the test that a process runs.
const inOwnProcess = "HERALD_TEST_IN_OWN_PROCESS"

// alone reports whether this process runs only this test, so that mostTaken covers only its child processes. Otherwise
// it runs the test in its own process.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inOwnProcess) == t.Name() {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inOwnProcess+"="+t.Name())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// mostTaken returns the peak memory of this program's child processes, in MiB.
func mostTaken(t *testing.T) int64 {
	t.Helper()
	var used syscall.Rusage
	must.Succeed(t, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used))
	if runtime.GOOS != "linux" {
		return 0 // Other systems count it in bytes, and do not limit it.
	}
	return used.Maxrss >> 10
}

// Any upload becomes a complete image within the limits, or an error with its reason.
func FuzzMake(f *testing.F) {
	types := []string{jpegType, pngType, webpType}
	for i, names := range [][]string{{"picture.jpg", "full.jpg"}, {"picture.png"}, {"picture.webp", "lossless.webp", "transparent.webp", "animated.webp"}} {
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join("testdata", name))
			if errors.Is(err, os.ErrNotExist) {
				data, err = os.ReadFile(filepath.Join("..", "probe", "testdata", name))
			}
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, i)
		}
	}
	target := rendition.Target{Types: []string{jpegType, pngType}, MaxBytes: 4 << 10, MaxWidth: 48, MaxHeight: 48, MinAspect: 0.8, MaxAspect: 1.91}
	f.Fuzz(func(t *testing.T, data []byte, kind int) {
		if kind < 0 || kind >= len(types) || len(data) == 0 {
			return
		}
		files := newMemory()
		r, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, data, types[kind]), target)
		if problem := new(rendition.ConversionError); errors.As(err, &problem) {
			return
		}
		must.Succeed(t, err)
		facts, err := probe.Probe(bytes.NewReader(files.files[r.Key].data), r.Size, r.MIMEType)
		if err != nil || int(facts.Width) != r.Width || int(facts.Height) != r.Height {
			t.Errorf("created %+v, which is %+v, %v", r, facts, err)
		}
		if aspect := float64(r.Width) / float64(r.Height); r.Width > 48 || r.Height > 48 || r.Size > 4<<10 || aspect < 0.8 || aspect > 1.91 {
			t.Errorf("created %+v", r)
		}
	})
}
