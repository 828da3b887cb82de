// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// maxThumbnail is the maximum size of a thumbnail, in bytes. It has been the limit for years; only one source has
// mentioned a higher one, since September 2026.
const maxThumbnail = 2 << 20

// setThumbnail handles POST /upload/youtube/v3/thumbnails/set.
func (p *Platform) setThumbnail(w http.ResponseWriter, r *faults.Request) {
	account, refused := p.authorized(r, scopeUpload, scopeAll, scopeSSL)
	var post state.Post
	if refused == nil {
		post, refused = p.videoToSet(r, account)
	}
	var picture blobs.Blob
	if refused == nil {
		picture, refused = p.receivePicture(r)
	}
	if refused != nil {
		fail(w, refused)
		return
	}
	kept := detailOf(post.Detail)
	thumbnail := simulator.MediaOf(picture)
	answered := kept
	answered.Thumbnail = &thumbnail
	if !p.tooEarly(post, kept) {
		kept = answered
	}
	content, err := json.Marshal(kept)
	if err == nil {
		err = p.Store.SetDetail(Name, post.ID, content)
	}
	if err != nil {
		fail(w, p.broken("keep a thumbnail", err))
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"kind": "youtube#thumbnailSetResponse", "etag": "thumbnail-" + picture.SHA256, "items": []any{p.thumbnails(answered, r)},
	})
}

// longestShort is the maximum duration of a Short, in seconds (YouTube Help, "Get started creating YouTube Shorts").
const longestShort = 3 * 60

// tooEarly reports whether a thumbnail is accepted but not applied because the video is a Short that has not been
// processed successfully ("Thumbnails: set", November 2026: it "might not be applied"). A Short is square or taller
// than it is wide.
func (p *Platform) tooEarly(post state.Post, kept detail) bool {
	if len(post.Media) != 1 || kept.Seconds > longestShort || p.processingOf(kept) == succeeded {
		return false
	}
	film, _ := p.Blobs.Get(post.Media[0].SHA256)
	return film.Width > 0 && film.Height >= film.Width
}

// videoToSet returns the video that the request names, which must belong to the account.
func (p *Platform) videoToSet(r *faults.Request, account state.Account) (state.Post, *problem) {
	query := r.URL.Query()
	if refused := checkParameters(query, []string{"videoId", "uploadType"}, nil); refused != nil {
		return state.Post{}, refused
	}
	post, ok := p.Store.Post(Name, query.Get("videoId"))
	switch {
	case query.Get("videoId") == "":
		return post, badParameter("missingRequiredParameter", "videoId", "Required parameter: videoId")
	case !slices.Contains([]string{"", "media", multipartRelated}, query.Get("uploadType")):
		return post, badParameter("invalidParameter", "uploadType", "The sandbox simulates simple and multipart uploads of thumbnails only.")
	case !ok:
		return post, refuse(http.StatusNotFound, "NOT_FOUND", "youtube.thumbnail", "videoNotFound",
			"The video that you are trying to insert a thumbnail for cannot be found.")
	case post.AccountID != account.ID:
		return post, refuse(http.StatusForbidden, "PERMISSION_DENIED", "youtube.thumbnail", "forbidden",
			"The thumbnail can't be set for the specified video. The request might not be properly authorized.")
	default:
		return post, nil
	}
}

// receivePicture reads an image from the body or, for a multipart upload, from its second part. OpenPost sends the
// image without an uploadType.
func (p *Platform) receivePicture(r *faults.Request) (blobs.Blob, *problem) {
	contentType, body := r.Header.Get("Content-Type"), io.Reader(r.Body)
	if r.URL.Query().Get("uploadType") == multipartRelated {
		_, part, refused := readRelated(r)
		if refused != nil {
			return blobs.Blob{}, refused
		}
		contentType, body = part.Header.Get("Content-Type"), part
	}
	bad := func(why, message string) *problem {
		return refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "youtube.thumbnail", why, message)
	}
	pictures := []string{"image/jpeg", "image/png"}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(pictures, media) {
		return blobs.Blob{}, bad("imageFormatUnsupported", "The provided image content is in an unsupported format.")
	}
	picture, err := p.Blobs.Receive(body, maxThumbnail)
	switch {
	case errors.Is(err, blobs.ErrTooLarge):
		return picture, bad("failedPrecondition", "The provided image content is too large.")
	case err != nil:
		return picture, bad("badRequest", "The request was cut off.")
	case picture.Bytes == 0:
		return picture, bad("mediaBodyRequired", "The request does not include the image content.")
	case picture.MIMEType != media:
		return picture, bad("imageFormatUnsupported", "The provided image content is in an unsupported format.")
	}
	return picture, nil
}

// thumbnails returns a video's custom thumbnail. The sandbox does not generate thumbnails.
func (p *Platform) thumbnails(kept detail, r *faults.Request) map[string]any {
	out := map[string]any{}
	if kept.Thumbnail == nil {
		return out
	}
	picture, _ := p.Blobs.Get(kept.Thumbnail.SHA256)
	for _, name := range []string{"default", "medium", "high"} {
		out[name] = map[string]any{
			"url": p.File(r.Request, *kept.Thumbnail), "width": picture.Width, "height": picture.Height,
		}
	}
	return out
}
