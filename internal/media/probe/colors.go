// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"math"

	"github.com/herald-social/herald/internal/media/store"
)

// pngColors are a PNG's color chunks, except for the ICC profile.
type pngColors struct {
	// code is cICP (PNG, third edition, section 11.3.2.6): the ITU-T H.273 numbers of the primaries, the transfer and the
	// matrix, and whether the range is full. coded is true if it is present.
	code   [4]byte
	coded  bool
	isSRGB bool
	// gamma is the value of gAMA, or zero if that is sRGB or invalid. hasGamma is true if gAMA is present.
	gamma    float64
	hasGamma bool
	// primaries are the values of cHRM, or nil if it is missing, equal to sRGB, or invalid.
	primaries *primaries
}

type colorSpace struct {
	// gamma and primaries are as in pngColors. The ICC profile applies only if coded is false.
	coded     bool
	gamma     float64
	primaries *primaries
	// refused is the reason the colors cannot be converted, phrased to follow "the file". It is empty if they can.
	refused string
}

// ITU-T H.273 numbers (table 2 and table 3).
const (
	primariesSRGB, primariesP3, primaries2020 = 1, 12, 9

	transfer709, transfer470M, transfer470BG, transfer601, transferLinear = 1, 4, 5, 6, 8

	transferSRGB, transfer2020, transfer2020Deep = 13, 14, 15
)

// colorSpace applies the precedence of chunks (PNG, third edition, section 4.3): cICP, then an ICC profile, then sRGB,
// then gAMA and cHRM. Like browsers, it ignores a cICP with unknown numbers, and a cHRM without a gAMA.
func (c *pngColors) colorSpace(profiled bool) colorSpace {
	if c.coded {
		if m, ok := codedColorSpace(c.code); ok {
			return m
		}
	}
	if profiled || c.isSRGB || !c.hasGamma {
		return colorSpace{}
	}
	return colorSpace{gamma: c.gamma, primaries: c.primaries}
}

func codedColorSpace(code [4]byte) (m colorSpace, ok bool) {
	const identity, full = 0, 1
	m.coded = true
	switch code[0] {
	case primariesSRGB:
	case primariesP3:
		m.primaries = &displayP3
	case primaries2020:
		m.primaries = &bt2020
	default:
		return colorSpace{}, false
	}
	switch code[1] {
	case transferSRGB, transfer709, transfer601, transfer2020, transfer2020Deep, transfer470M: // Screens show them alike.
	case transfer470BG:
		m.gamma = 1 / 2.8
	case transferLinear:
		m.gamma = 1
	case transferPQ:
		m.refused = "is an HDR picture (PQ), which no platform takes as it is and Herald cannot convert; export it as SDR (sRGB) and upload that"
	case transferHLG:
		m.refused = "is an HDR picture (HLG), which no platform takes as it is and Herald cannot convert; export it as SDR (sRGB) and upload that"
	default:
		return colorSpace{}, false
	}
	if code[2] != identity {
		return colorSpace{}, false
	}
	if code[3] != full && m.refused == "" {
		m.refused = "stores its colours in the narrow range of television, which Herald cannot convert; export it as sRGB and upload that"
	}
	return m, true
}

// pngGamma reads a PNG's gamma (third edition, section 11.3.2.2); ok is true if there is one. It returns zero for a
// value within 5 % of 1/2.2, which programs write for sRGB (libpng's threshold), and for values outside of 0.01 to 10.
func pngGamma(file *store.BlockReader, at int64) (gamma float64, ok bool) {
	const one, screen, about, least, most = 100_000, 45_455, 2_273, 1_000, 1_000_000
	var value [4]byte
	if _, err := file.ReadAt(value[:], at); err != nil {
		return 0, false
	}
	number := int64(binary.BigEndian.Uint32(value[:]))
	if number < least || number > most || number > screen-about && number < screen+about {
		return 0, true
	}
	return float64(number) / one, true
}

// primaries are white, red, green and blue as CIE x and y.
type primaries [4]struct{ x, y float64 }

// Primaries from ITU-T H.273, table 2, with a D65 white.
var (
	srgb      = primaries{{0.3127, 0.3290}, {0.64, 0.33}, {0.30, 0.60}, {0.15, 0.06}}
	displayP3 = primaries{{0.3127, 0.3290}, {0.680, 0.320}, {0.265, 0.690}, {0.150, 0.060}}
	bt2020    = primaries{{0.3127, 0.3290}, {0.708, 0.292}, {0.170, 0.797}, {0.131, 0.046}}
)

// pngPrimaries reads the cHRM chunk (PNG, third edition, section 11.3.2.1). It returns nil for sRGB's primaries, which
// programs write with varying precision, and for invalid ones.
func pngPrimaries(file *store.BlockReader, at int64) *primaries {
	const one, about = 100_000, 0.005
	var data [32]byte
	if _, err := file.ReadAt(data[:], at); err != nil {
		return nil
	}
	var p primaries
	same := true
	for i := range p {
		p[i].x = float64(binary.BigEndian.Uint32(data[8*i:])) / one
		p[i].y = float64(binary.BigEndian.Uint32(data[8*i+4:])) / one
		if p[i].y < about || p[i].x+p[i].y > 1+about {
			return nil
		}
		same = same && math.Abs(p[i].x-srgb[i].x) < about && math.Abs(p[i].y-srgb[i].y) < about
	}
	if _, ok := p.toD50(); same || !ok {
		return nil
	}
	return &p
}
