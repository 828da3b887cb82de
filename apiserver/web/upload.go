// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest"
)

// maxUploadRequest is the maximum size of a request for an upload URL, in bytes.
const maxUploadRequest = 16 << 10

// announcedFile is a file that the page's script wants to upload.
type announcedFile struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size_bytes"`
}

// upload registers a file and responds with its upload URL.
func (s *Site) upload(w http.ResponseWriter, v *visit) error {
	var in announcedFile
	if err := json.NewDecoder(http.MaxBytesReader(w, v.Body, maxUploadRequest)).Decode(&in); err != nil {
		return s.uploadFailed(w, v, &bridge.Error{Code: bridge.CodeValidation, Message: "The request for an upload is invalid. Reload the page"})
	}
	if problem := in.problem(); problem != "" {
		return s.uploadFailed(w, v, &bridge.Error{Code: bridge.CodeValidation, Message: problem})
	}
	made, parts, err := s.Service.CreatePartUpload(v.Context(), v.caller, bridge.CreateMediaUpload{Spec: v1alpha1.MediaSpec{
		FileName: in.fileName(), MimeType: v1alpha1.MimeType(in.MimeType), SizeBytes: in.Size,
	}})
	switch {
	case err != nil:
		return s.uploadFailed(w, v, err)
	case parts != nil:
		answer(w, http.StatusCreated, inParts(parts))
	default:
		answer(w, http.StatusCreated, map[string]string{"id": made.ID, "upload_url": made.UploadURL})
	}
	return nil
}

func inParts(p *bridge.PartUpload) map[string]any {
	return map[string]any{"id": p.ID, "upload": p.Upload, "part_bytes": p.PartBytes, "parts": p.URLs}
}

// resumeUpload responds with fresh URLs for the missing parts of a file.
func (s *Site) resumeUpload(w http.ResponseWriter, v *visit) error {
	upload, err := begunUpload(w, v)
	var parts bridge.PartUpload
	if err == nil {
		parts, err = s.Service.ResumeUpload(v.Context(), v.caller, v.PathValue("id"), upload)
	}
	if err != nil {
		return s.uploadFailed(w, v, err)
	}
	answer(w, http.StatusOK, inParts(&parts))
	return nil
}

// finishUpload joins the parts of a file.
func (s *Site) finishUpload(w http.ResponseWriter, v *visit) error {
	return s.endUpload(w, v, s.Service.FinishUpload)
}

// abortUpload removes the parts of a file whose upload was canceled.
func (s *Site) abortUpload(w http.ResponseWriter, v *visit) error {
	return s.endUpload(w, v, s.Service.AbortUpload)
}

func (s *Site) endUpload(w http.ResponseWriter, v *visit, end func(ctx context.Context, caller bridge.Caller, id, upload string) error) error {
	upload, err := begunUpload(w, v)
	if err == nil {
		err = end(v.Context(), v.caller, v.PathValue("id"), upload)
	}
	if err != nil {
		return s.uploadFailed(w, v, err)
	}
	answer(w, http.StatusOK, map[string]string{"id": v.PathValue("id")})
	return nil
}

// begunUpload returns the id of the upload in a request.
func begunUpload(w http.ResponseWriter, v *visit) (string, error) {
	var in struct {
		Upload string `json:"upload"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, v.Body, maxUploadRequest)).Decode(&in); err != nil || in.Upload == "" {
		return "", &bridge.Error{Code: bridge.CodeValidation, Message: "The request for an upload could not be read"}
	}
	return in.Upload, nil
}

// extensions are the extensions of the supported types; the first one is added to a name with another extension.
var extensions = map[v1alpha1.MimeType][]string{
	v1alpha1.MimeJPEG: {".jpg", ".jpeg", ".png", ".webp"}, v1alpha1.MimePNG: {".png", ".jpg", ".jpeg", ".webp"},
	v1alpha1.MimeWebP: {".webp", ".jpg", ".jpeg", ".png"}, v1alpha1.MimeMP4: {".mp4", ".mov"}, v1alpha1.MimeQuickTime: {".mov", ".mp4"},
}

// fileName returns the file's name without its folder, which some browsers send. Its extension is one that the service
// accepts for the type, so that users need not rename a phone's photo.jfif.
func (f *announcedFile) fileName() string {
	name := path.Base(strings.ReplaceAll(f.Name, `\`, "/"))
	accepted := extensions[v1alpha1.MimeType(f.MimeType)]
	if slices.Contains(accepted, strings.ToLower(path.Ext(name))) {
		return name
	}
	return strings.TrimSuffix(name, path.Ext(name)) + accepted[0]
}

// otherFormats are the names of common formats that are not supported, by MIME type and extension: browsers send no
// type for formats that they do not know.
var otherFormats = map[string]string{
	"image/gif": "GIF", ".gif": "GIF", "image/heic": "HEIC", "image/heif": "HEIC", ".heic": "HEIC", ".heif": "HEIC",
	"image/avif": "AVIF", ".avif": "AVIF", "image/svg+xml": "SVG", ".svg": "SVG", "image/tiff": "TIFF", ".tif": "TIFF", ".tiff": "TIFF",
	"image/bmp": "BMP", ".bmp": "BMP", "application/pdf": "PDF", ".pdf": "PDF",
	"video/webm": "WebM", ".webm": "WebM", "video/x-matroska": "MKV", ".mkv": "MKV", "video/x-msvideo": "AVI", ".avi": "AVI",
}

// problem returns a file's problem and its remedy, as shown to users, or "".
func (f *announcedFile) problem() string {
	kind := v1alpha1.MimeType(f.MimeType)
	if _, supported := extensions[kind]; !supported {
		format := otherFormats[strings.ToLower(f.MimeType)]
		if format == "" {
			format = otherFormats[strings.ToLower(path.Ext(f.Name))]
		}
		switch {
		case format == "":
			return "This format is not supported. Choose a JPEG, PNG or WebP picture, or an MP4 or MOV video"
		case strings.HasPrefix(f.MimeType, "video/"), format == "WebM", format == "MKV", format == "AVI":
			return format + " videos are not supported. Save the video as MP4 or MOV"
		default:
			return format + " files are not supported. Save the picture as JPEG, PNG or WebP"
		}
	}
	thing, most := "picture", int64(v1alpha1.MaxImageBytes)
	if strings.HasPrefix(f.MimeType, "video/") {
		thing, most = "video", v1alpha1.MaxVideoBytes
	}
	switch {
	case f.Size < 1:
		return "The file is empty. Choose another file"
	case f.Size > most:
		return fmt.Sprintf("The %s is %s, and the limit is %s. Make it smaller", thing, megabytes(f.Size), megabytes(most))
	default:
		return ""
	}
}

// megabytes returns a size in MB of 2^20 bytes, rounded up, so that a size above a limit never reads like the limit.
func megabytes(bytes int64) string { return fmt.Sprintf("%d MB", (bytes-1)>>20+1) }

func (s *Site) uploadFailed(w http.ResponseWriter, v *visit, err error) error {
	status, message := http.StatusInternalServerError, "Herald could not create an upload URL. Try again"
	if known, ok := errors.AsType[*bridge.Error](err); ok {
		status, message = rest.StatusOf(known.Code), sentence(known.Message)
	} else {
		request.From(v.Context()).Err = err
	}
	answerError(w, status, message)
	return nil
}

func answerError(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"error": map[string]string{"message": message}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}
