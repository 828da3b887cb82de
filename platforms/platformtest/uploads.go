// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// testUploads prepares files again, on a platform that publishes its simplest posts with one call. An upload is reused
// until the platform no longer has it, and the files of a post that may be visible are never replaced.
func (s *Suite) testUploads(t *testing.T) {
	for _, category := range []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo} {
		t.Run(string(category), func(t *testing.T) {
			p := s.New(t, "http://herald.invalid")
			preparer, ok := p.(platforms.Preparer)
			if !ok || !p.Capabilities().CanDeliver(category) || !preparer.Prepares(platforms.Content{Category: category, Media: make([]platforms.File, 1)}) {
				t.Skipf("%s prepares no category %s", s.Name, category)
			}
			t.Run("are used again", func(t *testing.T) { s.testUploadsUsed(t, category) })
			t.Run("know what is published", func(t *testing.T) { s.testUploadsPublished(t, category) })
			t.Run("are made anew", func(t *testing.T) {
				f, p, _ := s.preparer(t)
				job := f.post(t, category, "hello")
				job.Checkpoint = "404404404"
				if job = f.prepare(t, job); job.Checkpoint == "404404404" {
					t.Fatal("what is not there cannot be used")
				}
				if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
					t.Errorf("got %+v", got)
				}
				f.checkLookup(t, p, job, 1)
			})
			t.Run("may fail", func(t *testing.T) {
				f, _, preparer := s.preparer(t)
				if _, err := f.control.Account(t.Context(), s.Name, f.account.ID, map[string]any{"processing_error": "InvalidMedia"}); err != nil {
					t.Fatal(err)
				}
				checkpoint, err := preparer.Prepare(t.Context(), f.post(t, category, "hello"))
				// Not every platform processes images.
				if classOf(asError(err)) != platforms.ClassPermanent && (err != nil || category == v1alpha1.CategoryVideo) {
					t.Errorf("got %q, %v; a file that the platform cannot process is refused for good", checkpoint, err)
				}
			})
		})
	}
}

// testUploadsUsed prepares a post again when it is already prepared.
func (s *Suite) testUploadsUsed(t *testing.T, category v1alpha1.Category) {
	t.Helper()
	f, p, preparer := s.preparer(t)
	job := f.prepare(t, f.post(t, category, "hello"))
	before := f.arrived(t, "upload")
	again, err := preparer.Prepare(t.Context(), job)
	if err != nil || again != job.Checkpoint || f.arrived(t, "upload") != before {
		t.Errorf("got %q, %v after %d calls more; what was uploaded is still good", again, err, f.arrived(t, "upload")-before)
	}
	if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
		t.Errorf("got %+v", got)
	}
}

// testUploadsPublished prepares a post again when it is already published. The post is identified by its files:
// different file ids would not find it.
func (s *Suite) testUploadsPublished(t *testing.T, category v1alpha1.Category) {
	t.Helper()
	f, p, preparer := s.preparer(t)
	job := f.prepare(t, f.post(t, category, "hello"))
	if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
		t.Fatalf("got %+v", got)
	}
	before := f.arrived(t, "upload")
	again, err := preparer.Prepare(t.Context(), job)
	if again != job.Checkpoint || f.arrived(t, "upload") != before || err != nil && err.Class != platforms.ClassDuplicate {
		t.Errorf("got %q, %v after %d uploads more; the files of a post that is there are not uploaded once more", again, err, f.arrived(t, "upload")-before)
	}
	f.checkLookup(t, p, job, 1)
}
