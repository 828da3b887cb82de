// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/store"
)

func TestOverwritable(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	type change func(*v1alpha1.Media)
	verified := func(after time.Duration) change {
		return func(m *v1alpha1.Media) {
			conditions.Apply(&m.Status.Conditions, conditions.Summary{Ready: true, Reason: v1alpha1.ReasonUploaded}, 1, noon.Add(after))
		}
	}
	annotated := func(name, value string) change {
		return func(m *v1alpha1.Media) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, name, value) }
	}
	fetched := func(m *v1alpha1.Media) { m.Spec.Source = &v1alpha1.MediaSource{URL: "https://a.example/a.png"} }
	for name, tc := range map[string]struct {
		reason string
		media  []change
		want   bool
	}{
		"verified":          {"an upload that started before its URL expired may end days later", []change{verified(0)}, true},
		"second address":    {"an upload to the second URL may end later as well", []change{verified(0), annotated(v1alpha1.UploadUntilAnnotation, "2026-11-20T14:00:00Z")}, true},
		"under a key":       {"its client can get another address at any time", []change{verified(0), annotated(v1alpha1.RequestAnnotation, "0123")}, true},
		"unknown time":      {"an unknown time cannot exclude an upload", nil, true},
		"fetched by Herald": {"Herald fetches the file, so there was no upload URL", []change{verified(0), fetched}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)}}
			for _, change := range tc.media {
				change(m)
			}
			if got := store.Overwritable(m); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
