// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// uploadBase is the path of the upload host.
const uploadBase = instagramBase + "/rupload.facebook.com"

func uploadPath(version, container string) string {
	return uploadBase + "/ig-api-upload/" + version + "/" + container
}

// uploads is the host that receives video uploads. It has its own error format and implements faults.Dialect.
type uploads struct{ *login }

// registerUploads adds the host to mux.
func (l *login) registerUploads(mux *http.ServeMux) {
	u := uploads{l}
	mux.Handle("POST "+uploadPath("{version}", "{id}"), l.Gate.Handler(faults.Route{
		Platform: Name, Operation: faults.Upload, Dialect: u, Streams: true, Account: u.caller, Act: u.serve,
	}))
	mux.HandleFunc(uploadBase+"/", func(w http.ResponseWriter, _ *http.Request) {
		u.refuse(w, http.StatusNotFound, "NotFoundError", "There is nothing to upload to at this address.")
	})
}

// debugInfo is the host's error format.
type debugInfo struct {
	Retriable bool   `json:"retriable"`
	Type      string `json:"type"`
	Message   string `json:"message"`
}

func (u uploads) refuse(w http.ResponseWriter, status int, kind, message string) {
	u.answer(w, status, map[string]any{
		"debug_info": debugInfo{Retriable: status >= http.StatusInternalServerError, Type: kind, Message: message},
	})
}

func (u uploads) answer(w http.ResponseWriter, status int, body map[string]any) {
	simulator.WriteJSON(w, status, "application/json", body)
}

// Fail responds with the status.
func (u uploads) Fail(w http.ResponseWriter, _ faults.Operation, status int) {
	u.refuse(w, status, "ProcessingFailedError", "Request processing failed")
}

// RateLimited responds like the Graph API, because the host has no format for it.
func (u uploads) RateLimited(w http.ResponseWriter, r *faults.Request, op faults.Operation, retryAfter time.Duration) {
	u.login.RateLimited(w, r, op, retryAfter)
}

// Refused responds with a general failure: this host does not publish.
func (u uploads) Refused(w http.ResponseWriter, op faults.Operation, _ faults.Refusal) {
	u.Fail(w, op, http.StatusBadRequest)
}

// TokenRefused responds that the token is not valid.
func (u uploads) TokenRefused(w http.ResponseWriter, _ faults.Operation, _ bool) {
	u.refuse(w, http.StatusUnauthorized, "NotAuthorizedError", "The access token is not valid.")
}

// bearer returns the bearer of the request's token. The host requires the scheme OAuth.
func (u uploads) bearer(r *faults.Request) (state.Bearer, bool) {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "OAuth ")
	bearer, known := u.Store.Bearer(token)
	return bearer, found && known && bearer.Account.Platform == Name && u.Speaks(bearer)
}

// caller returns the account of the request's token, even an expired one.
func (u uploads) caller(r *faults.Request) string {
	bearer, _ := u.bearer(r)
	return bearer.Account.ID
}

// serve receives the bytes of a video for a container that was created for an upload.
func (u uploads) serve(w http.ResponseWriter, r *faults.Request) {
	bearer, ok := u.bearer(r)
	if !ok || bearer.Expired(u.Clock.Now()) {
		u.TokenRefused(w, faults.Upload, false)
		return
	}
	for _, scope := range u.write {
		if !bearer.Allows(scope) {
			u.refuse(w, http.StatusForbidden, "NotAuthorizedError", "The access token lacks the permission "+scope+".")
			return
		}
	}
	container, ok := u.Store.Container(Name, r.PathValue("id"))
	switch {
	case !u.Serves(r.PathValue("version")), !ok, container.AccountID != bearer.Account.ID:
		u.refuse(w, http.StatusNotFound, "NotFoundError", "There is nothing to upload to at this address.")
	case u.statusOf(container) == graph.Expired:
		u.refuse(w, http.StatusBadRequest, "ExpiredError", "The container has expired.")
	case !detailOf(container.Detail).Awaited:
		u.refuse(w, http.StatusBadRequest, "AlreadyUploadedError", "The container waits for no upload.")
	default:
		u.receive(w, r, container)
	}
}

// receive reads the upload of a container.
func (u uploads) receive(w http.ResponseWriter, r *faults.Request, container state.Container) {
	size, err := strconv.ParseInt(r.Header.Get("file_size"), 10, 64)
	switch {
	case err != nil || size <= 0:
		u.refuse(w, http.StatusBadRequest, "BadRequestError", "The header file_size must be the number of bytes of the file.")
		return
	case r.Header.Get("offset") != "0":
		u.refuse(w, http.StatusBadRequest, "OffsetInvalidError", "The header offset must be 0.")
		return
	case size > maxVideo:
		u.refuse(w, http.StatusBadRequest, "FileTooLargeError", "The file is larger than a video may be.")
		return
	}
	blob, err := u.Blobs.Receive(r.Body, size)
	switch {
	case err != nil && isOwn(err):
		u.Logger.Error("a video could not be kept", "container", container.ID, "error", err)
		u.Fail(w, faults.Upload, http.StatusInternalServerError)
	case errors.Is(err, blobs.ErrTooLarge), err == nil && blob.Bytes != size:
		u.refuse(w, http.StatusBadRequest, "PartialRequestError", "The body does not have the number of bytes that file_size says.")
	case err != nil: // the client disconnected before the end of the body
		u.refuse(w, http.StatusBadRequest, "PartialRequestError", "The body ended too early.")
	default:
		failure := validateVideo(blob, detailOf(container.Detail))
		u.recordUpload(w, container, func(c *state.Container) { graph.Arrive(c, blob, failure) })
	}
}

// recordUpload stores an upload's result and responds. Video processing starts at this point.
func (u uploads) recordUpload(w http.ResponseWriter, container state.Container, came func(*state.Container)) {
	account, _ := u.Store.Account(state.Key{Platform: Name, ID: container.AccountID})
	first := false
	_, err := u.Store.ChangeContainer(Name, container.ID, func(c *state.Container) {
		kept := detailOf(c.Detail)
		first, kept.Awaited = kept.Awaited, false
		content, err := json.Marshal(kept)
		if err != nil || !first { // another upload has completed in the meantime
			return
		}
		c.Detail, c.ReadyAt = content, u.Clock.Now().Add(account.Settings.Work(graph.VideoProcessing)).UTC()
		came(c)
	})
	if err == nil && !first {
		u.refuse(w, http.StatusBadRequest, "AlreadyUploadedError", "The container waits for no upload.")
		return
	}
	if err != nil {
		u.Logger.Error("an upload could not be noted down", "container", container.ID, "error", err)
		u.Fail(w, faults.Upload, http.StatusInternalServerError)
		return
	}
	u.answer(w, http.StatusOK, map[string]any{"success": true, "message": "Upload successful."})
}
