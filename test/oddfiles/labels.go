// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

// brandedImage makes the start of a box-based image, such as HEIC or AVIF.
func brandedImage(brand string) Maker {
	return fixed(func() []byte {
		return append(box("ftyp", []byte(brand+"\x00\x00\x00\x00mif1"+brand)), box("meta", make([]byte, 400))...)
	})
}

// tenSeconds makes a video that every platform accepts, with its movie box before its frames.
var tenSeconds = sampled("tenseconds.mp4")

// labels returns files with a wrong name or type.
func labels() []Row {
	sound := sampled("audio.mp4")
	gif := sampled("picture.gif")
	is := func(what string) Want { return unusable("its content is " + what) }
	film := func(brand string) Maker { return edit(tenSeconds, branded(brand)) }
	return []Row{
		{Name: "heic-called.jpg", Reason: "renamed iPhone photos", Make: brandedImage("heic"), Want: is("image/heic"), Short: true},
		{Name: "avif-called.png", Reason: "images from web pages, saved under another name", Make: brandedImage("avif"), Want: is("image/avif")},
		{Name: "gif-called.jpg", Reason: "messengers that rename files", Make: gif, Want: is("image/gif")},
		{Name: "gif-called.png", Reason: "messengers that rename files", Make: gif, Want: is("image/gif")},
		{Name: "png-called.jpg", Reason: "renamed screenshots", Make: plainPNG(), Want: is("image/png"), Short: true},
		{Name: "jpeg-called.png", Reason: "WhatsApp Web", Make: fixed(plainJPEG), Want: is("image/jpeg")},
		{Name: "jpeg-called.webp", Reason: "CDNs that convert images depending on the browser", Make: fixed(plainJPEG), Want: is("image/jpeg")},
		{Name: "webp-called.jpg", Reason: "images saved from web pages", Make: sampled("picture.webp"), Want: is("image/webp")},
		{Name: "film-called.jpg", Reason: "a Live Photo's video", Make: tenSeconds, Want: is("video/mp4")},
		{Name: "jpeg-called.mp4", Reason: "a renamed thumbnail", Make: fixed(plainJPEG), Want: is("image/jpeg")},
		{Name: "page-called.jpg", Reason: "an error page saved as a picture", Make: fixed(func() []byte { return []byte("<!DOCTYPE html><html><body>404</body></html>") }), Want: is("text/html")},
		{Name: "nothing.png", Reason: "text under another name", Make: fixed(func() []byte { return []byte("\x01\x02\x03\x04 nothing that is known") }), Want: is("of no known type")},
		{Name: "quicktime-called.mp4", Reason: "renamed iPhone videos", Make: film("qt  "), Want: asSent, Short: true},
		{Name: "old-quicktime-called.mp4", Reason: "Sony and Pentax cameras (mqt)", Make: film("mqt "), Want: asSent},
		{Name: "mp4-called.mov", Reason: "the composer declares the type based on the name", Make: tenSeconds, Want: asSent, Short: true},
		{Name: "isom-called.mov", Reason: "renamed ffmpeg output", Make: film("isom"), Want: asSent},
		{Name: "3gp4.mp4", Reason: "Android phones (react-native-camera#2470)", Make: film("3gp4"), Want: asSent, Short: true},
		{Name: "3gp5.mp4", Reason: "Android phones (mastodon#3680)", Make: film("3gp5"), Want: asSent},
		{Name: "3g2a.mp4", Reason: "CDMA phones", Make: film("3g2a"), Want: asSent},
		{Name: "kddi.mp4", Reason: "Japanese phones", Make: film("KDDI"), Want: asSent},
		{Name: "dby1.mp4", Reason: "Dolby's tools", Make: film("dby1"), Want: asSent},
		{Name: "xavc.mp4", Reason: "Sony cameras", Make: film("XAVC"), Want: asSent},
		{Name: "m4v.m4v", Reason: "iTunes", Make: film("M4V "), Want: unusable("rename the file")},
		{Name: "m4v.mp4", Reason: "HandBrake", Make: film("M4V "), Want: asSent},
		{Name: "unknown-brand.mp4", Reason: "tools with a custom brand", Make: film("zzzz"), Want: asSent},
		{Name: "heic-called.mp4", Reason: "photos that a phone lists among videos", Make: brandedImage("heic"), Want: is("image/heic")},
		{Name: "sound-only.mp4", Reason: "voice memos", Make: sound, Want: unusable("no moving picture"), Short: true},
	}
}
