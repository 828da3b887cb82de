// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"errors"
	"image/png"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/probe"
)

// TestDamagedChunks checks that a PNG is rejected early if the reference decoder rejects it, and decoded otherwise.
func TestDamagedChunks(t *testing.T) {
	picture := file(t, "picture.png")
	const header, end = 33, 12
	wrong := func(kind string, data []byte) []byte {
		c := chunk(kind, data)
		c[len(c)-1] ^= 1
		return c
	}
	pixels := bytes.Index(picture, []byte("IDAT")) - 4
	behind := len(picture) - end
	damagedPixels := bytes.Clone(picture)
	damagedPixels[pixels+20] ^= 1
	head := bytes.Clone(picture)
	head[header-1] ^= 1
	for name, tc := range map[string]struct {
		why  string
		data []byte
		says string
	}{
		"whole":                {"the file is complete", picture, ""},
		"a text":               {"libpng warns and continues", join(picture[:header], wrong("tEXt", []byte("Comment\x00hello")), picture[header:]), ""},
		"transparency":         {"libpng ignores it", join(picture[:header], wrong("tRNS", make([]byte, 6)), picture[header:]), ""},
		"transparency twice":   {"libpng ignores the second", join(picture[:header], chunk("tRNS", make([]byte, 6)), chunk("tRNS", make([]byte, 6)), picture[header:]), ""},
		"a text behind":        {"every pixel exists", join(picture[:behind], wrong("tEXt", []byte("Comment\x00hello")), picture[behind:]), ""},
		"nonsense behind":      {"every pixel exists", join(picture[:behind], words(1<<30), "tEXt", picture[behind:]), ""},
		"text among pixels":    {"not allowed, and harmless", join(picture[:behind], chunk("tEXt", nil), chunk("IDAT", nil), picture[behind:]), ""},
		"pixels":               {"libpng refuses it", damagedPixels, "its part IDAT"},
		"the header":           {"the file cannot be parsed", head, "its header"},
		"pixels behind pixels": {"libpng refuses it", join(picture[:behind], wrong("IDAT", nil), picture[behind:]), "its part IDAT"},
		"cut pixels":           {"their length exceeds the file", join(picture[:behind], words(1<<30), "IDAT", picture[behind:]), "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			facts, err := probe.Probe(bytes.NewReader(tc.data), int64(len(tc.data)), pngType)
			if problem, ok := errors.AsType[*probe.InvalidFileError](err); tc.says != "" {
				if !ok || problem.Reason != v1alpha1.ReasonDamaged || !strings.Contains(problem.Message, tc.says) {
					t.Errorf("%s: got %+v, %v", tc.why, facts, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.why, err)
			}
			for kind, from := range map[string]io.Reader{"at once": bytes.NewReader(tc.data), "byte by byte": iotest.OneByteReader(bytes.NewReader(tc.data))} {
				if _, err := png.Decode(&probe.Chunks{From: from}); err != nil {
					t.Errorf("%s: decoded %s: %v", tc.why, kind, err)
				}
			}
		})
	}
}

// TestChunksReturnReadErrors checks that an unreadable file is not reported as damaged.
func TestChunksReturnReadErrors(t *testing.T) {
	boom := errors.New("boom")
	picture := file(t, "picture.png")
	const sum = 4 // after the end chunk, which nothing needs
	for n := range len(picture) - sum {
		if _, err := io.ReadAll(&probe.Chunks{From: io.MultiReader(bytes.NewReader(picture[:n]), iotest.ErrReader(boom))}); !errors.Is(err, boom) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// FuzzChunks checks that if a PNG's configuration can be decoded, it can also be decoded without the chunks that the
// picture does not need, and has the same dimensions.
func FuzzChunks(f *testing.F) {
	f.Add(file(f, "picture.png"))
	f.Fuzz(func(t *testing.T, data []byte) {
		want, err := png.DecodeConfig(bytes.NewReader(data))
		if err != nil {
			_, _ = io.ReadAll(&probe.Chunks{From: bytes.NewReader(data)})
			return
		}
		got, err := png.DecodeConfig(&probe.Chunks{From: bytes.NewReader(data)})
		if err != nil || got.Width != want.Width || got.Height != want.Height {
			t.Errorf("got %d × %d, %v", got.Width, got.Height, err)
		}
	})
}
