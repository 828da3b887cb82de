// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/test/must"
)

// chromaticities returns the content of cHRM.
func chromaticities(values ...float64) []byte {
	var out []byte
	for _, value := range values {
		out = binary.BigEndian.AppendUint32(out, uint32(math.Round(value*100_000)))
	}
	return out
}

// TestColors checks how a PNG's color chunks are interpreted.
func TestColors(t *testing.T) {
	png := file(t, "picture.png")
	const header = 33
	chunks := func(parts ...[]byte) []byte { return join(png[:header], bytes.Join(parts, nil), png[header:]) }
	cicp := func(numbers ...byte) []byte { return chunk("cICP", numbers) }
	gamma := func(value uint32) []byte { return chunk("gAMA", words(value)) }
	srgb := chunk("cHRM", chromaticities(0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06))
	wide := chunk("cHRM", chromaticities(0.3127, 0.329, 0.64, 0.33, 0.21, 0.71, 0.15, 0.06))
	for name, tc := range map[string]struct {
		why      string
		data     []byte
		gamma    float64
		profiled bool
		refused  string
	}{
		"nothing":            {"the default is sRGB", png, 0, false, ""},
		"sRGB by cICP":       {"cICP may name sRGB", chunks(cicp(1, 13, 0, 1)), 0, false, ""},
		"BT.709 by cICP":     {"screens show it as sRGB", chunks(cicp(1, 1, 0, 1)), 0, false, ""},
		"Display P3":         {"phones and Macs use it", chunks(cicp(12, 13, 0, 1)), 0, true, ""},
		"BT.2020":            {"the widest color space without HDR", chunks(cicp(9, 14, 0, 1)), 0, true, ""},
		"linear by cICP":     {"renderers write it", chunks(cicp(1, 8, 0, 1)), 1, false, ""},
		"gamma by cICP":      {"European television uses this transfer function", chunks(cicp(1, 5, 0, 1)), 1 / 2.8, false, ""},
		"PQ":                 {"brightness of HDR would be lost", chunks(cicp(9, 16, 0, 1)), 0, true, "HDR picture (PQ)"},
		"HLG":                {"the other HDR transfer function", chunks(cicp(9, 18, 0, 1)), 0, true, "HDR picture (HLG)"},
		"narrow range":       {"black would be gray", chunks(cicp(1, 13, 0, 0)), 0, false, "narrow range"},
		"before others":      {"cICP takes precedence", chunks(gamma(100_000), wide, cicp(1, 13, 0, 1)), 0, false, ""},
		"before a profile":   {"cICP counts first", chunks(cicp(12, 13, 0, 1), chunk("iCCP", []byte("x\x00\x00nonsense"))), 0, true, ""},
		"unknown primaries":  {"the next chunk counts", chunks(cicp(77, 13, 0, 1), gamma(100_000)), 1, false, ""},
		"unknown transfer":   {"the next chunk counts", chunks(cicp(1, 77, 0, 1), gamma(100_000)), 1, false, ""},
		"no red and green":   {"PNG supports RGB only", chunks(cicp(1, 13, 9, 1), gamma(100_000)), 1, false, ""},
		"cHRM of sRGB":       {"programs write it for sRGB", chunks(srgb, gamma(45_455)), 0, false, ""},
		"cHRM of Adobe RGB":  {"its green is another", chunks(wide, gamma(45_455)), 0, true, ""},
		"cHRM without gAMA":  {"browsers ignore it", chunks(wide), 0, false, ""},
		"cHRM and a profile": {"the profile counts", chunks(wide, gamma(100_000), chunk("iCCP", []byte("x\x00\x00nonsense"))), 0, false, ""},
		"cHRM and sRGB":      {"sRGB counts", chunks(wide, gamma(100_000), chunk("sRGB", []byte{0})), 0, false, ""},
		"cHRM of a line":     {"the primaries do not span an area", chunks(chunk("cHRM", chromaticities(0.3, 0.3, 0.1, 0.1, 0.2, 0.2, 0.3, 0.3)), gamma(45_455)), 0, false, ""},
		"empty cHRM":         {"decoders ignore an empty cHRM", chunks(chunk("cHRM", make([]byte, 32)), gamma(45_455)), 0, false, ""},
		"cHRM cut":           {"decoders ignore it", chunks(chunk("cHRM", nil), gamma(45_455)), 0, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := probe.ReadHeader(bytes.NewReader(tc.data), int64(len(tc.data)), pngType)
			if err != nil || h.Gamma != tc.gamma || (h.Profile != nil) != tc.profiled || !strings.Contains(h.Unconvertible, tc.refused) || (tc.refused == "") != (h.Unconvertible == "") {
				t.Errorf("%s: gamma %g, a profile of %d bytes, %q, %v", tc.why, h.Gamma, len(h.Profile), h.Unconvertible, err)
			}
		})
	}
}

// TestProfileOfDisplayP3 compares the columns in the generated profile for Display P3 with those in Apple's.
func TestProfileOfDisplayP3(t *testing.T) {
	png := file(t, "picture.png")
	const header = 33
	data := join(png[:header], chunk("cICP", []byte{12, 13, 0, 1}), png[header:])
	h, err := probe.ReadHeader(bytes.NewReader(data), int64(len(data)), pngType)
	must.Succeed(t, err)
	for tag, want := range map[string][3]float64{
		"rXYZ": {0.51512, 0.2412, -0.00105}, "gXYZ": {0.29198, 0.69225, 0.04189}, "bXYZ": {0.1571, 0.06657, 0.78407}, "wtpt": {0.9642, 1, 0.8249},
	} {
		entry := bytes.Index(h.Profile, []byte(tag))
		if entry < 0 {
			t.Fatalf("%s is missing", tag)
		}
		at := binary.BigEndian.Uint32(h.Profile[entry+4:])
		for i := range want {
			got := float64(int32(binary.BigEndian.Uint32(h.Profile[int(at)+8+4*i:]))) / (1 << 16)
			if math.Abs(got-want[i]) > 0.0005 {
				t.Errorf("%s has %.5f in place of %.5f", tag, got, want[i])
			}
		}
	}
	if length := binary.BigEndian.Uint32(h.Profile); int(length) != len(h.Profile) {
		t.Errorf("the profile has %d bytes, its header gives %d", len(h.Profile), length)
	}
}
