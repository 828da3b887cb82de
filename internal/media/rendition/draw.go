// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"image"
	"image/color"
	"math"

	"golang.org/x/image/draw"
	"golang.org/x/image/math/f64"
)

const (
	// upright is the orientation of a picture that is displayed as stored.
	upright = 1
	// turnedFrom is the first of the four orientations that swap width and height.
	turnedFrom = 5
)

// shrink scales a picture down to the given width and height. It repeatedly halves the picture, averaging groups of
// four pixels, until it is less than twice as large, and then fits it. A single filter over that many pixels would need
// much more memory.
func shrink(src image.Image, width, height int) *image.RGBA {
	for b := src.Bounds(); b.Dx() >= 2*width && b.Dy() >= 2*height; b = src.Bounds() {
		src = fit(src, b.Dx()/2, b.Dy()/2)
	}
	if done, ok := src.(*image.RGBA); ok && done.Rect == image.Rect(0, 0, width, height) {
		return done
	}
	return fit(src, width, height)
}

func fit(src image.Image, width, height int) *image.RGBA {
	dst := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.ApproxBiLinear.Scale(dst, dst.Rect, src, src.Bounds(), draw.Src, nil)
	return dst
}

// compose rotates a picture for display and centers it on its canvas, over a background.
func compose(src *image.RGBA, orientation int, l layout, ground color.Color) *image.RGBA {
	whole := l.canvasWidth == src.Rect.Dx() && l.canvasHeight == src.Rect.Dy()
	if whole && orientation == upright && (ground == color.Transparent || src.Opaque()) {
		return src
	}
	canvas := image.NewRGBA(image.Rect(0, 0, l.canvasWidth, l.canvasHeight))
	draw.Draw(canvas, canvas.Rect, image.NewUniform(ground), image.Point{}, draw.Src)
	m := orient(orientation, float64(src.Rect.Dx()), float64(src.Rect.Dy()))
	m[2] += float64((l.canvasWidth - l.width) / 2)
	m[5] += float64((l.canvasHeight - l.height) / 2)
	draw.NearestNeighbor.Transform(canvas, m, src, src.Rect, draw.Over, nil)
	return canvas
}

// white reports whether a picture is white except for pixels that are too few to be seen.
func white(picture *image.RGBA) bool {
	const bright, few = 240, 1000 // one in a thousand
	left := len(picture.Pix) / 4 / few
	for at := 0; at+3 < len(picture.Pix); at += 4 {
		if min(picture.Pix[at], picture.Pix[at+1], picture.Pix[at+2]) >= bright {
			continue
		}
		left--
		if left < 0 {
			return false
		}
	}
	return true
}

// orient returns the transformation that displays a stored picture of the given size (EXIF 2.32, section 4.6.4: where
// the first row and the first column are).
func orient(orientation int, w, h float64) f64.Aff3 {
	switch orientation {
	case 2: // mirrored
		return f64.Aff3{-1, 0, w, 0, 1, 0}
	case 3: // upside down
		return f64.Aff3{-1, 0, w, 0, -1, h}
	case 4: // upside down and mirrored
		return f64.Aff3{1, 0, 0, 0, -1, h}
	case turnedFrom: // mirrored along the diagonal
		return f64.Aff3{0, 1, 0, 1, 0, 0}
	case 6: // rotated clockwise
		return f64.Aff3{0, -1, h, 1, 0, 0}
	case 7: // mirrored along the other diagonal
		return f64.Aff3{0, -1, h, -1, 0, w}
	case 8: // rotated counter-clockwise
		return f64.Aff3{0, 1, 0, -1, 0, w}
	default:
		return f64.Aff3{1, 0, 0, 0, 1, 0}
	}
}

// maxSide limits both sides of a rendition, in pixels, for memory. X does not display more; other platforms declare
// lower limits.
const maxSide = 4096

type layout struct {
	// width and height are the size of the scaled picture as displayed.
	width, height int
	// canvasWidth and canvasHeight are the rendition's size. They exceed width and height if bars are added.
	canvasWidth, canvasHeight int
}

// plan lays out a picture of the displayed width and height within a target's limits. It never enlarges and never
// crops.
func (t Target) plan(width, height int) layout {
	most := func(bound int) int {
		if bound == 0 {
			return maxSide
		}
		return min(bound, maxSide)
	}
	maxWidth, maxHeight := most(t.MaxWidth), most(t.MaxHeight)
	w, h := float64(width), float64(height)
	// Determine the scale from the size of the whole canvas, ignoring limits.
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
		// Rounding exceeded the limit.
		factor *= 0.999
	}
}

func scaled(length, factor float64) int { return max(1, int(math.Round(length*factor))) }

// bars adds the missing width or height to a picture.
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
