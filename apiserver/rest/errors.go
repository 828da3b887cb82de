// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/herald-social/herald/apiserver/bodylimit"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/httpcode"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/wire"
)

var (
	// errNotJSON and errEncoded say why a body is not read.
	errNotJSON = errors.New("the body is not application/json")
	errEncoded = errors.New("the body is encoded")
)

func invalid(format string, args ...any) *bridge.Error {
	return &bridge.Error{Code: bridge.CodeValidation, Message: fmt.Sprintf(format, args...)}
}

// checkAgainAfter is after how many seconds a platform that could not tell whether an
// account is good may be asked again, and a server that cannot tell whether a key is.
const checkAgainAfter = "30"

// WriteError answers with the envelope that every error has. A 401 asks for a token, unless
// the header says so already.
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
	_, _ = w.Write(body) //nolint:gosec // G705: it is JSON and says so, with nosniff; the client may have gone
}

// WriteInternal answers 500 without the cause, which goes to the log.
func WriteInternal(ctx context.Context, w http.ResponseWriter, cause error) {
	WriteFailure(ctx, w, internalError{cause})
}

// internalError is an error of which the client learns nothing but that it was one.
type internalError struct{ error }

// WriteNotFound answers to a path that there is not.
func WriteNotFound(w http.ResponseWriter, r *http.Request) {
	WriteError(w, http.StatusNotFound, bridge.CodeNotFound, "there is nothing at "+request.Short(r.URL.Path))
}

// WriteMethodNotAllowed answers to a method that a path does not have.
func WriteMethodNotAllowed(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	WriteError(w, http.StatusMethodNotAllowed, bridge.CodeValidation,
		fmt.Sprintf("%s does not take %s; it takes %s", request.Short(r.URL.Path), request.Method(r), allowed))
}

// WriteTooMany answers to a stranger from whose address too much was asked.
func WriteTooMany(w http.ResponseWriter, _ *http.Request, wait time.Duration) {
	WriteError(w, http.StatusTooManyRequests, bridge.CodeRateLimited,
		"too many requests from this address; try again in "+wholeSeconds(wait)+" seconds")
}

// WriteFailure answers for every error of an operation and of what comes before
// it.
func WriteFailure(ctx context.Context, w http.ResponseWriter, err error) {
	f := failureOf(ctx, err)
	for _, field := range f.header {
		w.Header().Set(field[0], field[1])
	}
	WriteError(w, f.status, f.code, f.message)
}

// failure is how an error is answered.
type failure struct {
	status  int
	code    bridge.Code
	message string
	// header are fields, by name and value, that the answer has besides.
	header [][2]string
}

// archiveAway is how it is answered that the archive cannot be read.
func archiveAway(ctx context.Context, err error, known *bridge.Error) failure {
	request.From(ctx).Err = err
	return failure{
		status: http.StatusServiceUnavailable, code: known.Code, message: known.Message, header: [][2]string{{"Retry-After", checkAgainAfter}},
	}
}

// failureOf words an error for the client. What is of no use to clients goes to the log.
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
		f := failure{status: httpcode.Of(known.Code), code: known.Code, message: known.Message}
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
	case errors.Is(err, bodylimit.ErrFull):
		return failure{
			status: http.StatusTooManyRequests, code: bridge.CodeRateLimited,
			message: "too many large bodies are being read at this moment; send the request again in a second",
			header:  [][2]string{{"Retry-After", bodylimit.RetryAfter}},
		}
	case errors.Is(err, bodylimit.ErrUnread):
		return failure{
			status: http.StatusBadRequest, code: bridge.CodeValidation, message: "the body did not arrive in full; send it again",
		}
	}
	info := request.From(ctx)
	info.Err = err
	f := failure{status: http.StatusInternalServerError, code: bridge.CodeInternal}
	if errors.Is(err, bridge.ErrBehind) {
		f.status, f.header = http.StatusServiceUnavailable, [][2]string{{"Retry-After", checkAgainAfter}}
		f.message = fmt.Sprintf("this server has not heard of the Kubernetes API for some minutes and cannot tell which keys are good; "+
			"try again in %s seconds (request id %s)", checkAgainAfter, info.ID)
		return f
	}
	if errors.Is(err, bridge.ErrUncertain) {
		f.message = fmt.Sprintf(
			"it is not known whether the post was created; look for it in the list of posts before you send it again (request id %s)", info.ID)
	} else {
		f.message = fmt.Sprintf("something went wrong on this side; quote request id %s to the administrators", info.ID)
	}
	return f
}
