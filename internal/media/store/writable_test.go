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
	tests := map[string]struct {
		reason string
		media  []change
		after  time.Duration
		want   bool
	}{
		"just verified":           {"its address is still good", []change{verified(0)}, 0, true},
		"address about to end":    {"an upload may just begin", []change{verified(0)}, 15 * time.Minute, true},
		"address ended":           {"an upload that began in time goes on", []change{verified(0)}, 74 * time.Minute, true},
		"all uploads ended":       {"nobody can write any more", []change{verified(0)}, 75 * time.Minute, false},
		"verified later":          {"an address was offered until then", []change{verified(time.Hour)}, 134 * time.Minute, true},
		"verified later, ended":   {"and none since", []change{verified(time.Hour)}, 135 * time.Minute, false},
		"second address":          {"it is good for longer", []change{verified(0), annotated(v1alpha1.UploadUntilAnnotation, "2026-11-20T14:00:00Z")}, 179 * time.Minute, true},
		"second address ended":    {"both have ended", []change{verified(0), annotated(v1alpha1.UploadUntilAnnotation, "2026-11-20T14:00:00Z")}, 3 * time.Hour, false},
		"under a key, long after": {"its client can get another address at any time", []change{verified(0), annotated(v1alpha1.RequestAnnotation, "0123")}, 1000 * time.Hour, true},
		"not known since when":    {"nothing proves that it cannot", nil, 1000 * time.Hour, true},
		"fetched by Herald":       {"there never was an address", []change{verified(0), fetched}, 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)}}
			for _, change := range tc.media {
				change(m)
			}
			if got := store.Overwritable(m, noon.Add(tc.after)); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
