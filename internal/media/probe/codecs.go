// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"strings"
)

// description records the first entry of stsd, the encoding of a track's samples (ISO 14496-12, section 8.5.2).
func (f *film) description(b box) error {
	const count, fixed = 4, 8
	data, err := f.fields(b, fixed)
	if err != nil || u32(data[count:]) == 0 {
		return err
	}
	f.currentTrack().entry, err = f.header(b.start+fixed, b.end)
	return err
}

type visual struct {
	codec         string
	width, height float64
	// aspect is a pixel's width divided by its height.
	aspect float64
	// transfer is the transfer function (ITU-T H.273, table 3), or zero if it is unknown.
	transfer uint16
}

// The transfer functions of pictures with a high dynamic range.
const transferPQ, transferHLG = 16, 18

// visual reads a video track's entry (ISO 14496-12, section 12.1.3). It returns the zero value if there is none.
func (f *film) visual(t *track) (visual, error) {
	const width, height, end, parts = 24, 26, 28, 78
	if t.entry == (box{}) {
		return visual{}, nil
	}
	data, err := f.fields(t.entry, end)
	if err != nil {
		return visual{}, err
	}
	v := visual{width: float64(u16(data[width:])), height: float64(u16(data[height:])), aspect: 1}
	if v.codec, err = f.codec(t.entry); err != nil {
		return visual{}, err
	}
	for at := t.entry.start + parts; t.entry.end-at >= boxHeader; {
		f.seen++
		if f.seen > maxBoxes {
			return visual{}, errTooMany
		}
		part, err := f.header(at, t.entry.end)
		if err != nil {
			// Decoders also stop here. The fields read so far are valid.
			return v, f.file.Failure()
		}
		v.read(f, part)
		at = part.end
	}
	return v, f.file.Failure()
}

// read reads a part of the entry (ISO 14496-12, sections 12.1.4 and 12.1.5).
func (v *visual) read(f *film, part box) {
	switch string(part.kind[:]) {
	case "pasp":
		const height, end = 4, 8
		if data, err := f.fields(part, end); err == nil && u32(data) > 0 && u32(data[height:]) > 0 {
			v.aspect = float64(u32(data)) / float64(u32(data[height:]))
		}
	case "colr":
		const transfer, end = 6, 8
		if data, err := f.fields(part, end); err == nil && (string(data[:4]) == "nclx" || string(data[:4]) == "nclc") {
			v.transfer = u16(data[transfer:])
		}
	}
}

// audio returns the codec of a sound track.
func (f *film) audio(t *track) (string, error) {
	if t.entry == (box{}) {
		return "", nil
	}
	return f.codec(t.entry)
}

// codecs maps the kinds of sample entries (mp4ra.org) to ffmpeg's codec names.
var codecs = byKind([][]string{
	{"h264", "avc1", "avc2", "avc3", "avc4", "dva1", "dvav"},
	{"hevc", "hvc1", "hev1", "hvc2", "hev2", "dvh1", "dvhe"},
	{"vvc", "vvc1", "vvi1"},
	{"av1", "av01", "dav1"},
	{"vp8", "vp08"},
	{"vp9", "vp09"},
	{"mpeg4", "mp4v"},
	{"h263", "s263", "h263", "H263"},
	{"prores", "apch", "apcn", "apcs", "apco", "ap4h", "ap4x"},
	{"mjpeg", "jpeg", "mjpa"},
	{"mjpegb", "mjpb"},
	{"png", "png "},
	{"aac", "mp4a"},
	{"ac3", "ac-3"},
	{"eac3", "ec-3"},
	{"alac", "alac"},
	{"opus", "Opus"},
	{"flac", "fLaC"},
	{"mp3", ".mp3"},
	{"amr_nb", "samr"},
	{"amr_wb", "sawb"},
	{"pcm", "sowt", "twos", "lpcm", "ipcm", "fpcm", "in24", "in32", "fl32", "fl64", "raw ", "NONE"},
})

// byKind returns a map from kinds to names. The first element of each list is the name.
func byKind(lists [][]string) map[string]string {
	names := map[string]string{}
	for _, list := range lists {
		for _, kind := range list[1:] {
			names[kind] = list[0]
		}
	}
	return names
}

// mpeg2 is MPEG-2 video, which has one object type per profile.
const mpeg2 = "mpeg2video"

// objects maps the object type in the decoder configuration of an MPEG-4 entry (mp4v, mp4a) to a codec, if it is not
// the usual one for such entries.
var objects = map[byte]string{
	0x60: mpeg2, 0x61: mpeg2, 0x62: mpeg2, 0x63: mpeg2, 0x64: mpeg2, 0x65: mpeg2,
	0x6a: "mpeg1video", 0x6c: "mjpeg", 0x69: "mp3", 0x6b: "mp3", 0xa5: "ac3", 0xa6: "eac3", 0xad: "opus",
}

func (f *film) codec(entry box) (string, error) {
	kind := string(entry.kind[:])
	name := codecs[kind]
	switch {
	case kind == "mp4v" || kind == "mp4a":
		object, err := f.object(entry)
		if err != nil {
			return "", err
		}
		if other := objects[object]; other != "" {
			name = other
		}
	case name == "":
		name = strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '?'
			}
			return r
		}, kind))
	}
	return name, nil
}

// object returns the object type of an MPEG-4 entry (ISO 14496-1, section 7.2.6.6), or zero if it has none. The box
// that contains it has a different position in each version of QuickTime, so the function searches for the box's name.
func (f *film) object(entry box) (byte, error) {
	const searched = 512
	data := make([]byte, min(searched, entry.end-entry.start))
	if _, err := f.file.ReadAt(data, entry.start); err != nil {
		return 0, err
	}
	_, data, found := bytes.Cut(data, []byte("esds"))
	if !found || len(data) < 4 {
		return 0, nil
	}
	const (
		stream, config         = 3, 4
		dependent, named, sync = 0x80, 0x40, 0x20
	)
	data, ok := descriptor(data[4:], stream)
	if !ok || len(data) < 3 {
		return 0, nil
	}
	flags := data[2]
	data = data[3:]
	skip := 0
	if flags&dependent != 0 {
		skip += 2
	}
	if flags&named != 0 && len(data) > skip {
		skip += 1 + int(data[skip])
	}
	if flags&sync != 0 {
		skip += 2
	}
	if data, ok = descriptor(data[min(skip, len(data)):], config); !ok || len(data) == 0 {
		return 0, nil
	}
	return data[0], nil
}

// descriptor returns the data after the head of a descriptor with the given tag (ISO 14496-1, section 8.3.3). Its
// length takes up to four bytes; all but the last have the highest bit set.
func descriptor(data []byte, tag byte) ([]byte, bool) {
	const more, longest = 0x80, 4
	if len(data) == 0 || data[0] != tag {
		return nil, false
	}
	data = data[1:]
	for range longest {
		if len(data) == 0 {
			return nil, false
		}
		last := data[0]&more == 0
		if data = data[1:]; last {
			break
		}
	}
	return data, true
}
