// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

func TestImageLimitsTake(t *testing.T) {
	limits := platforms.ImageLimits{
		Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimeWebP}, MaxBytes: 1000, MaxWidth: 1080, MaxHeight: 1920, MinAspect: 0.5, MaxAspect: 2,
	}
	turned := limits
	turned.EitherWay, turned.MinAspect, turned.MaxAspect = true, 0, 0
	single := platforms.ImageLimits{OnePicture: true}
	file := func(mimeType v1alpha1.MimeType, size int64, width, height int) platforms.File {
		return platforms.File{MIMEType: mimeType, Size: size, Width: width, Height: height}
	}
	for name, tc := range map[string]struct {
		why    string
		limits platforms.ImageLimits
		file   platforms.File
		want   bool
	}{
		"fits":         {"every bound is met exactly", limits, file(v1alpha1.MimeWebP, 1000, 1080, 540), true},
		"another type": {"PNG is not listed", limits, file(v1alpha1.MimePNG, 10, 100, 100), false},
		"too long":     {"one byte more", limits, file(v1alpha1.MimeJPEG, 1001, 100, 100), false},
		"too wide":     {"one pixel more", limits, file(v1alpha1.MimeJPEG, 10, 1081, 1000), false},
		"too high":     {"one pixel more", limits, file(v1alpha1.MimeJPEG, 10, 1000, 1921), false},
		"too flat":     {"wider than twice its height", limits, file(v1alpha1.MimeJPEG, 10, 201, 100), false},
		"too steep":    {"higher than twice its width", limits, file(v1alpha1.MimeJPEG, 10, 100, 201), false},
		"lying":        {"the bounds may be turned", turned, file(v1alpha1.MimeJPEG, 10, 1920, 1080), true},
		"standing":     {"and need not be", turned, file(v1alpha1.MimeJPEG, 10, 1080, 1920), true},
		"lying, large": {"one pixel more", turned, file(v1alpha1.MimeJPEG, 10, 1920, 1081), false},
		"square":       {"too large either way", turned, file(v1alpha1.MimeJPEG, 10, 1081, 1081), false},
		"no size":      {"what is not known does not count against it", limits, file(v1alpha1.MimeJPEG, 10, 0, 0), true},
		"missing":      {"a missing file cannot be converted", limits, platforms.File{Name: "gone"}, true},
		"video":        {"images are meant", limits, file(v1alpha1.MimeMP4, 1<<30, 3840, 2160), true},
		"turned":       {"no platform promises to turn it", platforms.ImageLimits{}, platforms.File{MIMEType: v1alpha1.MimeJPEG, Turned: true}, false},
		"stuck":        {"it cannot be turned here; platforms mostly do it", platforms.ImageLimits{}, platforms.File{MIMEType: v1alpha1.MimeJPEG, Turned: true, Unconvertible: "is"}, true},
		"several":      {"refused by Instagram's documentation", single, platforms.File{MIMEType: v1alpha1.MimeJPEG, MultiPicture: true}, false},
		"several else": {"decoders pass over what is behind", platforms.ImageLimits{}, platforms.File{MIMEType: v1alpha1.MimeJPEG, MultiPicture: true}, true},
		"one":          {"there is but one", single, platforms.File{MIMEType: v1alpha1.MimeJPEG}, true},
		"no bounds":    {"what every upload may be suffices", platforms.ImageLimits{}, file(v1alpha1.MimePNG, 20<<20, 1, 16000), true},
	} {
		if got := tc.limits.Accepts(&tc.file); got != tc.want {
			t.Errorf("%s (%s): got %t", name, tc.why, got)
		}
	}
}

func TestImageLimitsFor(t *testing.T) {
	standing := platforms.ImageLimits{MaxWidth: 1080, MaxHeight: 1920, EitherWay: true}
	lying := platforms.ImageLimits{MaxWidth: 1920, MaxHeight: 1080, EitherWay: true}
	fixed := platforms.ImageLimits{MaxWidth: 1080, MaxHeight: 1920}
	for name, tc := range map[string]struct {
		why           string
		limits        platforms.ImageLimits
		width, height int
		want          platforms.ImageLimits
	}{
		"as they are": {"the picture stands as they do", standing, 2000, 3000, standing},
		"turned":      {"the picture lies", standing, 3000, 2000, lying},
		"turned up":   {"the other way round", lying, 2000, 3000, standing},
		"unknown":     {"of what is not known nothing is turned", standing, 0, 0, standing},
		"fixed":       {"not asked for", fixed, 3000, 2000, fixed},
	} {
		file := platforms.File{MIMEType: v1alpha1.MimeJPEG, Width: tc.width, Height: tc.height}
		if diff := cmp.Diff(tc.want, tc.limits.For(&file)); diff != "" {
			t.Errorf("%s (%s) (-want +got):\n%s", name, tc.why, diff)
		}
	}
}
