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

// preparer starts a fixture for a platform that prepares.
func (s *Suite) preparer(t *testing.T) (*fixture, platforms.Publisher, platforms.Preparer) {
	t.Helper()
	f, p := s.publisher(t)
	preparer, ok := f.platform.(platforms.Preparer)
	if !ok {
		t.Fatalf("%s prepares nothing", s.Name)
	}
	return f, p, preparer
}

func (s *Suite) testPrepare(t *testing.T) {
	t.Run("is invisible", func(t *testing.T) {
		f, p, _ := s.preparer(t)
		f.checkLookup(t, p, f.prepared(t, "hello"), 0)
	})
	t.Run("is waited for", func(t *testing.T) {
		f, p, _ := s.preparer(t)
		if _, err := f.control.Account(t.Context(), s.Name, f.account.ID, map[string]any{"processing_ms": 400}); err != nil {
			t.Fatal(err)
		}
		if got := p.Publish(t.Context(), f.prepared(t, "hello")); got.Outcome != platforms.Posted {
			t.Errorf("got %+v; what was prepared must be ready", got)
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
			t.Errorf("got %q, %v after %d calls; it is not tried for ever", checkpoint, err, f.arrived(t, "create"))
		}
	})
	t.Run("needs content that is allowed", func(t *testing.T) {
		f, _, preparer := s.preparer(t)
		if f.platform.Capabilities().MaxCaption == 0 {
			t.Skipf("%s documents no limit of a caption", s.Name)
		}
		if _, err := preparer.Prepare(t.Context(), f.job(t, strings.Repeat("a", f.platform.Capabilities().MaxCaption+1))); recorder.ClassOf(err) != platforms.ClassPermanent {
			t.Errorf("got %v, want that the content is refused for good", err)
		}
	})
	s.testPreparedAgain(t)
}

// testPreparedAgain prepares a post that is already prepared.
func (s *Suite) testPreparedAgain(t *testing.T) {
	t.Run("is used again", func(t *testing.T) {
		f, p, preparer := s.preparer(t)
		job := f.prepared(t, "hello")
		again, err := preparer.Prepare(t.Context(), job)
		if err != nil || again != job.Checkpoint || f.arrived(t, "create") != 1 {
			t.Errorf("got %q, %v after %d calls; what was prepared is still good", again, err, f.arrived(t, "create"))
		}
		if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("knows what is published", func(t *testing.T) {
		f, p, preparer := s.preparer(t)
		job := f.prepared(t, "hello")
		if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
			t.Fatalf("got %+v", got)
		}
		again, err := preparer.Prepare(t.Context(), job)
		if again != job.Checkpoint || recorder.ClassOf(err) != platforms.ClassDuplicate {
			t.Errorf("got %q, %v; what is published must not be prepared for publication", again, err)
		}
		if got := p.Publish(t.Context(), job); got.Outcome != platforms.Unknown && got.Outcome != platforms.Posted {
			t.Errorf("got %+v; that it was refused now does not mean that it is not published", got)
		}
		f.checkLookup(t, p, job, 1)
	})
	t.Run("makes what is missing anew", func(t *testing.T) {
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

// testPrepareFaults injects faults into the steps before the visible call. These steps never make anything visible, and
// can be repeated.
func (s *Suite) testPrepareFaults(t *testing.T) {
	ended := s.endedClass()
	tests := map[string]struct {
		reason string
		fault  sandboxtest.Fault
		class  platforms.Class
	}{
		"closed before": {"what was lost is made again", sandboxtest.Fault{Kind: "drop_before"}, platforms.ClassTransient},
		"closed after":  {"so is that whose answer was lost", sandboxtest.Fault{Kind: "drop_after"}, platforms.ClassTransient},
		"error after":   {"an error passes", sandboxtest.Fault{Kind: "error_after", Status: 500}, platforms.ClassTransient},
		"outage":        {"so does an outage", sandboxtest.Fault{Kind: "status", Status: 503}, platforms.ClassTransient},
		"redirect":      {"what is not understood is not believed", sandboxtest.Fault{Kind: "status", Status: 307}, platforms.ClassUnknown},
		"no content":    {"nor is a success that says nothing", sandboxtest.Fault{Kind: "status", Status: 204}, platforms.ClassUnknown},
		"refused":       {"content that is refused is not sent again unchanged", sandboxtest.Fault{Kind: "status", Status: 400}, platforms.ClassPermanent},
		"rate limited":  {"a limit passes", sandboxtest.Fault{Kind: "rate_limit", RetryAfterS: 60}, platforms.ClassRateLimited},
		"token expired": {"an ended token needs another one", sandboxtest.Fault{Kind: "token_expired"}, ended},
		"token revoked": {"so does one that was taken back", sandboxtest.Fault{Kind: "token_revoked"}, ended},
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
					t.Errorf("after the trouble it can be published: %+v", got)
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
				if recorder.ClassOf(err) != platforms.ClassPermanent && (err != nil || category == v1alpha1.CategoryVideo) {
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
