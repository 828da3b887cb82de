// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package blobs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/sandbox/blobs"
)

func open(t *testing.T, dir string) *blobs.Store {
	t.Helper()
	s, err := blobs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func picture(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// receive stores a file, and fails the test if that fails.
func receive(t *testing.T, data []byte) blobs.Blob {
	t.Helper()
	got, err := open(t, "").Receive(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// tail returns a 64×48 video that is 1.5 seconds long.
func tail(t *testing.T) []byte {
	t.Helper()
	film, err := os.ReadFile("../../internal/media/probe/testdata/tail.mp4")
	if err != nil {
		t.Fatal(err)
	}
	return film
}

// wantErr fails the test unless err wraps want.
func wantErr(t *testing.T, why string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", why, err, want)
	}
}

// TestReceiveAgain receives the same content again while another request reads its facts.
func TestReceiveAgain(t *testing.T) {
	s, data := open(t, ""), picture(t)
	got, err := s.Receive(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 500 && err == nil; i++ {
			_, err = s.Receive(bytes.NewReader(data), int64(len(data)))
		}
		received <- err
	}()
	for {
		if _, known := s.Get(got.SHA256); !known {
			t.Error("a received file is unavailable while it is uploaded again")
		}
		select {
		case err := <-received:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func TestReceive(t *testing.T) {
	s, data := open(t, ""), picture(t)
	got, err := s.Receive(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	want := blobs.Blob{SHA256: hashOf(data), Bytes: int64(len(data)), MIMEType: "image/png", Width: 30, Height: 20}
	again, _ := s.Get(got.SHA256)
	if diff := cmp.Diff([]blobs.Blob{want, want}, []blobs.Blob{got, again}); diff != "" {
		t.Errorf("received and stored (-want +got):\n%s", diff)
	}
	file, err := s.Open(got.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // the file was only read
	if kept, err := io.ReadAll(file); err != nil || !bytes.Equal(kept, data) {
		t.Errorf("stored %d bytes, %v", len(kept), err)
	}
	_, err = s.Receive(bytes.NewReader(data), int64(len(data))-1)
	wantErr(t, "a byte too many", err, blobs.ErrTooLarge)
	for _, name := range []string{"", "..", strings.Repeat("0", 64), "../" + strings.Repeat("0", 61)} {
		_, known := s.Get(name)
		if _, err := s.Open(name); err == nil || known {
			t.Errorf("%q can be opened or read", name)
		}
	}
}

// TestFormats checks format detection, including files with data appended by programs. The decoded duration of a video takes
// precedence over its header's.
func TestFormats(t *testing.T) {
	film, still := tail(t), picture(t)
	headless := film[binary.BigEndian.Uint32(film):]
	lasting := func(length uint32) []byte {
		data := bytes.Clone(film)
		binary.BigEndian.PutUint32(data[bytes.Index(data, []byte("mvhd"))+20:], length)
		return data
	}
	const header, video = 33, "video/"
	for why, tt := range map[string]struct {
		data   []byte
		format string
		decode bool // the duration is decoded by ffprobe
	}{
		"the brand of a phone":            {slices.Concat([]byte("\x00\x00\x00\x10ftyp3gp4\x00\x00\x00\x00"), headless), video, false},
		"an unknown brand":                {slices.Concat([]byte("\x00\x00\x00\x10ftypzzzz\x00\x00\x00\x00"), headless), video, false},
		"no brand":                        {slices.Concat([]byte("\x00\x00\x00\x08free"), headless), video, false},
		"a plain video":                   {film, "video/mp4", false},
		"an ID3 tag at the end":           {slices.Concat(film, []byte("TAG"), make([]byte, 125)), "video/mp4", false},
		"a disk's bytes at the end":       {slices.Concat(film, bytes.Repeat([]byte{0xff}, 512)), "video/mp4", false},
		"XMP at the end":                  {slices.Concat(film, []byte("<?xpacket begin=''?><x:xmpmeta/>")), "video/mp4", false},
		"an atom that is too short":       {slices.Concat(film, []byte{0, 0, 0, 4, 'j', 'u', 'n', 'k', 0, 0, 0, 0}), "video/mp4", false},
		"a few bytes at the end":          {slices.Concat(film, []byte{1, 2, 3}), "video/mp4", false},
		"a header without a duration":     {lasting(0), "video/mp4", true},
		"a header with a longer duration": {lasting(10_000_000), "video/mp4", true},
		"an animated PNG is a PNG": {
			slices.Concat(still[:header], []byte("\x00\x00\x00\x08acTL\x00\x00\x00\x02\x00\x00\x00\x00\xf3\x8d\x93\x70"), still[header:]),
			"image/png", false,
		},
	} {
		t.Run(why, func(t *testing.T) {
			if _, err := exec.LookPath("ffprobe"); err != nil && tt.decode {
				t.Skip("ffprobe, which reads track durations, is not in PATH")
			}
			got := receive(t, tt.data)
			if !strings.HasPrefix(got.MIMEType, tt.format) {
				t.Errorf("format %s, want %s", got.MIMEType, tt.format)
			}
			if tt.format != "image/png" && (got.Width != 64 || got.Height != 48 || got.Duration != 1500*time.Millisecond) {
				t.Errorf("found %+v, want 64×48 pixels and 1.5 seconds", got)
			}
		})
	}
}

func TestChunks(t *testing.T) {
	dir, data := t.TempDir(), picture(t)
	s, limit := open(t, dir), int64(len(data))
	// add appends bytes and compares the error, and the size afterwards.
	add := func(why string, at int64, bytes io.Reader, wantSize int64, want error) {
		t.Helper()
		size, err := s.Append("u", at, bytes, limit)
		wantErr(t, why, err, want)
		if size != wantSize {
			t.Errorf("%s: size %d, want %d", why, size, wantSize)
		}
	}
	add("an upload that was not started", 0, strings.NewReader("x"), 0, blobs.ErrUnknown)
	wantErr(t, "the start", s.Begin("u"), nil)
	add("the first chunk", 0, bytes.NewReader(data[:10]), 10, nil)
	s = open(t, dir) // the sandbox restarts
	add("the first chunk again", 0, bytes.NewReader(data[10:]), 10, blobs.ErrOffset)
	add("a gap", 11, bytes.NewReader(data[10:]), 10, blobs.ErrOffset)
	boom := errors.New("connection lost")
	add("bytes before an interruption are kept", 10, io.MultiReader(bytes.NewReader(data[10:20]), failing{boom}), 20, boom)
	if size, ok := s.Size("u"); !ok || size != 20 {
		t.Errorf("the size is %d, %v", size, ok)
	}
	wantErr(t, "truncating beyond the end", s.Truncate("u", 30), nil)
	wantErr(t, "truncating unacknowledged bytes", s.Truncate("u", 15), nil)
	wantErr(t, "truncating an upload that was not started", s.Truncate("v", 0), blobs.ErrUnknown)
	add("the remainder", 15, bytes.NewReader(data[15:]), limit, nil)
	got, err := s.Finish("u")
	if err != nil || got.SHA256 != hashOf(data) || got.Width != 30 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, ok := s.Size("u"); ok {
		t.Error("a finished upload still exists")
	}
	_, err = s.Finish("u")
	wantErr(t, "finishing again", err, blobs.ErrUnknown)
	wantErr(t, "a reset", s.Reset(), nil)
	if _, ok := s.Get(got.SHA256); ok {
		t.Error("a file survived the reset")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// serve serves a file at /a.png. asked receives each request to /never, which gets no response.
func serve(t *testing.T, data []byte) (address string, asked chan struct{}) {
	t.Helper()
	asked = make(chan struct{}, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a.png":
			_, _ = w.Write(data) // the client may have disconnected
		case "/never":
			asked <- struct{}{}
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(web.Close)
	return web.URL, asked
}

func TestPull(t *testing.T) {
	s, data := open(t, ""), picture(t)
	web, _ := serve(t, data)
	if got, err := s.Pull(t.Context(), web+"/a.png?sig=secret", 1<<20, blobs.Follow); err != nil || got.SHA256 != hashOf(data) {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err := s.Pull(t.Context(), web+"/a.png", 5, blobs.Follow)
	wantErr(t, "a file that is too large", err, blobs.ErrTooLarge)
	for address, status := range map[string]int{web + "/b.png?sig=secret": http.StatusNotFound, "http://127.0.0.1:1/": 0, "::": 0, "ftp://a/": 0} {
		var pull *blobs.PullError
		_, err := s.Pull(t.Context(), address, 5, blobs.Follow)
		if !errors.As(err, &pull) || pull.Status != status || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want a failure with status %d that hides the query", address, err, status)
		}
	}
}

// TestPullLater fetches a file, and closes the store while another download hangs.
func TestPullLater(t *testing.T) {
	data := picture(t)
	web, asked := serve(t, data)
	s, err := blobs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	arrived := make(chan blobs.Blob, 1)
	s.PullLater([]string{web + "/a.png"}, 1<<20, blobs.Follow, func(files []blobs.Blob, err error) {
		if err != nil || len(files) != 1 {
			t.Errorf("%d files, %v", len(files), err)
		}
		arrived <- append(files, blobs.Blob{})[0]
	})
	if got := <-arrived; got.SHA256 != hashOf(data) {
		t.Errorf("got %+v", got)
	}
	late := func([]blobs.Blob, error) { t.Error("a download finished after the store was closed") }
	s.PullLater([]string{web + "/never"}, 1<<20, blobs.Follow, late)
	<-asked
	wantErr(t, "closing", s.Close(), nil)
	s.PullLater([]string{web + "/a.png"}, 1<<20, blobs.Follow, late)
	wantErr(t, "closing again", s.Close(), nil)
}
