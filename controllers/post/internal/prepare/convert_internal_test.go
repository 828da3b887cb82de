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
	err := converter{to: onlyJPEG{}, rules: onlyJPEG{}.Capabilities(), renditions: unusedRenditions{}}.convert(t.Context(), &content, func(context.Context, rendition.Source, rendition.Target) (rendition.Rendition, error) {
		return rendition.Rendition{MIMEType: string(v1alpha1.MimeJPEG), ETag: "rendition"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := content.Media[0]; got.MIMEType != v1alpha1.MimeJPEG || got.ETag != "rendition" || got.Name != "a.png" || got.AltText != "a cat" {
		t.Errorf("the rendition is sent as %+v; the alt text describes it as well as the original", got)
	}
}

// choosy is a platform where an account's server may accept only JPEG.
type choosy struct{ onlyJPEG }

func (choosy) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{ForAccount: func(account *v1alpha1.ConnectionStatus) platforms.Capabilities {
		if account.Mastodon == nil {
			return platforms.Capabilities{}
		}
		return onlyJPEG{}.Capabilities()
	}}
}

// TestImagesOfAnAccount checks that images are converted for the accounts whose servers do not accept them.
func TestImagesOfAnAccount(t *testing.T) {
	p := Preparer{o: Options{Platforms: platforms.Registry{v1alpha1.PlatformMastodon: choosy{}}}}
	content := platforms.Content{Media: []platforms.File{{MIMEType: v1alpha1.MimeWebP}}}
	for name, tc := range map[string]struct {
		reason string
		status *v1alpha1.ConnectionStatus
		want   bool
	}{
		"nothing is known":      {"the platform's limits apply", nil, false},
		"no limits of a server": {"the platform's limits apply", &v1alpha1.ConnectionStatus{}, false},
		"a server without WebP": {"the server would reject the image", &v1alpha1.ConnectionStatus{Mastodon: &v1alpha1.MastodonServer{}}, true},
	} {
		c, ok := p.converter(v1alpha1.PlatformMastodon, tc.status)
		if !ok || c.Prepares(content) != tc.want {
			t.Errorf("%s: %s: converted: %t, want %t", name, tc.reason, c.Prepares(content), tc.want)
		}
	}
}
