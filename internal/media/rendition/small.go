// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
)

// smallSide is the longer side of a picture for lists, in pixels: lists show at most 160, and many screens have two
// pixels for each.
const smallSide = 320

// Small returns the Target for pictures in lists. A picture takes about 20 KiB.
func Small() Target {
	return Target{Types: []string{jpegType}, MaxWidth: smallSide, MaxHeight: smallSide}
}

// SourceOf returns the Source of a Media's verified file. ok is false if the file is not a picture.
func SourceOf(m *v1alpha1.Media) (source Source, ok bool) {
	if m.Status.Phase != v1alpha1.MediaUploaded || !strings.HasPrefix(string(m.Spec.MimeType), "image/") {
		return Source{}, false
	}
	return Source{Key: store.Key(m), ETag: m.Status.ETag, MIMEType: string(m.Spec.MimeType), Size: m.Status.SizeBytes}, true
}
