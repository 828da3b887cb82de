// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/probe"
)

// with returns data with the bytes at the given offset replaced.
func with(data []byte, at int, b ...byte) []byte {
	out := bytes.Clone(data)
	copy(out[at:], b)
	return out
}

// TestUnsupportedFormats checks that a file that other programs can read is not reported as damaged: exporting
// it the same way again would not help.
func TestUnsupportedFormats(t *testing.T) {
	jpeg := file(t, "picture.jpg")
	frame := bytes.Index(jpeg, []byte{0xff, 0xc0, 0, 17, 8})
	if frame < 0 {
		t.Fatal("the sample has no frame of three colours")
	}
	const precision, height, sampling, next = 4, 5, 11, 3
	sampled := func(factors ...byte) []byte {
		out := jpeg
		for i, factor := range factors {
			out = with(out, frame+sampling+next*i, factor)
		}
		return out
	}
	for name, tc := range map[string]struct {
		why  string
		data []byte
		says string
	}{
		"arithmetic":    {"cjpeg -arithmetic", file(t, "arithmetic.jpg"), "arithmetic coding"},
		"deep":          {"medical pictures have 12 bits", with(with(jpeg, frame+1, 0xc1), frame+precision, 12), "12 bits a channel"},
		"lossless":      {"lossless coding is rejected as well", with(jpeg, frame+1, 0xc3), "lossless coding"},
		"JPEG-LS":       {"another standard under the same name", with(jpeg, frame+1, 0xf7), "JPEG-LS"},
		"hierarchical":  {"no program writes it, and it is in the standard", with(jpeg, frame+1, 0xc5), "hierarchical coding"},
		"by three":      {"cjpeg -sample 3x1", sampled(0x31, 0x11, 0x11), "sampled as 3x1,1x1,1x1"},
		"by four":       {"cjpeg -sample 1x4", sampled(0x14, 0x11, 0x11), "sampled as 1x4,1x1,1x1"},
		"unlike":        {"cjpeg -sample 2x2,1x2", sampled(0x22, 0x12, 0x11), "sampled as 2x2,1x2,1x1"},
		"height behind": {"some scanners only know the height at the end", with(jpeg, frame+height, 0, 0), "a height that only follows"},
	} {
		t.Run(name, func(t *testing.T) {
			facts, err := probe.Probe(bytes.NewReader(tc.data), int64(len(tc.data)), jpegType)
			problem, ok := errors.AsType[*probe.InvalidFileError](err)
			if !ok {
				t.Fatalf("%s: got %+v, %v", tc.why, facts, err)
			}
			if problem.Reason != v1alpha1.ReasonUnsupported || !strings.Contains(problem.Message, tc.says) || !strings.Contains(problem.Message, "baseline") {
				t.Errorf("%s: got %s: %s", tc.why, problem.Reason, problem.Message)
			}
		})
	}
}

// TestTruncatedJPEGs checks that a JPEG without its end marker is accepted if it certainly has all of its pixels.
func TestTruncatedJPEGs(t *testing.T) {
	const mark, pixels = 2, 4
	for name, tc := range map[string]struct {
		why   string
		data  []byte
		taken bool
	}{
		"plain":       {"colours for every fourth point", file(t, "picture.jpg"), true},
		"restarts":    {"marks between the rows", file(t, "restarts.jpg"), true},
		"channels":    {"one after another", file(t, "channels.jpg"), true},
		"progressive": {"later scans refine it, so no scan determines it", file(t, "progressive.jpg"), false},
	} {
		t.Run(name, func(t *testing.T) {
			probed := func(data []byte) error {
				_, err := probe.Probe(bytes.NewReader(data), int64(len(data)), jpegType)
				return err
			}
			if err := probed(tc.data); err != nil {
				t.Fatalf("the complete file returned %v", err)
			}
			if err := probed(tc.data[:len(tc.data)-mark]); (err == nil) != tc.taken {
				t.Errorf("%s: without the mark: %v", tc.why, err)
			}
			if err := probed(tc.data[:len(tc.data)-mark-pixels]); err == nil {
				t.Errorf("%s: accepted without its last pixels", tc.why)
			}
		})
	}
}

// TestSeveralPictures checks that a JPEG with more pictures after the first, as written by 3D cameras and phones with
// HDR, is recognized.
func TestSeveralPictures(t *testing.T) {
	jpeg := file(t, "picture.jpg")
	for name, tc := range map[string]struct {
		why  string
		data []byte
		want bool
	}{
		"one":            {"no data follows it", jpeg, false},
		"several":        {"the list of pictures comes first", join(jpeg[:2], "\xff\xe2\x00\x0aMPF\x00II*\x00", jpeg[2:], jpeg), true},
		"not in a list":  {"data after it does not matter", join(jpeg, jpeg), false},
		"a like segment": {"other data uses the same marker", join(jpeg[:2], "\xff\xe2\x00\x0aMPX\x00II*\x00", jpeg[2:]), false},
	} {
		t.Run(name, func(t *testing.T) {
			facts, err := probe.Probe(bytes.NewReader(tc.data), int64(len(tc.data)), jpegType)
			if err != nil || facts.MultiPicture != tc.want {
				t.Errorf("%s: got %+v, %v", tc.why, facts, err)
			}
		})
	}
}
