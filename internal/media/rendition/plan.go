// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import "math"

// maxSide bounds both sides of every rendition, in pixels. X shows no more
// (platforms that take less say so), and it bounds memory.
const maxSide = 4096

// layout is the place of a picture in its rendition.
type layout struct {
	// width and height are those of the picture, scaled and as it is shown.
	width, height int
	// canvasWidth and canvasHeight are those of the rendition: greater if there
	// are bars at two sides of the picture.
	canvasWidth, canvasHeight int
}

// plan lays out a picture of this width and height, as it is shown, within the
// bounds of a target. It never enlarges and never crops.
func (t Target) plan(width, height int) layout {
	most := func(bound int) int {
		if bound == 0 {
			return maxSide
		}
		return min(bound, maxSide)
	}
	maxWidth, maxHeight := most(t.MaxWidth), most(t.MaxHeight)
	w, h := float64(width), float64(height)
	// The scale follows from how large the whole would be without bounds.
	canvasW, canvasH := w, h
	if t.MinAspect > 0 {
		canvasW = max(canvasW, h*t.MinAspect)
	}
	if t.MaxAspect > 0 {
		canvasH = max(canvasH, w/t.MaxAspect)
	}
	factor := min(1, float64(maxWidth)/canvasW, float64(maxHeight)/canvasH)
	for {
		l := t.bars(scaled(w, factor), scaled(h, factor))
		if l.canvasWidth <= maxWidth && l.canvasHeight <= maxHeight || l.width == 1 && l.height == 1 {
			return l
		}
		// Rounding exceeded the bound.
		factor *= 0.999
	}
}

func scaled(length, factor float64) int { return max(1, int(math.Round(length*factor))) }

// bars adds what a picture lacks in width or height.
func (t Target) bars(width, height int) layout {
	l := layout{width: width, height: height, canvasWidth: width, canvasHeight: height}
	aspect := func() float64 { return float64(l.canvasWidth) / float64(l.canvasHeight) }
	if t.MinAspect > 0 && aspect() < t.MinAspect {
		l.canvasWidth = int(math.Ceil(float64(height) * t.MinAspect))
		for aspect() < t.MinAspect {
			l.canvasWidth++
		}
	}
	if t.MaxAspect > 0 && aspect() > t.MaxAspect {
		l.canvasHeight = int(math.Ceil(float64(width) / t.MaxAspect))
		for aspect() > t.MaxAspect {
			l.canvasHeight++
		}
	}
	return l
}
