// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
)

const jpegType, pngType, webpType = "image/jpeg", "image/png", "image/webp"

var (
	// narrow has Instagram's limits.
	narrow = rendition.Target{Types: []string{jpegType}, MaxBytes: 8 << 20, MinAspect: 0.8, MaxAspect: 1.91}
	both   = rendition.Target{Types: []string{jpegType, pngType}, MaxBytes: 8 << 20}
)

// sample reads a file of this package or of package probe.
func sample(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if errors.Is(err, os.ErrNotExist) {
		data, err = os.ReadFile(filepath.Join("..", "probe", "testdata", name))
	}
	must.Succeed(t, err)
	return data
}

func asPNG(t *testing.T, picture image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	must.Succeed(t, png.Encode(&out, picture))
	return out.Bytes()
}

func asJPEG(t *testing.T, picture image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	must.Succeed(t, jpeg.Encode(&out, picture, &jpeg.Options{Quality: 95}))
	return out.Bytes()
}

// quarters returns a picture whose quarters are red, green, blue and black, from left to right and from top to bottom.
func quarters(width, height int) *image.NRGBA {
	picture := image.NewNRGBA(image.Rect(0, 0, width, height))
	colors := [2][2]color.NRGBA{{{255, 0, 0, 255}, {0, 255, 0, 255}}, {{0, 0, 255, 255}, {0, 0, 0, 255}}}
	for y := range height {
		for x := range width {
			picture.SetNRGBA(x, y, colors[2*y/height][2*x/width])
		}
	}
	return picture
}

func noise(width, height int) *image.NRGBA {
	picture := image.NewNRGBA(image.Rect(0, 0, width, height))
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(picture.Pix)
	for i := 3; i < len(picture.Pix); i += 4 {
		picture.Pix[i] = 255
	}
	return picture
}

// turned puts an orientation into a JPEG.
func turned(data []byte, orientation byte) []byte {
	exif := []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00")
	exif = append(exif, orientation, 0, 0, 0, 0, 0, 0)
	return segment(data, 0xe1, exif)
}

// segment puts a part after the start of a JPEG.
func segment(data []byte, marker byte, content []byte) []byte {
	out := append([]byte(nil), data[:2]...)
	out = append(out, 0xff, marker)
	out = binary.BigEndian.AppendUint16(out, uint16(len(content)+2))
	return append(append(out, content...), data[2:]...)
}

// claims changes the size in the header of a PNG.
func claims(data []byte, width, height uint32) []byte {
	out := bytes.Clone(data)
	binary.BigEndian.PutUint32(out[16:], width)
	binary.BigEndian.PutUint32(out[20:], height)
	binary.BigEndian.PutUint32(out[29:], crc32.ChecksumIEEE(out[12:29]))
	return out
}

func TestMake(t *testing.T) {
	transparent := image.NewNRGBA(image.Rect(0, 0, 40, 40))
	for name, tc := range map[string]struct {
		why      string
		data     []byte
		mimeType string
		target   rendition.Target
		want     string
		w, h     int
	}{
		"png":                       {"Instagram accepts JPEG only", sample(t, "picture.png"), pngType, narrow, jpegType, 64, 48},
		"webp":                      {"Instagram accepts JPEG only", sample(t, "picture.webp"), webpType, narrow, jpegType, 64, 48},
		"lossless webp":             {"lossless WebP is another format inside", sample(t, "lossless.webp"), webpType, narrow, jpegType, 64, 48},
		"transparent webp":          {"JPEG is never transparent", sample(t, "transparent.webp"), webpType, narrow, jpegType, 64, 48},
		"transparent webp as png":   {"transparency remains if the platform supports it", sample(t, "transparent.webp"), webpType, both, pngType, 64, 48},
		"opaque webp":               {"PNG is for transparency only", sample(t, "picture.webp"), webpType, both, jpegType, 64, 48},
		"gray jpeg":                 {"a picture without colours", asJPEG(t, image.NewGray(image.Rect(0, 0, 64, 48))), jpegType, rendition.Target{MaxWidth: 32}, jpegType, 32, 24},
		"jpeg with all its colours": {"colours may be stored for every point", sample(t, "full.jpg"), jpegType, rendition.Target{MaxWidth: 32}, jpegType, 32, 24},
		"too wide":                  {"scaled", asPNG(t, quarters(300, 200)), pngType, rendition.Target{MaxWidth: 100}, jpegType, 100, 67},
		"too high":                  {"scaled", asPNG(t, quarters(200, 300)), pngType, rendition.Target{MaxHeight: 30}, jpegType, 20, 30},
		"small":                     {"never enlarged", asPNG(t, quarters(20, 20)), pngType, rendition.Target{Types: []string{jpegType}, MaxWidth: 1080}, jpegType, 20, 20},
		"panorama":                  {"bars above and below", asPNG(t, quarters(400, 100)), pngType, narrow, jpegType, 400, 210},
		"tower":                     {"borders left and right", asPNG(t, quarters(100, 400)), pngType, narrow, jpegType, 320, 400},
		"a line":                    {"bars may fill most of the rendition", asPNG(t, quarters(2000, 1)), pngType, narrow, jpegType, 2000, 1048},
		"very large":                {"4096 points suffice everywhere", asPNG(t, image.NewGray(image.Rect(0, 0, 6000, 3000))), pngType, narrow, jpegType, 4096, 2145},
		"turned jpeg":               {"the rendition needs no turning", turned(asJPEG(t, quarters(96, 64)), 6), jpegType, rendition.Target{MaxWidth: 32}, jpegType, 32, 48},
		"transparent png that is too wide": {
			"the copy stays transparent", asPNG(t, transparent), pngType, rendition.Target{Types: []string{jpegType, pngType}, MaxWidth: 20}, pngType, 20, 20,
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := newMemory()
			source := files.source(t, tc.data, tc.mimeType)
			r, err := rendition.NewRenderer(files).Make(t.Context(), source, tc.target)
			if err != nil {
				t.Fatalf("%s: %v", tc.why, err)
			}
			if r.MIMEType != tc.want || r.Width != tc.w || r.Height != tc.h {
				t.Errorf("%s: got %+v", tc.why, r)
			}
			data, err := files.read(r.Key, r.ETag)
			if err != nil || int64(len(data)) != r.Size {
				t.Fatalf("stored %d bytes, %v", len(data), err)
			}
			facts, err := probe.Probe(bytes.NewReader(data), r.Size, r.MIMEType)
			if err != nil || int(facts.Width) != tc.w || int(facts.Height) != tc.h {
				t.Errorf("the file is %+v, %v", facts, err)
			}
			if tc.target.MaxAspect > 0 {
				if aspect := float64(r.Width) / float64(r.Height); aspect < tc.target.MinAspect || aspect > tc.target.MaxAspect {
					t.Errorf("aspect %g", aspect)
				}
			}
		})
	}
}

// shown decodes the rendition of a file.
func shown(t *testing.T, data []byte, mimeType string, target rendition.Target) image.Image {
	t.Helper()
	files := newMemory()
	r, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, data, mimeType), target)
	must.Succeed(t, err)
	picture, _, err := image.Decode(bytes.NewReader(files.files[r.Key].data))
	must.Succeed(t, err)
	return picture
}

// name returns the approximate name of a color, since compression blurs it.
func name(c color.Color) string {
	r, g, b, a := c.RGBA()
	word := ""
	for _, part := range []uint32{r, g, b, a} {
		switch {
		case part > 0xd000:
			word += "1"
		case part < 0x3000:
			word += "0"
		default:
			word += "?"
		}
	}
	names := map[string]string{"1001": "red", "0101": "green", "0011": "blue", "0001": "black", "1111": "white", "0000": "clear"}
	if known, ok := names[word]; ok {
		return known
	}
	return word
}

func corners(picture image.Image) string {
	b := picture.Bounds()
	x, y := b.Dx()/8, b.Dy()/8
	at := func(x, y int) string { return name(picture.At(b.Min.X+x, b.Min.Y+y)) }
	return strings.Join([]string{at(x, y), at(b.Dx()-1-x, y), at(x, b.Dy()-1-y), at(b.Dx()-1-x, b.Dy()-1-y)}, " ")
}

func TestOrientation(t *testing.T) {
	upright := asJPEG(t, quarters(96, 64))
	for orientation, want := range map[byte]string{
		0: "red green blue black", // invalid
		1: "red green blue black",
		2: "green red black blue",
		3: "black blue green red",
		4: "blue black red green",
		5: "red blue green black",
		6: "blue red black green",
		7: "black green blue red",
		8: "green black red blue",
		9: "red green blue black", // invalid
	} {
		picture := shown(t, turned(upright, orientation), jpegType, rendition.Target{MaxHeight: 48})
		if got := corners(picture); got != want {
			t.Errorf("orientation %d shows %s, want %s", orientation, got, want)
		}
		if width := picture.Bounds().Dx(); (width == 32) != (orientation >= 5 && orientation <= 8) {
			t.Errorf("orientation %d is %d wide", orientation, width)
		}
	}
}

func TestTransparency(t *testing.T) {
	picture := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 32 {
			picture.SetNRGBA(x, y, color.NRGBA{255, 0, 0, 255})
		}
	}
	for target, want := range map[string]string{jpegType: "red white red white", pngType: "red clear red clear"} {
		got := corners(shown(t, asPNG(t, picture), pngType, rendition.Target{Types: []string{jpegType, target}, MaxWidth: 48}))
		if got != want {
			t.Errorf("%s shows %s", target, got)
		}
	}
	const above = "white " + "white"
	// A PNG of noise is longer than its JPEG, at any size.
	veiled := noise(300, 300)
	for y := range 150 {
		for x := range 300 {
			veiled.SetNRGBA(x, y, color.NRGBA{})
		}
	}
	large := shown(t, asPNG(t, veiled), pngType, rendition.Target{Types: []string{jpegType, pngType}, MaxBytes: 60 << 10})
	if got := corners(large); !strings.HasPrefix(got, above) {
		t.Errorf("a picture that does not fit as PNG shows %s", got)
	}
}

func TestBarsPreserveThePicture(t *testing.T) {
	picture := shown(t, asPNG(t, quarters(400, 100)), pngType, narrow)
	if picture.Bounds().Dy() != 210 {
		t.Fatalf("the rendition is %v", picture.Bounds())
	}
	for at, want := range map[image.Point]string{
		{200, 10}: "white", {200, 200}: "white", {10, 70}: "red", {390, 70}: "green", {10, 140}: "blue", {390, 140}: "black",
	} {
		if got := name(picture.At(at.X, at.Y)); got != want {
			t.Errorf("%v is %s, want %s", at, got, want)
		}
	}
}

func TestBytesFit(t *testing.T) {
	for bound, why := range map[int64]string{120 << 10: "lower quality suffices", 20 << 10: "it must become smaller", 2 << 10: "much smaller"} {
		files := newMemory()
		source := files.source(t, asPNG(t, noise(400, 300)), pngType)
		r, err := rendition.NewRenderer(files).Make(t.Context(), source, rendition.Target{Types: []string{jpegType}, MaxBytes: bound})
		if err != nil || r.Size > bound || r.Size < bound/4 {
			t.Errorf("%s: %d bytes for %d, %v", why, r.Size, bound, err)
		}
	}
}

// The meaning of colors must not be lost: a red in a wide-gamut profile is a different red.
func TestColorProfileIsPreserved(t *testing.T) {
	profile := make([]byte, 70_000)
	copy(profile[16:], "RGB ")
	copy(profile[len(profile)-4:], "end.")
	printing := bytes.Clone(profile)
	copy(printing[16:], "CMYK")
	// part inserts one of a profile's two parts before everything else.
	part := func(data []byte, number byte, profile []byte) []byte {
		return segment(data, 0xe2, append([]byte{'I', 'C', 'C', '_', 'P', 'R', 'O', 'F', 'I', 'L', 'E', 0, number, 2}, profile...))
	}
	withProfile := func(data, profile []byte) []byte {
		return part(part(data, 2, profile[60_000:]), 1, profile[:60_000])
	}
	jpegs := asJPEG(t, quarters(64, 64))
	glass := asPNG(t, image.NewNRGBA(image.Rect(0, 0, 64, 64)))
	for name, tc := range map[string]struct {
		data     []byte
		mimeType string
		target   rendition.Target
		want     []byte
	}{
		"copied into a jpeg":                        {withProfile(jpegs, profile), jpegType, rendition.Target{MaxWidth: 32}, profile},
		"copied if its parts are reversed":          {part(part(jpegs, 1, profile[:60_000]), 2, profile[60_000:]), jpegType, rendition.Target{MaxWidth: 32}, profile},
		"omitted without its first part":            {part(jpegs, 2, profile[60_000:]), jpegType, rendition.Target{MaxWidth: 32}, nil},
		"omitted with a duplicate part":             {part(part(jpegs, 1, profile[:60_000]), 1, profile[:60_000]), jpegType, rendition.Target{MaxWidth: 32}, nil},
		"a print profile is dropped":                {withProfile(jpegs, printing), jpegType, rendition.Target{MaxWidth: 32}, nil},
		"none":                                      {jpegs, jpegType, rendition.Target{MaxWidth: 32}, nil},
		"omitted from a png":                        {glass, pngType, rendition.Target{MaxWidth: 32}, nil},
		"copied into a png created by this package": {nil, pngType, rendition.Target{MaxWidth: 32}, profile},
	} {
		t.Run(name, func(t *testing.T) {
			files := newMemory()
			maker := rendition.NewRenderer(files)
			if tc.data == nil {
				tc.data = pngWithProfile(t, glass, profile)
			}
			r, err := maker.Make(t.Context(), files.source(t, tc.data, tc.mimeType), tc.target)
			must.Succeed(t, err)
			h, err := probe.ReadHeader(bytes.NewReader(files.files[r.Key].data), r.Size, r.MIMEType)
			if err != nil || !bytes.Equal(h.Profile, tc.want) {
				t.Errorf("%s has a profile of %d bytes, want %d, %v", r.MIMEType, len(h.Profile), len(tc.want), err)
			}
		})
	}
}

func TestUnconvertibleFiles(t *testing.T) {
	whole := sample(t, "picture.jpg")
	for name, tc := range map[string]struct {
		why      string
		data     []byte
		mimeType string
		says     string
	}{
		"a bomb":                   {"a small file that declares a gigapixel", claims(sample(t, "picture.png"), 40_000, 40_000), pngType, "40000 × 40000 pixels, which are too many"},
		"a bomb with a false size": {"the header exceeds the content", claims(sample(t, "picture.png"), 4000, 4000), pngType, "damaged"},
		"cut header":               {"an incomplete header", whole[:len(whole)/4], jpegType, "damaged"},
		"cut webp":                 {"an incomplete picture", sample(t, "picture.webp")[:400], webpType, "damaged"},
		"no picture":               {"the content is not an image", []byte("no picture at all"), pngType, "damaged"},
		"animated webp":            {"a single frame would be misleading", sample(t, "animated.webp"), webpType, "animation"},
		"another kind":             {"only images are", sample(t, "faststart.mp4"), "video/mp4", "damaged"},
		"bytes that cannot":        {"the size limit cannot be met", asPNG(t, noise(64, 64)), pngType, "small enough"},
	} {
		t.Run(name, func(t *testing.T) {
			files := newMemory()
			target := narrow
			if tc.says == "small enough" {
				target.MaxBytes = 10
			}
			_, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, tc.data, tc.mimeType), target)
			var problem *rendition.ConversionError
			if !errors.As(err, &problem) || !strings.Contains(problem.Message, tc.says) {
				t.Errorf("%s: %v", tc.why, err)
			}
			if files.puts != 0 {
				t.Error("a rendition was stored")
			}
		})
	}
}

func TestStoreErrorsAreNotTheFiles(t *testing.T) {
	files := newMemory()
	source := files.source(t, sample(t, "picture.png"), pngType)
	boom := errors.New("boom")
	files.openErr, files.cutAt = boom, 200
	_, err := rendition.NewRenderer(files).Make(t.Context(), source, narrow)
	if problem := new(rendition.ConversionError); !errors.Is(err, boom) || errors.As(err, &problem) {
		t.Errorf("got %v", err)
	}
	source.ETag = "another"
	if _, err := rendition.NewRenderer(files).Make(t.Context(), source, narrow); !errors.Is(err, store.ErrChanged) {
		t.Errorf("a changed source: %v", err)
	}
}

func TestImageWaitsForASlot(t *testing.T) {
	slow, started, goOn := newMemory(), make(chan struct{}), make(chan struct{})
	source := slow.source(t, sample(t, "picture.png"), pngType)
	maker := rendition.NewRendererWithSlots(stopping{slow, started, goOn}, 1)
	var other sync.WaitGroup
	other.Go(func() {
		if _, err := maker.Make(t.Context(), source, narrow); err != nil {
			t.Error(err)
		}
	})
	<-started
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := maker.Make(short, source, both); !errors.Is(err, rendition.ErrBusy) || !errors.Is(err, context.Canceled) {
		t.Errorf("while another conversion runs: %v", err)
	}
	close(goOn)
	other.Wait()
	if _, err := maker.Make(t.Context(), source, both); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestRenditionIsCreatedOnce(t *testing.T) {
	files := newMemory()
	source := files.source(t, sample(t, "picture.png"), pngType)
	maker := rendition.NewRenderer(files)
	if _, err := maker.Find(t.Context(), source, narrow); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("found before it was created: %v", err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := maker.Make(t.Context(), source, narrow); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	first, err := maker.Make(t.Context(), source, narrow)
	if err != nil || files.puts != 1 {
		t.Fatalf("created %d times, %v", files.puts, err)
	}
	files.looks = 0
	found, err := maker.Find(t.Context(), source, narrow)
	if err != nil || found != first || files.looks != 0 {
		t.Errorf("this process finds %+v after %d requests, %v", found, files.looks, err)
	}
	other := rendition.NewRenderer(files)
	if found, err := other.Find(t.Context(), source, narrow); err != nil || found != first || files.looks != 1 {
		t.Errorf("another process finds %+v after %d requests, %v", found, files.looks, err)
	}
	if again, err := other.Make(t.Context(), source, narrow); err != nil || again != first || files.puts != 1 {
		t.Errorf("another process makes %+v, %v", again, err)
	}

	delete(files.files, first.Key)
	if _, err := maker.Make(t.Context(), source, narrow); err != nil || files.puts != 2 {
		t.Errorf("a deleted rendition is not created again: %v", err)
	}
	other.Forget(first)
	files.looks = 0
	if _, err := other.Find(t.Context(), source, narrow); err != nil || files.looks != 1 {
		t.Errorf("a forgotten rendition is not requested: %v", err)
	}
}

// Other processes and later versions rely on a rendition's key: if it changes, every rendition is made again.
func TestKeys(t *testing.T) {
	source := rendition.Source{Key: "team/uid", ETag: "e1", MIMEType: pngType, Size: 5}
	if got, want := rendition.Key(source, narrow), "team/uid.dd390af582efd9fce1a95fdc7a7b57d5"; got != want {
		t.Errorf("the key is %s, was %s", got, want)
	}
	seen := map[string]string{}
	changed := source
	changed.ETag = "e2"
	for name, key := range map[string]string{
		"first":          rendition.Key(source, narrow),
		"other bytes":    rendition.Key(changed, narrow),
		"other platform": rendition.Key(source, both),
		"other file":     rendition.Key(rendition.Source{Key: "team/other", ETag: "e1"}, narrow),
	} {
		if other, ok := seen[key]; ok {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[key] = name
	}
}
