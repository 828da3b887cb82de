// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/platforms"
)

// onlyJPEG is a platform that accepts JPEG images.
type onlyJPEG struct{ platforms.Publisher }

func (onlyJPEG) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{Images: platforms.ImageLimits{Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG}}}
}

// unusedRenditions are not called.
type unusedRenditions struct{ Renditions }

// TestConvertedImageKeepsAltText checks what a rendition takes over from its image.
func TestConvertedImageKeepsAltText(t *testing.T) {
	content := platforms.Content{Media: []platforms.File{
		{Name: "a.png", MIMEType: v1alpha1.MimePNG, AltText: "a cat", ETag: "original", Bytes: stored{}},
	}}
	err := converter{to: onlyJPEG{}, renditions: unusedRenditions{}}.convert(t.Context(), &content, func(context.Context, rendition.Source, rendition.Target) (rendition.Rendition, error) {
		return rendition.Rendition{MIMEType: string(v1alpha1.MimeJPEG), ETag: "rendition"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := content.Media[0]; got.MIMEType != v1alpha1.MimeJPEG || got.ETag != "rendition" || got.Name != "a.png" || got.AltText != "a cat" {
		t.Errorf("the rendition is sent as %+v; the alt text describes it as well as the original", got)
	}
}
