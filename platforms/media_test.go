// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms_test

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

func TestImageLimitsTake(t *testing.T) {
	limits := platforms.ImageLimits{
		Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimeWebP}, MaxBytes: 1000, MaxWidth: 1080, MaxHeight: 1920, MinAspect: 0.5, MaxAspect: 2,
	}
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
		"no size":      {"what is not known does not count against it", limits, file(v1alpha1.MimeJPEG, 10, 0, 0), true},
		"missing":      {"a missing file cannot be converted", limits, platforms.File{Name: "gone"}, true},
		"video":        {"images are meant", limits, file(v1alpha1.MimeMP4, 1<<30, 3840, 2160), true},
		"no bounds":    {"what every upload may be suffices", platforms.ImageLimits{}, file(v1alpha1.MimePNG, 20<<20, 1, 16000), true},
	} {
		if got := tc.limits.Takes(&tc.file); got != tc.want {
			t.Errorf("%s (%s): got %t", name, tc.why, got)
		}
	}
}
