// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"bytes"
	"encoding/binary"
)

// riffChunk encodes a chunk of a WebP, padded to an even length (RFC 9649, section 2.3).
func riffChunk(kind string, data []byte) []byte {
	out := binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(data)))
	out = append(out, data...)
	if len(data)%2 == 1 {
		out = append(out, 0)
	}
	return out
}

// The flags in the first chunk of an extended WebP (RFC 9649, section 2.7).
const webpXMP, webpEXIF, webpAlpha, webpICC = 1 << 2, 1 << 3, 1 << 4, 1 << 5

// extended converts a simple WebP to an extended one, with chunks before and after its image. The image has the given
// size, and alpha if flags say so.
func extended(flags byte, width, height int, before, behind []byte) func([]byte) []byte {
	return func(data []byte) []byte {
		content := data[12:]
		if string(content[:4]) == "VP8X" { // ffmpeg writes one for transparent pictures
			flags |= content[8]
			content = content[18:]
		}
		head := []byte{flags, 0, 0, 0, byte(width - 1), byte((width - 1) >> 8), 0, byte(height - 1), byte((height - 1) >> 8), 0}
		body := bytes.Join([][]byte{[]byte("WEBP"), riffChunk("VP8X", head), before, content, behind}, nil)
		return riffChunk("RIFF", body)
	}
}

// libwebp makes a WebP from an image.
func libwebp(picture Maker, args ...string) Maker {
	return func(k *Kit) ([]byte, error) {
		data, err := picture(k)
		if err != nil {
			return nil, err
		}
		return k.encode(".webp", data, append([]string{"-i", "input", "-c:v", "libwebp"}, args...)...)
	}
}

// onWebP contains a WebP's outcomes: three platforms do not accept the format.
var onWebP = asSent.but(rendition, Instagram, Threads, Facebook)

func webps() []Row {
	needs := []string{"libwebp"}
	opaque, seeThrough := plainPNG(), storedPNG(glass, 8, pngColorAlpha)
	lossy, lossless := libwebp(opaque, "-quality", "95"), libwebp(opaque, "-lossless", "1")
	withChunks := func(flags byte, before, behind []byte) func([]byte) []byte {
		return extended(flags, chartWidth, chartHeight, before, behind)
	}
	withPlace := withoutPlace.but(rendition, Instagram, Threads, Facebook)
	white := fixed(func() []byte {
		return (&pngFile{picture: mapped(chart(), func(float64) float64 { return 1 }), depth: 8, kind: pngColor}).encode()
	})
	moving := func(k *Kit) ([]byte, error) {
		return k.encode(".webp", nil, "-f", "lavfi", "-i", "testsrc2=size=400x320:rate=5:duration=1", "-c:v", "libwebp_anim", "-loop", "0")
	}
	still := refused("does not accept the image")
	return []Row{
		{Name: "lossy.webp", Reason: "Android and websites; golang/go#40173", Needs: needs, Make: lossy, Want: onWebP, Short: true},
		{Name: "lossy-white.webp", Reason: "pages and logos; golang/go#40173", Needs: needs, Make: libwebp(white, "-quality", "90"), Want: onWebP},
		{Name: "lossless.webp", Reason: "screenshots with cwebp -lossless", Needs: needs, Make: lossless, Want: onWebP},
		{Name: "lossy-alpha.webp", Reason: "stickers", Needs: needs, Make: libwebp(seeThrough, "-quality", "95"), Want: onWebP, Short: true},
		{Name: "lossless-alpha.webp", Reason: "logos", Needs: needs, Make: libwebp(seeThrough, "-lossless", "1"), Want: onWebP},
		{Name: "animated.webp", Reason: "GIF converters, and stickers", Needs: []string{"libwebp_anim"}, Make: moving, Want: asSent.but(still, Instagram, Threads, Facebook), Short: true},
		{
			Name: "turned.webp", Reason: "Pixel phones' exports", Turn: 6, Needs: needs, Want: rendered, Short: true,
			Make: edit(lossy, withChunks(webpEXIF, nil, riffChunk("EXIF", exif(binary.LittleEndian, 6, false, nil)))),
		},
		{
			Name: "turned-prefixed.webp", Reason: "tools that copy a JPEG's prefix", Turn: 3, Needs: needs, Want: rendered,
			Make: edit(lossy, withChunks(webpEXIF, nil, riffChunk("EXIF", append([]byte("Exif\x00\x00"), exif(binary.BigEndian, 3, false, nil)...)))),
		},
		{
			Name: "p3.webp", Reason: "Sharp and Squoosh keep iPhone profiles", Profile: true, Needs: needs, Want: onWebP,
			Make: edit(lossless, withChunks(webpICC, riffChunk("ICCP", displayP3()), nil)),
		},
		{Name: "xmp.webp", Reason: "Photoshop", Needs: needs, Make: edit(lossy, withChunks(webpXMP, nil, riffChunk("XMP ", xmp(false, 1)))), Want: onWebP},
		{
			Name: "gps-exif.webp", Reason: "converted Android photos", Place: true, Needs: needs, Want: withPlace, Short: true,
			Make: edit(lossy, withChunks(webpEXIF, nil, riffChunk("EXIF", exif(binary.LittleEndian, 1, true, nil)))),
		},
		{Name: "gps-xmp.webp", Reason: "Lightroom", Place: true, Needs: needs, Make: edit(lossy, withChunks(webpXMP, nil, riffChunk("XMP ", xmp(true, 0)))), Want: withPlace},
		{Name: "zeros-behind.webp", Reason: "block-wise copies from memory cards", Needs: needs, Make: edit(lossy, followed(make([]byte, 4096))), Want: onWebP},
		{
			Name: "odd-chunks.webp", Reason: "odd-length chunks are followed by a padding byte", Needs: needs, Want: onWebP,
			Make: edit(lossless, withChunks(webpXMP, nil, append(riffChunk("abcd", []byte("odd")), riffChunk("XMP ", append(xmp(false, 0), ' '))...))),
		},
		{
			Name: "unknown-chunk-first.webp", Reason: "RFC 9649 allows readers to skip it", Needs: needs, Want: onWebP,
			Make: edit(lossless, withChunks(0, riffChunk("zzzz", []byte("whatever")), nil)),
		},
		{Name: "cut-off.webp", Reason: "an interrupted download", Needs: needs, Make: edit(lossy, func(d []byte) []byte { return d[:len(d)/2] }), Want: unusable("cut off")},
	}
}
