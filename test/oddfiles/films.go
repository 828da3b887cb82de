// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"fmt"
	"slices"
)

// shot configures ffmpeg for a video. The defaults are ordinary: 360 × 640 pixels, 30 frames per second, four seconds,
// H.264 and AAC.
type shot struct {
	size, rate   string
	seconds      float64
	codec, audio []string
	ending       string
	// input is encoded instead of a test pattern; more are the last arguments.
	input, more []string
}

var (
	x264 = []string{"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"}
	aac  = []string{"-c:a", "aac", "-b:a", "64k"}
	// silent removes the sound.
	silent = []string{"-an"}
)

// film returns a Maker for the video.
func (s shot) film() Maker {
	if s.size == "" {
		s.size = "360x640"
	}
	if s.rate == "" {
		s.rate = "30"
	}
	if s.seconds == 0 {
		s.seconds = 4
	}
	if s.codec == nil {
		s.codec = x264
	}
	if s.audio == nil {
		s.audio = aac
	}
	if s.ending == "" {
		s.ending = ".mp4"
	}
	if s.input == nil {
		s.input = []string{"-f", "lavfi", "-i", fmt.Sprintf("testsrc2=size=%s:rate=%s:duration=%g", s.size, s.rate, s.seconds)}
	}
	args := append(slices.Clone(s.input), "-f", "lavfi", "-i", fmt.Sprintf("sine=frequency=300:sample_rate=48000:duration=%g", s.seconds))
	args = append(append(args, s.codec...), s.audio...)
	if len(s.more) > 0 && s.more[0] == "-map" {
		args = append(args, s.more...)
	} else {
		args = append(append(args, "-map", "0:v", "-map", "1:a?"), s.more...)
	}
	return func(k *Kit) ([]byte, error) { return k.encode(s.ending, nil, args...) }
}

// repeated makes a video of the given length from copies of a shorter one.
func repeated(seconds int, from Maker) Maker {
	return func(k *Kit) ([]byte, error) {
		data, err := from(k)
		if err != nil {
			return nil, err
		}
		return k.encode(".mp4", data, "-stream_loop", "-1", "-i", "input", "-t", fmt.Sprint(seconds), "-c", "copy")
	}
}

// turnedFilm makes a video with a display rotation.
func turnedFilm(degrees int, from Maker) Maker {
	return func(k *Kit) ([]byte, error) {
		data, err := from(k)
		if err != nil {
			return nil, err
		}
		return k.encode(".mp4", data, "-i", "input", "-c", "copy", "-metadata:s:v:0", fmt.Sprintf("rotate=%d", degrees))
	}
}

// mirrored mirrors a video with its track matrix, at an offset of ten fields in the track header.
func mirrored(data []byte) []byte {
	return put("tkhd", 40, words(0xffff0000), false)(data)
}

// codecs returns videos by codec.
func codecs() []Row {
	needs := func(encoder string) []string { return []string{encoder, "libx264"} }
	byCodec := refused("is encoded as")
	bySound := refused("has audio encoded as")
	metaRefuse := asSent.but(bySound, Instagram, Threads)
	h265 := []string{"-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1", "-x265-params", "log-level=error"}
	onYouTube := asSent.but(byCodec, X, Instagram, Threads, TikTok)
	return []Row{
		{Name: "hevc.mov", Reason: "iPhone 7 and later", Needs: needs("libx265"), Make: shot{codec: slices.Concat(h265, []string{"-pix_fmt", "yuv420p"}), ending: ".mov"}.film(), Want: asSent, Short: true},
		{Name: "hevc-hlg.mov", Reason: "iPhone 12 and later: 10-bit HDR", Needs: needs("libx265"), Want: asSent, Make: shot{codec: slices.Concat(h265, []string{
			"-pix_fmt", "yuv420p10le",
			"-color_primaries", "bt2020", "-color_trc", "arib-std-b67", "-colorspace", "bt2020nc",
		}), ending: ".mov"}.film()},
		{Name: "hevc-hev1.mp4", Reason: "ffmpeg and Android: hev1", Needs: needs("libx265"), Make: shot{codec: []string{"-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hev1", "-x265-params", "log-level=error", "-pix_fmt", "yuv420p"}}.film(), Want: asSent},
		{Name: "av1.mp4", Reason: "yt-dlp, and phones since 2023", Needs: needs("libaom-av1"), Make: shot{size: "360x640", seconds: 3, codec: []string{"-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime", "-pix_fmt", "yuv420p"}}.film(), Want: onYouTube, Short: true},
		{Name: "vp9.mp4", Reason: "yt-dlp", Needs: needs("libvpx-vp9"), Make: shot{codec: []string{"-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-pix_fmt", "yuv420p"}}.film(), Want: asSent.but(byCodec, X, Instagram, Threads)},
		{Name: "mpeg4.mp4", Reason: "old phones and DivX", Needs: needs("mpeg4"), Make: shot{codec: []string{"-c:v", "mpeg4", "-q:v", "4"}}.film(), Want: onYouTube},
		{Name: "prores.mov", Reason: "iPhone Pro, and Final Cut", Needs: needs("prores"), Make: shot{codec: []string{"-c:v", "prores", "-profile:v", "0"}, ending: ".mov", seconds: 3}.film(), Want: onYouTube, Short: true},
		{Name: "mjpeg.mov", Reason: "cameras of the 2000s", Needs: needs("mjpeg"), Make: shot{codec: []string{"-c:v", "mjpeg", "-q:v", "5", "-pix_fmt", "yuvj420p"}, ending: ".mov", seconds: 3}.film(), Want: onYouTube},
		{Name: "h264-444.mp4", Reason: "screen recorders", Needs: needs("libx264"), Make: shot{codec: []string{"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv444p"}}.film(), Want: asSent},
		{Name: "h264-10-bits.mp4", Reason: "Panasonic and Sony cameras", Needs: needs("libx264"), Make: shot{codec: []string{"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le"}}.film(), Want: asSent},
		{Name: "pcm.mov", Reason: "cameras, and Final Cut", Needs: needs("pcm_s16le"), Make: shot{audio: []string{"-c:a", "pcm_s16le"}, ending: ".mov"}.film(), Want: metaRefuse, Short: true},
		{Name: "alac.mov", Reason: "Apple's editors", Needs: needs("alac"), Make: shot{audio: []string{"-c:a", "alac"}, ending: ".mov"}.film(), Want: metaRefuse},
		{Name: "mp3.mp4", Reason: "old converters", Needs: needs("libmp3lame"), Make: shot{audio: []string{"-c:a", "libmp3lame"}}.film(), Want: metaRefuse},
		{Name: "opus.mp4", Reason: "yt-dlp and browser recorders", Needs: needs("libopus"), Make: shot{audio: []string{"-c:a", "libopus", "-strict", "-2"}}.film(), Want: metaRefuse},
		{Name: "no-sound.mp4", Reason: "drones and time lapses", Needs: needs("libx264"), Make: shot{audio: silent}.film(), Want: asSent},
		{Name: "two-sounds.mp4", Reason: "OBS: game and voice", Needs: needs("libx264"), Make: shot{more: []string{"-map", "0:v", "-map", "1:a", "-map", "1:a"}}.film(), Want: asSent},
		{Name: "timecode.mov", Reason: "professional cameras", Needs: needs("libx264"), Make: shot{ending: ".mov", more: []string{"-timecode", "01:00:00:00"}}.film(), Want: asSent},
		{Name: "subtitles.mp4", Reason: "HandBrake", Needs: needs("libx264"), Make: subtitled("Hello"), Want: asSent},
	}
}

// subtitled makes a video that has a subtitle track with the text.
func subtitled(says string) Maker {
	text := []byte("1\n00:00:00,500 --> 00:00:03,000\n" + says + "\n")
	args := []string{"-f", "lavfi", "-i", "testsrc2=size=360x640:rate=30:duration=4", "-f", "srt", "-i", "input", "-map", "0:v", "-map", "1:s", "-c:s", "mov_text"}
	return func(k *Kit) ([]byte, error) { return k.encode(".mp4", text, append(args, x264...)...) }
}

// shapes returns videos by size, length and frame rate.
func shapes() []Row {
	var rows []Row
	add := func(name, reason string, s shot, want Want, short bool) {
		rows = append(rows, Row{Name: name, Reason: reason, Needs: []string{"libx264"}, Make: s.film(), Want: want, Short: short})
	}
	flat := func(size string, seconds float64) shot {
		return shot{size: size, seconds: seconds, rate: "24", input: []string{"-f", "lavfi", "-i", fmt.Sprintf("color=c=0x3060c0:size=%s:rate=24:duration=%g", size, seconds)}}
	}
	bySize, byLength, byRate := refused("pixels"), refused("plays for"), refused("frames a second")
	noMeta := func(o Outcome) Want { return asSent.but(o, Instagram, Threads) }

	add("10-frames.mp4", "webcams in the dark", shot{rate: "10"}, noMeta(byRate).but(byRate, TikTok), true)
	add("24-frames.mp4", "cinema", shot{rate: "24000/1001"}, asSent, false)
	add("25-frames.mp4", "PAL", shot{rate: "25"}, asSent, false)
	add("60-frames.mp4", "action cameras", shot{rate: "60000/1001"}, asSent, false)
	add("120-frames.mp4", "slow motion", shot{rate: "120", seconds: 3}, noMeta(byRate).but(byRate, X, TikTok), true)
	add("240-frames.mp4", "iPhone slow motion", shot{rate: "240", seconds: 3}, noMeta(byRate).but(byRate, X, TikTok), false)
	add("varying-frames.mp4", "phones and screen recordings", shot{seconds: 5, more: []string{"-vf", `select='if(lt(t\,2)\,not(mod(n\,2))\,1)'`, "-vsync", "vfr"}, rate: "40"}, asSent, true)
	add("one-frame.mp4", "a photo as a video", shot{seconds: 0.033, audio: silent}, asSent.but(byLength, X, Instagram), true)
	add("half-a-second.mp4", "an accidental recording", shot{seconds: 0.5, audio: silent}, asSent.but(byLength, Instagram), false)
	add("1.5-seconds.mp4", "Live Photos", shot{seconds: 1.5, audio: silent}, asSent.but(byLength, Instagram), false)
	add("3-seconds.mp4", "Instagram's minimum", shot{seconds: 3, audio: silent}, asSent, false)
	add("odd-sides.mp4", "recordings of part of a screen", shot{more: []string{"-vf", "format=yuv444p,pad=405:721"}, codec: []string{"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv444p"}}, asSent, false)
	add("64x1920.mp4", "a strip", shot{size: "64x1920"}, asSent.but(bySize, X, TikTok), false)
	add("1920x64.mp4", "a banner", shot{size: "1920x64"}, noMeta(bySize).but(bySize, X, TikTok), true)
	add("320x240.mp4", "old phones", shot{size: "320x240"}, asSent.but(bySize, TikTok), false)
	add("4k.mp4", "4K from phones", flat("3840x2160", 3), noMeta(bySize).but(bySize, X), true)
	add("8k.mp4", "Galaxy phones and action cameras", flat("7680x4320", 3), noMeta(bySize).but(bySize, X, TikTok), false)

	plain := shot{}.film()
	reasons := map[int]string{90: "phones held upright", 180: "phones held upside down", 270: "phones held the other way"}
	for _, degrees := range []int{90, 180, 270} {
		rows = append(rows, Row{Name: fmt.Sprintf("turned-%d.mp4", degrees), Reason: reasons[degrees], Needs: []string{"libx264"}, Make: turnedFilm(degrees, plain), Want: asSent, Short: degrees == 90})
	}
	long := flat("360x640", 20).film()
	return append(rows,
		Row{Name: "mirrored.mp4", Reason: "front cameras", Make: edit(tenSeconds, mirrored), Want: asSent},
		Row{Name: "anamorphic.mp4", Reason: "HDV cameras: 4:3 pixels", Needs: []string{"libx264"}, Make: shot{size: "720x540", more: []string{"-aspect", "16:9"}}.film(), Want: asSent, Short: true},
		Row{Name: "59-seconds.mp4", Reason: "stories", Needs: []string{"libx264"}, Make: repeated(59, long), Want: asSent},
		Row{Name: "301-seconds.mp4", Reason: "one second over Threads' limit", Needs: []string{"libx264"}, Make: repeated(301, long), Want: asSent.but(byLength, Threads), Short: true},
		Row{Name: "660-seconds.mp4", Reason: "11 minutes", Needs: []string{"libx264"}, Make: repeated(660, long), Want: asSent.but(byLength, Threads, TikTok)},
		Row{Name: "960-seconds.mp4", Reason: "16 minutes", Needs: []string{"libx264"}, Make: repeated(960, long), Want: noMeta(byLength).but(byLength, TikTok)},
	)
}
