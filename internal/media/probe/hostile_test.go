// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/must"
)

// maxAllocated limits the bytes that are allocated while one file is examined, whether or not they are freed.
const maxAllocated = 4 << 20

// hostile returns files that make large claims. The number of repetitions in them is divided by the given number.
func hostile(tb testing.TB, by int) map[string]struct {
	why, declared string
	data          []byte
} {
	tb.Helper()
	const all = 0xffffffff
	brand := box("ftyp", "isom", words(0), "isom")
	frames := box("mdat", words(0))
	nested := []byte(nil)
	deep := 100_000 / by
	for i := range deep {
		nested = append(nested, words(uint32(8*(deep-i)))...)
		nested = append(nested, "moov"...)
	}
	type entry = struct {
		why, declared string
		data          []byte
	}
	fragmented := func(table, fragment []byte) []byte {
		return join(brand, moov(movie{table: table}), fragment, frames)
	}
	return map[string]entry{
		"samples of a table": {
			"one table entry can describe four billion samples", mp4Type,
			fragmented(box("stts", words(0, 1, all, 1)), moof(box("tfhd", words(0, 1)))),
		},
		"samples of a fragment": {
			"samples of constant size need no table", mp4Type,
			fragmented(nil, moof(box("tfhd", words(0x8, 1, 1)), box("trun", words(0, all)))),
		},
		"samples that are not there": {
			"each entry would have a duration", mp4Type,
			fragmented(nil, moof(box("tfhd", words(0, 1)), box("trun", words(0x100, all)))),
		},
		"a film in a film": {"the path to the innermost is as long as the file", mp4Type, join(brand, nested)},
		"fragments in fragments": {
			"the same of another kind", mp4Type,
			fragmented(nil, bytes.ReplaceAll(nested, []byte("moov"), []byte("traf"))),
		},
		"name of a handler": {
			"a name has the length in its box", mp4Type,
			join(brand, moov(movie{handler: strings.Repeat("n", 6<<20/by)}), frames),
		},
		"brands": {
			"a file may declare a million compatible brands", mp4Type,
			join(box("ftyp", "isom", words(0), strings.Repeat("isom", 1<<20/by)), moov(movie{}), frames),
		},
		"brands that are not there": {
			"the size reaches beyond the file", mp4Type,
			join(words(all), "ftypisom", words(0), "isom", moov(movie{}), frames),
		},
		"tracks": {"each is remembered", mp4Type, join(brand, box("moov", bytes.Repeat(box("trak"), 90_000/by)), frames)},
		"tracks of fragments": {"each track has its own limit otherwise", mp4Type, func() []byte {
			var parts []byte
			for id := range uint32(20_000 / by) {
				parts = append(parts, box("traf", box("tfhd", words(0, id)))...)
			}
			return fragmented(nil, box("moof", parts))
		}()},
		"indexes": {"each index has its own limit otherwise", mp4Type, func() []byte {
			data := join(brand, moov(movie{}))
			for id := range uint32(50_000 / by) {
				data = append(data, box("sidx", words(0, id, 1000, 0, 0, 1, 100, 1000, 0))...)
			}
			return append(data, frames...)
		}()},
		"headers of fragments": {
			"each is read", mp4Type,
			fragmented(nil, box("moof", bytes.Repeat(box("traf", box("tfhd", words(0, 1))), 40_000/by))),
		},
		"empty film":    {"a film may consist of boxes without an end", mp4Type, join(brand, bytes.Repeat(box("free"), 1_200_000/by))},
		"jpeg segments": {"a JPEG may start with millions of segments", jpegType, join("\xff\xd8", strings.Repeat("\xff\xe1\x00\x02", 1<<20/by), file(tb, "picture.jpg")[2:])},
		"jpeg filling":  {"millions of fill bytes may separate the markers", jpegType, join("\xff\xd8", strings.Repeat("\xff", 4<<20/by), file(tb, "picture.jpg")[3:])},
		"jpeg tags": {
			"nested metadata that refers to itself", jpegType,
			bombedJPEG(file(tb, "picture.jpg"), 65_000),
		},
		"png tags": {"the same of PNG, where metadata may be long", pngType, func() []byte {
			png := file(tb, "picture.png")
			const header = 33 // the signature and the chunk IHDR
			return join(png[:header], chunk("eXIf", ifdBomb(max(3<<20/by, 64<<10))), png[header:])
		}()},
		"png chunks": {"a PNG may start with many chunks", pngType, func() []byte {
			png := file(tb, "picture.png")
			return join(png[:33], bytes.Repeat(chunk("teXt", nil), 300_000/by), png[33:])
		}()},
		"webp without a picture": {
			"a WebP may have unlimited chunks before its picture", webpType,
			riff(bytes.Repeat([]byte("junk\x00\x00\x00\x00"), 1<<20/by)),
		},
		"webp chunks": {"the same of WebP", webpType, func() []byte {
			head := join("VP8X", []byte{10, 0, 0, 0, 8, 0, 0, 0, 63, 0, 0, 47, 0, 0})
			body := join("WEBP", head, bytes.Repeat([]byte("junk\x00\x00\x00\x00"), 300_000/by))
			return join("RIFF", binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body)
		}()},
	}
}

// ifdBomb returns metadata whose first directory refers to thousands of others, all of them the same long directory.
func ifdBomb(size int) []byte {
	const others, start = 2400, 26
	b := join("MM\x00*", words(8), []byte{0, 1, 0x01, 0x4a, 0, 4}, words(others, start, 0))
	for range others {
		b = append(b, words(start+4*others)...)
	}
	entries := (size - len(b) - 2) / 12
	b = binary.BigEndian.AppendUint16(b, uint16(min(entries, 0xffff)))
	for len(b)+12 <= size {
		b = append(b, "\x00\x02\x00\x01\x00\x00\xff\xff\x00\x00\x00\x00"...)
	}
	return b
}

// bombedJPEG puts such metadata into a JPEG.
func bombedJPEG(picture []byte, size int) []byte {
	exif := join("Exif\x00\x00", ifdBomb(size))
	return join(picture[:2], "\xff\xe1", binary.BigEndian.AppendUint16(nil, uint16(len(exif)+2)), exif, picture[2:])
}

func TestProbeAllocatesLittle(t *testing.T) {
	for name, tc := range hostile(t, 1) {
		t.Run(name, func(t *testing.T) {
			var err error
			bytesAllocated := mediatest.Allocated(func() {
				_, err = probe.Probe(bytes.NewReader(tc.data), int64(len(tc.data)), tc.declared)
			})
			if bytesAllocated > maxAllocated {
				t.Errorf("%s: %d bytes were allocated for a file of %d, more than %d", tc.why, bytesAllocated, len(tc.data), maxAllocated)
			}
			if problem := new(probe.InvalidFileError); err != nil && !errors.As(err, &problem) {
				t.Errorf("%s: %v", tc.why, err)
			}
		})
	}
}

// counted counts the reads of a file.
type counted struct {
	*bytes.Reader
	reads int
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	return c.Reader.ReadAt(p, off)
}

func TestProbeReadsInLargeParts(t *testing.T) {
	// Many parts of a long video, with a second's worth of frames between them.
	const seconds, frame = 1200, 20 << 10
	part := join(moof(box("tfhd", words(0x8, 1, 40)), box("trun", words(0, 25))), box("mdat", make([]byte, frame)))
	data := join(box("ftyp", "isom", words(0), "isom"), moov(movie{}), bytes.Repeat(part, seconds))
	c := &counted{Reader: bytes.NewReader(data)}
	facts, err := probe.Probe(c, int64(len(data)), mp4Type)
	if err != nil || facts.Duration != seconds*time.Second {
		t.Fatalf("got %+v, %v", facts, err)
	}
	if c.reads > seconds+10 {
		t.Errorf("%d requests for %d fragments, want about one for each", c.reads, seconds)
	}
}

// TestStalledStore checks that one team's file is examined even if the store stalls while it sends another team's
// files, on connections that stay open, like a proxy that has lost its backend. As many files are examined at the same
// time as the manager has workers.
func TestStalledStore(t *testing.T) {
	const workers = 16
	picture := file(t, "picture.png")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"e"`)
		w.Header().Set("Last-Modified", "Fri, 20 Nov 2026 12:00:00 GMT")
		w.Header().Set("Content-Length", strconv.Itoa(len(picture)))
		if r.Method == http.MethodHead {
			return
		}
		if strings.Contains(r.URL.Path, "good") {
			w.Header().Del("Content-Length")
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(picture)))
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(picture)-1, len(picture)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(picture[:10]) // The client may be gone.
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	files, err := store.New(store.Config{
		Endpoint: strings.TrimPrefix(server.URL, "http://"), Bucket: "herald", AccessKey: "a", SecretKey: "b", PathStyle: true, Insecure: true,
		Stall: 100 * time.Millisecond,
	})
	must.Succeed(t, err)
	verifier := &probe.Verifier{Store: files, Clock: noon}
	queue := make(chan *v1alpha1.Media, workers+1)
	for i := range workers {
		queue <- media(fmt.Sprintf("stalled-%d", i), pngType, int64(len(picture)))
	}
	queue <- media("good", pngType, int64(len(picture)))
	close(queue)
	var examined sync.WaitGroup
	for range workers {
		examined.Go(func() {
			for m := range queue {
				status, err := verifier.Verify(t.Context(), m)
				if good := m.UID == "good"; good != (err == nil) || good && status.Phase != v1alpha1.MediaUploaded {
					t.Errorf("%s is %q: %v", m.UID, status.Phase, err)
				}
			}
		})
	}
	examined.Wait()
}
