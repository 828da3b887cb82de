// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"crypto/subtle"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// uploadLife is the lifetime of an upload URL.
const uploadLife = time.Hour

// videoTypes are the accepted video file types.
var videoTypes = []string{"video/mp4", "video/quicktime", "video/webm"}

// final reports whether a request carries the last chunk, which publishes the post.
func final(r *http.Request) bool {
	s, ok := simulator.ReadRange(r)
	return ok && s.Last == s.Total-1
}

// uploadAccount returns the account of the upload that a request belongs to.
func (p *Platform) uploadAccount(r *faults.Request) string {
	issued, ok := p.Store.Container(Name, r.URL.Query().Get("upload_id"))
	if !ok {
		return ""
	}
	return issued.AccountID
}

// upload handles the PUT of a chunk. The upload host responds with a status and no body.
func (p *Platform) upload(w http.ResponseWriter, r *faults.Request) {
	query := r.URL.Query()
	issued, ok := p.Store.Container(Name, query.Get("upload_id"))
	t := ticketOf(issued)
	if !ok || t.Token == "" || subtle.ConstantTimeCompare([]byte(t.Token), []byte(query.Get("upload_token"))) != 1 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if !p.Clock.Now().Before(issued.CreatedAt().Add(uploadLife)) {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	s, ok := simulator.ReadRange(r.Request)
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	// The URL is the only credential. A client that also sends a token leaks it to a host that must not see it.
	if !ok || s.Total != t.Size || r.ContentLength != s.Last-s.First+1 || err != nil || !slices.Contains(videoTypes, media) || r.Header.Get("Authorization") != "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	unlock := p.uploads.Lock(issued.ID)
	defer unlock()
	status, size := p.appendChunk(r, issued, t, s)
	w.Header().Set("Content-Range", "bytes 0-"+strconv.FormatInt(size, 10)+"/"+strconv.FormatInt(t.Size, 10))
	w.WriteHeader(status)
}

// appendChunk stores a chunk and returns the new size of the file.
func (p *Platform) appendChunk(r *faults.Request, issued state.Container, t ticket, s simulator.Range) (status int, size int64) {
	size, open := p.Blobs.Size(issued.ID)
	switch {
	case !open || size == t.Size:
		return http.StatusRequestedRangeNotSatisfiable, t.Size
	case s.First != size || s.Last != t.chunkEnd(size):
		return http.StatusRequestedRangeNotSatisfiable, size
	}
	size, err := p.Blobs.Append(issued.ID, size, r.Body, t.Size)
	switch {
	case errors.Is(err, blobs.ErrOffset), errors.Is(err, blobs.ErrTooLarge):
		return http.StatusRequestedRangeNotSatisfiable, size
	case err != nil || size != s.Last+1:
		return http.StatusBadRequest, size // the client disconnected; the received bytes count
	case size < t.Size:
		return http.StatusPartialContent, size
	}
	if err := p.settle(issued.ID); err != nil {
		return p.broken("keep a post", err).status, size
	}
	return http.StatusCreated, size
}

// chunkEnd returns the last byte of the chunk that contains offset. The offset is inside a chunk if the chunk was cut
// off. The last chunk takes the remainder.
func (t ticket) chunkEnd(offset int64) int64 {
	if chunk := offset / t.Chunk; chunk < t.Count-1 {
		return (chunk+1)*t.Chunk - 1
	}
	return t.Size - 1
}

// uploadDialect writes faults in the format of the upload host: without a body.
type uploadDialect struct{}

func (uploadDialect) Fail(w http.ResponseWriter, _ faults.Operation, status int) {
	w.WriteHeader(status)
}

func (uploadDialect) RateLimited(w http.ResponseWriter, _ *faults.Request, _ faults.Operation, _ time.Duration) {
	w.WriteHeader(http.StatusTooManyRequests)
}

// Refused responds with 400 for an invalid request and 403 otherwise.
func (uploadDialect) Refused(w http.ResponseWriter, _ faults.Operation, why faults.Refusal) {
	status := http.StatusForbidden
	if why == faults.RefusalInvalid {
		status = http.StatusBadRequest
	}
	w.WriteHeader(status)
}

// TokenRefused responds that the upload URL is no longer valid.
func (uploadDialect) TokenRefused(w http.ResponseWriter, _ faults.Operation, _ bool) {
	w.WriteHeader(http.StatusForbidden)
}
