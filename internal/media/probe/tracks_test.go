// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/probe"
)

// reel describes a generated video with a picture track and a sound track. All its timescales are 1000.
type reel struct {
	// header is the duration in mvhd, presented the one in tkhd, and length the one in mdhd.
	header, presented, length uint32
	// width and height are from tkhd. turned means that its matrix rotates.
	width, height uint32
	turned        bool
	// entry is the picture's sample entry, and sound is the sound's. Each is nil if there is none.
	entry, sound []byte
	// times is the table of durations, in pairs of count and duration.
	times []uint32
	// edits is an edit list, or nil for none.
	edits []byte
	// header parts of the moov.
	more []byte
}

// frame returns the sample entry for a picture with the given size.
func frame(kind string, width, height uint32, parts ...any) []byte {
	return box(kind, make([]byte, 24), words(width<<16|height), make([]byte, 50), join(parts...))
}

// tone returns the sample entry for a sound.
func tone(kind string, parts ...any) []byte { return box(kind, make([]byte, 28), join(parts...)) }

// decoder returns the configuration of an MPEG-4 entry with the given object type.
func decoder(object byte) []byte {
	return box("esds", words(0), []byte{3, 0x80, 0x80, 0x80, 20, 0, 1, 0, 4, 0x80, 0x80, 0x80, 13, object, 0})
}

func (r reel) bytes() []byte {
	matrix := words(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
	if r.turned {
		matrix = words(0, 0x10000, 0, 0xffff0000, 0, 0, 0, 0, 0x40000000)
	}
	track := func(kind string, length uint32, entry []byte, times []uint32) []byte {
		entries := box("stsd", words(0, 0))
		if entry != nil {
			entries = box("stsd", words(0, 1), entry)
		}
		return box("trak",
			box("tkhd", words(0, 0, 0, 1, 0, r.presented, 0, 0, 0, 0), matrix, words(r.width<<16, r.height<<16)),
			r.edits,
			box("mdia",
				box("mdhd", words(0, 0, 0, 1000, length, 0)),
				box("hdlr", words(0, 0), kind, words(0, 0, 0), "\x00"),
				box("minf", box("stbl", entries, box("stts", words(0, uint32(len(times)/2)), words(times...))))))
	}
	parts := [][]byte{box("mvhd", words(0, 0, 0, 1000, r.header), make([]byte, 80)), r.more, track("vide", r.length, r.entry, r.times)}
	if r.sound != nil {
		parts = append(parts, track("soun", 0, r.sound, nil))
	}
	return join(box("ftyp", "isom", words(0), "isom"), box("moov", bytes.Join(parts, nil)), box("mdat", words(0)))
}

func TestProbeTracks(t *testing.T) {
	h264 := frame("avc1", 320, 240)
	for name, tc := range map[string]struct {
		reason string
		reel   reel
		want   probe.Facts
	}{
		"a complete film": {
			"recorded by a phone",
			reel{header: 1000, width: 320, height: 240, entry: h264, sound: tone("mp4a", decoder(0x40)), times: []uint32{30, 40}},
			probe.Facts{Width: 320, Height: 240, Duration: 1200 * time.Millisecond, FrameRate: 25, VideoCodec: "h264", AudioCodec: "aac"},
		},
		"no duration in the header": {
			"players go by the tracks",
			reel{length: 2000, width: 320, height: 240, entry: h264},
			probe.Facts{Width: 320, Height: 240, Duration: 2 * time.Second, VideoCodec: "h264"},
		},
		"no duration in any header": {
			"the samples have it",
			reel{width: 320, height: 240, entry: h264, times: []uint32{10, 100}},
			probe.Facts{Width: 320, Height: 240, Duration: time.Second, FrameRate: 10, VideoCodec: "h264"},
		},
		"a header that is wrong": {
			"the samples determine the duration",
			reel{header: 660_000, width: 320, height: 240, entry: h264, times: []uint32{10, 100}},
			probe.Facts{Width: 320, Height: 240, Duration: time.Second, FrameRate: 10, VideoCodec: "h264"},
		},
		"cut by a phone": {
			"an edit list hides samples that stay in the file",
			reel{header: 400, presented: 400, width: 320, height: 240, entry: h264, times: []uint32{10, 100}, edits: box("edts", box("elst", words(0, 1, 400, 300, 0x10000)))},
			probe.Facts{Width: 320, Height: 240, Duration: 400 * time.Millisecond, FrameRate: 10, VideoCodec: "h264"},
		},
		"no size in the header": {
			"the sample entry has it",
			reel{header: 1000, entry: h264},
			probe.Facts{Width: 320, Height: 240, Duration: time.Second, VideoCodec: "h264"},
		},
		"no size in the header, different pixels": {
			"pixels may be wider than high",
			reel{header: 1000, entry: frame("avc1", 1440, 1080, box("avcC", words(0)), box("pasp", words(4, 3)))},
			probe.Facts{Width: 1920, Height: 1080, Duration: time.Second, VideoCodec: "h264"},
		},
		"other pixels": {
			"the header contains the displayed width",
			reel{header: 1000, width: 1920, height: 1080, entry: frame("avc1", 1440, 1080)},
			probe.Facts{Width: 1920, Height: 1080, Duration: time.Second, VideoCodec: "h264"},
		},
		"a size that is not that of the frames": {
			"the frames determine the displayed size",
			reel{header: 1000, width: 3840, height: 2880, entry: h264},
			probe.Facts{Width: 320, Height: 240, Duration: time.Second, VideoCodec: "h264"},
		},
		"turned": {
			"a phone held upright",
			reel{header: 1000, width: 320, height: 240, turned: true, entry: h264},
			probe.Facts{Width: 240, Height: 320, Duration: time.Second, VideoCodec: "h264"},
		},
		"frames that vary": {
			"a recorded screen",
			reel{width: 320, height: 240, entry: h264, times: []uint32{10, 100, 10, 20}},
			probe.Facts{Width: 320, Height: 240, Duration: 1200 * time.Millisecond, FrameRate: 20 / 1.2, FrameRateVaries: true, VideoCodec: "h264"},
		},
		"a first frame that lasts": {
			"one of many is not representative",
			reel{width: 320, height: 240, entry: h264, times: []uint32{1, 200, 200, 40}},
			probe.Facts{Width: 320, Height: 240, Duration: 8200 * time.Millisecond, FrameRate: 201 / 8.2, VideoCodec: "h264"},
		},
		"HEVC of Apple": {
			"iPhones record this layout",
			reel{header: 1000, width: 320, height: 240, entry: frame("hvc1", 320, 240), sound: tone("lpcm")},
			probe.Facts{Width: 320, Height: 240, Duration: time.Second, VideoCodec: "hevc", AudioCodec: "pcm"},
		},
		"HDR": {
			"the colours of phones",
			reel{header: 1000, width: 320, height: 240, entry: frame("hvc1", 320, 240, box("hvcC"), box("colr", "nclx", []byte{0, 9, 0, 18, 0, 9, 0}))},
			probe.Facts{Width: 320, Height: 240, Duration: time.Second, VideoCodec: "hevc", HDR: true},
		},
		"MP3 as MPEG-4": {
			"the codec's entry alone would suggest AAC",
			reel{header: 1000, width: 320, height: 240, entry: frame("mp4v", 320, 240, decoder(0x61)), sound: tone("mp4a", decoder(0x6b))},
			probe.Facts{Width: 320, Height: 240, Duration: time.Second, VideoCodec: "mpeg2video", AudioCodec: "mp3"},
		},
		"a codec without a name": {
			"its own four characters are shown, if they can be",
			reel{header: 1000, width: 320, height: 240, entry: frame("zz\x01 ", 320, 240)},
			probe.Facts{Width: 320, Height: 240, Duration: time.Second, VideoCodec: "zz?"},
		},
		"a decoder cut short": {
			"an unreadable part is ignored",
			reel{header: 1000, width: 320, height: 240, entry: h264, sound: tone("mp4a", box("esds", words(0), []byte{3}))},
			probe.Facts{Width: 320, Height: 240, Duration: time.Second, VideoCodec: "h264", AudioCodec: "aac"},
		},
		"part of an entry that is damaged": {
			"players do not need it",
			reel{header: 1000, width: 320, height: 240, entry: frame("avc1", 320, 240, words(3), "pasp")},
			probe.Facts{Width: 320, Height: 240, Duration: time.Second, VideoCodec: "h264"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := tc.reel.bytes()
			got, err := probe.Probe(bytes.NewReader(data), int64(len(data)), mp4Type)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			tc.want.MIMEType = mp4Type
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A video with a compressed header may be intact: Herald cannot read it, and says so.
func TestProbeCompressedHeader(t *testing.T) {
	data := reel{header: 1000, width: 320, height: 240, more: box("cmov", box("dcom", "zlib"))}.bytes()
	_, err := probe.Probe(bytes.NewReader(data), int64(len(data)), movType)
	var problem *probe.InvalidFileError
	if !errors.As(err, &problem) || problem.Reason != v1alpha1.ReasonUnsupported {
		t.Errorf("got %v", err)
	}
}
