// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
)

// TestFileProblems verifies the message next to a rejected file.
func TestFileProblems(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		file   announcedFile
		want   string
	}{
		"a normal picture":              {"the file is accepted", announcedFile{"a.png", "image/png", 1000}, ""},
		"the largest":                   {"the limit is inclusive", announcedFile{"a.png", "image/png", v1alpha1.MaxImageBytes}, ""},
		"a picture above the limit":     {"messages show different sizes", announcedFile{"a.png", "image/png", v1alpha1.MaxImageBytes + 1}, "The picture is 21 MB, and the limit is 20 MB. Make it smaller"},
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

// TestFileNames verifies that a name with another extension gets one that the service accepts.
func TestFileNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, name, mimeType, want string }{
		"an unchanged name":                {"users choose names", "Launch.PNG", "image/png", "Launch.PNG"},
		"the extension of another picture": {"the content decides, and platforms accept both", "a.jpg", "image/png", "a.jpg"},
		"a browser's":                      {"Windows uses this type for JPEG files", "photo.jfif", "image/jpeg", "photo.jpg"},
		"none":                             {"a file may have no extension", "film", "video/mp4", "film.mp4"},
		"a path":                           {"some browsers send a path", `C:\pictures\a.png`, "image/png", "a.png"},
		"an Apple film":                    {"Apple uses this type for movies", "a.m4v", "video/quicktime", "a.mov"},
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

// TestUploadInParts verifies what the page's script gets for a large file, and who may continue its upload.
func TestUploadInParts(t *testing.T) {
	t.Parallel()
	const large = `{"name":"a.mp4","mime_type":"video/mp4","size_bytes":99999999}`
	for name, tc := range map[string]struct {
		reason, path, body string
		who                access.Person
		phase              v1alpha1.MediaPhase
		status             int
		says               string
	}{
		"begin":            {"a large file gets the addresses of its parts", "media", large, editor, "", 201, `"part_bytes":16777216,"parts":["","https://store.example/`},
		"small":            {"a small file gets one address", "media", `{"name":"a.mp4","mime_type":"video/mp4","size_bytes":9}`, editor, "", 201, `"upload_url":"https://store.example/`},
		"resume":           {"only missing parts have addresses", "media/m-1/parts", `{"upload":"u-1"}`, editor, v1alpha1.MediaPending, 200, `"parts":["","https://`},
		"resume nothing":   {"the store has removed the upload", "media/m-1/parts", `{"upload":"u-9"}`, editor, v1alpha1.MediaPending, 404, "This upload has ended"},
		"resume a file":    {"the upload is complete, and must not change", "media/m-1/parts", `{"upload":"u-1"}`, editor, v1alpha1.MediaUploaded, 200, `"parts":[]`},
		"resume too late":  {"the manager has removed it", "media/m-1/parts", `{"upload":"u-1"}`, editor, v1alpha1.MediaExpired, 404, "This upload has ended"},
		"resume joined":    {"the response was lost, and no bytes are missing", "media/m-1/parts", `{"upload":"u-joined"}`, editor, v1alpha1.MediaPending, 200, `"parts":[]`},
		"resume another's": {"the response does not reveal which names exist", "media/m-2/parts", `{"upload":"u-1"}`, editor, v1alpha1.MediaPending, 404, "This upload has ended"},
		"finish":           {"the parts are joined", "media/m-1/finish", `{"upload":"u-1"}`, editor, v1alpha1.MediaPending, 200, `"id":"m-1"`},
		"finish again":     {"the response was lost", "media/m-1/finish", `{"upload":"u-1"}`, editor, v1alpha1.MediaUploaded, 200, `"id":"m-1"`},
		"finish too late":  {"the manager has removed it", "media/m-1/finish", `{"upload":"u-1"}`, editor, v1alpha1.MediaRejected, 404, "This upload has ended"},
		"finish early":     {"part of a file is incomplete", "media/m-1/finish", `{"upload":"u-2"}`, editor, v1alpha1.MediaPending, 409, "Parts of the file are missing"},
		"abort":            {"the store is not charged for a cancelled upload", "media/m-1/abort", `{"upload":"u-1"}`, editor, v1alpha1.MediaPending, 200, `"id":"m-1"`},
		"abort too late":   {"the upload was deleted", "media/m-1/abort", `{"upload":"u-1"}`, editor, v1alpha1.MediaExpired, 404, "This upload has ended"},
		"no JSON":          {"the script sends the upload's id", "media/m-1/finish", `{}`, editor, v1alpha1.MediaPending, 400, "could not be read"},
		"another team's":   {"an upload's id gives no access to other teams' files", "media/m-theirs/finish", `{"upload":"u-1"}`, editor, v1alpha1.MediaPending, 404, "This upload has ended"},
		"a viewer":         {"continuing needs the permission to upload", "media/m-1/parts", `{"upload":"u-1"}`, viewer, v1alpha1.MediaPending, 403, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.upload("m-1", func(m *v1alpha1.Media) { m.Status.Phase = tc.phase })
			w.media["team-other/m-theirs"] = &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: "team-other", Name: "m-theirs"}}
			r := httptest.NewRequest(http.MethodPost, "/teams/"+acme+"/"+tc.path, strings.NewReader(tc.body))
			r.Header.Set("Accept", "application/json")
			answer := w.serve(r.WithContext(newRequest(&tc.who, "/", nil).Context()))
			if answer.Code != tc.status || !strings.Contains(answer.Body.String(), tc.says) {
				t.Errorf("%s: %d %s", tc.reason, answer.Code, answer.Body)
			}
		})
	}
}

// withoutParts is a store whose access key may not list parts.
type withoutParts struct{ store }

func (withoutParts) PresignParts(context.Context, string, string, int64) ([]string, time.Time, error) {
	return nil, time.Time{}, errors.New("access denied")
}

// TestUploadWithoutParts verifies that an older access policy does not end large uploads.
func TestUploadWithoutParts(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.site.Service.Parts = withoutParts{}
	r := httptest.NewRequest(http.MethodPost, "/teams/"+acme+"/media", strings.NewReader(`{"name":"a.mp4","mime_type":"video/mp4","size_bytes":99999999}`))
	answer := w.serve(r.WithContext(newRequest(&editor, "/", nil).Context()))
	if answer.Code != http.StatusCreated || !strings.Contains(answer.Body.String(), `"upload_url":"https://`) {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}
