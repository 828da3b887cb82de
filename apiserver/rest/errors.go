// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/go-faster/jx"
	"github.com/ogen-go/ogen/ogenerrors"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest/oas"
)

// What is said when there is no API key to look at.
const noKey = `missing or invalid Authorization header; send "Authorization: Bearer <API key>"`

// status is the HTTP status of a code.
func status(code bridge.Code) int {
	switch code {
	case bridge.CodeValidation, bridge.CodeTikTokPrivacy:
		return http.StatusBadRequest
	case bridge.CodeUnauthorized:
		return http.StatusUnauthorized
	case bridge.CodeSubscriptionRequired:
		return http.StatusForbidden
	case bridge.CodeNotFound:
		return http.StatusNotFound
	case bridge.CodeConflict, bridge.CodeReconnectRequired, bridge.CodeReadinessUnavailable:
		return http.StatusConflict
	case bridge.CodeRateLimited:
		return http.StatusTooManyRequests
	case bridge.CodeInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusInternalServerError
	}
}

// WriteError answers with the envelope that every error has.
func WriteError(w http.ResponseWriter, httpStatus int, code bridge.Code, message string) {
	if httpStatus == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(httpStatus)
	body := oas.Error{Error: oas.ErrorBody{Code: string(code), Message: message}}
	e := &jx.Encoder{}
	body.Encode(e)
	_, _ = e.WriteTo(w) // the client may have gone
}

// WriteInternal answers 500 without telling why; the cause goes to the log.
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

// notFound and methodNotAllowed tell nothing to strangers: 401 comes first.
func (d *door) notFound(w http.ResponseWriter, r *http.Request) {
	if d.known(w, r) {
		WriteNotFound(w, r)
	}
}

func (d *door) methodNotAllowed(w http.ResponseWriter, r *http.Request, allowed string) {
	if d.known(w, r) {
		WriteMethodNotAllowed(w, r, strings.ReplaceAll(allowed, ",", ", "))
	}
}

// known reports whether the request carries a good API key, and answers if not.
func (d *door) known(w http.ResponseWriter, r *http.Request) bool {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		WriteError(w, http.StatusUnauthorized, bridge.CodeUnauthorized, noKey)
		return false
	}
	if _, err := d.admit(r.Context(), token); err != nil {
		d.handleError(r.Context(), w, r, err)
		return false
	}
	return true
}

// handleError answers to every error of the generated server and of the
// operations.
func (d *door) handleError(ctx context.Context, w http.ResponseWriter, r *http.Request, err error) {
	var (
		known     *bridge.Error
		uncertain *bridge.UncertainError
		tooLarge  *http.MaxBytesError
		security  *ogenerrors.SecurityError
		params    *ogenerrors.DecodeParamsError
		body      *ogenerrors.DecodeRequestError
	)
	switch {
	case errors.As(err, &known):
		WriteError(w, status(known.Code), known.Code, known.Message)
	case errors.As(err, &tooLarge):
		WriteError(w, http.StatusRequestEntityTooLarge, bridge.CodeValidation,
			fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit))
	case errors.As(err, &security) && errors.Is(err, ogenerrors.ErrSecurityRequirementIsNotSatisfied):
		request.From(ctx).Operation = security.OperationID()
		WriteError(w, http.StatusUnauthorized, bridge.CodeUnauthorized, noKey)
	case errors.As(err, &params):
		d.badParams(w, r, err)
	case errors.As(err, &body) && !isJSON(r):
		WriteError(w, http.StatusUnsupportedMediaType, bridge.CodeValidation,
			`the body must be JSON; send "Content-Type: application/json"`)
	case errors.As(err, &body):
		raw, _ := io.ReadAll(r.Body) // the decoder put back what it had read, in memory
		WriteError(w, http.StatusBadRequest, bridge.CodeValidation, d.schemas.wordBody(body.OperationID(), raw))
	case errors.As(err, &uncertain):
		info := request.From(ctx)
		info.Err = err
		WriteError(w, http.StatusInternalServerError, bridge.CodeInternal, fmt.Sprintf(
			"it is not known whether the post was created; look for it in the list of posts before you send it again (request id %s)", info.ID))
	default:
		WriteInternal(ctx, w, err)
	}
}

// badParams words a parameter that could not be read. A path parameter that is
// no id names no post.
func (d *door) badParams(w http.ResponseWriter, r *http.Request, err error) {
	var param *ogenerrors.DecodeParamError
	switch {
	case errors.As(err, &param) && param.In == "path":
		WriteNotFound(w, r)
	case errors.As(err, &param) && len(r.URL.Query()[param.Name]) > 1:
		WriteError(w, http.StatusBadRequest, bridge.CodeValidation, twice(param.Name))
	case errors.As(err, &param):
		WriteError(w, http.StatusBadRequest, bridge.CodeValidation, wordParam(param.Name))
	default:
		WriteError(w, http.StatusBadRequest, bridge.CodeValidation, "the query cannot be read")
	}
}

func isJSON(r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && mediaType == "application/json"
}
