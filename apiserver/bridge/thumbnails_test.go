// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/internal/media/store"
)

// TestThumbnails verifies which files a list shows, and that it reads each file once.
func TestThumbnails(t *testing.T) {
	t.Parallel()
	f := &files{stored: map[string]*v1alpha1.Media{}}
	for name, edit := range map[string]func(*v1alpha1.Media){
		"picture":  func(*v1alpha1.Media) {},
		"film":     func(m *v1alpha1.Media) { m.Spec.MimeType = v1alpha1.MimeMP4 },
		"largest":  func(m *v1alpha1.Media) { m.Spec.SizeBytes = 1 << 20 },
		"large":    func(m *v1alpha1.Media) { m.Spec.SizeBytes = 1<<20 + 1 },
		"rejected": func(m *v1alpha1.Media) { m.Status.Phase = v1alpha1.MediaRejected },
		"pending":  func(m *v1alpha1.Media) { m.Status.Phase = v1alpha1.MediaPending },
	} {
		m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID(name)}, Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded}}
		edit(m)
		f.stored[name] = m
	}
	c := &countingFiles{files: f}
	s := withFiles(f)
	var log bytes.Buffer
	s.Media, s.Log = c, slog.New(slog.NewTextHandler(&log, nil))
	names := append(slices.Sorted(maps.Keys(f.stored)), "nobody", "../picture")
	shown := func() string {
		return strings.Join(slices.Sorted(maps.Keys(s.Thumbnails(t.Context(), person, names))), " ")
	}
	if got := shown(); got != "largest pending picture" {
		t.Errorf("a list shows small pictures, also before they are checked: got %q", got)
	}
	reads := c.reads.Load()
	f.reading = errors.New("boom")
	if got := shown(); got != "largest picture" {
		t.Errorf("got %q, want the recorded state without a recent rejection", got)
	}
	if again := c.reads.Load() - reads; again != 3 {
		t.Errorf("%d files were read again; want the pending, the rejected and the missing one", again)
	}
	if !strings.Contains(log.String(), "media=pending error=") {
		t.Errorf("a file that cannot be read is logged: %q", &log)
	}
	other := person
	other.Namespace = "team-b"
	if got := s.Thumbnails(t.Context(), other, names); len(got) != 0 {
		t.Errorf("another team sees %v", got)
	}
}

// TestThumbnailsAtOnce verifies that a list reads eight files at a time.
func TestThumbnailsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &slowFiles{}
		s := withFiles(&f.files)
		s.Media = f
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprint("m", i))
		}
		begun := time.Now()
		s.Thumbnails(t.Context(), person, names)
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("20 reads of a second each took %s, want 3 s", took)
		}
	})
}

// TestSmallPictures verifies that lists show small pictures instead of originals.
func TestSmallPictures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		size   int64
		key    string
		err    error
		want   string
	}{
		"a large picture":                     {"the thumbnail has 20 KiB", 9 << 20, "team-a/u-1.small", nil, "https://store/team-a/u-1.small?valid=15m0s"},
		"a small picture":                     {"the thumbnail is smaller in any case", 9000, "team-a/u-1.small", nil, "https://store/team-a/u-1.small?valid=15m0s"},
		"a small picture without a thumbnail": {"the picture was uploaded before thumbnails existed", 9000, "", store.ErrNotFound, "https://store/team-a/u-1?valid=15m0s"},
		"a large picture without a thumbnail": {"a list contains many files", 9 << 20, "", store.ErrNotFound, ""},
		"the store does not respond":          {"a list is complete without thumbnails", 9 << 20, "", errors.New("boom"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "m-1", UID: "u-1"}, Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: tc.size}}
			s := withFiles(&files{stored: map[string]*v1alpha1.Media{"m-1": m}})
			s.Small = func(context.Context, *v1alpha1.Media) (string, error) { return tc.key, tc.err }
			if got := s.Thumbnails(t.Context(), person, []string{"m-1"})["m-1"].URL; got != tc.want {
				t.Errorf("%s: in a list of posts %q, want %q", tc.reason, got, tc.want)
			}
			s.Uploaded = func(context.Context, string, int) ([]v1alpha1.Media, bool, error) {
				return []v1alpha1.Media{*m}, false, nil
			}
			library, err := s.FindFiles(t.Context(), person, bridge.FileSearch{Limit: 1})
			if err != nil || library.Files[0].Thumbnail != tc.want {
				t.Errorf("%s: in the library %+v, %v", tc.reason, library, err)
			}
		})
	}
}
