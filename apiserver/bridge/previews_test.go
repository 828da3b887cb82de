// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

func TestPreviews(t *testing.T) {
	t.Parallel()
	f := &files{stored: map[string]*v1alpha1.Media{
		"m":       {ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "m", UID: "u"}, Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, Width: 4, Height: 3, DurationMillis: 1500}},
		"pending": {ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "pending", UID: "p"}, Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaPending}},
		"late":    {ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "late", UID: "l"}, Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded}},
		"refused": {Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaRejected}},
	}}
	s := withFiles(f)
	got, err := s.Previews(person).Of(t.Context(), "m")
	want := bridge.MediaPreview{
		URL: "https://store/team-a/u?valid=15m0s", FileName: "a.jpg", MimeType: v1alpha1.MimeJPEG, SizeBytes: 5, Width: 4, Height: 3, Duration: 1500 * time.Millisecond, Phase: v1alpha1.MediaUploaded,
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got, err := s.Previews(person).Of(t.Context(), "pending"); err != nil || got.URL != "https://store/team-a/p?valid=15m0s" {
		t.Errorf("a file that was uploaded a moment ago, before it is examined: %+v, %v", got, err)
	}
	if got, err := s.Previews(person).Of(t.Context(), "refused"); err != nil || got.URL != "" || got.FileName != "a.jpg" {
		t.Errorf("a preview of a rejected file exists: %+v, %v", got, err)
	}
	for _, name := range []string{"nobody", "../m"} {
		if _, err := s.Previews(person).Of(t.Context(), name); code(err) != "NOT_FOUND" {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.signing = errors.New("boom")
	if _, err := s.Previews(person).Of(t.Context(), "late"); code(err) != "internal" {
		t.Errorf("the store is unavailable: %v", err)
	}
	f.reading = errors.New("boom")
	if _, err := s.Previews(person).Of(t.Context(), "m"); code(err) != "internal" {
		t.Errorf("the Kubernetes API is unavailable: %v", err)
	}
	s.Files, f.reading = nil, nil
	if got, err := s.Previews(person).Of(t.Context(), "m"); err != nil || got.URL != "" {
		t.Errorf("a preview without a store exists: %+v, %v", got, err)
	}
}

// countingFiles counts file reads and signed URLs. Each URL is different.
type countingFiles struct {
	*files

	reads, signed atomic.Int64
}

func (c *countingFiles) Get(ctx context.Context, namespace, name string) (*v1alpha1.Media, error) {
	c.reads.Add(1)
	return c.files.Get(ctx, namespace, name)
}

func (c *countingFiles) PresignGet(_ context.Context, key string, _ time.Duration) (string, error) {
	return fmt.Sprintf("https://store/%s?signature=%d", key, c.signed.Add(1)), nil
}

// TestPreviewURLsAreStable verifies that a repeated page has the same URLs, which the browser has cached, while they
// remain valid for long enough.
func TestPreviewURLsAreStable(t *testing.T) {
	t.Parallel()
	file := func(uid types.UID) *v1alpha1.Media {
		return &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "m", UID: uid}, Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded}}
	}
	c := &countingFiles{files: &files{stored: map[string]*v1alpha1.Media{"m": file("one")}}}
	clk := clocktesting.NewFakePassiveClock(now)
	s := withFiles(c.files)
	s = bridge.New(func() bridge.Config {
		config := s.Config
		config.Clock, config.Media, config.Files = clk, c, c
		return config
	}())
	address := func() string {
		t.Helper()
		got, err := s.Previews(person).Of(t.Context(), "m")
		if err != nil {
			t.Fatal(err)
		}
		return got.URL
	}
	first := address()
	clk.SetTime(now.Add(9 * time.Minute))
	if again := address(); again != first {
		t.Errorf("while a user types, %s becomes %s", first, again)
	}
	c.stored["m"] = file("two")
	if other := address(); other == first || !strings.Contains(other, "/two?") {
		t.Errorf("another file of the same name is at %s", other)
	}
	c.stored["m"].Status.Phase = v1alpha1.MediaExpired
	if gone := address(); gone != "" {
		t.Errorf("a deleted file has the URL %s", gone)
	}
	c.stored["m"] = file("one")
	clk.SetTime(now.Add(10*time.Minute + time.Second))
	if later := address(); later == first {
		t.Error("a URL is returned until it expires, so the page may load it too late")
	}
}

// TestPreviewsReadOnce verifies that one request reads a file at most once.
func TestPreviewsReadOnce(t *testing.T) {
	t.Parallel()
	s, f := checkService()
	c := &countingFiles{files: f}
	s.Media, s.Files = c, c
	spec := v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "m"}, {Name: "fresh"}}}, Targets: saying("a", "x").Targets}
	check := s.CheckPost(t.Context(), person, &spec)
	for range 3 {
		for _, name := range []string{"m", "fresh"} {
			if got, err := check.Previews.Of(t.Context(), name); err != nil || got.URL == "" {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
	if c.reads.Load() != 2 {
		t.Errorf("two files are read %d times", c.reads.Load())
	}
}
