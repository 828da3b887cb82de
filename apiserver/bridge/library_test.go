// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestFindFiles verifies which files a user can choose, and their order.
func TestFindFiles(t *testing.T) {
	start := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	file := func(name string, hours int, mimeType v1alpha1.MimeType, phase v1alpha1.MediaPhase) v1alpha1.Media {
		return v1alpha1.Media{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: name, CreationTimestamp: metav1.NewTime(start.Add(time.Duration(hours) * time.Hour))},
			Spec:       v1alpha1.MediaSpec{FileName: "Launch " + name, MimeType: mimeType}, Status: v1alpha1.MediaStatus{Phase: phase},
		}
	}
	leaving := file("leaving.png", 9, v1alpha1.MimePNG, v1alpha1.MediaUploaded)
	leaving.DeletionTimestamp = &metav1.Time{Time: start}
	files := []v1alpha1.Media{
		file("old.png", 1, v1alpha1.MimePNG, v1alpha1.MediaUploaded), file("new.jpg", 3, v1alpha1.MimeJPEG, v1alpha1.MediaUploaded),
		file("film.mp4", 2, v1alpha1.MimeMP4, v1alpha1.MediaUploaded), file("bad.png", 4, v1alpha1.MimePNG, v1alpha1.MediaRejected), leaving,
	}
	for name, tc := range map[string]struct {
		reason string
		search FileSearch
		want   []string
		found  int
	}{
		"all":             {"newest first, without rejected and deleted files", FileSearch{Limit: 10}, []string{"new.jpg", "film.mp4", "old.png"}, 3},
		"pictures":        {"an image field does not accept videos", FileSearch{Types: []v1alpha1.MimeType{v1alpha1.MimePNG, v1alpha1.MimeJPEG}, Limit: 10}, []string{"new.jpg", "old.png"}, 2},
		"by name":         {"case does not matter", FileSearch{Words: " FILM", Limit: 10}, []string{"film.mp4"}, 1},
		"a page":          {"the total covers all pages", FileSearch{Offset: 1, Limit: 1}, []string{"film.mp4"}, 3},
		"beyond the last": {"files were deleted after the link was created", FileSearch{Offset: 99, Limit: 10}, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Config{Clock: clocktesting.NewFakePassiveClock(start), Uploaded: func(context.Context, string, int) ([]v1alpha1.Media, bool, error) {
				out := make([]v1alpha1.Media, len(files))
				for i := range files {
					out[i] = *files[i].DeepCopy()
				}
				return out, false, nil
			}})
			library, err := s.FindFiles(t.Context(), Caller{Namespace: "acme"}, tc.search)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, one := range library.Files {
				got = append(got, one.ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || library.Found != tc.found {
				t.Errorf("%s: %d found (-want +got):\n%s", tc.reason, library.Found, diff)
			}
		})
	}
	away := errors.New("away")
	s := New(Config{Clock: clocktesting.NewFakePassiveClock(start), Uploaded: func(context.Context, string, int) ([]v1alpha1.Media, bool, error) { return nil, false, away }})
	if _, err := s.FindFiles(t.Context(), Caller{Namespace: "acme"}, FileSearch{Limit: 1}); !errors.Is(err, away) {
		t.Errorf("the Kubernetes API's error is lost: %v", err)
	}
}
