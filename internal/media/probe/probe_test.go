// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/must"
)

func file(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	must.Succeed(tb, err)
	return data
}

// turnedJPEG puts an EXIF orientation after the start of a JPEG.
func turnedJPEG(picture []byte, orientation uint16) []byte {
	exif := []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01")
	exif = binary.BigEndian.AppendUint16(exif, orientation)
	exif = append(exif, 0, 0, 0, 0, 0, 0)
	marker := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+2))
	return bytes.Join([][]byte{picture[:2], marker, exif, picture[2:]}, nil)
}

// replaced returns data with the first occurrence of a mark replaced.
func replaced(t *testing.T, data []byte, from, to string) []byte {
	t.Helper()
	if !bytes.Contains(data, []byte(from)) {
		t.Fatalf("%q is not in the file", from)
	}
	return bytes.Replace(data, []byte(from), []byte(to), 1)
}

const (
	mp4Type  = string(v1alpha1.MimeMP4)
	movType  = string(v1alpha1.MimeQuickTime)
	jpegType = string(v1alpha1.MimeJPEG)
	pngType  = string(v1alpha1.MimePNG)
	webpType = string(v1alpha1.MimeWebP)
)

func TestProbe(t *testing.T) {
	short := 1500 * time.Millisecond
	video := func(mimeType string) probe.Facts {
		return probe.Facts{MIMEType: mimeType, Width: 64, Height: 48, Duration: short, FrameRate: 10, VideoCodec: "h264"}
	}
	picture := func(mimeType string, width, height int32) probe.Facts {
		return probe.Facts{MIMEType: mimeType, Width: width, Height: height}
	}
	// branded returns a video with a different major brand. A generated video's chunk offsets are not read.
	branded := func(brand string) []byte {
		data := file(t, "tail.mp4")
		copy(data[8:], brand)
		return data
	}
	unbranded := func(data []byte) []byte { return data[binary.BigEndian.Uint32(data):] }
	shifted := file(t, "tail.mp4")
	turned := video(mp4Type)
	turned.Width, turned.Height = 48, 64
	upright := func(p probe.Facts) probe.Facts {
		p.Turned = true
		return p
	}
	for name, tc := range map[string]struct {
		reason   string
		data     []byte
		declared string
		want     probe.Facts
	}{
		"index first":       {"a video for streaming", file(t, "faststart.mp4"), mp4Type, video(mp4Type)},
		"index last":        {"cameras write the index last", file(t, "tail.mp4"), mp4Type, video(mp4Type)},
		"itunes":            {"Apple's own brand is the same container", file(t, "itunes.m4v"), mp4Type, video(mp4Type)},
		"quicktime":         {"iPhones record QuickTime files", file(t, "quicktime.mov"), movType, video(movType)},
		"rotated":           {"a phone held upright stores rotated frames", file(t, "rotated.mp4"), mp4Type, turned},
		"fragmented":        {"the duration is in the fragments only", file(t, "fragmented.mp4"), mp4Type, video(mp4Type)},
		"indexed parts":     {"each part brings an index of itself", file(t, "sidx.mp4"), mp4Type, video(mp4Type)},
		"mov as mp4":        {"renamed, as browsers and users do; the structure is equal", file(t, "quicktime.mov"), mp4Type, video(mp4Type)},
		"mp4 as mov":        {"a video with the other type", file(t, "tail.mp4"), movType, video(movType)},
		"telephone's brand": {"Android writes it into .mp4", branded("3gp4"), mp4Type, video(mp4Type)},
		"tool's brand":      {"Dolby's tools write it", branded("dby1"), mp4Type, video(mp4Type)},
		"sound's brand":     {"the tracks determine that it is a video", branded("M4A "), mp4Type, video(mp4Type)},
		"unknown brand":     {"a new program has a new brand", branded("zzzz"), mp4Type, video(mp4Type)},
		"no brand":          {"old QuickTime files have no brand", unbranded(file(t, "quicktime.mov")), movType, video(movType)},
		"late brand":        {"players look for the brand anywhere", join(box("uuid", make([]byte, 40)), shifted), mp4Type, video(mp4Type)},
		"ID3 tag behind":    {"programs for music append it; players ignore it", append(file(t, "tail.mp4"), join("TAG", make([]byte, 125))...), mp4Type, video(mp4Type)},
		"XMP behind":        {"programs for pictures append XMP", append(file(t, "faststart.mp4"), "<?xpacket begin='' id='W5M0MpCehiHzreSzNTczkc9d'?><x:xmpmeta/>"...), mp4Type, video(mp4Type)},
		"0xff behind":       {"disks are padded with it", append(file(t, "tail.mp4"), bytes.Repeat([]byte{0xff}, 512)...), mp4Type, video(mp4Type)},
		"a size too small":  {"an invalid part after the film is ignored", append(file(t, "tail.mp4"), 0, 0, 0, 4, 'j', 'u', 'n', 'k', 0, 0, 0, 0), mp4Type, video(mp4Type)},
		"behind QuickTime":  {"the same of QuickTime", append(file(t, "quicktime.mov"), join("TAG", make([]byte, 125))...), movType, video(movType)},
		"behind fragments":  {"the same of fragments", append(file(t, "fragmented.mp4"), join("TAG", make([]byte, 125))...), mp4Type, video(mp4Type)},
		"jpeg":              {"plain", file(t, "picture.jpg"), jpegType, picture(jpegType, 64, 48)},
		"jpeg turned":       {"a phone held upright", turnedJPEG(file(t, "picture.jpg"), 6), jpegType, upright(picture(jpegType, 48, 64))},
		"jpeg mirrored":     {"a mirror changes no side", turnedJPEG(file(t, "picture.jpg"), 2), jpegType, upright(picture(jpegType, 64, 48))},
		"jpeg and more":     {"some cameras append their own data", append(file(t, "picture.jpg"), "maker's note"...), jpegType, picture(jpegType, 64, 48)},
		"png":               {"plain", file(t, "picture.png"), pngType, picture(pngType, 64, 48)},
		"webp":              {"plain", file(t, "picture.webp"), webpType, picture(webpType, 64, 48)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := probe.Probe(bytes.NewReader(tc.data), int64(len(tc.data)), tc.declared)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestProbeRefuses(t *testing.T) {
	heic := join(words(24), "ftypheic", words(0), "mif1heic", box("meta", words(0)))
	cut := func(name string) []byte {
		data := file(t, name)
		return data[:len(data)*3/4]
	}
	for name, tc := range map[string]struct {
		reason   string
		data     []byte
		declared string
		want     string
		says     string
	}{
		"empty":              {"an empty file is not a picture", nil, pngType, v1alpha1.ReasonDamaged, "empty"},
		"text":               {"any file can be sent", []byte("hello"), pngType, v1alpha1.ReasonWrongType, "text/plain"},
		"noise":              {"the type is unknown", []byte{1, 2, 3, 0xfe}, pngType, v1alpha1.ReasonWrongType, "no known type"},
		"gif":                {"Herald and the platforms do not support it", file(t, "picture.gif"), jpegType, v1alpha1.ReasonWrongType, "image/gif"},
		"png as jpeg":        {"a platform would reject the file later", file(t, "picture.png"), jpegType, v1alpha1.ReasonWrongType, "image/png"},
		"HEIC as mp4":        {"images have the structure of films, too", heic, mp4Type, v1alpha1.ReasonWrongType, "image/heic"},
		"image as video":     {"a lie", file(t, "picture.jpg"), mp4Type, v1alpha1.ReasonWrongType, "image/jpeg"},
		"sound only":         {"an MP4 may be audio only", file(t, "audio.mp4"), mp4Type, v1alpha1.ReasonDamaged, "no video track"},
		"cut, index first":   {"the frames end early", cut("faststart.mp4"), mp4Type, v1alpha1.ReasonDamaged, "cut off"},
		"cut, index last":    {"the index is missing", cut("tail.mp4"), mp4Type, v1alpha1.ReasonDamaged, "cut off"},
		"cut second frames":  {"a film may have its frames in several parts", append(file(t, "tail.mp4"), join(words(5000), "mdat", "some")...), mp4Type, v1alpha1.ReasonDamaged, "cut off"},
		"cut fragment":       {"an incomplete fragment shortens the film", append(file(t, "fragmented.mp4"), join(words(5000), "moof", "some")...), mp4Type, v1alpha1.ReasonDamaged, "cut off"},
		"cut before frames":  {"only data after the film is ignored", join(file(t, "tail.mp4")[:32], words(1<<30), "junk", file(t, "tail.mp4")[32:]), mp4Type, v1alpha1.ReasonDamaged, "cut off"},
		"cut mov":            {"the same of QuickTime", cut("quicktime.mov"), movType, v1alpha1.ReasonDamaged, "cut off"},
		"cut jpeg":           {"the header is complete, the picture is not", cut("picture.jpg"), jpegType, v1alpha1.ReasonDamaged, "cut off"},
		"cut png":            {"the same of PNG", cut("picture.png"), pngType, v1alpha1.ReasonDamaged, "cut off"},
		"cut webp":           {"the same of WebP", cut("picture.webp"), webpType, v1alpha1.ReasonDamaged, "cut off"},
		"no frames":          {"an index without frames", replaced(t, file(t, "faststart.mp4"), "mdat", "free"), mp4Type, v1alpha1.ReasonDamaged, "no frames"},
		"no index":           {"frames without an index", replaced(t, file(t, "faststart.mp4"), "moov", "free"), mp4Type, v1alpha1.ReasonDamaged, "moov"},
		"no length":          {"the duration is missing", replaced(t, file(t, "faststart.mp4"), "mvhd", "free"), mp4Type, v1alpha1.ReasonDamaged, "no duration"},
		"broken jpeg header": {"a beginning is not a picture", []byte("\xff\xd8\xff\xe0 nonsense"), jpegType, v1alpha1.ReasonDamaged, "header"},
		"broken png header":  {"the first chunk is unknown", replaced(t, file(t, "picture.png"), "IHDR", "XHDR"), pngType, v1alpha1.ReasonDamaged, "header"},
	} {
		t.Run(name, func(t *testing.T) {
			facts, err := probe.Probe(bytes.NewReader(tc.data), int64(len(tc.data)), tc.declared)
			var problem *probe.InvalidFileError
			if !errors.As(err, &problem) {
				t.Fatalf("%s: got %+v, %v", tc.reason, facts, err)
			}
			if problem.Reason != tc.want || !strings.Contains(problem.Message, tc.says) {
				t.Errorf("%s: got %s: %s", tc.reason, problem.Reason, problem.Message)
			}
		})
	}
}

// sparse is a huge file with data only at its ends.
type sparse struct {
	head, tail []byte
	size, read int64
	fail       error
}

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	if s.fail != nil {
		return 0, s.fail
	}
	s.read += int64(len(p))
	clear(p)
	if off < int64(len(s.head)) {
		copy(p, s.head[off:])
	}
	if at := s.size - int64(len(s.tail)); off+int64(len(p)) > at {
		copy(p[max(0, at-off):], s.tail[max(0, off-at):])
	}
	return len(p), nil
}

// large returns a 1 GB video whose index comes last.
func large(t *testing.T) *sparse {
	t.Helper()
	data := file(t, "tail.mp4")
	frames, index := bytes.Index(data, []byte("mdat"))-4, bytes.Index(data, []byte("moov"))-4
	s := &sparse{head: bytes.Clone(data[:frames+8]), tail: data[index:], size: 1 << 30}
	binary.BigEndian.PutUint32(s.head[frames:], uint32(s.size-int64(frames)-int64(len(s.tail))))
	return s
}

func TestProbeReadsLittle(t *testing.T) {
	s := large(t)
	facts, err := probe.Probe(s, s.size, mp4Type)
	if err != nil || facts.Duration != 1500*time.Millisecond {
		t.Fatalf("found %+v, %v", facts, err)
	}
	if limit := int64(256 << 10); s.read > limit {
		t.Errorf("%d bytes of a gigabyte were read, more than %d", s.read, limit)
	}
}

func TestProbeLimitsEndlessFiles(t *testing.T) {
	// A gigabyte of tiny boxes that would all have to be examined.
	s := &sparse{head: file(t, "faststart.mp4"), size: 1 << 30}
	endless := endlessBoxes{s}
	_, err := probe.Probe(endless, s.size, mp4Type)
	var problem *probe.InvalidFileError
	if !errors.As(err, &problem) || problem.Reason != v1alpha1.ReasonDamaged {
		t.Errorf("got %v", err)
	}
	if limit := int64(33 << 20); s.read > limit {
		t.Errorf("%d bytes were read, more than %d", s.read, limit)
	}
}

// endlessBoxes fills a file with empty boxes after its head.
type endlessBoxes struct{ *sparse }

func (e endlessBoxes) ReadAt(p []byte, off int64) (int, error) {
	n, err := e.sparse.ReadAt(p, off)
	box := []byte("\x00\x00\x00\x08free")
	for i := range p {
		if at := off + int64(i) - int64(len(e.head)); at >= 0 {
			p[i] = box[at%int64(len(box))]
		}
	}
	return n, err
}

func TestProbeReturnsReadErrors(t *testing.T) {
	boom := errors.New("the store is unavailable")
	for _, mimeType := range []string{mp4Type, jpegType} {
		if _, err := probe.Probe(&sparse{size: 100, fail: boom}, 100, mimeType); !errors.Is(err, boom) {
			t.Errorf("%s: a store that fails does not make the file bad: got %v", mimeType, err)
		}
	}
	// It fails in the middle, where a library would report damage.
	s := large(t)
	later := failingLater{s, boom}
	if _, err := probe.Probe(later, s.size, mp4Type); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

type failingLater struct {
	io.ReaderAt
	err error
}

func (f failingLater) ReadAt(p []byte, off int64) (int, error) {
	if off > 1<<20 {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(p, off)
}

// FuzzProbe checks that any upload is either accepted or rejected, that an accepted one has the facts that a Media's
// status needs, and that no claim in it makes Probe use much memory.
func FuzzProbe(f *testing.F) {
	types := []string{mp4Type, movType, jpegType, pngType, webpType}
	for _, name := range []string{
		"faststart.mp4", "tail.mp4", "fragmented.mp4", "sidx.mp4", "rotated.mp4", "audio.mp4", "itunes.m4v",
		"quicktime.mov", "picture.jpg", "picture.png", "picture.webp", "picture.gif",
	} {
		for i := range types {
			f.Add(file(f, name), byte(i))
		}
	}
	f.Add(turnedJPEG(file(f, "picture.jpg"), 6), byte(2))
	f.Add(withThumbnail(file(f, "picture.jpg"), file(f, "picture.jpg")), byte(2))
	const smaller = 200 // so that many can be tried
	for _, seed := range hostile(f, smaller) {
		f.Add(seed.data, byte(slices.Index(types, seed.declared)))
	}
	f.Fuzz(func(t *testing.T, data []byte, kind byte) {
		declared := types[int(kind)%len(types)]
		var facts probe.Facts
		var err error
		if n := mediatest.Allocated(func() { facts, err = probe.Probe(bytes.NewReader(data), int64(len(data)), declared) }); n > maxAllocated {
			t.Errorf("%d bytes were allocated, more than %d", n, maxAllocated)
		}
		var problem *probe.InvalidFileError
		switch {
		case errors.As(err, &problem):
			if problem.Reason == "" || problem.Message == "" {
				t.Errorf("refused without a reason: %+v", problem)
			}
		case err != nil:
			t.Errorf("reading from memory cannot fail: %v", err)
		case facts.MIMEType != declared || facts.Width < 1 || facts.Height < 1:
			t.Errorf("accepted %+v", facts)
		case strings.HasPrefix(declared, "video/") != (facts.Duration >= time.Millisecond):
			t.Errorf("accepted %s with %s", declared, facts.Duration)
		}
	})
}
