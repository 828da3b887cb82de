// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import "bytes"

// containers returns videos whose boxes are in an unusual order, or that lack usual fields.
func containers() []Row {
	free := box("free", make([]byte, 16))
	uuid := box("uuid", bytes.Repeat([]byte{0xa5}, 16), make([]byte, 40))
	remuxed := func(args ...string) Maker {
		return func(k *Kit) ([]byte, error) {
			data, err := tenSeconds(k)
			if err != nil {
				return nil, err
			}
			return k.encode(".mp4", data, append([]string{"-i", "input", "-c", "copy"}, args...)...)
		}
	}
	needs := []string{ffmpegItself}
	rows := []Row{
		{Name: "plain.mp4", Reason: "nothing unusual: the baseline", Make: tenSeconds, Want: asSent, Short: true},
		{Name: "index-last.mp4", Reason: "cameras, which write the index last", Make: edit(tenSeconds, indexLast), Want: asSent, Short: true},
		{Name: "no-brand.mov", Reason: "QuickTime before 2001", Make: edit(tenSeconds, unbranded), Want: asSent},
		{Name: "no-brand-frames-first.mov", Reason: "old cameras (qt_mdat_first)", Make: edit(tenSeconds, indexLast, unbranded), Want: asSent, Short: true},
		{Name: "free-first.mp4", Reason: "editors that reserve space", Make: edit(tenSeconds, preceded(free)), Want: asSent},
		{Name: "uuid-first.mp4", Reason: "Sony and Panasonic cameras", Make: edit(tenSeconds, preceded(uuid)), Want: asSent, Short: true},
		{Name: "wide-first.mov", Reason: "QuickTime reserves space for 64-bit sizes", Make: edit(tenSeconds, unbranded, preceded(box("wide"))), Want: asSent},
		{Name: "skip-first.mov", Reason: "QuickTime editors", Make: edit(tenSeconds, unbranded, preceded(box("skip", make([]byte, 20)))), Want: asSent},
		{Name: "pnot-first.mov", Reason: "QuickTime's preview", Make: edit(tenSeconds, preceded(box("pnot", make([]byte, 12)))), Want: asSent},
		{Name: "film-header-without-length.mp4", Reason: "recorders that never rewrite mvhd", Needs: needs, Make: edit(tenSeconds, put("mvhd", 16, words(0), false)), Want: asSent, Short: true},
		{Name: "track-header-without-size.mp4", Reason: "tools that leave tkhd empty", Needs: needs, Make: edit(tenSeconds, put("tkhd", 76, words(0, 0), false)), Want: asSent},
		{Name: "film-header-too-long.mp4", Reason: "cut videos that keep the old mvhd", Needs: needs, Make: edit(tenSeconds, put("mvhd", 16, words(10_000_000), false)), Want: asSent},
		{Name: "compressed-header.mov", Reason: "QuickTime Pro (qt_cmov.mov)", Make: edit(tenSeconds, compressed), Want: unusable("compressed"), Short: true},
		{Name: "fragmented.mp4", Reason: "OBS, and live stream recorders", Needs: needs, Make: remuxed("-movflags", "frag_keyframe+empty_moov"), Want: asSent, Short: true},
		{Name: "fragmented-with-base.mp4", Reason: "DASH packagers", Needs: needs, Make: remuxed("-movflags", "frag_keyframe+empty_moov+default_base_moof"), Want: asSent},
		{Name: "indexed-segments.mp4", Reason: "yt-dlp's DASH (sidx)", Needs: needs, Make: remuxed("-movflags", "dash+global_sidx"), Want: asSent},
		{Name: "edit-list.mp4", Reason: "trimming on phones, which keeps the frames", Needs: needs, Make: remuxed("-t", "7"), Want: asSent},
		{Name: "long-sizes.mp4", Reason: "recorders that reserve 64-bit sizes", Make: edit(tenSeconds, longSizes), Want: asSent},
		{Name: "cut-off-end.mp4", Reason: "an interrupted download", Make: edit(tenSeconds, endless(5000)), Want: unusable("cut off"), Short: true},
		{Name: "cut-off-index.mp4", Reason: "a camera whose battery died", Make: edit(tenSeconds, indexLast, endless(9157)), Want: unusable("moov"), Short: true},
		{Name: "cut-off-start.mp4", Reason: "a download resumed incorrectly", Make: edit(tenSeconds, func(d []byte) []byte { return d[700:] }), Want: unusable("content is")},
		{Name: "frames-missing.mp4", Reason: "a header without the video data", Make: edit(tenSeconds, func(d []byte) []byte { return d[:9189] }), Want: unusable("mdat")},
	}
	return rows
}

// longSizes gives the frames' box a 64-bit size.
func longSizes(data []byte) []byte {
	const more = 8
	var out []byte
	for _, b := range top(shifted(data, more)) {
		if kindOf(b) == "mdat" {
			b = bytes.Join([][]byte{words(1), []byte("mdat"), words(0, uint32(len(b)+more)), b[8:]}, nil)
		}
		out = append(out, b...)
	}
	return out
}

// trailers returns videos with trailing data.
func trailers() []Row {
	packet := append([]byte("<?xpacket begin=\"\"?>"), xmp(false, 500)...)
	var rows []Row
	for _, t := range []struct {
		name, reason string
		data         []byte
		short        bool
	}{
		{"zeros", "block-wise copies from memory cards", make([]byte, 8192), false},
		{"three-zeros", "padding to a multiple of four", make([]byte, 3), false},
		{"newline", "text editors and FTP", []byte("\n"), false},
		{"id3v1", "music taggers", append([]byte("TAGTitle"), make([]byte, 120)...), true},
		{"xmp", "Adobe Bridge", packet, false},
		{"ff", "empty flash memory", bytes.Repeat([]byte{0xff}, 512), true},
		{"half-a-box", "cameras that lose power while writing", append(words(5000), []byte("free12345678")...), false},
		{"samsung", "Samsung phones' SEFT trailer", []byte("SEFH\x6b\x00\x00\x00\x00\x00\x00\x00\x0c\x00\x00\x00SEFT"), false},
	} {
		rows = append(rows, Row{Name: t.name + "-behind.mp4", Reason: t.reason, Make: edit(tenSeconds, followed(t.data)), Want: asSent, Short: t.short})
	}
	return append(rows, Row{
		Name: "zeros-behind-index-last.mov", Reason: "videos recovered from a card", Make: edit(tenSeconds, indexLast, followed(make([]byte, 4096))), Want: asSent,
	})
}
