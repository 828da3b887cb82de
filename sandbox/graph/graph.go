// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// Options are what a simulator of a Graph API needs.
type Options struct {
	Store *state.Store
	// Blobs keeps the bytes that arrive.
	Blobs  *blobs.Store
	Gate   *faults.Gate
	Clock  clock.PassiveClock
	Logger *slog.Logger
	// SiteURL returns the sandbox's own address as the client of that request reaches it, without a slash at the end.
	SiteURL func(*http.Request) string
}

// API is one Graph API. It speaks faults' Dialect.
type API struct {
	Options
	// Platform is the platform's name in the control API and the first segment of its paths.
	Platform string
	// Versions are the versions that paths may name, such as v1.0.
	Versions []string
	// ParamType is the type of errors about parameters.
	ParamType string
	// PermissionCode is the code of the error that a scope is missing.
	PermissionCode int
	// Limit is how the API says that there were too many requests.
	Limit Limit
}

// Limit is one of Graph's forms of "too many requests".
type Limit struct {
	Status, Code int
	Message      string
	// Usage is the type within X-Business-Use-Case-Usage.
	Usage string
}

// Call is a request to a Graph API with its parameters.
type Call struct {
	*faults.Request
	Params *Params
	api    *API
}

// Handler is an operation of a Graph API: it returns the body of the answer, or an error.
type Handler func(*Call) (any, *Error)

// Route serves an operation through the gate.
func (a *API) Route(op faults.Operation, handle Handler) http.Handler {
	return a.Gate.Handler(faults.Route{
		Platform: a.Platform, Operation: op, Dialect: a, Account: a.account,
		Act: func(w http.ResponseWriter, r *faults.Request) { a.serve(w, r, handle) },
	})
}

func (a *API) serve(w http.ResponseWriter, r *faults.Request, handle Handler) {
	if version := r.PathValue("version"); version != "" && !slices.Contains(a.Versions, version) {
		a.Refuse(w, r.Request)
		return
	}
	params, bad := readParams(r)
	if bad != nil {
		a.fail(w, a.typed(*bad))
		return
	}
	body, bad := handle(&Call{Request: r, Params: params, api: a})
	if bad != nil {
		a.fail(w, a.typed(*bad))
		return
	}
	w.Header().Set("X-App-Usage", usage(1))
	writeJSON(w, http.StatusOK, body)
}

// typed gives an error about a parameter the API's own type.
func (a *API) typed(with Error) Error {
	if with.Type == "" {
		with.Type = a.ParamType
	}
	return with
}

// Refuse answers a path that the API does not have.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request) { a.fail(w, unknownPath(r.URL.Path)) }

// fail answers an error.
func (a *API) fail(w http.ResponseWriter, with Error) {
	if w.Header().Get("X-App-Usage") == "" {
		w.Header().Set("X-App-Usage", usage(1))
	}
	with.TraceID = traceID()
	writeJSON(w, with.Status, map[string]Error{"error": with})
}

// Broken logs that an operation failed for a reason of the sandbox's own, and returns the error to answer.
func (c *Call) Broken(operation string, err error) *Error {
	c.api.Logger.Error("an operation failed", "platform", c.api.Platform, "operation", operation, "error", err)
	broken := failure(http.StatusInternalServerError)
	return &broken
}

// writeJSON answers a JSON body. It does not escape <, > and &: JSON needs no such thing.
func writeJSON(w http.ResponseWriter, status int, body any) {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		http.Error(w, "the answer could not be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Cache-Control", "private, no-cache, no-store, must-revalidate")
	w.WriteHeader(status)
	_, _ = w.Write(content.Bytes()) // the client may be gone; what was done stays done
}
