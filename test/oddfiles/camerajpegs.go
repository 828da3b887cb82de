// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// multiPicture appends a second image to a JPEG, as cameras store stereo images, previews and HDR maps (CIPA DC-007).
func multiPicture(data []byte) []byte {
	le := binary.LittleEndian
	const partLength = 90
	first, second := uint32(len(data)+partLength), uint32(len(data))
	tags := []tag{
		{0xb000, 7, 4, []byte("0100")},
		{0xb001, kindLong, 1, longs(le, 2)},
		{0xb002, 7, 32, slices.Concat(longs(le, 0x030000, first, 0, 0), longs(le, 0, second, second, 0))},
	}
	index := slices.Concat([]byte("MPF\x00II*\x00"), longs(le, 8), directory(le, 8, tags, 0))
	whole := marked(jpegPart(0xe2, index...))(data)
	return append(whole, data...)
}

// cameraJPEGs returns JPEGs with additional data or with missing pixels.
func cameraJPEGs() []Row {
	p3 := displayP3()
	little, big := binary.LittleEndian, binary.BigEndian
	plain := fixed(plainJPEG)
	wide := fixed(func() []byte { return goJPEG(charted(600, 200)) })
	reversed := iccParts(p3, 3)
	slices.Reverse(reversed)
	var manyXMP [][]byte
	for range 82 {
		manyXMP = append(manyXMP, xmpPart(xmp(false, 64_500)))
	}
	square := func(width, height int) Maker { return fixed(func() []byte { return goJPEG(charted(width, height)) }) }
	onInstagram := asSent.but(rendition, Instagram)
	film := fixed(func() []byte {
		return slices.Concat(plainJPEG(), box("ftyp", []byte("mp42\x00\x00\x00\x00isommp42")), box("mdat", make([]byte, 5000)))
	})
	return []Row{
		{Name: "no-end-mark.jpg", Reason: "cameras whose battery died; djpeg decodes all of it", Make: edit(plain, endless(2)), Want: asSent, Short: true},
		{Name: "no-end-mark-wide.jpg", Reason: "the same, converted for Instagram", Make: edit(wide, endless(2)), Want: onInstagram, Shows: wide},
		{Name: "cut-off.jpg", Reason: "an interrupted download", Make: edit(plain, func(d []byte) []byte { return d[:len(d)/2] }), Want: unusable("cut off"), Short: true},
		{Name: "cut-off-header.jpg", Reason: "a download interrupted immediately", Make: edit(plain, func(d []byte) []byte { return d[:100] }), Want: unusable("damaged")},
		{Name: "zeros-behind.jpg", Reason: "block-wise copies from memory cards", Make: edit(plain, followed(make([]byte, 8192))), Want: asSent},
		{Name: "newline-behind.jpg", Reason: "text editors and mail clients", Make: edit(plain, followed([]byte("\r\n"))), Want: asSent},
		{Name: "second-jpeg-behind.jpg", Reason: "previews by old Samsung phones", Make: edit(plain, func(d []byte) []byte { return append(d, d...) }), Want: asSent},
		{Name: "motion-photo.jpg", Reason: "motion photos from Pixel and Samsung phones", Make: film, Want: asSent, Short: true},
		{Name: "multi-picture.jpg", Reason: "Ultra HDR, iPhone gain maps, MPO from 3D cameras", Make: edit(plain, multiPicture), Want: onInstagram, Short: true},
		{Name: "p3.jpg", Reason: "iPhone 7 and later", Make: edit(plain, marked(iccParts(p3, 1)...)), Want: asSent, Profile: true},
		{Name: "p3-wide.jpg", Reason: "the same, converted for Instagram", Make: edit(wide, marked(iccParts(p3, 1)...)), Want: onInstagram, Profile: true},
		{Name: "p3-two-parts-wide.jpg", Reason: "profiles larger than 64 KiB; Photoshop", Make: edit(wide, marked(iccParts(p3, 2)...)), Want: onInstagram, Profile: true},
		{Name: "p3-reversed-parts-wide.jpg", Reason: "libjpeg reorders the parts", Make: edit(wide, marked(reversed...)), Want: onInstagram, Profile: true, Short: true},
		{Name: "p3-turned.jpg", Reason: "iPhone portraits", Turn: 6, Make: edit(plain, marked(append([][]byte{app1(exif(big, 6, false, nil))}, iccParts(p3, 1)...)...)), Want: rendered, Profile: true},
		{Name: "adobe-rgb-wide.jpg", Reason: "cameras set to Adobe RGB", Make: edit(wide, marked(iccParts(adobeRGB(), 1)...)), Want: onInstagram, Profile: true},
		{Name: "xmp-5-mb.jpg", Reason: "Lightroom's brush history", Make: edit(plain, marked(manyXMP...)), Want: asSent.but(rendition, X, Facebook)},
		{Name: "thumbnail.jpg", Reason: "every camera", Make: edit(plain, marked(app1(exif(little, 1, false, goJPEG(charted(160, 120)))))), Want: asSent},
		{Name: "thumbnail-turned.jpg", Reason: "the thumbnail is oriented like the picture", Turn: 8, Make: edit(plain, marked(app1(exif(big, 8, false, goJPEG(charted(160, 120)))))), Want: rendered},
		{Name: "exif-broken-wide.jpg", Reason: "editors that truncate metadata", Make: edit(wide, marked(app1([]byte("II*\x00\xff\xff\xff\xff")))), Want: onInstagram},
		{Name: "exif-turn-9.jpg", Reason: "an undefined value", Make: edit(plain, marked(app1(exif(little, 9, false, nil)))), Want: asSent},
		{Name: "comment.jpg", Reason: "GIMP", Make: edit(plain, marked(jpegPart(0xfe, []byte("Created with GIMP")...))), Want: asSent},
		{Name: "fill-bytes.jpg", Reason: "T.81 allows 0xff before a marker", Make: edit(plain, marked(bytes.Repeat([]byte{0xff}, 7))), Want: asSent},
		{Name: "gps-exif-intel.jpg", Reason: "Android phones", Place: true, Make: edit(plain, marked(app1(exif(little, 1, true, nil)))), Want: withoutPlace, Short: true},
		{Name: "gps-exif-motorola.jpg", Reason: "iPhones", Place: true, Make: edit(plain, marked(app1(exif(big, 1, true, nil)))), Want: withoutPlace},
		{Name: "gps-exif-turned.jpg", Reason: "phone portraits", Place: true, Turn: 6, Make: edit(plain, marked(app1(exif(big, 6, true, nil)))), Want: rendered, Short: true},
		{Name: "gps-xmp.jpg", Reason: "Lightroom", Place: true, Make: edit(plain, marked(xmpPart(xmp(true, 2000)))), Want: withoutPlace},
		{Name: "gps-xmp-wide.jpg", Reason: "the same, converted for Instagram", Place: true, Make: edit(wide, marked(xmpPart(xmp(true, 2000)))), Want: withoutPlace.but(rendition, Instagram)},
		{Name: "gps-exif-and-xmp.jpg", Reason: "photos exported by Lightroom", Place: true, Make: edit(plain, marked(app1(exif(little, 1, true, nil)), xmpPart(xmp(true, 0)))), Want: withoutPlace},
		{
			Name: "gps-second-picture.jpg", Reason: "the preview after the picture repeats the EXIF", Place: true,
			Make: edit(plain, marked(app1(exif(little, 1, true, nil))), multiPicture), Want: withoutPlace.but(rendition, Instagram),
		},
		{Name: "one-pixel.jpg", Reason: "tracking pixels", Make: square(1, 1), Want: asSent},
		{Name: "very-wide.jpg", Reason: "panoramas", Make: square(6000, 500), Want: onInstagram.but(rendition, Threads, TikTok)},
		{Name: "very-high.jpg", Reason: "full-page screenshots", Make: square(400, 9000), Want: onInstagram.but(rendition, Threads, TikTok)},
		{Name: "48-megapixels.jpg", Reason: "phones since 2019", Make: square(8000, 6000), Want: asSent.but(rendition, TikTok), Short: true},
	}
}
