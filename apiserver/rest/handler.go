// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest serves the operations of apiserver/bridge over HTTP, as
// apiserver/openapi describes them: routes, the order of the checks, status
// codes. Bodies are read and written by apiserver/wire.
package rest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/ratelimit"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// Prefix is the path below which the API lies.
const Prefix = "/api/v1"

const (
	// maxBody is the greatest size of a request's body in bytes.
	maxBody = 1 << 20
	// maxKey is the greatest length of an Idempotency-Key in characters.
	maxKey = 255
	// answerWithin bounds how long an operation may wait for others: for the
	// check of a connection, at most five seconds, and for the Kubernetes API,
	// should it not answer at all. It is shorter than the server's own timeout,
	// which would cut the client off without a word.
	answerWithin = 20 * time.Second
	// maxKept is how large a body may be whose memory is used again, in bytes: about four
	// pages of a hundred posts. One long answer must not be paid for as long as the
	// process lives.
	maxKept = 128 << 10
)

// Handler serves everything below Prefix.
type Handler struct {
	service *bridge.Service
	limiter *ratelimit.Limiter
	// answers holds *answer for use again.
	answers sync.Pool
}

// answer is what an operation writes. It is used again for later requests: the
// slowest hundredth of lists (B4 in docs/performance.md) is what meets a garbage
// collection, and of a list of 100 posts this is four fifths of all garbage.
type answer struct {
	body []byte
	page []postindex.Summary
}

// NewHandler returns a Handler. A nil limiter limits no caller.
func NewHandler(service *bridge.Service, limiter *ratelimit.Limiter) *Handler {
	return &Handler{service: service, limiter: limiter, answers: sync.Pool{New: func() any { return &answer{} }}}
}

// call is one request of an operation, authenticated.
type call struct {
	caller bridge.Caller
	// id is that of the post in the path.
	id string
	// query is that of an operation that has one.
	query url.Values
	// body and key, the Idempotency-Key, are those of an operation that creates.
	body strictjson.Value
	key  string
}

// operation is one of the description's.
type operation struct {
	id     string
	method string
	// path is below Prefix; {id} stands for the id of a post.
	path string
	// status is that of the answer if all went well.
	status int
	// creates says that it takes a body and needs a subscription; lists, that it
	// takes a query and answers from memory.
	creates, lists bool
	// serve sets the body of out, which holds what an earlier answer left there.
	serve func(h *Handler, ctx context.Context, c *call, out *answer) error
}

// operations are all that there are, in the order in which Allow names methods.
var operations = []operation{
	{id: "listConnections", method: http.MethodGet, path: "/connections", status: http.StatusOK, lists: true, serve: (*Handler).listConnections},
	{id: "createMediaUploadUrl", method: http.MethodPost, path: "/media/upload-url", status: http.StatusCreated, creates: true, serve: (*Handler).createMediaUpload},
	{id: "listPosts", method: http.MethodGet, path: "/posts", status: http.StatusOK, lists: true, serve: (*Handler).listPosts},
	{id: "createPost", method: http.MethodPost, path: "/posts", status: http.StatusCreated, creates: true, serve: (*Handler).createPost},
	{id: "cancelPost", method: http.MethodDelete, path: "/posts/{id}", status: http.StatusOK, serve: (*Handler).cancelPost},
	{id: "getPost", method: http.MethodGet, path: "/posts/{id}", status: http.StatusOK, serve: (*Handler).getPost},
}

// route finds the operation of a request and the id in its path. Without one it
// is nil, and allowed are the methods that the path has. http.ServeMux would
// redirect unclean paths and answer in plain text.
func route(r *http.Request) (found *operation, id string, allowed []string) {
	path := strings.TrimPrefix(r.URL.Path, Prefix)
	// A slash that is escaped belongs to the id.
	if escaped, ok := strings.CutPrefix(r.URL.EscapedPath(), Prefix+"/posts/"); ok && escaped != "" && !strings.Contains(escaped, "/") {
		unescaped, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, "", nil
		}
		path, id = "/posts/{id}", unescaped
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http leaves the body out
	}
	for i := range operations {
		o := &operations[i]
		if o.path != path {
			continue
		}
		if o.method == method {
			return o, id, nil
		}
		if allowed = append(allowed, o.method); o.method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	return nil, "", allowed
}

// ServeHTTP answers a request. 401 comes first, so that strangers
// learn nothing, then 429, 404 or 405, 403, 400, and what the operation refuses.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	found, id, allowed := route(r)
	if found != nil {
		request.From(ctx).Operation = found.id
	}
	caller, err := h.authenticate(r)
	switch {
	case err != nil:
		writeFailure(ctx, w, err)
	case found == nil && len(allowed) > 0:
		WriteMethodNotAllowed(w, r, strings.Join(allowed, ", "))
	case found == nil:
		WriteNotFound(w, r)
	default:
		h.serve(w, r, found, &call{caller: caller, id: id})
	}
}

// authenticate returns who calls, unless the key is not good or was used too
// often.
func (h *Handler) authenticate(r *http.Request) (bridge.Caller, error) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return bridge.Caller{}, &bridge.Error{
			Code: bridge.CodeUnauthorized, Message: `missing or invalid Authorization header; send "Authorization: Bearer <API key>"`,
		}
	}
	caller, err := h.service.Authenticate(strings.TrimSpace(token))
	if err != nil {
		return bridge.Caller{}, err
	}
	info := request.From(r.Context())
	info.Namespace, info.Key = caller.Namespace, caller.Key
	if allowed, wait := h.limiter.Take(caller.Namespace+"/"+caller.Key, info.Header); !allowed {
		return bridge.Caller{}, &bridge.Error{
			Code:    bridge.CodeRateLimited,
			Message: fmt.Sprintf("too many requests with this API key; try again in %.0f seconds", max(math.Ceil(wait.Seconds()), 1)),
		}
	}
	return caller, nil
}

// serve reads what an operation takes, calls it and writes its answer.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, of *operation, c *call) {
	ctx := r.Context()
	var err error
	switch {
	case of.creates:
		if err = h.service.RequireSubscription(c.caller); err == nil {
			err = c.readBody(w, r)
		}
	case of.lists:
		c.query, err = readQuery(r)
	}
	if err != nil {
		writeFailure(ctx, w, err)
		return
	}
	if !of.lists {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, answerWithin)
		defer cancel()
	}
	out := h.answers.Get().(*answer) //nolint:forcetypeassert // the pool holds nothing else
	out.body = out.body[:0]
	if err := of.serve(h, ctx, c, out); err != nil {
		writeFailure(ctx, w, err)
		return
	}
	writeJSON(w, of.status, out.body)
	if cap(out.body) <= maxKept {
		h.answers.Put(out)
	}
}

// readBody reads the body and the Idempotency-Key.
func (c *call) readBody(w http.ResponseWriter, r *http.Request) error {
	if keys := r.Header.Values("Idempotency-Key"); len(keys) > 0 {
		c.key = keys[0]
		if length := utf8.RuneCountInString(c.key); length < 1 || length > maxKey {
			return invalid("Idempotency-Key: must have 1 to %d characters", maxKey)
		}
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return errNotJSON
	}
	// RFC 9110, section 15.5.16. What is compressed has no size to bound.
	for _, encoding := range r.Header.Values("Content-Encoding") {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return errEncoded
		}
	}
	var body bytes.Buffer
	// Read into one piece of the announced size: growing by doubling would allocate
	// several times the body.
	body.Grow(int(min(max(r.ContentLength, 0), maxBody)) + bytes.MinRead)
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	var err error
	if c.body, err = strictjson.Parse(body.Bytes()); err != nil {
		return invalid("%s", err)
	}
	return nil
}
