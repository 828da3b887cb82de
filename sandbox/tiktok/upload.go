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

// uploadLife is how long the address of an upload works.
const uploadLife = time.Hour

// videoTypes are those of videos.
var videoTypes = []string{"video/mp4", "video/quicktime", "video/webm"}

// final says whether a request brings the last chunk, which makes the post.
func final(r *http.Request) bool {
	s, ok := simulator.ReadRange(r)
	return ok && s.Last == s.Total-1
}

// uploadAccount tells whose upload a request is for.
func (p *Platform) uploadAccount(r *faults.Request) string {
	issued, ok := p.Store.Container(Name, r.URL.Query().Get("upload_id"))
	if !ok {
		return ""
	}
	return issued.AccountID
}

// upload is PUT of a chunk. The host of uploads speaks in statuses.
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
	// The address carries all authority: a client that sends a token as well gives it to a host that must not have it.
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

// appendChunk keeps a chunk and returns how much there is then.
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
		return http.StatusBadRequest, size // the client broke off: what came counts
	case size < t.Size:
		return http.StatusPartialContent, size
	}
	if err := p.settle(issued.ID); err != nil {
		return p.broken("keep a post", err).status, size
	}
	return http.StatusCreated, size
}

// chunkEnd is the last byte of the chunk that begins at an offset, or in which it lies when a chunk was cut off. The last chunk
// takes what remains.
func (t ticket) chunkEnd(offset int64) int64 {
	if chunk := offset / t.Chunk; chunk < t.Count-1 {
		return (chunk+1)*t.Chunk - 1
	}
	return t.Size - 1
}

// uploadDialect lets faults speak as the host of uploads does: without a body.
type uploadDialect struct{}

// Fail answers that status.
func (uploadDialect) Fail(w http.ResponseWriter, _ faults.Operation, status int) {
	w.WriteHeader(status)
}

// RateLimited answers 429.
func (uploadDialect) RateLimited(w http.ResponseWriter, _ *faults.Request, _ faults.Operation, _ time.Duration) {
	w.WriteHeader(http.StatusTooManyRequests)
}

// Refused answers 400 for what is wrong with a request, and 403 for all else.
func (uploadDialect) Refused(w http.ResponseWriter, _ faults.Operation, why faults.Refusal) {
	status := http.StatusForbidden
	if why == faults.RefusalInvalid {
		status = http.StatusBadRequest
	}
	w.WriteHeader(status)
}

// TokenRefused answers that the address does not work any more.
func (uploadDialect) TokenRefused(w http.ResponseWriter, _ faults.Operation, _ bool) {
	w.WriteHeader(http.StatusForbidden)
}
