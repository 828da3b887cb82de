// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bufio"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/webp"

	"github.com/herald-social/herald/internal/media/probe"
)

// maxMemory bounds the memory of one conversion. A photo of 48
// megapixels needs up to 210 MiB, and mostly half of that.
const maxMemory = 256 << 20

var decoders = map[string]func(io.Reader) (image.Image, error){
	jpegType:     jpeg.Decode,
	pngType:      png.Decode,
	"image/webp": webp.Decode,
}

// convert makes a rendition of an image. The header is read from at, the
// pixels from open. The error is a *Problem if the file is at fault; any other
// is from reading it.
func convert(source Source, t Target, at io.ReaderAt, open func() (io.ReadCloser, error)) (Made, error) {
	h, err := probe.ReadHeader(at, source.Size, source.MIMEType)
	if problem := new(probe.Problem); errors.As(err, &problem) {
		return Made{}, damaged(problem)
	} else if err != nil {
		return Made{}, err
	}
	if h.Animated {
		return Made{}, problemf("is an animation, which the platform does not take; upload a still JPEG, or a video")
	}
	width, height := h.Width, h.Height
	if h.Orientation >= turnedFrom {
		width, height = height, width
	}
	l := t.plan(width, height)
	if memory(h, l) > maxMemory {
		return Made{}, problemf("has %d × %d pixels, which are too many to be converted for the platform; upload a smaller picture", width, height)
	}
	picture, opaque, err := load(source, h, l, open)
	if err != nil {
		return Made{}, err
	}
	c := canvas{picture: picture, opaque: opaque, orientation: h.Orientation, profile: usable(h.Profile)}
	return c.encode(l, t)
}

func damaged(cause error) *Problem {
	return &Problem{Message: "cannot be converted for the platform: it is damaged; export it again, as a JPEG, and upload that", Err: cause}
}

// memory estimates what a conversion holds at most: at first the decoded picture
// and its half, or the scaled one if that is greater; later that one, turned on
// its canvas, and once more without transparency.
func memory(h probe.Header, l layout) int64 {
	const perPoint = 4
	pixels := int64(h.Width) * int64(h.Height)
	picture, rendition := perPoint*int64(l.width)*int64(l.height), perPoint*int64(l.canvasWidth)*int64(l.canvasHeight)
	return max(h.DecodedBytes+max(pixels, picture), picture+2*rendition)
}

// load decodes an image and scales it down as far as its layout asks. The large
// picture is dropped when this returns.
func load(source Source, h probe.Header, l layout, open func() (io.ReadCloser, error)) (picture *image.RGBA, opaque bool, err error) {
	body, err := open()
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = body.Close() }() // What was read was read.
	input := &watched{from: body}
	decoded, err := decode(decoders[source.MIMEType], bufio.NewReaderSize(input, readAtOnce))
	if input.err != nil {
		return nil, false, fmt.Errorf("cannot read the image: %w", input.err)
	}
	if err == nil && decoded.Bounds().Size() != image.Pt(h.Width, h.Height) {
		err = errors.New("it has another size than its header says")
	}
	if err != nil {
		return nil, false, damaged(err)
	}
	width, height := l.width, l.height
	if h.Orientation >= turnedFrom {
		width, height = height, width
	}
	whole, ok := decoded.(interface{ Opaque() bool })
	opaque = ok && whole.Opaque()
	return shrink(decoded, width, height), opaque, nil
}

// readAtOnce is how much of a file is read at once.
const readAtOnce = 64 << 10

// watched remembers why a file could not be read: decoders hide that in errors
// of their own.
type watched struct {
	from io.Reader
	err  error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// decode decodes a picture. A decoder that panics on a file must not end the
// process.
func decode(decoder func(io.Reader) (image.Image, error), r io.Reader) (picture image.Image, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			picture, err = nil, fmt.Errorf("the decoder gave up: %v", reason)
		}
	}()
	return decoder(r)
}

// usable returns a colour profile if it holds for the decoded picture, which has
// red, green and blue whatever the file had (ICC.1, section 7.2: the colour space
// is at byte 16 of a header of 128).
func usable(profile []byte) []byte {
	const header, at = 128, 16
	if len(profile) < header || string(profile[at:at+4]) != "RGB " {
		return nil
	}
	return profile
}

// canvas is a scaled picture that is still to be turned and encoded.
type canvas struct {
	picture     *image.RGBA
	opaque      bool
	orientation int
	profile     []byte
}

// encode writes the picture within the bounds of a target: as PNG if it is
// transparent and both may be, else as JPEG. One that has too many bytes at the
// lowest quality is made smaller.
func (c canvas) encode(l layout, t Target) (Made, error) {
	if !c.opaque && t.takes(pngType) {
		data, err := encodePNG(compose(c.picture, c.orientation, l, color.Transparent), c.profile, t.MaxBytes)
		if err != nil || data != nil {
			return Made{data, pngType, l.canvasWidth, l.canvasHeight}, err
		}
	}
	for {
		data, err := encodeJPEG(compose(c.picture, c.orientation, l, color.White), c.profile, t.MaxBytes)
		if err != nil || data != nil {
			return Made{data, jpegType, l.canvasWidth, l.canvasHeight}, err
		}
		smaller := t.bars(l.width*smallerBy/100, l.height*smallerBy/100)
		if smaller.width < leastSide || smaller.height < leastSide {
			return Made{}, problemf("cannot be made small enough for the platform (%d bytes); upload a smaller picture", t.MaxBytes)
		}
		l = smaller
		width, height := l.width, l.height
		if c.orientation >= turnedFrom {
			width, height = height, width
		}
		c.picture = shrink(c.picture, width, height)
	}
}

const (
	// smallerBy is the percentage to which the sides of a picture with too many
	// bytes are scaled, as often as it takes.
	smallerBy = 80
	// leastSide is where that ends, in pixels.
	leastSide = 16
)
