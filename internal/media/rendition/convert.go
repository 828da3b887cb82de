// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/probe"
)

// maxMemory limits the memory of one conversion. A 48-megapixel photo needs up to 210 MiB, usually half of that.
const maxMemory = 256 << 20

// decoders decode untrusted files. Only the separate process calls them.
var decoders = map[string]func(io.Reader) (image.Image, error){
	jpegType:     jpeg.Decode,
	pngType:      decodePNG,
	"image/webp": decodeWebP,
}

// decodePNG decodes a PNG even if parts that its picture does not need are damaged.
func decodePNG(r io.Reader) (image.Image, error) { return png.Decode(&probe.Chunks{From: r}) }

func repaired(file io.Reader) (image.Image, error) {
	data, err := io.ReadAll(io.LimitReader(file, v1alpha1.MaxImageBytes))
	if err != nil {
		return nil, err
	}
	if mended := probe.Repair(data); mended != nil {
		return jpeg.Decode(bytes.NewReader(mended))
	}
	const most = 3 // Each takes as long as a picture.
	for range most {
		left := bytes.NewReader(data)
		var picture image.Image
		if picture, err = jpeg.Decode(left); err == nil {
			return picture, nil
		}
		if data = probe.Shorten(data, len(data)-left.Len()); data == nil {
			break
		}
	}
	return nil, err
}

// plan reads an image's header, and decides whether and how to convert it. The error is a *ConversionError if the file
// is at fault; any other comes from reading it.
func plan(source Source, t Target, at io.ReaderAt) (job, error) {
	h, err := probe.ReadHeader(at, source.Size, source.MIMEType)
	if problem := new(probe.InvalidFileError); errors.As(err, &problem) {
		return job{}, refused(problem)
	} else if err != nil {
		return job{}, err
	}
	if h.Unconvertible != "" {
		return job{}, problemf("%s", h.Unconvertible)
	}
	j := job{MIMEType: source.MIMEType, Width: h.Width, Height: h.Height, Orientation: h.Orientation, Gamma: h.Gamma, Target: t}
	switch space := space(h.Profile); {
	case space == "RGB " && !h.Inks:
		j.Profile = h.Profile
	case space == "CMYK" && h.Inks:
		j.Inks = h.Profile
	}
	if j.room = maxMemory - memory(h, j.layout()); j.room < 0 {
		width, height := j.shown()
		return job{}, problemf("has %d × %d pixels, which are too many to be converted for the platform; upload a smaller picture", width, height)
	}
	return j, nil
}

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

func (j *job) convert(file io.Reader) (Output, error) {
	if j.Width <= 0 || j.Height <= 0 || decoders[j.MIMEType] == nil {
		return Output{}, errors.New("this image cannot be converted")
	}
	l := j.layout()
	picture, opaque, err := j.load(l, file)
	if err != nil {
		return Output{}, err
	}
	c := canvas{picture: picture, opaque: opaque, orientation: j.Orientation, profile: j.Profile}
	return c.encode(l, j.Target)
}

func refused(problem *probe.InvalidFileError) *ConversionError {
	if problem.Reason == v1alpha1.ReasonUnsupported {
		return &ConversionError{Message: "is stored in a form that Herald cannot read; export it again, as an ordinary JPEG, and upload that", Err: problem}
	}
	return damaged(problem)
}

func damaged(cause error) *ConversionError {
	return &ConversionError{Message: "cannot be converted for the platform: it is damaged; export it again, as a JPEG, and upload that", Err: cause}
}

// memory estimates the peak memory of a conversion: first the decoded picture and its half, or the scaled one if that
// is larger; later the scaled picture, its rotation on the canvas, and another copy without transparency.
func memory(h probe.Header, l layout) int64 {
	const perPoint = 4
	pixels := int64(h.Width) * int64(h.Height)
	picture, rendition := perPoint*int64(l.width)*int64(l.height), perPoint*int64(l.canvasWidth)*int64(l.canvasHeight)
	return max(h.DecodedBytes+max(pixels, picture), picture+2*rendition)
}

// load decodes an image and scales it down to its layout. The large picture is unreferenced when load returns.
func (j *job) load(l layout, file io.Reader) (picture *image.RGBA, opaque bool, err error) {
	if j.MIMEType == jpegType {
		file = &probe.Scans{From: file, Most: maxScans}
	}
	decoder := decoders[j.MIMEType]
	if j.Mend && j.MIMEType == jpegType {
		decoder = repaired
	}
	decoded, err := decode(decoder, bufio.NewReaderSize(file, readBufferSize))
	if err == nil && decoded.Bounds().Size() != image.Pt(j.Width, j.Height) {
		err = errors.New("its size differs from its header")
	}
	if err != nil {
		return nil, false, err
	}
	if j.Gamma > 0 {
		brighten(decoded, j.Gamma)
	}
	width, height := l.width, l.height
	if j.Orientation >= turnedFrom {
		width, height = height, width
	}
	if inks, ok := decoded.(*image.CMYK); ok && j.Inks != nil {
		picture, err = printed(inks, width, height, j.Inks)
		return picture, true, err
	}
	whole, ok := decoded.(interface{ Opaque() bool })
	opaque = ok && whole.Opaque()
	return shrink(decoded, width, height), opaque, nil
}

const (
	// readBufferSize is the size of one read.
	readBufferSize = 64 << 10
	// maxScans is the maximum number of scans in a JPEG. Encoders make about ten, and decoding each takes as long as
	// decoding a picture.
	maxScans = 100
)

// errScans means that a JPEG has more than maxScans scans, and errSmall that a picture has too many bytes at any size.
var (
	errScans = probe.ErrScans
	errSmall = errors.New("the rendition cannot be made small enough")
)

// decode decodes a picture. A decoder that panics on a file must not crash the process.
func decode(decoder func(io.Reader) (image.Image, error), r io.Reader) (picture image.Image, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			picture, err = nil, fmt.Errorf("the decoder gave up: %v", reason)
		}
	}()
	return decoder(r)
}

// space returns the signature of a profile's color space (ICC.1, section 7.2), or "" if the profile is too short.
func space(profile []byte) string {
	const header, at = 128, 16
	if len(profile) < header {
		return ""
	}
	return string(profile[at : at+4])
}

type canvas struct {
	picture     *image.RGBA
	opaque      bool
	orientation int
	profile     []byte
}

// encode encodes the picture within a target's limits: as PNG if it is transparent and the target allows that,
// otherwise as JPEG. A picture that has too many bytes at the lowest quality is scaled down again.
func (c canvas) encode(l layout, t Target) (Output, error) {
	if !c.opaque && t.allows(pngType) {
		data, err := encodePNG(compose(c.picture, c.orientation, l, color.Transparent), c.profile, t.MaxBytes)
		if err != nil || data != nil {
			return Output{Data: data, MIMEType: pngType, Width: l.canvasWidth, Height: l.canvasHeight}, err
		}
	}
	for blank, first := false, true; ; first = false {
		picture := compose(c.picture, c.orientation, l, color.White)
		if first {
			blank = !c.opaque && white(picture)
		}
		data, err := encodeJPEG(picture, c.profile, t.MaxBytes)
		if err != nil || data != nil {
			return Output{Data: data, MIMEType: jpegType, Width: l.canvasWidth, Height: l.canvasHeight, Blank: blank}, err
		}
		smaller := t.bars(l.width*smallerBy/100, l.height*smallerBy/100)
		if smaller.width < minSide || smaller.height < minSide {
			return Output{}, errSmall
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
	// smallerBy is the percentage that the sides of a picture with too many bytes are scaled to, repeatedly.
	smallerBy = 80
	// minSide is the smallest side of such a picture, in pixels.
	minSide = 16
)
