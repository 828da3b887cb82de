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

func TestReceive(t *testing.T) {
	s, data := open(t, ""), picture(t)
	got, err := s.Receive(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	want := blobs.Blob{SHA256: hashOf(data), Bytes: int64(len(data)), MIMEType: "image/png", Width: 30, Height: 20}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again, ok := s.Get(got.SHA256); !ok || again != got {
		t.Errorf("kept %+v", again)
	}
	file, err := s.Open(got.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // the file was only read
	if kept, err := io.ReadAll(file); err != nil || !bytes.Equal(kept, data) {
		t.Errorf("kept %d bytes, %v", len(kept), err)
	}
	if _, err := s.Receive(bytes.NewReader(data), int64(len(data))-1); !errors.Is(err, blobs.ErrTooLarge) {
		t.Errorf("one byte too many: %v", err)
	}
	for _, name := range []string{"", "..", strings.Repeat("0", 64), "../" + strings.Repeat("0", 61)} {
		if _, ok := s.Get(name); ok {
			t.Errorf("%q is known", name)
		}
		if _, err := s.Open(name); err == nil {
			t.Errorf("%q can be opened", name)
		}
	}
}

// TestVideo checks video detection, including files with data appended by programs.
func TestVideo(t *testing.T) {
	film, err := os.ReadFile("../../internal/media/probe/testdata/tail.mp4")
	if err != nil {
		t.Fatal(err)
	}
	for name, before := range map[string][]byte{
		"the brand of a telephone": []byte("\x00\x00\x00\x10ftyp3gp4\x00\x00\x00\x00"), "an unknown brand": []byte("\x00\x00\x00\x10ftypzzzz\x00\x00\x00\x00"),
		"no brand": []byte("\x00\x00\x00\x08free"),
	} {
		t.Run(name, func(t *testing.T) {
			data := slices.Concat(before, film[binary.BigEndian.Uint32(film):])
			got, err := open(t, "").Receive(bytes.NewReader(data), int64(len(data)))
			if err != nil || got.MIMEType != "video/mp4" && got.MIMEType != "video/quicktime" || got.Width != 64 || got.Duration != 1500*time.Millisecond {
				t.Errorf("found %+v, %v", got, err)
			}
		})
	}
	for name, behind := range map[string][]byte{
		"nothing": nil, "an ID3 tag": append([]byte("TAG"), make([]byte, 125)...), "bytes of a disk": bytes.Repeat([]byte{0xff}, 512),
		"XMP": []byte("<?xpacket begin=''?><x:xmpmeta/>"), "a size too small": {0, 0, 0, 4, 'j', 'u', 'n', 'k', 0, 0, 0, 0}, "a few bytes": {1, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			data := append(bytes.Clone(film), behind...)
			got, err := open(t, "").Receive(bytes.NewReader(data), int64(len(data)))
			if err != nil || got.MIMEType != "video/mp4" || got.Width != 64 || got.Height != 48 || got.Duration != 1500*time.Millisecond {
				t.Errorf("found %+v, %v", got, err)
			}
		})
	}
}

// TestVideoHeaders checks that the decoded duration takes precedence over the header's.
func TestVideoHeaders(t *testing.T) {
	if _, err := exec.LookPath("ffprobe"); err != nil {
		t.Skip("the length of tracks is read by ffprobe, which is not in PATH")
	}
	film, err := os.ReadFile("../../internal/media/probe/testdata/tail.mp4")
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(film, []byte("mvhd")) + 20
	for name, length := range map[string]uint32{"none": 0, "too long": 10_000_000} {
		t.Run(name, func(t *testing.T) {
			data := bytes.Clone(film)
			binary.BigEndian.PutUint32(data[at:], length)
			got, err := open(t, "").Receive(bytes.NewReader(data), int64(len(data)))
			if err != nil || got.Duration != 1500*time.Millisecond {
				t.Errorf("found %+v, %v", got, err)
			}
		})
	}
}

// TestAnimatedPNG checks that an animated PNG counts as a PNG.
func TestAnimatedPNG(t *testing.T) {
	const header = 33
	plain := picture(t)
	data := slices.Concat(plain[:header], []byte("\x00\x00\x00\x08acTL\x00\x00\x00\x02\x00\x00\x00\x00\xf3\x8d\x93\x70"), plain[header:])
	got, err := open(t, "").Receive(bytes.NewReader(data), int64(len(data)))
	if err != nil || got.MIMEType != "image/png" {
		t.Errorf("found %+v, %v", got, err)
	}
}

func TestChunks(t *testing.T) {
	dir, data := t.TempDir(), picture(t)
	s := open(t, dir)
	if _, err := s.Append("u", 0, strings.NewReader("x"), 10); !errors.Is(err, blobs.ErrUnknown) {
		t.Errorf("an upload that was not begun: %v", err)
	}
	if err := s.Begin("u"); err != nil {
		t.Fatal(err)
	}
	limit := int64(len(data))
	if size, err := s.Append("u", 0, bytes.NewReader(data[:10]), limit); err != nil || size != 10 {
		t.Fatalf("the first chunk: %d, %v", size, err)
	}
	// The sandbox restarts.
	s = open(t, dir)
	for name, tc := range map[string]struct {
		at   int64
		want int64
	}{"again": {0, 10}, "a gap": {11, 10}} {
		if size, err := s.Append("u", tc.at, bytes.NewReader(data[10:]), limit); !errors.Is(err, blobs.ErrOffset) || size != tc.want {
			t.Errorf("%s: %d, %v", name, size, err)
		}
	}
	boom := errors.New("cut off")
	cut := io.MultiReader(bytes.NewReader(data[10:20]), failing{boom})
	if size, err := s.Append("u", 10, cut, limit); !errors.Is(err, boom) || size != 20 {
		t.Errorf("what came before the cut counts: %d, %v", size, err)
	}
	if size, ok := s.Size("u"); !ok || size != 20 {
		t.Errorf("there are %d bytes, %v", size, ok)
	}
	for _, size := range []int64{30, 15} { // beyond the end, and back to before the unacknowledged bytes
		if err := s.Truncate("u", size); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Truncate("v", 0); !errors.Is(err, blobs.ErrUnknown) {
		t.Errorf("truncating an upload that was not begun: %v", err)
	}
	if _, err := s.Append("u", 15, bytes.NewReader(data[15:]), limit); err != nil {
		t.Fatal(err)
	}
	got, err := s.Finish("u")
	if err != nil || got.SHA256 != hashOf(data) || got.Width != 30 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, ok := s.Size("u"); ok {
		t.Error("the upload is still there")
	}
	if _, err := s.Finish("u"); !errors.Is(err, blobs.ErrUnknown) {
		t.Errorf("finished twice: %v", err)
	}
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Get(got.SHA256); ok {
		t.Error("it is known after a reset")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestPull(t *testing.T) {
	data := picture(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a.png" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data) // the client may have disconnected
	}))
	defer web.Close()
	s := open(t, "")
	if got, err := s.Pull(t.Context(), web.URL+"/a.png?sig=secret", 1<<20, blobs.Follow); err != nil || got.SHA256 != hashOf(data) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := s.Pull(t.Context(), web.URL+"/a.png", 5, blobs.Follow); !errors.Is(err, blobs.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	var pull *blobs.PullError
	if _, err := s.Pull(t.Context(), web.URL+"/b.png?sig=secret", 5, blobs.Follow); !errors.As(err, &pull) || pull.Status != http.StatusNotFound || strings.Contains(err.Error(), "secret") {
		t.Errorf("not there: %v", err)
	}
	for _, address := range []string{"http://127.0.0.1:1/", "::", "ftp://a/"} {
		if _, err := s.Pull(t.Context(), address, 5, blobs.Follow); !errors.As(err, &pull) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestPullLater fetches a file, and closes the store while another download hangs.
func TestPullLater(t *testing.T) {
	data, asked := picture(t), make(chan struct{}, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/never" {
			asked <- struct{}{}
			<-r.Context().Done()
			return
		}
		_, _ = w.Write(data) // the client may have disconnected
	}))
	defer web.Close()
	s, err := blobs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	arrived := make(chan blobs.Blob, 1)
	s.PullLater([]string{web.URL + "/a.png"}, 1<<20, blobs.Follow, func(files []blobs.Blob, err error) {
		if err != nil || len(files) != 1 {
			t.Errorf("%d files, %v", len(files), err)
		}
		arrived <- append(files, blobs.Blob{})[0]
	})
	if got := <-arrived; got.SHA256 != hashOf(data) {
		t.Errorf("got %+v", got)
	}
	tell := func([]blobs.Blob, error) { t.Error("told after the store was closed") }
	s.PullLater([]string{web.URL + "/never"}, 1<<20, blobs.Follow, tell)
	<-asked
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s.PullLater([]string{web.URL + "/a.png"}, 1<<20, blobs.Follow, tell)
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}
