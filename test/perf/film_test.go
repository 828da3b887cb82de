// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/test/must"
)

func small(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", filmFolder, name))
	must.Succeed(t, err)
	return data
}

func TestStretchedFilmsAreValid(t *testing.T) {
	for _, tc := range []struct {
		reason, name string
		size         int64
	}{
		{"the index stays at the start", "faststart.mp4", 3<<20 + 1},
		{"the index moves to the end", "tail.mp4", 3<<20 + 1},
		{"a film of the requested size does not change", "tail.mp4", int64(len(small(t, "tail.mp4")))},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f, err := stretch(small(t, tc.name), tc.size)
			must.Succeed(t, err)
			data, err := io.ReadAll(f.read())
			must.Succeed(t, err)
			if f.size() != tc.size || int64(len(data)) != tc.size {
				t.Errorf("the film's header gives %d bytes, its length is %d; want %d", f.size(), len(data), tc.size)
			}
			got, err := probe.Probe(bytes.NewReader(data), int64(len(data)), string(v1alpha1.MimeMP4))
			must.Succeed(t, err)
			want := probe.Facts{MIMEType: string(v1alpha1.MimeMP4), Width: 64, Height: 48, Duration: 1500 * time.Millisecond, FrameRate: 10, VideoCodec: "h264"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestStretchRefuses(t *testing.T) {
	tail := small(t, "tail.mp4")
	for _, tc := range []struct {
		reason string
		data   []byte
		size   int64
	}{
		{"a film does not become smaller", tail, int64(len(tail)) - 1},
		{"a short header is limited to 4 GiB", tail, 5 << 30},
		{"without frames the film cannot be extended", bytes.Replace(tail, []byte("mdat"), []byte("free"), 1), 1 << 20},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if f, err := stretch(tc.data, tc.size); err == nil {
				t.Errorf("a film of %d bytes was made", f.size())
			}
		})
	}
}
