// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/wire"
)

var (
	// errNotJSON and errEncoded reject a body without reading it.
	errNotJSON = errors.New("the body is not application/json")
	errEncoded = errors.New("the body is encoded")
)

func invalid(format string, args ...any) *bridge.Error {
	return &bridge.Error{Code: bridge.CodeValidation, Message: fmt.Sprintf(format, args...)}
}

// checkAgainAfter is the Retry-After, in seconds, while connections or keys cannot be verified.
const checkAgainAfter = "30"

// WriteError writes an error envelope. A 401 gets a challenge for a bearer token, unless the header already has one.
func WriteError(w http.ResponseWriter, httpStatus int, code bridge.Code, message string) {
	const challenge = "WWW-Authenticate"
	if httpStatus == http.StatusUnauthorized && w.Header().Get(challenge) == "" {
		w.Header().Set(challenge, "Bearer")
	}
	writeJSON(w, httpStatus, wire.AppendError(nil, code, message))
}

func writeJSON(w http.ResponseWriter, httpStatus int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(httpStatus)
	_, _ = w.Write(body) //nolint:gosec // G705: the response is application/json, with nosniff; the client may be gone
}

// WriteInternal writes a 500 without the cause, which is logged.
func WriteInternal(ctx context.Context, w http.ResponseWriter, cause error) {
	WriteFailure(ctx, w, internalError{cause})
}

// internalError is an error whose details are hidden from the client.
type internalError struct{ error }

// WriteNotFound writes the response for an unknown path.
func WriteNotFound(w http.ResponseWriter, r *http.Request) {
	WriteError(w, http.StatusNotFound, bridge.CodeNotFound, "there is nothing at "+request.Short(r.URL.Path))
}

// WriteMethodNotAllowed writes the response for a method that the path does not support.
func WriteMethodNotAllowed(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	WriteError(w, http.StatusMethodNotAllowed, bridge.CodeValidation,
		fmt.Sprintf("%s does not support %s; it supports %s", request.Short(r.URL.Path), request.Method(r), allowed))
}

// WriteTooMany writes the response for an unauthenticated client that exceeds its rate limit.
func WriteTooMany(w http.ResponseWriter, _ *http.Request, wait time.Duration) {
	WriteError(w, http.StatusTooManyRequests, bridge.CodeRateLimited,
		"too many requests from this address; try again in "+wholeSeconds(wait)+" seconds")
}

// WriteFailure writes the response for an error from an operation or from the checks before it.
func WriteFailure(ctx context.Context, w http.ResponseWriter, err error) {
	f := failureOf(ctx, err)
	for _, field := range f.header {
		w.Header().Set(field[0], field[1])
	}
	WriteError(w, f.status, f.code, f.message)
}

type failure struct {
	status  int
	code    bridge.Code
	message string
	// header has additional response headers, by name and value.
	header [][2]string
}

// archiveAway returns the response for an unreadable archive.
func archiveAway(ctx context.Context, err error, known *bridge.Error) failure {
	request.From(ctx).Err = err
	return failure{
		status: http.StatusServiceUnavailable, code: known.Code, message: known.Message, header: [][2]string{{"Retry-After", checkAgainAfter}},
	}
}

// failureOf returns the response for an error. Internal details are only logged.
func failureOf(ctx context.Context, err error) failure {
	var (
		known    *bridge.Error
		internal internalError
		tooLarge *http.MaxBytesError
	)
	switch {
	case errors.As(err, &internal):
	case errors.Is(err, bridge.ErrArchiveAway) && errors.As(err, &known):
		return archiveAway(ctx, err, known)
	case errors.As(err, &known):
		f := failure{status: StatusOf(known.Code), code: known.Code, message: known.Message}
		if known.Code == bridge.CodeReadinessUnavailable {
			f.header = [][2]string{{"Retry-After", checkAgainAfter}}
		}
		return f
	case errors.As(err, &tooLarge):
		return failure{
			status: http.StatusRequestEntityTooLarge, code: bridge.CodeValidation,
			message: fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit),
		}
	case errors.Is(err, errNotJSON):
		return failure{
			status: http.StatusUnsupportedMediaType, code: bridge.CodeValidation,
			message: `the body must be JSON; send "Content-Type: application/json"`,
		}
	case errors.Is(err, errEncoded):
		return failure{
			status: http.StatusUnsupportedMediaType, code: bridge.CodeValidation,
			message: "the body must not be compressed; send it without Content-Encoding",
			header:  [][2]string{{"Accept-Encoding", "identity"}},
		}
	case errors.Is(err, limits.ErrBodiesFull):
		return failure{
			status: http.StatusTooManyRequests, code: bridge.CodeRateLimited,
			message: "too many large bodies are being read at this moment; send the request again in a second",
			header:  [][2]string{{"Retry-After", limits.BodyRetryAfter}},
		}
	case errors.Is(err, limits.ErrBodyUnread):
		return failure{
			status: http.StatusBadRequest, code: bridge.CodeValidation, message: "the body did not arrive in full; send it again",
		}
	}
	return internalFailure(ctx, err)
}

// internalFailure returns the response for an error that the client can do nothing about, and logs it.
func internalFailure(ctx context.Context, err error) failure {
	info := request.From(ctx)
	info.Err = err
	f := failure{status: http.StatusInternalServerError, code: bridge.CodeInternal}
	if errors.Is(err, bridge.ErrBehind) {
		f.status, f.header = http.StatusServiceUnavailable, [][2]string{{"Retry-After", checkAgainAfter}}
		f.message = fmt.Sprintf("this server has had no response from the Kubernetes API for some minutes and cannot verify API keys; "+
			"try again in %s seconds (request id %s)", checkAgainAfter, info.ID)
		return f
	}
	switch {
	case errors.Is(err, bridge.ErrUncertain):
		f.message = fmt.Sprintf(
			"it is not known whether the post was created; look for it in the list of posts before you send it again (request id %s)", info.ID)
	case errors.Is(err, bridge.ErrMaybeChanged):
		f.message = fmt.Sprintf("it is not known whether the change was stored; read the post before you send it again (request id %s)", info.ID)
	default:
		f.message = fmt.Sprintf("something went wrong on this side; quote request id %s to the administrators", info.ID)
	}
	return f
}
