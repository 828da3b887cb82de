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

// decoders decode what strangers made; only the process apart calls them.
var decoders = map[string]func(io.Reader) (image.Image, error){
	jpegType:     jpeg.Decode,
	pngType:      png.Decode,
	"image/webp": webp.Decode,
}

// plan reads the header of an image, and decides whether and how it is converted. The
// error is a *Problem if the file is at fault; any other is from reading it.
func plan(source Source, t Target, at io.ReaderAt) (job, error) {
	h, err := probe.ReadHeader(at, source.Size, source.MIMEType)
	if problem := new(probe.Problem); errors.As(err, &problem) {
		return job{}, damaged(problem)
	} else if err != nil {
		return job{}, err
	}
	if h.Animated {
		return job{}, problemf("is an animation, which the platform does not take; upload a still JPEG, or a video")
	}
	j := job{MIMEType: source.MIMEType, Width: h.Width, Height: h.Height, Orientation: h.Orientation, Profile: usable(h.Profile), Target: t}
	if memory(h, j.layout()) > maxMemory {
		width, height := j.shown()
		return job{}, problemf("has %d × %d pixels, which are too many to be converted for the platform; upload a smaller picture", width, height)
	}
	return j, nil
}

// shown returns the width and height of the picture as it is shown.
func (j *job) shown() (width, height int) {
	if j.Orientation >= turnedFrom {
		return j.Height, j.Width
	}
	return j.Width, j.Height
}

func (j *job) layout() layout {
	width, height := j.shown()
	return j.Target.plan(width, height)
}

// convert makes the rendition of an image.
func (j *job) convert(file io.Reader) (Made, error) {
	if j.Width <= 0 || j.Height <= 0 || decoders[j.MIMEType] == nil {
		return Made{}, errors.New("this is no image that can be converted")
	}
	l := j.layout()
	picture, opaque, err := j.load(l, file)
	if err != nil {
		return Made{}, err
	}
	c := canvas{picture: picture, opaque: opaque, orientation: j.Orientation, profile: j.Profile}
	return c.encode(l, j.Target)
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
func (j *job) load(l layout, file io.Reader) (picture *image.RGBA, opaque bool, err error) {
	if j.MIMEType == jpegType {
		file = &probe.Scans{From: file, Most: mostScans}
	}
	decoded, err := decode(decoders[j.MIMEType], bufio.NewReaderSize(file, readAtOnce))
	if err == nil && decoded.Bounds().Size() != image.Pt(j.Width, j.Height) {
		err = errors.New("it has another size than its header says")
	}
	if err != nil {
		return nil, false, err
	}
	width, height := l.width, l.height
	if j.Orientation >= turnedFrom {
		width, height = height, width
	}
	whole, ok := decoded.(interface{ Opaque() bool })
	opaque = ok && whole.Opaque()
	return shrink(decoded, width, height), opaque, nil
}

const (
	// readAtOnce is how much of a file is read at once.
	readAtOnce = 64 << 10
	// mostScans is how many passes over the picture a JPEG may make. Programs that
	// write progressive ones make about ten, and each costs the time of a picture.
	mostScans = 100
)

// errScans is returned for a JPEG with more than mostScans, and errSmall for a picture
// whose bytes are too many however small it is made.
var (
	errScans = probe.ErrScans
	errSmall = errors.New("the rendition cannot be made small enough")
)

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
			return Made{}, errSmall
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
