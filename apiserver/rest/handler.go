// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest serves the operations of apiserver/bridge over HTTP, as
// apiserver/openapi describes them: routes, the order of the checks, status
// codes. Bodies are read and written by apiserver/wire.
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

	"github.com/herald-social/herald/apiserver/anonymous"
	"github.com/herald-social/herald/apiserver/bodylimit"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/cost"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/ratelimit"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// Prefix is the path below which the API lies.
const Prefix = "/api/v1"

// KeyHeader names the key under which a request takes effect once.
const KeyHeader = "Idempotency-Key"

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
	// maxPooledBody is how large a body may be whose memory is used again, in bytes: about four
	// pages of a hundred posts. One long answer must not be paid for as long as the
	// process lives.
	maxPooledBody = 128 << 10
)

// Limits bound what callers cost. Fields that are nil bound nothing.
type Limits struct {
	// Teams counts what the callers of each team ask for, by its namespace: all its keys,
	// agents and people together.
	Teams *ratelimit.Limiter
	// Anonymous counts requests without a good token, by address.
	Anonymous *anonymous.Guard
	// Bodies has room for bodies of requests.
	Bodies *bodylimit.Limiter
}

// Handler serves everything below Prefix.
type Handler struct {
	service *bridge.Service
	limits  Limits
	// answers holds *answer for use again.
	answers sync.Pool
}

// answer is what an operation writes. It is used again for later requests: the
// slowest hundredth of lists (B4 in docs/performance.md) is what meets a garbage
// collection, and of a list of 100 posts this is four fifths of all garbage.
type answer struct {
	body []byte
	page []postindex.Summary
	// created says more of what was created; it is zero for every other operation.
	created created
}

// created is what there is to say of what was created, beside the body.
type created struct {
	// location is its path, for a post.
	location string
	// replayed says that an earlier request under the same Idempotency-Key has made it.
	replayed bool
	// waits says that it is a draft, although it was to be published.
	waits bool
}

// NewHandler returns a Handler.
func NewHandler(service *bridge.Service, limits Limits) *Handler {
	return &Handler{service: service, limits: limits, answers: sync.Pool{New: func() any { return &answer{} }}}
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
	// wrong say what was found wrong with the request before its operation reads the body, with paths, and moreWrong how much
	// else there is.
	wrong     []string
	moreWrong int
	// ignored are the names of what the request says and the operation has no use for.
	ignored []string
}

// operation is one of the description's; Call has its fields by their names in JSON.
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
	// words and numbers are the parameters of its query.
	words, numbers []string
	// serve sets the body of out, which holds what an earlier answer left there.
	serve func(h *Handler, ctx context.Context, c *call, out *answer) error
}

// operations are all that there are, in the order in which Allow names methods.
var operations = []operation{
	{id: "listConnections", method: http.MethodGet, path: "/connections", status: http.StatusOK, lists: true, words: []string{"platform"}, serve: (*Handler).listConnections},
	{id: "createMediaUploadUrl", method: http.MethodPost, path: "/media/upload-url", status: http.StatusCreated, creates: true, serve: (*Handler).createMediaUpload},
	{
		id: "listPosts", method: http.MethodGet, path: "/posts", status: http.StatusOK, lists: true,
		words: []string{"status", "platform"}, numbers: []string{"page", "limit"}, serve: (*Handler).listPosts,
	},
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
		WriteFailure(ctx, w, err)
	case found == nil && len(allowed) > 0:
		WriteMethodNotAllowed(w, r, strings.Join(allowed, ", "))
	case found == nil:
		WriteNotFound(w, r)
	default:
		h.serve(w, r, found, &call{caller: caller, id: id})
	}
}

// authenticate returns who calls, unless the key is not good or the team asks too
// often.
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

// RejectUnauthenticated counts a request whose token is not good, which err says, and returns what it is
// answered: err, or 429 if too many came from its address. A good token is taken from every
// address: who shares one with a stranger is not locked out.
func (h *Handler) RejectUnauthenticated(r *http.Request, err error) error {
	if known, ok := errors.AsType[*bridge.Error](err); !ok || known.Code != bridge.CodeUnauthorized {
		return err
	}
	allowed, wait := h.limits.Anonymous.Allow(r, anonymous.Programs)
	if allowed {
		return err
	}
	return &bridge.Error{
		Code: bridge.CodeRateLimited,
		Message: "too many requests from this address without a good API key; send \"Authorization: Bearer <API key>\", or try again in " +
			wholeSeconds(wait) + " seconds",
	}
}

// Guard counts what strangers ask of this handler.
func (h *Handler) Guard() *anonymous.Guard { return h.limits.Anonymous }

// wholeSeconds rounds up, to one at least.
func wholeSeconds(d time.Duration) string { return strconv.Itoa(max(int(math.Ceil(d.Seconds())), 1)) }

// BearerToken returns the token of a request; false if it has none (RFC 6750, section 2.1).
func BearerToken(r *http.Request) (token string, ok bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}

// LimitTeam notes who calls, for the log, and refuses a caller whose team asks for too much. Every
// door that lets in callers with tokens counts them here.
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

// serve reads what an operation takes, calls it and writes its answer.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, of *operation, c *call) {
	ctx := r.Context()
	var err error
	c.ignoredInQuery(r, of)
	switch {
	case of.creates:
		if err = h.service.RequireSubscription(c.caller); err == nil {
			var leave func()
			leave, err = h.readBody(w, r, c)
			defer leave()
		}
	case of.lists:
		c.query, err = readQuery(r)
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
	if out.created.location != "" {
		w.Header().Set("Location", out.created.location)
	}
	if out.created.replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	writeJSON(w, of.status, out.body)
}

// perform calls an operation. What it returns may be used until done is called.
func (h *Handler) perform(ctx context.Context, of *operation, c *call) (out *answer, done func(), err error) {
	var spent *cost.Meter
	if !of.lists { // those answer from memory
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, answerWithin)
		defer cancel()
		ctx, spent = cost.With(ctx)
	}
	out = h.answers.Get().(*answer) //nolint:forcetypeassert // the pool holds nothing else
	out.body, out.created = out.body[:0], created{}
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

// readBody reads the body and the Idempotency-Key. The body is held until done is called.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request, c *call) (done func(), err error) {
	c.parseKey(r.Header.Values(KeyHeader))
	body, done, err := h.ReadBody(w, r, c.caller, maxBody)
	if err != nil {
		return done, err
	}
	return done, c.parse(body)
}

// parse reads the JSON of a body.
func (c *call) parse(body []byte) (err error) {
	if c.body, err = strictjson.Parse(body); err != nil {
		c.wrong = append(c.wrong, err.Error())
		return c.refused()
	}
	return nil
}

// refused is the error of a request with which something is wrong; nil if nothing is.
func (c *call) refused() error {
	if len(c.wrong) == 0 {
		return nil
	}
	return invalid("%s", bridge.JoinFirst(c.wrong, c.moreWrong))
}

// parseKey takes the Idempotency-Key of a request, if it has one. A second key is refused: the same request may come again
// with one of the two, and would then be another request.
func (c *call) parseKey(keys []string) {
	switch len(keys) {
	case 0:
	case 1:
		if length := utf8.RuneCountInString(keys[0]); length < 1 || length > maxKey {
			c.wrong = append(c.wrong, fmt.Sprintf("%s: must have 1 to %d characters", KeyHeader, maxKey))
		}
		c.key = keys[0]
	default:
		c.wrong = append(c.wrong, fmt.Sprintf("%s: stands in the request %d times; send it once", KeyHeader, len(keys)))
	}
}

// isJSON reports whether a request says that its body is JSON. A second line may differ from the first, and proxies choose
// either, so each line must say it.
func isJSON(r *http.Request) bool {
	lines := r.Header.Values("Content-Type")
	for _, line := range lines {
		if mediaType, _, err := mime.ParseMediaType(line); err != nil || mediaType != "application/json" {
			return false
		}
	}
	return len(lines) > 0
}

// byteOrderMark is U+FEFF in UTF-8. A reader of JSON may pass over one before the text (RFC 8259, section 8.1); programs for
// Windows write it.
const byteOrderMark = "\xef\xbb\xbf"

// ReadBody reads the body of a caller's request, which has to be JSON of at most so many bytes. A byte order mark is left out.
// Its room is taken until done is called, which is never nil. Its errors are for WriteFailure.
// What was read is charged here, whatever comes of it: the worst bodies are those that are refused
// before an operation sees them.
func (h *Handler) ReadBody(w http.ResponseWriter, r *http.Request, caller bridge.Caller, most int64) (body []byte, done func(), err error) {
	if !isJSON(r) {
		return nil, func() {}, errNotJSON
	}
	// RFC 9110, section 15.5.16. What is compressed has no size to bound.
	for _, encoding := range r.Header.Values("Content-Encoding") {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return nil, func() {}, errEncoded
		}
	}
	body, done, err = h.limits.Bodies.Read(w, r, caller.Namespace, most)
	h.limits.Teams.Charge(caller.Namespace, cost.OfBytes(len(body)), request.From(r.Context()).Header)
	return bytes.TrimPrefix(body, []byte(byteOrderMark)), done, err
}
