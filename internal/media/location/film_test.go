// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/must"
)

// mebx returns the format of a track whose samples belong to a key.
func mebx(key string) []byte {
	return box("mebx", make([]byte, 6), []byte{0, 1}, box("keys", join(words(uint32(8+8+12+len(key)), 1), box("keyd", "mdta", key))))
}

// keyed returns key-value metadata as QuickTime stores it.
func keyed(values ...string) []byte {
	var keys, items []byte
	for i := 0; i < len(values); i += 2 {
		keys = append(keys, join(words(uint32(8+len(values[i]))), "mdta", values[i])...)
		items = append(items, join(words(uint32(24+len(values[i+1])), uint32(i/2+1)), box("data", words(1, 0), values[i+1]))...)
	}
	return box("meta", box("hdlr", words(0, 0), "mdta", words(0, 0, 0), "\x00"), box("keys", words(0, uint32(len(values)/2)), keys), box("ilst", items))
}

func films(tb testing.TB) map[string]file {
	tb.Helper()
	canon, _ := hex.DecodeString("85c0b687820f11e08111f4ce462b6a48")
	adobe, _ := hex.DecodeString("be7acfcb97a942e89c71999491e3afac")
	const picture, place = "a frame of the film", "47.2 N 8.5 E"
	media := []byte(picture + place + picture + place)
	first, second := uint32(mediaAt+len(picture)), uint32(mediaAt+len(picture)+len(place)+len(picture))
	recorded := func(handler string, format []byte) []byte {
		length := uint32(len(place))
		return movie(media, trak(samples{handler: handler, id: 2, format: format, offsets: []uint32{first, second}, sizes: []uint32{length, length}}))
	}
	drone := []byte("\x00\x1fGPS (8.5, 47.2, 20), D 3.15m\nmore")
	return map[string]file{
		"film by Android":       {"a box of coordinates", mp4Type, movie(nil, box("udta", box("\xa9xyz", "\x00\x12\x15\xc7+47.2+008.5/"), box("\xa9nam", "Title"))), []string{"+47.2"}, []string{"Title"}},
		"film by 3GPP":          {"the same of phones of old, in a track", mp4Type, movie(nil, trak(samples{handler: "soun", id: 2}, box("udta", box("loci", words(0), "Home\x00")))), []string{"Home"}, nil},
		"film by an iPhone":     {"a key of many", movType, movie(nil, keyed("com.apple.quicktime.make", "Apple", "com.apple.quicktime.location.ISO6709", "+47.2+008.5/", "com.apple.quicktime.model", "iPhone")), []string{"+47.2"}, []string{"Apple", "iPhone"}},
		"keys in user data":     {"with the version that ISO adds", mp4Type, movie(nil, box("udta", box("meta", words(0), keyed("location", "+47.2+008.5/")[8:]))), []string{"+47.2"}, nil},
		"a place with a name":   {"iTunes' own names", mp4Type, movie(nil, box("udta", box("meta", words(0), box("hdlr", words(0, 0), "mdir", words(0, 0, 0)), box("ilst", box("----", box("mean", words(0), "org"), box("name", words(0), "GPS"), box("data", words(1, 0), "+47.2")))))), []string{"+47.2"}, nil},
		"film by an editor":     {"XMP in its own box", mp4Type, join(movie(nil), box("uuid", adobe, placedXMP())), told, []string{"<xmp:Label>kept"}},
		"film by Lightroom":     {"XMP in user data", movType, movie(nil, box("udta", box("XMP_", placedXMP()))), told, []string{"<xmp:Label>kept"}},
		"film by Canon":         {"a directory of EXIF in a box", mp4Type, movie(nil, box("uuid", canon, box("CMT1", "II*\x00made"), box("CMT4", "II*\x00place"))), []string{"place"}, []string{"made"}},
		"preview with exif":     {"a photo in user data has its metadata", mp4Type, movie(nil, box("udta", box("CNTH", placed(tb)))), []string{"by the moon"}, []string{camera}},
		"gopro's track":         {"a place among the frames", mp4Type, recorded("meta", box("gpmd", make([]byte, 8))), []string{place}, []string{picture + strings.Repeat("\x00", len(place)) + picture}},
		"android's track":       {"a location among the frames", mp4Type, recorded("camm", box("camm", make([]byte, 8))), []string{place}, []string{picture}},
		"the iPhone's track":    {"a location among the frames", movType, recorded("meta", mebx("com.apple.quicktime.location.ISO6709")), []string{place}, []string{picture}},
		"sony's track":          {"places among other things", mp4Type, movie([]byte("\x06\x0e\x85\x00\x00\x04\x02\x03\x00\x00 47.2"), trak(samples{handler: "meta", id: 2, format: box("rtmd", make([]byte, 8)), offsets: []uint32{mediaAt}, sizes: []uint32{15}})), []string{"47.2"}, nil},
		"a drone's subtitles":   {"places as a text", mp4Type, movie(drone, trak(samples{handler: "sbtl", id: 2, format: box("tx3g", make([]byte, 38)), offsets: []uint32{mediaAt}, sizes: []uint32{uint32(len(drone) - 4)}})), []string{"47.2"}, []string{"more"}},
		"a dashboard camera":    {"blocks among the frames, in a table", mp4Type, movie(join(picture, box("free", "GPS ", place), picture), box("gps ", words(0, 1, first, 8+4+uint32(len(place))))), []string{place}, []string{picture}},
		"a track in fragments":  {"each fragment has the offsets of its samples", mp4Type, fragmented(picture, place), []string{place}, []string{picture}},
		"a track out of bounds": {"the samples of a track never describe the film", mp4Type, movie(media, trak(samples{handler: "meta", id: 2, format: box("gpmd", make([]byte, 8)), offsets: []uint32{0, first, uint32(mediaAt + len(media))}, sizes: []uint32{mediaAt, uint32(len(place)), 1 << 20}})), nil, []string{picture, "ftypisom", "moov"}},
	}
}

// fragmented returns a video with a track of frames and a track of locations in each of two fragments: one has the
// position of its samples, and one follows the previous samples.
func fragmented(picture, place string) []byte {
	length := func(s string) uint32 { return uint32(len(s)) }
	fragment := func(flags uint32, parts ...any) []byte {
		runs := func(offset uint32) []byte {
			return box("moof", box("mfhd", words(0, 1)),
				box("traf", box("tfhd", words(flags, 1)), box("trun", words(0x201, 1, offset, length(picture)))),
				box("traf", box("tfhd", words(flags|0x10, 2, length(place))), box("trun", join(parts...))))
		}
		head := runs(0)
		return join(runs(uint32(len(head)+8)), box("mdat", picture, place))
	}
	probe := fragment(0x20000, words(0x1, 1, 0))
	offset := uint32(len(probe)-len(place)-len(picture)) + length(picture)
	return join(box("ftyp", "isom", words(0), "isom"),
		box("moov", box("mvhd", words(0, 0, 0, 1000, 10_000), make([]byte, 80)), trak(samples{handler: "vide", id: 1, format: box("avc1", make([]byte, 78))}),
			trak(samples{handler: "meta", id: 2, format: box("gpmd", make([]byte, 8))}), box("mvex", box("trex", words(0, 1, 1, 10, 0, 0)), box("trex", words(0, 2, 1, 10, 0, 0)))),
		fragment(0x20000, words(0x1, 1, offset)),
		fragment(0, words(0, 1)))
}

// TestRealFilm has ffmpeg write a location into videos, and checks with ffprobe that it is removed and that every
// picture and sound packet is the same.
func TestRealFilm(t *testing.T) {
	for _, program := range []string{"ffmpeg", "ffprobe"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	const place = "+47.2000+008.5000/"
	run := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", program, err, out)
		}
		return string(out)
	}
	for name, tc := range map[string]struct {
		reason string
		flags  []string
	}{
		"film.mp4":       {"a box of user data", nil},
		"keys.mp4":       {"metadata by keys", []string{"-movflags", "use_metadata_tags"}},
		"fragmented.mp4": {"a film in fragments", []string{"-movflags", "frag_keyframe+empty_moov"}},
		"film.mov":       {"QuickTime", nil},
		"faststart.mp4":  {"the index is at the start, so a changed length moves the frames", []string{"-movflags", "faststart"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path, after := filepath.Join(folder, name), filepath.Join(folder, "after-"+name)
			args := []string{"-v", "error", "-f", "lavfi", "-i", "testsrc=d=1:s=64x48:r=10", "-f", "lavfi", "-i", "sine=d=1", "-metadata", "location=" + place, "-metadata", "title=A title"}
			run("ffmpeg", append(append(args, tc.flags...), path)...)
			data, err := os.ReadFile(path)
			must.Succeed(t, err)
			mimeType := map[string]string{".mp4": mp4Type, ".mov": movType}[filepath.Ext(name)]
			must.Succeed(t, os.WriteFile(after, cleaned(t, data, mimeType), 0o600))
			show := []string{"-v", "error", "-show_format", "-show_streams"}
			before, now := run("ffprobe", append(show, path)...), run("ffprobe", append(show, after)...)
			if !strings.Contains(before, place) || strings.Contains(now, place) {
				t.Errorf("%s: ffprobe finds the place: before %t, after %t", tc.reason, strings.Contains(before, place), strings.Contains(now, place))
			}
			if !strings.Contains(now, "A title") {
				t.Errorf("%s: the title is missing", tc.reason)
			}
			packets := []string{"-v", "error", "-show_packets", "-show_data_hash", "md5", "-of", "compact"}
			if a, b := run("ffprobe", append(packets, path)...), run("ffprobe", append(packets, after)...); a != b {
				t.Errorf("%s: packets differ", tc.reason)
			}
			if data, err = os.ReadFile(after); err != nil || bytes.Contains(data, []byte("+47.2")) {
				t.Errorf("%s: the place is still there (%v)", tc.reason, err)
			}
		})
	}
}
