// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg" // registers its decoder
	_ "image/png"  // registers its decoder
	"math"
	"os/exec"
	"strings"

	_ "golang.org/x/image/webp" // registers its decoder

	"github.com/herald-social/herald/test/oddfiles"
)

// unchanged compares a file whose location was removed with its source. All pixels or frames must be equal.
func (o *trial) unchanged(ctx context.Context, got []byte) error {
	if !o.row.IsVideo() {
		before, err := o.decode(ctx, o.source)
		if err != nil {
			return err
		}
		after, err := o.decode(ctx, got)
		if err == nil && (before.Rect != after.Rect || !bytes.Equal(before.Pix, after.Pix)) {
			err = fmt.Errorf("its pixels are others than they were")
		}
		return err
	}
	before, err := o.streams(ctx, o.source)
	if err != nil {
		return err
	}
	after, err := o.streams(ctx, got)
	if err == nil && before != after {
		err = fmt.Errorf("its frames are others than they were: %s instead of %s", after, before)
	}
	return err
}

// streams returns hashes of a video's encoded frames and sound, or "" if there is no ffmpeg.
func (o *trial) streams(ctx context.Context, film []byte) (string, error) {
	if o.kit.FFmpeg() == "" {
		return "", nil
	}
	path, err := o.kit.WriteTemp(film)
	if err != nil {
		return "", err
	}
	return run(exec.CommandContext(ctx, o.kit.FFmpeg(), "-v", "error", "-nostdin", "-i", path, "-map", "0:v", "-map", "0:a?", "-c", "copy", "-f", "streamhash", "-"))
}

func run(command *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command, err, stderr.String())
	}
	return stdout.String(), nil
}

// decode returns the pixels that an image stores, decoded by ffmpeg if it is installed and otherwise by Go.
func (o *trial) decode(ctx context.Context, data []byte) (*image.NRGBA, error) {
	if o.kit.FFmpeg() == "" {
		decoded, _, err := image.Decode(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		picture := image.NewNRGBA(image.Rectangle{Max: decoded.Bounds().Size()})
		draw.Draw(picture, picture.Rect, decoded, decoded.Bounds().Min, draw.Src)
		return picture, nil
	}
	path, err := o.kit.WriteTemp(data)
	if err != nil {
		return nil, err
	}
	pam, err := run(exec.CommandContext(ctx, o.kit.FFmpeg(), "-v", "quiet", "-nostdin", "-noautorotate", "-i", path, "-frames:v", "1",
		"-sws_flags", "accurate_rnd+full_chroma_int", "-pix_fmt", "rgba", "-c:v", "pam", "-f", "image2pipe", "-"))
	if err != nil {
		return nil, err
	}
	head, pixels, _ := strings.Cut(pam, "ENDHDR\n")
	var width, height int
	if _, err := fmt.Sscanf(head, "P7\nWIDTH %d\nHEIGHT %d\n", &width, &height); err != nil || len(pixels) != 4*width*height {
		return nil, fmt.Errorf("ffmpeg gives %d bytes behind %q", len(pixels), head)
	}
	return &image.NRGBA{Pix: []byte(pixels), Stride: 4 * width, Rect: image.Rect(0, 0, width, height)}, nil
}

// shown compares a platform's rendition with the appearance of its source: shape, colors, transparency and orientation.
func (o *trial) shown(ctx context.Context, on oddfiles.Platform, got []byte) error {
	if turn := oddfiles.TurnOf(got); turn > 1 {
		return fmt.Errorf("the rendition is to be turned again (%d)", turn)
	}
	if o.row.Profile && !bytes.Contains(got, []byte("ICC_PROFILE\x00")) && !bytes.Contains(got, []byte("iCCP")) {
		return fmt.Errorf("the rendition has no profile of its colours")
	}
	source := o.source
	if o.row.Shows != nil {
		var err error
		if source, err = o.row.Shows(o.kit); err != nil {
			return err
		}
	}
	decoded, err := o.decode(ctx, source)
	if err != nil {
		return err
	}
	want := view{picture: decoded, turn: o.row.Turn}
	rendition, err := o.decode(ctx, got)
	if err != nil {
		return err
	}
	return want.compare(on, rendition, bytes.HasPrefix(got, []byte("\x89PNG")))
}

// view is an image with an orientation.
type view struct {
	picture *image.NRGBA
	turn    int
}

// size returns the displayed size.
func (v view) size() image.Point {
	size := v.picture.Rect.Size()
	if v.turn >= 5 {
		size.X, size.Y = size.Y, size.X
	}
	return size
}

// at returns the stored color of a point as displayed (EXIF 2.32, section 4.6.4).
func (v view) at(x, y int) []uint8 {
	last := v.picture.Rect.Size().Sub(image.Pt(1, 1))
	at := map[int]image.Point{
		2: {last.X - x, y}, 3: {last.X - x, last.Y - y}, 4: {x, last.Y - y}, 5: {y, x}, 6: {y, last.Y - x}, 7: {last.X - y, last.Y - x}, 8: {last.X - y, x},
	}
	p, turned := at[v.turn]
	if !turned {
		p = image.Pt(x, y)
	}
	return v.picture.Pix[v.picture.PixOffset(p.X, p.Y):]
}

const (
	// cells is the number of cells that images are divided into, across and down, so images of different sizes can be
	// compared.
	cells = 32
	// jpegBlock is the minimum size of a cell in pixels, because JPEG mixes pixels that are next to each other.
	jpegBlock = 8
	// mostDifference limits the average difference of a channel's cells, out of 255, and mostAtOnce the difference of a
	// single cell.
	mostDifference, mostAtOnce = 2, 24
	// leastWhite is the minimum value of white bars.
	leastWhite = 250
	// longestSide limits a rendition's sides.
	longestSide = 4096
)

// mean returns a cell's mean color on white, and its opacity.
func (v view) mean(part image.Rectangle) (mean [4]float64) {
	// Take only some points of large cells.
	const points = 24
	stepX, stepY := max(part.Dx()/points, 1), max(part.Dy()/points, 1)
	count := 0.0
	for y := part.Min.Y; y < part.Max.Y; y += stepY {
		for x := part.Min.X; x < part.Max.X; x += stepX {
			c := v.at(x, y)
			alpha := float64(c[3]) / math.MaxUint8
			for i := range 3 {
				mean[i] += float64(c[i])*alpha + math.MaxUint8*(1-alpha)
			}
			mean[3] += float64(c[3])
			count++
		}
	}
	for i := range mean {
		mean[i] /= count
	}
	return mean
}

// cell returns a cell of a rectangle that is divided into across × down cells.
func cell(in image.Rectangle, x, y, across, down int) image.Rectangle {
	size := in.Size()
	return image.Rect(size.X*x/across, size.Y*y/down, size.X*(x+1)/across, size.Y*(y+1)/down).Add(in.Min)
}

// compare compares an image with its rendition.
func (v view) compare(on oddfiles.Platform, rendition *image.NRGBA, transparent bool) error {
	shown, canvas := v.size(), rendition.Rect.Size()
	inner, err := layout(on, shown, canvas)
	if err != nil {
		return err
	}
	got := view{picture: rendition}
	across, down := max(min(cells, inner.Dx()/jpegBlock), 1), max(min(cells, inner.Dy()/jpegBlock), 1)
	var sums [4]float64
	for y := range down {
		for x := range across {
			want, have := v.mean(cell(image.Rectangle{Max: shown}, x, y, across, down)), got.mean(cell(inner, x, y, across, down))
			if !transparent {
				want[3] = math.MaxUint8
			}
			for i := range sums {
				difference := math.Abs(want[i] - have[i])
				if sums[i] += difference; difference > mostAtOnce {
					return fmt.Errorf("part %d, %d of %d × %d shows %.0f instead of %.0f", x, y, across, down, have, want)
				}
			}
		}
	}
	for i := range sums {
		if sums[i] /= float64(across * down); sums[i] > mostDifference {
			return fmt.Errorf("its channels differ by %.1f", sums)
		}
	}
	return got.bars(inner)
}

// layout returns the position of the image in a rendition, between the bars. It returns an error if the size is wrong.
func layout(on oddfiles.Platform, shown, canvas image.Point) (image.Rectangle, error) {
	least, most := 0.0, math.Inf(1)
	width, height := longestSide, longestSide
	switch on {
	case oddfiles.Instagram:
		least, most = 0.8, 1.91
	case oddfiles.Threads:
		least, most = 0.1, 10
	case oddfiles.TikTok:
		width, height = 1080, 1920
		if shown.X > shown.Y {
			width, height = height, width
		}
	case oddfiles.X, oddfiles.Facebook, oddfiles.YouTube:
	}
	aspect := float64(canvas.X) / float64(canvas.Y)
	scale := min(float64(canvas.X)/float64(shown.X), float64(canvas.Y)/float64(shown.Y))
	// The canvas has bars if the image is too wide or too high.
	withBars := image.Pt(max(shown.X, int(float64(shown.Y)*least)), max(shown.Y, int(float64(shown.X)/most)))
	expected := min(1, float64(width)/float64(withBars.X), float64(height)/float64(withBars.Y))
	const about = 0.02
	switch {
	case canvas.X > width || canvas.Y > height:
		return image.Rectangle{}, fmt.Errorf("it has %v pixels, more than %d × %d", canvas, width, height)
	case aspect < least || aspect > most:
		return image.Rectangle{}, fmt.Errorf("%v is narrower than %g or wider than %g", canvas, least, most)
	case math.Abs(scale-expected) > expected*about+1/float64(min(shown.X, shown.Y)):
		return image.Rectangle{}, fmt.Errorf("%v pixels show %v, scaled by %.3f instead of %.3f", canvas, shown, scale, expected)
	}
	size := image.Pt(max(int(math.Round(float64(shown.X)*scale)), 1), max(int(math.Round(float64(shown.Y)*scale)), 1))
	// Rounding the shorter side of a strip changes the aspect ratio by more than a pixel of the longer side.
	rounded := math.Abs(float64(canvas.X)-float64(shown.X*canvas.Y)/float64(shown.Y)) <= 1 || math.Abs(float64(canvas.Y)-float64(shown.Y*canvas.X)/float64(shown.X)) <= 1
	switch barred := withBars != shown; {
	case rounded:
		size = canvas
	case !barred:
		return image.Rectangle{}, fmt.Errorf("%v pixels show %v, in another shape", canvas, shown)
	}
	corner := canvas.Sub(size).Div(2)
	return image.Rectangle{Min: corner, Max: corner.Add(size)}, nil
}

// bars returns an error if the bars around the image are not white.
func (v view) bars(inner image.Rectangle) error {
	canvas := v.picture.Rect
	for _, bar := range []image.Rectangle{
		{canvas.Min, image.Pt(canvas.Max.X, inner.Min.Y-jpegBlock)},
		{image.Pt(0, inner.Max.Y+jpegBlock), canvas.Max},
		{canvas.Min, image.Pt(inner.Min.X-jpegBlock, canvas.Max.Y)},
		{image.Pt(inner.Max.X+jpegBlock, 0), canvas.Max},
	} {
		if bar.Dx() <= 0 || bar.Dy() <= 0 || bar.Min.X < 0 || bar.Min.Y < 0 {
			continue
		}
		if mean := v.mean(bar); min(mean[0], mean[1], mean[2]) < leastWhite {
			return fmt.Errorf("the bar %v is not white, but %.0f", bar, mean)
		}
	}
	return nil
}
