// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"math"

	"github.com/kovidgoyal/imaging/prism/meta/icc"
)

// errInks is returned for a profile that cannot convert colors.
var errInks = errors.New("the ink profile is invalid")

// printed scales a CMYK picture down and converts it to sRGB using its profile, as browsers do: with the perceptual
// intent and without black point compensation.
func printed(inks *image.CMYK, width, height int, profile []byte) (picture *image.RGBA, err error) {
	// The profile is untrusted, and the library may panic on it.
	defer func() {
		if reason := recover(); reason != nil {
			picture, err = nil, fmt.Errorf("%w: %v", errInks, reason)
		}
	}()
	p, err := icc.DecodeProfile(bytes.NewReader(profile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInks, err)
	}
	const channels = 4
	convert, err := p.CreateTransformerToSRGB(icc.PerceptualRenderingIntent, false, channels, true, false, true)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInks, err)
	}
	// Scaling treats all four bytes of a pixel the same way.
	picture = shrink(&image.RGBA{Pix: inks.Pix, Stride: inks.Stride, Rect: inks.Rect}, width, height)
	var from, to [channels]float64
	last := [channels]uint8{}
	for at := 0; at+channels <= len(picture.Pix); at += channels {
		point := picture.Pix[at : at+channels : at+channels]
		if at > 0 && [channels]uint8(point) == last { // Pictures have areas of one color.
			copy(point, picture.Pix[at-channels:at])
			continue
		}
		last = [channels]uint8(point)
		for i, ink := range point {
			from[i] = float64(ink) / math.MaxUint8
		}
		convert.TransformGeneral(to[:], from[:])
		for i := range 3 {
			point[i] = clamped(to[i] * math.MaxUint8)
		}
		point[3] = math.MaxUint8
	}
	return picture, nil
}
