// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest serves the operations of apiserver/bridge over HTTP, as described in apiserver/openapi: routes, the
// order of the checks, and status codes. apiserver/wire encodes and decodes the bodies.
package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// KeyHeader is the Idempotency-Key header, which makes a request idempotent.
const KeyHeader = "Idempotency-Key"

const (
	// maxBody limits a request's body, in bytes.
	maxBody = 1 << 20
	// maxKey limits the length of an Idempotency-Key, in characters.
	maxKey = 255
	// responseTimeout is the timeout of an operation, which waits for connection checks, at most five seconds each, and
	// for the Kubernetes API. It is shorter than the server's own timeout, which would close the connection without a
	// response.
	responseTimeout = 20 * time.Second
	// maxPooledBody limits the buffers that return to the pool, in bytes: about four pages of a hundred posts. One long
	// response must not occupy memory for the rest of the process's life.
	maxPooledBody = 128 << 10
)

// Limits are the rate limits for callers. A nil field means no limit.
type Limits struct {
	// Teams limits each team's requests, by its namespace, including the requests of all its keys, agents and users.
	Teams *limits.RateLimiter
	// Anonymous limits unauthenticated requests, by address.
	Anonymous *limits.AnonymousGuard
	// Bodies limits the memory of request bodies.
	Bodies *limits.BodyLimiter
}

// Handler serves all paths below the prefix of one version.
type Handler struct {
	version *version
	service *bridge.Service
	limits  Limits
	// answers is a pool of *answer.
	answers *sync.Pool
}

// answer is an operation's output. It is reused because the slowest 1 % of list requests (B4 in docs/performance.md)
// coincide with a garbage collection, and for a list of 100 posts, this is four fifths of the memory allocated.
type answer struct {
	body []byte
	page []postindex.Summary
	// etag is the value of the ETag header; empty for none.
	etag string
	// created describes a created object; it is zero for other operations.
	created created
}

type created struct {
	// location is the path of the new post, schedule or notifier; empty for other objects.
	location string
	// replayed is true if an earlier request with the same Idempotency-Key created the object.
	replayed bool
	// waits is true if the post was saved as a draft, pending review by a user.
	waits bool
}

// NewHandler returns a Handler of version 1.
func NewHandler(service *bridge.Service, limits Limits) *Handler {
	return &Handler{version: &v1, service: service, limits: limits, answers: &sync.Pool{New: func() any { return &answer{} }}}
}

// V2 returns the handler of version 2, with the same limits.
func (h *Handler) V2() *Handler {
	return &Handler{version: &v2, service: h.service, limits: h.limits, answers: h.answers}
}

type call struct {
	caller bridge.Caller
	// id is the id of the post, or the name of the schedule or notifier, in the path. version is the version in If-Match.
	id, version string
	// query is set for an operation that has a query.
	query url.Values
	// body is set for an operation with a body, and key, the Idempotency-Key, for one that creates something.
	body strictjson.Value
	key  string
	// wrong lists the problems found before the body is parsed; moreWrong is the number of others.
	wrong     []string
	moreWrong int
	// ignored are the names of fields and parameters that had no effect.
	ignored []string
}

// ServeHTTP serves a request. The 401 comes first, so unauthenticated clients do not learn anything, then 429, 404 or
// 405, 403, 400, and the operation's errors.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	found, id, allowed := h.version.route(r)
	if found != nil {
		request.From(ctx).Operation = h.version.label + found.id
	}
	caller, err := h.authenticate(r)
	switch {
	case err != nil:
		WriteFailure(ctx, w, err)
	case found == nil && len(allowed) > 0:
		WriteMethodNotAllowed(w, r, strings.Join(allowed, ", "))
	case found == nil:
		WriteNotFound(w, r)
	default:
		h.serve(w, r, found, &call{caller: caller, id: id})
	}
}

// authenticate returns the caller, or an error if the key is invalid or the team exceeds its rate limit.
func (h *Handler) authenticate(r *http.Request) (bridge.Caller, error) {
	token, ok := BearerToken(r)
	if !ok {
		return bridge.Caller{}, h.RejectUnauthenticated(r, &bridge.Error{
			Code: bridge.CodeUnauthorized, Message: `missing or invalid Authorization header; send "Authorization: Bearer <API key>"`,
		})
	}
	caller, err := h.service.Authenticate(token)
	if err != nil {
		return bridge.Caller{}, h.RejectUnauthenticated(r, err)
	}
	return caller, h.LimitTeam(r.Context(), caller)
}

// RejectUnauthenticated counts a request with an invalid token and returns the error for it: err, or a 429 above the
// limit of its address. Valid tokens are not limited by address, so that clients that share an address with an attacker
// are not locked out.
func (h *Handler) RejectUnauthenticated(r *http.Request, err error) error {
	if known, ok := errors.AsType[*bridge.Error](err); !ok || known.Code != bridge.CodeUnauthorized {
		return err
	}
	allowed, wait := h.limits.Anonymous.Allow(r, limits.SurfacePrograms)
	if allowed {
		return err
	}
	return &bridge.Error{
		Code: bridge.CodeRateLimited,
		Message: "too many requests from this address without a valid API key; send \"Authorization: Bearer <API key>\", or try again in " +
			wholeSeconds(wait) + " seconds",
	}
}

// Guard returns the limiter of unauthenticated requests.
func (h *Handler) Guard() *limits.AnonymousGuard { return h.limits.Anonymous }

// wholeSeconds rounds up to whole seconds, at least one.
func wholeSeconds(d time.Duration) string { return strconv.Itoa(max(int(math.Ceil(d.Seconds())), 1)) }

// BearerToken returns the request's bearer token, and false if there is none (RFC 6750, section 2.1).
func BearerToken(r *http.Request) (token string, ok bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}

// LimitTeam records the caller for the log, and rejects a caller whose team exceeds its rate limit. Every protocol with
// tokens counts its callers here.
func (h *Handler) LimitTeam(ctx context.Context, caller bridge.Caller) error {
	info := request.From(ctx)
	info.Namespace, info.Key = caller.Namespace, caller.Key
	info.MarkAuthenticated()
	allowed, wait := h.limits.Teams.Allow(caller.Namespace, info.Header)
	if allowed {
		return nil
	}
	return &bridge.Error{
		Code:    bridge.CodeRateLimited,
		Message: "this team makes too many requests, all its API keys and agents together; try again in " + wholeSeconds(wait) + " seconds",
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, of *operation, c *call) {
	ctx := r.Context()
	var err error
	c.ignoredInQuery(r, of)
	switch {
	case of.creates, of.acts, of.edits:
		if err = h.service.RequireSubscription(c.caller); err == nil && of.edits {
			err = c.parseIfMatch(r, of)
		}
		if err == nil {
			var leave func()
			leave, err = h.readBody(w, r, of, c)
			defer leave()
		}
	case of.lists:
		c.query, err = readQuery(r)
	case of.keyed():
		c.parseKey(r.Header.Values(KeyHeader))
		err = c.refused()
	}
	if err != nil {
		c.setIgnoredHeader(w)
		WriteFailure(ctx, w, err)
		return
	}
	out, done, err := h.perform(ctx, of, c)
	defer done()
	c.setIgnoredHeader(w)
	if err != nil {
		WriteFailure(ctx, w, err)
		return
	}
	if out.etag != "" {
		w.Header().Set("ETag", out.etag)
	}
	if out.created.location != "" {
		w.Header().Set("Location", out.created.location)
	}
	if out.created.replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	writeJSON(w, of.status, out.body)
}

// perform runs an operation. out is valid until done is called.
func (h *Handler) perform(ctx context.Context, of *operation, c *call) (out *answer, done func(), err error) {
	var spent *limits.Meter
	if !of.lists || of.scans { // lists read from memory
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, responseTimeout)
		defer cancel()
		ctx, spent = limits.WithMeter(ctx)
	}
	c.caller.Version1 = !h.version.laterPlatforms
	out = h.answers.Get().(*answer) //nolint:forcetypeassert // the pool has only *answer values
	out.body, out.etag, out.created = out.body[:0], "", created{}
	err = of.serve(h, ctx, c, out)
	h.limits.Teams.Charge(c.caller.Namespace, spent.Requests(), request.From(ctx).Header)
	if err != nil {
		return nil, func() {}, err
	}
	return out, func() {
		if cap(out.body) <= maxPooledBody {
			h.answers.Put(out)
		}
	}, nil
}

// readBody reads the body and the Idempotency-Key. The body is valid until done is called.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request, of *operation, c *call) (done func(), err error) {
	if of.keyed() {
		c.parseKey(r.Header.Values(KeyHeader))
	}
	body, done, err := h.ReadBody(w, r, c.caller, maxBody)
	if err != nil {
		return done, err
	}
	return done, c.parse(body)
}

func (c *call) parse(body []byte) (err error) {
	if c.body, err = strictjson.Parse(body); err != nil {
		c.wrong = append(c.wrong, err.Error())
		return c.refused()
	}
	return nil
}

// parsed records the fields of the body that the operation did not read, and returns the error from parsing the body
// or, failing that, the request's other parts.
func (c *call) parsed(err error) error {
	c.ignoredInBody()
	if err != nil {
		return err
	}
	return c.refused()
}

func (c *call) refused() error {
	if len(c.wrong) == 0 {
		return nil
	}
	return invalid("%s", bridge.JoinFirst(c.wrong, c.moreWrong))
}

// parseKey stores a request's Idempotency-Key, if it has one. It rejects several keys, because a retry might send only
// one of them and would then count as a different request.
func (c *call) parseKey(keys []string) {
	switch len(keys) {
	case 0:
	case 1:
		if length := utf8.RuneCountInString(keys[0]); length < 1 || length > maxKey {
			c.wrong = append(c.wrong, fmt.Sprintf("%s: must have 1 to %d characters", KeyHeader, maxKey))
		}
		c.key = keys[0]
	default:
		c.wrong = append(c.wrong, fmt.Sprintf("%s: appears %d times in the request; send it once", KeyHeader, len(keys)))
	}
}

// isJSON reports whether every Content-Type header is JSON, because proxies may evaluate any of them. A patch may also
// have the type of RFC 7396.
func isJSON(r *http.Request) bool {
	lines := r.Header.Values("Content-Type")
	for _, line := range lines {
		mediaType, _, err := mime.ParseMediaType(line)
		merges := r.Method == http.MethodPatch && mediaType == "application/merge-patch+json"
		if err != nil || mediaType != "application/json" && !merges {
			return false
		}
	}
	return len(lines) > 0
}

// byteOrderMark is U+FEFF in UTF-8. A JSON parser may ignore it at the start of a text (RFC 8259, section 8.1);
// programs for Windows write it.
const byteOrderMark = "\xef\xbb\xbf"

// ReadBody reads the body of a caller's request, which must be JSON of up to most bytes, without a byte order mark. The
// body's memory is reserved until done, which is never nil, is called. Its errors are for WriteFailure. ReadBody always
// charges the bytes, because the most expensive bodies are rejected before an operation runs.
func (h *Handler) ReadBody(w http.ResponseWriter, r *http.Request, caller bridge.Caller, most int64) (body []byte, done func(), err error) {
	if !isJSON(r) {
		return nil, func() {}, errNotJSON
	}
	// RFC 9110, section 15.5.16. A compressed body has no size to limit.
	for _, encoding := range r.Header.Values("Content-Encoding") {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return nil, func() {}, errEncoded
		}
	}
	body, done, err = h.limits.Bodies.Read(w, r, caller.Namespace, most)
	h.limits.Teams.Charge(caller.Namespace, limits.CostOfBytes(len(body)), request.From(r.Context()).Header)
	return bytes.TrimPrefix(body, []byte(byteOrderMark)), done, err
}
