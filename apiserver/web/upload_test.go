// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// TestFileProblems verifies the message beside a rejected file.
func TestFileProblems(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		file   announcedFile
		want   string
	}{
		"a picture":                     {"the file is accepted", announcedFile{"a.png", "image/png", 1000}, ""},
		"the largest":                   {"the limit is inclusive", announcedFile{"a.png", "image/png", v1alpha1.MaxImageBytes}, ""},
		"one byte more":                 {"messages show different sizes", announcedFile{"a.png", "image/png", v1alpha1.MaxImageBytes + 1}, "The picture is 21 MB, and the limit is 20 MB. Make it smaller"},
		"a large video":                 {"videos have another limit", announcedFile{"a.mp4", "video/mp4", 3 << 30}, "The video is 3072 MB, and the limit is 1024 MB. Make it smaller"},
		"nothing":                       {"phones create empty files", announcedFile{"a.png", "image/png", 0}, "The file is empty. Choose another file"},
		"a GIF":                         {"the format is named", announcedFile{"a.gif", "image/gif", 1000}, "GIF files are not supported. Save the picture as JPEG, PNG or WebP"},
		"an iPhone's":                   {"browsers send no type for HEIC", announcedFile{"IMG_1.HEIC", "", 1000}, "HEIC files are not supported. Save the picture as JPEG, PNG or WebP"},
		"a video in a browser's format": {"the remedy for a video differs from that for an image", announcedFile{"a.webm", "video/webm", 1000}, "WebM videos are not supported. Save the video as MP4 or MOV"},
		"a program":                     {"an unknown format has no name", announcedFile{"a.exe", "application/x-dosexec", 1000}, "This format is not supported. Choose a JPEG, PNG or WebP picture, or an MP4 or MOV video"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.file.problem(); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestFileNames verifies that a name of another extension gets one that the service accepts.
func TestFileNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, name, mimeType, want string }{
		"an unchanged name": {"users choose names", "Launch.PNG", "image/png", "Launch.PNG"},
		"another picture's": {"the content decides, and platforms accept both", "a.jpg", "image/png", "a.jpg"},
		"a browser's":       {"Windows uses this type for JPEG files", "photo.jfif", "image/jpeg", "photo.jpg"},
		"none":              {"a file may have no extension", "film", "video/mp4", "film.mp4"},
		"a path":            {"some browsers send a path", `C:\pictures\a.png`, "image/png", "a.png"},
		"an Apple film":     {"Apple uses this type for movies", "a.m4v", "video/quicktime", "a.mov"},
	} {
		file := announcedFile{Name: tc.name, MimeType: tc.mimeType}
		if got := file.fileName(); got != tc.want {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// TestFileFieldTypes verifies that the fields offer the types that the service supports, no more and no fewer.
func TestFileFieldTypes(t *testing.T) {
	t.Parallel()
	offered := strings.Split(pictureTypes+","+videoTypes, ",")
	for _, one := range offered {
		if err := bridge.RefuseUpload(&v1alpha1.MediaSpec{FileName: "a" + extensions[v1alpha1.MimeType(one)][0], MimeType: v1alpha1.MimeType(one), SizeBytes: 1}, nil, 0); err.Error() != "" {
			t.Errorf("%s: %v", one, err)
		}
	}
	for one := range extensions {
		if !slices.Contains(offered, string(one)) {
			t.Errorf("no field offers %s", one)
		}
	}
}
