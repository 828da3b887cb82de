// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// maxMetadata is the maximum size of the metadata in a request with a file, in bytes.
const maxMetadata = 1 << 20

// readRelated reads a request that contains metadata and a file (multipart/related). It reads all of the metadata and
// returns the file as a stream. Google's own clients send small files this way.
func readRelated(r *faults.Request) (description []byte, file *multipart.Part, refused *problem) {
	bad := func(message string) *problem {
		return refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "global", "badContent", message)
	}
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return nil, nil, bad("The Content-Type must be multipart/related with a boundary.")
	}
	reader := multipart.NewReader(r.Body, params["boundary"])
	first, err := reader.NextRawPart()
	if err == nil {
		description, err = io.ReadAll(io.LimitReader(first, maxMetadata))
	}
	if err == nil {
		file, err = reader.NextRawPart()
	}
	if err != nil {
		return nil, nil, bad("There must be two parts: the description and the media.")
	}
	return description, file, nil
}

// insert handles POST /upload/youtube/v3/videos?uploadType=multipart. It publishes the video when the request is
// complete.
func (p *Platform) insert(w http.ResponseWriter, r *faults.Request) {
	account, refused := p.authorized(r, scopeUpload, scopeAll, scopeSSL)
	var (
		kept detail
		file blobs.Blob
		post state.Post
	)
	if refused == nil {
		kept, refused = p.readParts(r, multipartRelated)
	}
	if refused == nil {
		file, refused = p.receiveVideo(r, account, &kept)
	}
	if refused == nil {
		post, refused = p.inserted(account, kept, file)
	}
	if refused != nil {
		fail(w, refused)
		return
	}
	writeJSON(w, http.StatusOK, p.video(account, post, r, kept.Parts))
}

// receiveVideo receives metadata and a video.
func (p *Platform) receiveVideo(r *faults.Request, account state.Account, kept *detail) (blobs.Blob, *problem) {
	description, part, refused := readRelated(r)
	if refused == nil {
		refused = p.readVideo(description, account, kept)
	}
	if refused != nil {
		return blobs.Blob{}, refused
	}
	media, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
	if err != nil || !isVideoType(media) {
		return blobs.Blob{}, refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "global", "badContent",
			"Media type is not supported. Valid media types: [video/*, application/octet-stream]")
	}
	file, err := p.Blobs.Receive(part, maxVideo)
	switch {
	case err != nil:
		return file, badRange("The request was cut off.")
	case file.Bytes == 0:
		return file, refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "youtube.video", "mediaBodyRequired",
			"The request does not include the video content.")
	}
	kept.Type, kept.Size = media, file.Bytes
	return file, nil
}

// inserted publishes a video that was uploaded in one request.
func (p *Platform) inserted(account state.Account, kept detail, file blobs.Blob) (state.Post, *problem) {
	post, err := p.publishVideo(account, state.Container{}, kept, file)
	if _, full := errors.AsType[*state.QuotaError](err); full {
		return post, uploadLimit()
	}
	if err != nil {
		return post, p.broken("keep a video", err)
	}
	return post, nil
}
