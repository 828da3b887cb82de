// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/test/must"
)

// TestSmall checks the size of a picture for lists.
func TestSmall(t *testing.T) {
	files := newMemory()
	source := files.source(t, asPNG(t, noise(2000, 1000)), "image/png")
	r, err := rendition.NewRenderer(files).Make(t.Context(), source, rendition.Small())
	must.Succeed(t, err)
	if r.MIMEType != "image/jpeg" || r.Width != 320 || r.Height != 160 || r.Size > 100<<10 {
		t.Errorf("a list shows many renditions, so each is small: %+v of %d bytes", r, source.Size)
	}
}

// TestSourceOf checks which files have a picture in lists.
func TestSourceOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		mimeType v1alpha1.MimeType
		phase    v1alpha1.MediaPhase
		want     bool
	}{
		"a picture":       {"verified bytes are decoded", v1alpha1.MimePNG, v1alpha1.MediaUploaded, true},
		"a film":          {"only pictures are decoded for lists", v1alpha1.MimeMP4, v1alpha1.MediaUploaded, false},
		"a new upload":    {"its bytes can still change", v1alpha1.MimePNG, v1alpha1.MediaPending, false},
		"a rejected file": {"its bytes are removed", v1alpha1.MimePNG, v1alpha1.MediaRejected, false},
	} {
		m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", UID: "u-1"}, Spec: v1alpha1.MediaSpec{MimeType: tc.mimeType}}
		m.Status = v1alpha1.MediaStatus{Phase: tc.phase, ETag: "e", SizeBytes: 5}
		source, ok := rendition.SourceOf(m)
		if ok != tc.want || ok && source != (rendition.Source{Key: "acme/u-1", ETag: "e", MIMEType: "image/png", Size: 5}) {
			t.Errorf("%s: %s: %+v, %v", name, tc.reason, source, ok)
		}
	}
}
