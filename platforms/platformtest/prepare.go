// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
	"github.com/herald-social/herald/test/sandboxtest"
)

// preparer starts a fixture for a platform that is a Preparer.
func (s *Suite) preparer(t *testing.T) (*fixture, platforms.Publisher, platforms.Preparer) {
	t.Helper()
	f, p := s.publisher(t)
	preparer, ok := f.platform.(platforms.Preparer)
	if !ok {
		t.Fatalf("%s does not prepare posts", s.Name)
	}
	return f, p, preparer
}

func (s *Suite) testPrepare(t *testing.T) {
	t.Run("is invisible", func(t *testing.T) {
		f, p, _ := s.preparer(t)
		f.checkLookup(t, p, f.prepared(t, "hello"), 0)
	})
	t.Run("is awaited", func(t *testing.T) {
		f, p, _ := s.preparer(t)
		if _, err := f.control.Account(t.Context(), s.Name, f.account.ID, map[string]any{"processing_ms": 400}); err != nil {
			t.Fatal(err)
		}
		if got := p.Publish(t.Context(), f.prepared(t, "hello")); got.Outcome != platforms.Posted {
			t.Errorf("got %+v; the preparation must be ready", got)
		}
	})
	t.Run("may fail on the platform", func(t *testing.T) {
		if s.LateProcessing {
			t.Skipf("%s works on files when they are published", s.Name)
		}
		f, _, preparer := s.preparer(t)
		if _, err := f.control.Account(t.Context(), s.Name, f.account.ID, map[string]any{"processing_error": "FAILED_PROCESSING"}); err != nil {
			t.Fatal(err)
		}
		if checkpoint, err := preparer.Prepare(t.Context(), f.job(t, "hello")); recorder.ClassOf(err) != platforms.ClassPermanent || f.arrived(t, "create") > 3 {
			t.Errorf("got %q, %v after %d calls; attempts must be limited", checkpoint, err, f.arrived(t, "create"))
		}
	})
	t.Run("needs permitted content", func(t *testing.T) {
		f, _, preparer := s.preparer(t)
		if f.platform.Capabilities().MaxCaption == 0 {
			t.Skipf("%s documents no limit of a caption", s.Name)
		}
		if _, err := preparer.Prepare(t.Context(), f.job(t, strings.Repeat("a", f.platform.Capabilities().MaxCaption+1))); recorder.ClassOf(err) != platforms.ClassPermanent {
			t.Errorf("got %v, want a permanent rejection of the content", err)
		}
	})
	s.testPreparedAgain(t)
}

// testPreparedAgain prepares a post that is already prepared.
func (s *Suite) testPreparedAgain(t *testing.T) {
	t.Run("is reused", func(t *testing.T) {
		f, p, preparer := s.preparer(t)
		job := f.prepared(t, "hello")
		again, err := preparer.Prepare(t.Context(), job)
		if err != nil || again != job.Checkpoint || f.arrived(t, "create") != 1 {
			t.Errorf("got %q, %v after %d calls; the preparation is still valid", again, err, f.arrived(t, "create"))
		}
		if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("detects a publication", func(t *testing.T) {
		f, p, preparer := s.preparer(t)
		job := f.prepared(t, "hello")
		if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
			t.Fatalf("got %+v", got)
		}
		again, err := preparer.Prepare(t.Context(), job)
		if again != job.Checkpoint || recorder.ClassOf(err) != platforms.ClassDuplicate {
			t.Errorf("got %q, %v; a published preparation must not be reused", again, err)
		}
		if got := p.Publish(t.Context(), job); got.Outcome != platforms.Unknown && got.Outcome != platforms.Posted {
			t.Errorf("got %+v; a rejection now does not exclude an earlier publication", got)
		}
		f.checkLookup(t, p, job, 1)
	})
	t.Run("recreates a missing preparation", func(t *testing.T) {
		f, p, _ := s.preparer(t)
		job := f.job(t, "hello")
		job.Checkpoint = "404404404"
		missing := job.Checkpoint
		if job = f.prepare(t, job); job.Checkpoint == missing {
			t.Fatalf("got %q again", missing)
		}
		if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
			t.Errorf("got %+v", got)
		}
	})
}

// testPrepareFaults injects faults into the steps before the visible call. These steps must never make anything
// visible, and it must be possible to repeat them.
func (s *Suite) testPrepareFaults(t *testing.T) {
	ended := s.endedClass()
	tests := map[string]struct {
		reason string
		fault  sandboxtest.Fault
		class  platforms.Class
	}{
		"closed before": {"a lost preparation is repeated", sandboxtest.Fault{Kind: "drop_before"}, platforms.ClassTransient},
		"closed after":  {"a preparation with a lost response is repeated", sandboxtest.Fault{Kind: "drop_after"}, platforms.ClassTransient},
		"error after":   {"an error is temporary", sandboxtest.Fault{Kind: "error_after", Status: 500}, platforms.ClassTransient},
		"outage":        {"an outage is temporary", sandboxtest.Fault{Kind: "status", Status: 503}, platforms.ClassTransient},
		"redirect":      {"an unexpected response is not proof", sandboxtest.Fault{Kind: "status", Status: 307}, platforms.ClassUnknown},
		"no content":    {"a success without content is not proof", sandboxtest.Fault{Kind: "status", Status: 204}, platforms.ClassUnknown},
		"refused":       {"rejected content is not sent again unchanged", sandboxtest.Fault{Kind: "status", Status: 400}, platforms.ClassPermanent},
		"rate limited":  {"a rate limit is temporary", sandboxtest.Fault{Kind: "rate_limit", RetryAfterS: 60}, platforms.ClassRateLimited},
		"token expired": {"an expired token has to be replaced", sandboxtest.Fault{Kind: "token_expired"}, ended},
		"token revoked": {"a revoked token has to be replaced", sandboxtest.Fault{Kind: "token_revoked"}, ended},
	}
	for name, tc := range tests {
		for _, operation := range []string{"create", "status"} {
			t.Run(operation+" "+name, func(t *testing.T) {
				f, p, preparer := s.preparer(t)
				tc.fault.Operation = operation
				f.fault(t, tc.fault)
				checkpoint, err := preparer.Prepare(t.Context(), f.job(t, "hello"))
				f.checkNoSecrets(t, asError(err))
				// A read whose response was lost may have been retried, and a container that cannot be read may have
				// been replaced.
				answered := operation == "status" && err == nil && checkpoint != ""
				if !answered && recorder.ClassOf(err) != tc.class {
					t.Errorf("%s: got %q, %v; want class %s", tc.reason, checkpoint, err, tc.class)
				}
				if n := f.arrived(t, "create"); operation == "create" && n != 1 {
					t.Errorf("%d calls arrived for one preparation", n)
				}
				if n := len(f.published(t)); n != 0 {
					t.Fatalf("%d posts became visible", n)
				}
				f.clearFaults(t)
				job := f.prepared(t, "hello")
				if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
					t.Errorf("the post cannot be published after the failure: %+v", got)
				}
				f.checkLookup(t, p, job, 1)
			})
		}
	}
}

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
			t.Run("are reused", func(t *testing.T) { s.testUploadsUsed(t, category) })
			t.Run("detect a publication", func(t *testing.T) { s.testUploadsPublished(t, category) })
			t.Run("are recreated", func(t *testing.T) {
				f, p, _ := s.preparer(t)
				job := f.post(t, category, "hello")
				job.Checkpoint = "404404404"
				if job = f.prepare(t, job); job.Checkpoint == "404404404" {
					t.Fatal("a missing upload cannot be used")
				}
				if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
					t.Errorf("got %+v", got)
				}
				f.checkLookup(t, p, job, 1)
			})
			t.Run("may fail", func(t *testing.T) {
				f, _, preparer := s.preparer(t)
				if s.LateProcessing {
					t.Skipf("%s works on files when they are published", s.Name)
				}
				if _, err := f.control.Account(t.Context(), s.Name, f.account.ID, map[string]any{"processing_error": "InvalidMedia"}); err != nil {
					t.Fatal(err)
				}
				checkpoint, err := preparer.Prepare(t.Context(), f.post(t, category, "hello"))
				// Not every platform processes images.
				if recorder.ClassOf(err) != platforms.ClassPermanent && (err != nil || category == v1alpha1.CategoryVideo) {
					t.Errorf("got %q, %v; want a permanent rejection of a file that the platform cannot process", checkpoint, err)
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
	if err != nil || again != job.Checkpoint || f.arrived(t, "upload") != before && !s.UploadsAgain {
		t.Errorf("got %q, %v after %d more calls; the upload is still valid", again, err, f.arrived(t, "upload")-before)
	}
	if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
		t.Errorf("got %+v", got)
	}
}

// testUploadsPublished prepares a post again when it is already published. The post is identified by its files, and a
// lookup with different file ids would not find it.
func (s *Suite) testUploadsPublished(t *testing.T, category v1alpha1.Category) {
	t.Helper()
	f, p, preparer := s.preparer(t)
	job := f.prepare(t, f.post(t, category, "hello"))
	if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
		t.Fatalf("got %+v", got)
	}
	before := f.arrived(t, "upload")
	again, err := preparer.Prepare(t.Context(), job)
	if again != job.Checkpoint || f.arrived(t, "upload") != before && !s.UploadsAgain || err != nil && err.Class != platforms.ClassDuplicate {
		t.Errorf("got %q, %v after %d more uploads; the files of a published post must not be uploaded again", again, err, f.arrived(t, "upload")-before)
	}
	f.checkLookup(t, p, job, 1)
}
