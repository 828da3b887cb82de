// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location_test

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	_ "golang.org/x/image/webp"

	"github.com/herald-social/herald/internal/media/location"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/test/must"
)

const (
	jpegType, pngType, webpType, mp4Type, movType = "image/jpeg", "image/png", "image/webp", "video/mp4", "video/quicktime"
)

// file is a test file, with the data that must be removed and the data that must stay.
type file struct {
	reason, mimeType string
	data             []byte
	gone, kept       []string
}

// files returns files with a location, in every known form.
func files(tb testing.TB) map[string]file {
	tb.Helper()
	all := map[string]file{}
	for _, part := range []map[string]file{photos(tb), drawings(tb), films(tb)} {
		maps.Copy(all, part)
	}
	return all
}

func photos(tb testing.TB) map[string]file {
	tb.Helper()
	big, little := string(latitude(binary.BigEndian)), string(latitude(binary.LittleEndian))
	const moon = "by the moon"
	extended := placedXMP()
	cut := len(extended) / 2
	extension := func(from, to int) []byte {
		return segment(0xe1, "http://ns.adobe.com/xmp/extension/\x00", strings.Repeat("A", 32), words(uint32(len(extended)), uint32(from)), extended[from:to])
	}
	return map[string]file{
		"exif, big-endian":    {"cameras write big-endian", jpegType, placed(tb), []string{big, moon}, []string{camera, note, title}},
		"exif, little-endian": {"phones write little-endian", jpegType, photo(tb, segment(0xe1, "Exif\x00\x00", exif(binary.LittleEndian))), []string{little, moon}, []string{camera, note, title}},
		"xmp":                 {"programs write XMP", jpegType, photo(tb, segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00", placedXMP())), told, []string{"Herald 1 > 0", "<xmp:Label>kept"}},
		"xmp that is no xml": {
			"the location cannot be separated from the rest", jpegType,
			photo(tb, segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00", `<x exif:GPSLatitude="47,22.1"`)),
			[]string{"47,22.1"},
			nil,
		},
		"xmp of 16 bits": {
			"both encodings of XMP contain a location", jpegType,
			photo(tb, segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00", strings.Join(strings.Split(`<x exif:GPSLatitude="47,22.1"/>`, ""), "\x00"))),
			[]string{"4\x007"},
			nil,
		},
		"xmp in two parts": {
			"a long part is cut, here within a property; parts may be in any order", jpegType,
			photo(tb, extension(cut, len(extended)), extension(0, cut)),
			[]string{"47,22.1", "Zurich", "Oerlikon", "Bellevue"},
			[]string{"Herald 1"},
		},
		"iptc": {
			"agencies write IPTC", jpegType, photo(tb, segment(0xed, "Photoshop 3.0\x00", iptc())),
			[]string{"Zurich", "Switzerland"},
			[]string{"A headline"},
		},
		"iptc in two parts": {
			"resources continue in the next segment", jpegType,
			photo(tb, segment(0xed, "Photoshop 3.0\x00", iptc()[:20]), segment(0xed, "Photoshop 3.0\x00", iptc()[20:])),
			[]string{"Switzerland"},
			[]string{"A headline"},
		},
		"gopro": {
			"photos and films have the same location data", jpegType, photo(tb, segment(0xe6, "GoPro\x00DEVC....GPS5 47221")), []string{"47221"}, nil,
		},
		"metadata in metadata": {
			"EXIF may contain the other two", jpegType,
			photo(tb, segment(0xe1, "Exif\x00\x00", func() []byte {
				data := make([]byte, 3000)
				xmp := placedXMP()
				copy(data, directory(binary.BigEndian, 8, 0, field{0x02bc, 1, uint32(len(xmp)), []byte(xmp)}, field{0x8649, 1, uint32(len(iptc())), iptc()}))
				return join("MM\x00*", words(8), data)
			}())),
			append([]string{"Switzerland"}, told...),
			[]string{"A headline", "<xmp:Label>kept"},
		},
		"pictures behind": {
			"larger previews and gain maps have their own metadata", jpegType,
			join(photo(tb), placed(tb), "filling", placed(tb)),
			[]string{big},
			[]string{camera},
		},
		"a photo that moves": {
			"a film is appended", jpegType, join(photo(tb), movie(nil, box("udta", box("\xa9xyz", "+47.2+008.5/"))), "a trailer"), []string{"+47.2"}, []string{"a trailer"},
		},
		"a directory twice": {
			"an IFD is listed twice, and its values are inside another", jpegType,
			photo(tb, segment(0xe1, "Exif\x00\x00", exif(binary.BigEndian, field{0x8825, 4, 1, words(200)}))),
			[]string{big},
			[]string{camera, note},
		},
		"a directory of itself": {
			"the location is in the first directory, which remains", jpegType,
			photo(tb, segment(0xe1, "Exif\x00\x00", exif(binary.BigEndian, field{0x8825, 4, 1, words(8)}))),
			[]string{big},
			[]string{camera, note},
		},
	}
}

func drawings(tb testing.TB) map[string]file {
	tb.Helper()
	big := string(latitude(binary.BigEndian))
	digits := "0000002f000000010000001600000001"
	return map[string]file{
		"png exif":        {"PNG has a chunk for Exif", pngType, drawing(tb, chunk("eXIf", exif(binary.BigEndian)), nil), []string{big}, []string{camera}},
		"png exif behind": {"EXIF may follow the pixels", pngType, drawing(tb, nil, chunk("eXIf", exif(binary.BigEndian))), []string{big}, []string{camera}},
		"png xmp": {
			"PNG has a chunk for it", pngType, drawing(tb, chunk("iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00", placedXMP()), nil), told, []string{"<xmp:Label>kept"},
		},
		"png xmp, compressed": {
			"a compressed text is emptied completely", pngType, drawing(tb, chunk("iTXt", "XML:com.adobe.xmp\x00\x01\x00\x00\x00", compressed([]byte(placedXMP()))), nil), []string{"XML:com.adobe.xmp"}, []string{"tEXtComment"},
		},
		"png raw exif": {"ImageMagick's way", pngType, drawing(tb, chunk("tEXt", "Raw profile type exif\x00", raw("exif", join("Exif\x00\x00", exif(binary.BigEndian)))), nil), []string{"Raw profile", digits}, nil},
		"png raw exif, compressed": {
			"the same, older", pngType,
			drawing(tb, chunk("zTXt", "Raw profile type APP1\x00\x00", compressed(raw("exif", join("Exif\x00\x00", exif(binary.BigEndian))))), nil),
			[]string{"Raw profile"},
			nil,
		},
		"png raw xmp":   {"ImageMagick stores other files' metadata like this", pngType, drawing(tb, chunk("zTXt", "Raw profile type xmp\x00\x00", compressed(raw("xmp", []byte(placedXMP())))), nil), []string{"Raw profile"}, nil},
		"png raw iptc":  {"ImageMagick stores other files' metadata like this", pngType, drawing(tb, chunk("zTXt", "Raw profile type iptc\x00\x00", compressed(raw("iptc", iptc()))), nil), []string{"Raw profile"}, nil},
		"png property":  {"ImageMagick stores other files' metadata like this", pngType, drawing(tb, chunk("tEXt", "exif:GPSLatitude\x0047/1, 22/1"), nil), []string{"47/1"}, nil},
		"webp metadata": {"WebP has chunks for it", webpType, web(tb, webChunk("EXIF", exif(binary.LittleEndian)), webChunk("XMP ", placedXMP())), append([]string{string(latitude(binary.LittleEndian))}, told...), []string{camera, "<xmp:Label>kept"}},
		"webp exif with a prefix": {
			"some programs put that of JPEG in front", webpType, web(tb, webChunk("EXIF", "Exif\x00\x00", exif(binary.BigEndian))), []string{big}, []string{camera},
		},
	}
}

// TestFind checks that a file's location is removed, and nothing else.
func TestFind(t *testing.T) {
	for name, f := range files(t) {
		t.Run(name, func(t *testing.T) {
			after := cleaned(t, f.data, f.mimeType)
			if bytes.Equal(after, f.data) {
				t.Fatalf("%s: the file was not changed", f.reason)
			}
			for _, gone := range f.gone {
				if !bytes.Contains(f.data, []byte(gone)) {
					t.Errorf("the test is wrong: %q is not in the file", gone)
				}
				if bytes.Contains(after, []byte(gone)) {
					t.Errorf("%s: %q is still there", f.reason, gone)
				}
			}
			for _, kept := range f.kept {
				if bytes.Count(after, []byte(kept)) < max(bytes.Count(f.data, []byte(kept)), 1) {
					t.Errorf("%s: %q is missing", f.reason, kept)
				}
			}
		})
	}
}

// TestFindWithoutLocation checks that a file without a location stays unchanged.
func TestFindWithoutLocation(t *testing.T) {
	const tag = "keywords=\"GPS\""
	for name, f := range map[string]file{
		"photo":        {"without metadata", jpegType, photo(t), nil, nil},
		"xmp":          {"a word in the text is not a property", jpegType, photo(t, segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00", packet(tag, "<xmp:Note>Latitude: none</xmp:Note>"))), nil, nil},
		"cleaned":      {"a cleaned file has no location", jpegType, cleaned(t, placed(t), jpegType), nil, nil},
		"png":          {"without metadata", pngType, drawing(t, chunk("tEXt", "Comment\x00GPS"), nil), nil, nil},
		"png workflow": {"long texts of programs are not its business", pngType, drawing(t, chunk("tEXt", "workflow\x00", `{"GPSLatitude": 1}`), nil), nil, nil},
		"webp":         {"without metadata", webpType, web(t), nil, nil},
		"film":         {"without metadata", mp4Type, movie(nil, box("udta", box("\xa9nam", "GPS"))), nil, nil},
		"film of an iPhone without places": {
			"the file's tracks contain other data", movType,
			movie(make([]byte, 100), trak(samples{handler: "meta", id: 2, format: mebx("com.apple.quicktime.video-orientation"), offsets: []uint32{mediaAt}, sizes: []uint32{100}})), nil, nil,
		},
		"film with subtitles": {
			"people talk", mp4Type,
			movie([]byte("\x00\x13Where is your GPS, Bob?"), trak(samples{handler: "sbtl", id: 2, format: box("tx3g", make([]byte, 38)), offsets: []uint32{mediaAt}, sizes: []uint32{25}})), nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if after := cleaned(t, f.data, f.mimeType); !bytes.Equal(after, f.data) {
				t.Errorf("%s: it was changed", f.reason)
			}
		})
	}
}

// TestOtherEXIFIsPreserved checks that all other EXIF entries can still be read.
func TestOtherEXIFIsPreserved(t *testing.T) {
	for name, order := range map[string]binary.ByteOrder{"big-endian": binary.BigEndian, "little-endian": binary.LittleEndian} {
		t.Run(name, func(t *testing.T) {
			before := exif(order)
			const at = 4 + 6 + 2
			after := cleaned(t, photo(t, segment(0xe1, "Exif\x00\x00", before)), jpegType)[at:][:len(before)]
			want := entries(t, before)
			delete(want, 0x8825)
			got := entries(t, after)
			for tag, value := range want {
				if got[tag] != value {
					t.Errorf("tag %#x is %q, want %q", tag, got[tag], value)
				}
			}
			if len(got) != len(want) {
				t.Errorf("got %d tags, want %d: %v", len(got), len(want), got)
			}
		})
	}
}

// TestPixelsRemain checks with independent decoders that a picture is the same.
func TestPixelsRemain(t *testing.T) {
	for name, f := range files(t) {
		if !strings.HasPrefix(f.mimeType, "image/") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			before, _, err := image.Decode(bytes.NewReader(f.data))
			must.Succeed(t, err)
			after, _, err := image.Decode(bytes.NewReader(cleaned(t, f.data, f.mimeType)))
			if err != nil {
				t.Fatalf("%s: the cleaned file cannot be decoded: %v", f.reason, err)
			}
			bounds := before.Bounds()
			for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
				for x := bounds.Min.X; x < bounds.Max.X; x++ {
					if before.At(x, y) != after.At(x, y) {
						t.Fatalf("%s: the pixel at %d, %d was changed", f.reason, x, y)
					}
				}
			}
		})
	}
}

// cleaned returns a file without its location, and checks the invariants of cleaned files.
func cleaned(tb testing.TB, data []byte, mimeType string) []byte {
	tb.Helper()
	size := int64(len(data))
	found, err := location.Find(bytes.NewReader(data), size, mimeType)
	must.Succeed(tb, err)
	last := int64(0)
	for start, end := range found.Ranges() {
		if start < last || end <= start || end > size {
			tb.Fatalf("a patch from %d to %d follows one up to %d, in a file of %d bytes", start, end, last, size)
		}
		last = end
	}
	after := apply(tb, found, data, 0)
	if len(after) != len(data) {
		tb.Fatalf("the file has %d bytes, and had %d", len(after), len(data))
	}
	for _, from := range []int{1, len(data) / 3, len(data) / 2, len(data) - 1} {
		if part := apply(tb, found, data, from); !bytes.Equal(part, after[from:]) {
			tb.Errorf("the part from %d on differs from the whole file", from)
		}
	}
	if again, err := location.Find(bytes.NewReader(after), size, mimeType); err != nil || !again.Empty() {
		tb.Errorf("the cleaned file has a location: %v, %v", slices.Collect(starts(again)), err)
	}
	before, err := probe.Probe(bytes.NewReader(data), size, mimeType)
	if err != nil {
		return after
	}
	if facts, err := probe.Probe(bytes.NewReader(after), size, mimeType); err != nil || facts != before {
		tb.Errorf("the file is %+v (%v), and was %+v", facts, err, before)
	}
	return after
}

func starts(p location.Patches) func(func(int64) bool) {
	return func(yield func(int64) bool) {
		for start := range p.Ranges() {
			if !yield(start) {
				return
			}
		}
	}
}

// apply reads a patched file from the given offset, in small parts.
func apply(tb testing.TB, p location.Patches, data []byte, from int) []byte {
	tb.Helper()
	body := p.Reader(io.NopCloser(&slow{data: data[from:]}), int64(from))
	after, err := io.ReadAll(body)
	must.Succeed(tb, err)
	return after
}

// slow reads a file in parts of varying lengths.
type slow struct {
	data []byte
	n    int
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	s.n = s.n%97 + 1
	n := copy(p[:min(len(p), s.n)], s.data)
	s.data = s.data[n:]
	return n, nil
}
