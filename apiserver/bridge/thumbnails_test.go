// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
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
		t.Errorf("a list shows what was read before, and not what may have been rejected since: got %q", got)
	}
	if again := c.reads.Load() - reads; again != 3 {
		t.Errorf("%d files are read again; want the pending and the rejected one, and the missing one", again)
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

// TestThumbnailsAtOnce verifies that a list reads eight files at once.
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
