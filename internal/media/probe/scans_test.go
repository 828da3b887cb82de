// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/iotest"

	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/test/must"
)

func TestScans(t *testing.T) {
	const scan = "\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00" + "pixels\xff\x00\xff\xd0\xff\xff"
	preview := "\xff\xe1\x00\x20Exif\x00\x00\xff\xd8" + scan
	photo, err := os.ReadFile("testdata/picture.jpg")
	must.Succeed(t, err)
	for name, tc := range map[string]struct {
		why    string
		file   string
		most   int
		refuse bool
	}{
		"a photo":               {"a photo has one scan", string(photo), 1, false},
		"a photo, none allowed": {"no scan is allowed", string(photo), 0, true},
		"the maximum":           {"the bound is inclusive", "\xff\xd8" + scan + scan + scan + "\xff\xd9", 3, false},
		"one scan too many":     {"each scan costs a pass", "\xff\xd8" + scan + scan + scan + scan + "\xff\xd9", 3, true},
		"a preview inside":      {"metadata contains a preview", "\xff\xd8" + preview[:34] + scan + "\xff\xd9", 1, false},
		"behind its end":        {"decoders stop at the end marker", "\xff\xd8" + scan + "\xff\xd9" + scan, 1, true},
		"cut off":               {"the decoder reports it", "\xff\xd8\xff\xe1\xff", 0, false},
		"a length of zero":      {"the decoder reports it", "\xff\xd8\xff\xe1\x00\x00" + scan, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, from := range map[string]io.Reader{"at once": bytes.NewReader([]byte(tc.file)), "byte by byte": iotest.OneByteReader(bytes.NewReader([]byte(tc.file)))} {
				got, err := io.ReadAll(&probe.Scans{From: from, Most: tc.most})
				if errors.Is(err, probe.ErrScans) != tc.refuse || !tc.refuse && (err != nil || string(got) != tc.file) {
					t.Errorf("%s: %v after %d of %d bytes: %s", kind, err, len(got), len(tc.file), tc.why)
				}
			}
		})
	}
}

// FuzzScans checks that the data is unchanged, and that the count is the same regardless of the sizes of the reads.
func FuzzScans(f *testing.F) {
	photo, err := os.ReadFile("testdata/picture.jpg")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(photo)
	f.Add([]byte("\xff\xd8\xff\xda\x00\x02\xff\xda\x00\x02"))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, err := io.ReadAll(&probe.Scans{From: bytes.NewReader(data), Most: 2})
		parts, other := io.ReadAll(&probe.Scans{From: iotest.HalfReader(bytes.NewReader(data)), Most: 2})
		if !bytes.Equal(whole, parts) || !errors.Is(other, err) || !bytes.HasPrefix(data, whole) || err == nil && len(whole) != len(data) {
			t.Errorf("%d bytes, %v; %d bytes, %v", len(whole), err, len(parts), other)
		}
	})
}
