// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// NewestVersion is the newest Graph API version of Facebook and Instagram: v26.0, from 2026.
const NewestVersion = 26

// API is a Graph API. It implements faults.Dialect.
type API struct {
	simulator.Options
	simulator.Profile
	// Newest is the newest supported version, such as 26 for v26.0. Older versions are also served: a version lives for two years or more,
	// and SDKs use the one they were built for.
	Newest int
	// ParamType is the type of parameter errors.
	ParamType string
	// PermissionCode is the error code for a missing scope.
	PermissionCode int
	// Speaks, if set, reports whether a token belongs to this API and not to another of the platform's hosts.
	Speaks func(state.Bearer) bool
	// CursorsOnly omits the next page's address from lists, leaving only cursors.
	CursorsOnly bool
	// Limit is the API's rate limit error, and Block its error for a temporarily blocked account.
	Limit Limit
	Block Error
}

// Limit is the form of a Graph API's rate limit error.
type Limit struct {
	Status, Code int
	Message      string
	// Usage is the type in X-Business-Use-Case-Usage.
	Usage string
}

// Call is a Graph API request with its parameters.
type Call struct {
	*faults.Request
	Params *Params
	api    *API
}

// Handler is a Graph API operation. It returns the response body or an error.
type Handler func(*Call) (any, *Error)

// Route serves an operation through the gate.
func (a *API) Route(op faults.Operation, handle Handler) http.Handler {
	return a.Gate.Handler(faults.Route{
		Platform: a.Platform, Operation: op, Dialect: a, Account: a.account,
		Act: func(w http.ResponseWriter, r *faults.Request) { a.serve(w, r, handle) },
	})
}

func (a *API) serve(w http.ResponseWriter, r *faults.Request, handle Handler) {
	if version := r.PathValue("version"); version != "" && !a.Serves(version) {
		a.Refuse(w, r.Request)
		return
	}
	params, bad := a.readParams(r)
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

var versionPattern = regexp.MustCompile(`^v([1-9][0-9]?)\.[0-9]{1,2}$`)

// Serves reports whether the API has a version.
func (a *API) Serves(version string) bool {
	found := versionPattern.FindStringSubmatch(version)
	if found == nil {
		return false
	}
	n, _ := strconv.Atoi(found[1]) // two digits always fit
	return n <= a.Newest
}

// typed sets the API's own type on a parameter error.
func (a *API) typed(with Error) Error {
	if with.Type == "" {
		with.Type = a.ParamType
	}
	return with
}

// Refuse responds to a path unknown to the API.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request) { a.fail(w, unknownPath(r.URL.Path)) }

// fail responds with an error.
func (a *API) fail(w http.ResponseWriter, with Error) {
	if w.Header().Get("X-App-Usage") == "" {
		w.Header().Set("X-App-Usage", usage(1))
	}
	if with.flat {
		writeJSON(w, with.Status, map[string]any{"error_type": with.Type, "code": with.Code, "error_message": with.Message})
		return
	}
	with.TraceID = traceID()
	writeJSON(w, with.Status, map[string]Error{"error": with})
}

// InternalError logs an internal sandbox failure and returns the error for the response.
func (c *Call) InternalError(operation string, err error) *Error {
	c.api.Logger.Error("an operation failed", "platform", c.api.Platform, "operation", operation, "error", err)
	broken := failure(http.StatusInternalServerError)
	return &broken
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Cache-Control", "private, no-cache, no-store, must-revalidate")
	simulator.WriteJSON(w, status, "application/json; charset=UTF-8", body)
}

// Post returns the post in the path if it belongs to the account.
func (c *Call) Post(account state.Account) (state.Post, *Error) {
	post, ok := c.api.Store.Post(c.api.Platform, c.PathValue("id"))
	if !ok || post.AccountID != account.ID {
		return post, NoObject("get", c.PathValue("id"))
	}
	return post, nil
}

// DeletePost deletes the post in the path if it belongs to the account.
func (c *Call) DeletePost(account state.Account) *Error {
	if bad := c.Params.Validate(); bad != nil {
		return bad
	}
	err := c.api.Store.Delete(account.Key, c.PathValue("id"))
	switch {
	case errors.Is(err, state.ErrNoPost):
		return NoObject("delete", c.PathValue("id"))
	case err != nil:
		return c.InternalError("delete a post", err)
	default:
		return nil
	}
}

// ByMethod serves a deletion by POST with the parameter method=delete, as sent by huandu/facebook.
func ByMethod(remove Handler) Handler {
	return func(c *Call) (any, *Error) {
		if !strings.EqualFold(c.Params.Text("method"), http.MethodDelete) {
			return nil, NoObject("post", c.PathValue("id"))
		}
		return remove(c)
	}
}

// OpDelete is a post's deletion. It has no name in faults; only `*` matches it.
const OpDelete faults.Operation = "delete"

// Show returns a node's requested fields.
func (c *Call) Show(node Node) (any, *Error) {
	fields := c.Params.Fields()
	if bad := c.Params.Validate(); bad != nil {
		return nil, bad
	}
	body, bad := node.Select(fields)
	if bad != nil {
		return nil, bad
	}
	return body, nil
}

// ShowListed is like Show, for a list of nodes.
func (c *Call) ShowListed(nodes ...Node) (any, *Error) {
	data := make([]any, len(nodes))
	for i, node := range nodes {
		var bad *Error
		if data[i], bad = c.Show(node); bad != nil {
			return nil, bad
		}
	}
	return map[string]any{"data": data}, nil
}

// ByID serves GET /{version}/{id}, depending on whether the ID is me, an account, a post, or anything else.
func (a *API) ByID(me, account, post, other http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		_, isAccount := a.Store.Account(state.Key{Platform: a.Platform, ID: id})
		_, isPost := a.Store.Post(a.Platform, id)
		switch {
		case id == "me":
			me.ServeHTTP(w, r)
		case isAccount:
			account.ServeHTTP(w, r)
		case isPost:
			post.ServeHTTP(w, r)
		default:
			other.ServeHTTP(w, r)
		}
	}
}
