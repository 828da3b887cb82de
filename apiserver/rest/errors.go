// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/httpcode"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/wire"
)

var (
	// errNotJSON, errEncoded and errUnread say why a body could not be read.
	errNotJSON = errors.New("the body is not application/json")
	errEncoded = errors.New("the body is encoded")
	errUnread  = errors.New("read the body")
)

func invalid(format string, args ...any) *bridge.Error {
	return &bridge.Error{Code: bridge.CodeValidation, Message: fmt.Sprintf(format, args...)}
}

// checkAgainAfter is after how many seconds a platform that could not tell whether an
// account is good may be asked again.
const checkAgainAfter = "30"

// WriteError answers with the envelope that every error has.
func WriteError(w http.ResponseWriter, httpStatus int, code bridge.Code, message string) {
	if httpStatus == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, httpStatus, wire.AppendError(nil, code, message))
}

func writeJSON(w http.ResponseWriter, httpStatus int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(httpStatus)
	_, _ = w.Write(body) //nolint:gosec // G705: it is JSON and says so, with nosniff; the client may have gone
}

// WriteInternal answers 500 without the cause, which goes to the log.
func WriteInternal(ctx context.Context, w http.ResponseWriter, cause error) {
	info := request.From(ctx)
	info.Err = cause
	WriteError(w, http.StatusInternalServerError, bridge.CodeInternal,
		fmt.Sprintf("something went wrong on this side; quote request id %s to the administrators", info.ID))
}

// WriteNotFound answers to a path that there is not.
func WriteNotFound(w http.ResponseWriter, r *http.Request) {
	WriteError(w, http.StatusNotFound, bridge.CodeNotFound, fmt.Sprintf("there is nothing at %s", r.URL.Path))
}

// WriteMethodNotAllowed answers to a method that a path does not have.
func WriteMethodNotAllowed(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	WriteError(w, http.StatusMethodNotAllowed, bridge.CodeValidation,
		fmt.Sprintf("%s does not take %s; it takes %s", r.URL.Path, r.Method, allowed))
}

// writeFailure answers for every error of an operation and of what comes before
// it.
func writeFailure(ctx context.Context, w http.ResponseWriter, err error) {
	var (
		known    *bridge.Error
		tooLarge *http.MaxBytesError
	)
	switch {
	case errors.As(err, &known):
		if known.Code == bridge.CodeReadinessUnavailable {
			w.Header().Set("Retry-After", checkAgainAfter)
		}
		WriteError(w, httpcode.Of(known.Code), known.Code, known.Message)
	case errors.As(err, &tooLarge):
		WriteError(w, http.StatusRequestEntityTooLarge, bridge.CodeValidation,
			fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit))
	case errors.Is(err, errNotJSON):
		WriteError(w, http.StatusUnsupportedMediaType, bridge.CodeValidation,
			`the body must be JSON; send "Content-Type: application/json"`)
	case errors.Is(err, errEncoded):
		w.Header().Set("Accept-Encoding", "identity")
		WriteError(w, http.StatusUnsupportedMediaType, bridge.CodeValidation,
			"the body must not be compressed; send it without Content-Encoding")
	case errors.Is(err, errUnread):
		WriteError(w, http.StatusBadRequest, bridge.CodeValidation, "the body did not arrive in full; send it again")
	case errors.Is(err, bridge.ErrUncertain):
		info := request.From(ctx)
		info.Err = err
		WriteError(w, http.StatusInternalServerError, bridge.CodeInternal, fmt.Sprintf(
			"it is not known whether the post was created; look for it in the list of posts before you send it again (request id %s)", info.ID))
	default:
		WriteInternal(ctx, w, err)
	}
}
