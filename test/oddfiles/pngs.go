// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"
)

// storedPNG makes an image with an encoding and additional chunks before its pixels.
func storedPNG(picture func() *image.NRGBA, depth, kind int, before ...[]byte) Maker {
	return fixed(func() []byte {
		return (&pngFile{picture: picture(), depth: depth, kind: kind, before: before}).encode()
	})
}

// plainPNG makes the chart with chunks before its pixels.
func plainPNG(before ...[]byte) Maker { return storedPNG(chart, 8, pngColor, before...) }

// behindPNG makes the chart with chunks after its pixels.
func behindPNG(behind ...[]byte) Maker {
	return fixed(func() []byte { return (&pngFile{picture: chart(), depth: 8, kind: pngColor, behind: behind}).encode() })
}

// spoiled returns a chunk with a wrong checksum.
func spoiled(chunk []byte) []byte {
	chunk[len(chunk)-1] ^= 1
	return chunk
}

// spoilt breaks the checksum of the first chunk of a kind.
func spoilt(kind string) func([]byte) []byte {
	return func(data []byte) []byte {
		at := bytes.Index(data, []byte(kind))
		data[at+4+int(binary.BigEndian.Uint32(data[at-4:]))] ^= 1
		return data
	}
}

// lit returns the chart with its linear light raised to the power gamma, for a gAMA chunk with the same value.
func lit(gamma float64) func() *image.NRGBA {
	return func() *image.NRGBA {
		return mapped(chart(), func(v float64) float64 { return math.Pow(light(v), gamma) })
	}
}

func gama(gamma float64) []byte {
	return chunk("gAMA", longs(binary.BigEndian, uint32(math.Round(gamma*100_000))))
}

func iccp(profile []byte) []byte {
	return chunk("iCCP", append([]byte("P3\x00\x00"), zipped(profile)...))
}

// logo returns white letters on a transparent background.
func logo() *image.NRGBA {
	picture := chart()
	for y := range chartHeight {
		for x := range chartWidth {
			c := color.NRGBA{255, 255, 255, 0}
			if x/40%2 == 0 && y > 100 && y < 220 {
				c.A = 255
			}
			picture.SetNRGBA(x, y, c)
		}
	}
	return picture
}

// animatedPNG returns the chart with a second frame, as APNG.
func animatedPNG() []byte {
	control := func(number uint32) []byte {
		data := longs(binary.BigEndian, number, chartWidth, chartHeight, 0, 0)
		return chunk("fcTL", append(data, 0, 1, 0, 10, 0, 0))
	}
	f := pngFile{picture: chart(), depth: 8, kind: pngColor, before: [][]byte{chunk("acTL", longs(binary.BigEndian, 2, 0)), control(0)}}
	white := zipped(bytes.Repeat(append([]byte{0}, bytes.Repeat([]byte{255}, 3*chartWidth)...), chartHeight))
	f.behind = [][]byte{control(1), chunk("fdAT", append(longs(binary.BigEndian, 2), white...))}
	return f.encode()
}

// magickProfile returns ImageMagick's text chunk with EXIF.
func magickProfile(exif []byte) []byte {
	text := fmt.Sprintf("\nexif\n%8d\n%s\n", len(exif), hex.EncodeToString(exif))
	return chunk("zTXt", append([]byte("Raw profile type exif\x00\x00"), zipped([]byte(text))...))
}

// onPNG contains a PNG's outcomes: two platforms do not accept the format.
var onPNG = asSent.but(rendition, Instagram, TikTok)

func pngs() []Row {
	big, little := binary.BigEndian, binary.LittleEndian
	rows := []Row{
		{Name: "plain.png", Reason: "nothing unusual: the baseline", Make: plainPNG(), Want: onPNG, Short: true},
		{
			Name: "interlaced.png", Reason: "websites for slow networks", Want: onPNG,
			Make: fixed(func() []byte {
				return (&pngFile{picture: chart(), depth: 8, kind: pngColor, interlaced: true}).encode()
			}),
		},
		{
			Name: "interlaced-16-bits-alpha.png", Reason: "the maximum that PNG supports", Want: onPNG, Short: true,
			Make: fixed(func() []byte {
				return (&pngFile{picture: glass(), depth: 16, kind: pngColorAlpha, interlaced: true}).encode()
			}),
		},
		{Name: "gama-srgb.png", Reason: "Photoshop: gAMA 45455", Make: plainPNG(gama(0.45455)), Want: onPNG},
		{Name: "gama-linear.png", Reason: "renderers; libpng and browsers apply it", Make: storedPNG(lit(1), 16, pngColor, gama(1)), Shows: plainPNG(), Want: onPNG, Short: true},
		{Name: "gama-mac.png", Reason: "old Macs with gamma 1.8", Make: storedPNG(lit(1/1.8), 8, pngColor, gama(1/1.8)), Shows: plainPNG(), Want: onPNG},
		{Name: "gama-and-srgb.png", Reason: "sRGB takes precedence over gAMA", Make: plainPNG(gama(1), chunk("sRGB", []byte{0})), Want: onPNG},
		{Name: "srgb.png", Reason: "GIMP", Make: plainPNG(chunk("sRGB", []byte{0})), Want: onPNG},
		{Name: "p3-iccp.png", Reason: "Mac and iPhone screenshots", Make: plainPNG(iccp(displayP3())), Want: onPNG, Profile: true},
		{Name: "p3-cicp.png", Reason: "screenshots since PNG's third edition", Make: plainPNG(chunk("cICP", []byte{12, 13, 0, 1})), Want: onPNG, Profile: true, Short: true},
		{Name: "hdr-cicp.png", Reason: "HDR screenshots (PQ)", Make: plainPNG(chunk("cICP", []byte{9, 16, 0, 1})), Want: asSent.but(refused("does not accept the image"), Instagram, TikTok)},
		{
			Name: "chromaticities.png", Reason: "Photoshop: sRGB's cHRM with gAMA", Want: onPNG,
			Make: plainPNG(gama(0.45455), chunk("cHRM", longs(big, 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000))),
		},
		{Name: "exif-turned.png", Reason: "exiftool, and phones since Android 12", Turn: 6, Make: plainPNG(chunk("eXIf", exif(big, 6, false, nil))), Want: rendered, Short: true},
		{Name: "exif-behind-pixels.png", Reason: "exiftool appends it; browsers ignore it", Make: behindPNG(chunk("eXIf", exif(big, 6, false, nil))), Want: onPNG},
		{
			Name: "exif-prefixed.png", Reason: "tools that copy a JPEG's prefix", Turn: 6, Want: rendered,
			Make: plainPNG(chunk("eXIf", append([]byte("Exif\x00\x00"), exif(little, 6, false, nil)...))),
		},
		{Name: "text-crc.png", Reason: "editors that change text in place; libpng warns", Shows: plainPNG(), Make: plainPNG(spoiled(chunk("tEXt", []byte("Comment\x00hello")))), Want: onPNG, Short: true},
		{Name: "iccp-crc.png", Reason: "the same in a profile", Shows: plainPNG(), Make: plainPNG(spoiled(iccp(displayP3()))), Want: onPNG},
		{Name: "pixels-crc.png", Reason: "a failing disk", Make: edit(plainPNG(), spoilt("IDAT")), Want: unusable("damaged"), Short: true},
		{Name: "header-crc.png", Reason: "games that protect their images", Make: edit(plainPNG(), spoilt("IHDR")), Want: unusable("damaged")},
		{Name: "cut-off.png", Reason: "an interrupted download", Make: edit(plainPNG(), func(d []byte) []byte { return d[:len(d)*2/3] }), Want: unusable("cut off")},
		{Name: "no-end.png", Reason: "a download interrupted near the end", Make: edit(plainPNG(), endless(12)), Want: unusable("cut off")},
		{Name: "zeros-behind.png", Reason: "block-wise copies from memory cards", Make: edit(plainPNG(), followed(make([]byte, 4096))), Want: onPNG},
		{Name: "archive-behind.png", Reason: "images that hide a ZIP file", Make: edit(plainPNG(), followed([]byte("PK\x03\x04"), make([]byte, 300))), Want: onPNG},
		{Name: "animated.png", Reason: "APNG: stickers, and screen recorders", Make: fixed(animatedPNG), Want: onPNG, Short: true},
		{Name: "white-on-nothing.png", Reason: "logos for dark pages", Make: storedPNG(logo, 8, pngColorAlpha), Want: onPNG, Short: true},
		{Name: "grey-transparent-value.png", Reason: "tRNS in a grey image", Make: storedPNG(logo, 8, pngGrey, chunk("tRNS", []byte{0, 255})), Want: onPNG},
		{
			Name: "texts.png", Reason: "tEXt and zTXt by Stable Diffusion", Want: onPNG,
			Make: plainPNG(chunk("tEXt", []byte("parameters\x00a cat")), chunk("zTXt", append([]byte("Comment\x00\x00"), zipped(bytes.Repeat([]byte("a cat "), 9000))...))),
		},
		{Name: "xmp.png", Reason: "Photoshop", Make: plainPNG(xmpText(false)), Want: onPNG},
	}
	small := Row{Name: "one-pixel.png", Reason: "tracking pixels", Make: storedPNG(func() *image.NRGBA { return charted(1, 1) }, 8, pngColor), Want: onPNG}
	return slices.Concat(rows, placedPNGs(), []Row{small}, models())
}

// xmpText returns a chunk with XMP, with or without the location.
func xmpText(place bool) []byte {
	return chunk("iTXt", append([]byte("XML:com.adobe.xmp\x00\x00\x00\x00\x00"), xmp(place, 0)...))
}

// placedPNGs returns a row for each way to store the location in a PNG.
func placedPNGs() []Row {
	big, little := binary.BigEndian, binary.LittleEndian
	withPlace := withoutPlace.but(rendition, Instagram, TikTok)
	return []Row{
		{Name: "gps-exif.png", Reason: "photos saved as PNG", Place: true, Make: plainPNG(chunk("eXIf", exif(little, 1, true, nil))), Want: withPlace, Short: true},
		{Name: "gps-exif-behind.png", Reason: "exiftool", Place: true, Make: behindPNG(chunk("eXIf", exif(big, 1, true, nil))), Want: withPlace},
		{Name: "gps-xmp.png", Reason: "Photoshop and Lightroom", Place: true, Make: plainPNG(xmpText(true)), Want: withPlace},
		{Name: "gps-raw-profile.png", Reason: "a photo converted with ImageMagick", Make: plainPNG(magickProfile(exif(little, 1, true, nil))), Want: withPlace},
	}
}

// models returns a row for each way to store the pixels of a PNG.
func models() []Row {
	var rows []Row
	for _, m := range []struct {
		kind         int
		name, reason string
		picture      func() *image.NRGBA
		depths       []int
	}{
		{pngGrey, "grey", "scanners and fax machines", chart, []int{1, 2, 4, 8, 16}},
		{pngPalette, "palette", "pngquant, and GIF converters", glass, []int{4, 8}},
		{pngColor, "colour", "48-bit scanners", chart, []int{16}},
		{pngGreyAlpha, "grey-alpha", "GIMP masks", glass, []int{8, 16}},
		{pngColorAlpha, "alpha", "logos, and window screenshots", glass, []int{8, 16}},
	} {
		for _, depth := range m.depths {
			rows = append(rows, Row{
				Name: fmt.Sprintf("%s-%d-bits.png", m.name, depth), Reason: m.reason, Want: onPNG,
				Make: storedPNG(m.picture, depth, m.kind), Short: slices.Contains([]string{"palette4", "alpha8", "grey1"}, fmt.Sprint(m.name, depth)),
			})
		}
	}
	return rows
}
