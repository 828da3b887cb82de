// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcp serves the operations of apiserver/rest to agents, as tools of the Model
// Context Protocol over stateless streamable HTTP: the same names of fields, the same
// answers, the same limits. The protocol is the work of its official SDK; this package lets
// callers in, says what the tools are for, and calls the operations.
//
// What others wrote (captions, names of accounts, errors of platforms) is returned as
// values of JSON alone, and in no description, no instruction and no prompt: a model is
// told which fields those are. It is not changed either. What reads like an instruction is
// a caption all the same, and to guess which captions are honest would damage those that are.
package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/anonymous"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/platforms"
)

// Path is where agents find the server.
const Path = "/mcp"

// IdempotencyKey is the key of a request's _meta that does what the header Idempotency-Key
// does for REST: a tool call that is sent again under it takes effect once. Clients that
// cannot set it may send the header.
const IdempotencyKey = "social.herald.dev/idempotency-key"

// Options are what a Handler is made of.
type Options struct {
	// Service holds the operations, and REST performs them.
	Service *bridge.Service
	REST    *rest.Handler
	// Tokens returns whom a bearer token speaks for. Its errors are those of
	// bridge.Service.Authenticate, which it is without OAuth.
	Tokens func(ctx context.Context, token string) (bridge.Caller, error)
	// SiteURL is where clients find the site.
	SiteURL string
	// ResourceMetadata is the address that tells clients who gives out tokens (RFC 9728);
	// empty without OAuth.
	ResourceMetadata string
	// Capabilities returns what a platform declares; false if this installation cannot
	// publish there.
	Capabilities func(v1alpha1.Platform) (platforms.Capabilities, bool)
	// Version is that of this program, for clients.
	Version string
	// Server takes the place of Herald's own tools, for tests of the protocol; nil otherwise.
	Server *mcp.Server
}

// Handler serves Path.
type Handler struct {
	Options

	server *mcp.Server
	sdk    http.Handler
	marks  marks
	// local says that the site is for this machine alone.
	local bool
}

// New returns a Handler.
func New(options Options) (*Handler, error) {
	h := &Handler{Options: options, marks: newMarks()}
	if site, err := url.Parse(options.SiteURL); err == nil {
		h.local = loopback(site.Host)
	}
	if h.server = options.Server; h.server == nil {
		var err error
		if h.server, err = h.newServer(); err != nil {
			return nil, err
		}
	}
	h.sdk = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return h.server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true,
		// See ServeHTTP: behind a proxy beside this process, requests come by loopback for
		// the site's own host.
		DisableLocalhostProtection: true,
		MaxRequestBodyBytes:        -1, // the body has been read
	})
	return h, nil
}

// ServeHTTP answers a request. The order is that of REST: 401, 429, 405, what is wrong with
// the body, 403, and then what the operation says, which is the result of a tool and no
// error of HTTP.
//
// Nothing but the token lets a caller in: no cookie is read, and a page of another site has
// no token. So pages of every site may call, as inspectors and clients in browsers do.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, header := r.Context(), w.Header()
	request.From(ctx).Operation = "mcp"
	header.Set("Cache-Control", "no-store")
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Expose-Headers", exposed)
	if r.Method == http.MethodOptions {
		h.preflight(w, r)
		return
	}
	// A site on this machine is for this machine: a name that a stranger made to lead here
	// (DNS rebinding) is refused, as the specification of the transport asks.
	if h.local && !loopback(r.Host) {
		h.refuseHost(w, r)
		return
	}
	caller, err := h.authenticate(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	if r.Method != http.MethodPost {
		rest.WriteMethodNotAllowed(w, r, http.MethodPost) // there are no streams and no sessions
		return
	}
	body, done, err := h.REST.ReadBody(w, r, caller, maxMessage)
	defer done()
	if err != nil {
		rest.WriteFailure(ctx, w, err)
		return
	}
	m, err := readMessage(body)
	if err != nil {
		writeRPCError(w, codeParse, err.Error())
		return
	}
	request.From(ctx).Operation = m.operation()
	if need := m.scope(); need != "" && !caller.May(need) {
		h.challenge(header, `error="insufficient_scope"`, `scope="`+scopes(need)+`"`)
		rest.WriteFailure(ctx, w, &bridge.Error{
			Code: bridge.CodeInsufficientScope, Message: "this needs the scope " + string(need) + ", which the token does not have",
		})
		return
	}
	c := &call{caller: h.named(caller, m), keys: m.keys(r), info: request.From(ctx)}
	tool := m.direct(r, body)
	if tool == nil {
		if len(body) > maxPassed {
			rest.WriteFailure(ctx, w, &http.MaxBytesError{Limit: maxPassed})
			return
		}
		h.pass(w, r, body, c)
		return
	}
	if err := h.answer(w, r, tool, c); err != nil {
		rest.WriteInternal(ctx, w, err)
	}
}

// refuseHost refuses a request for another host than this machine.
func (h *Handler) refuseHost(w http.ResponseWriter, r *http.Request) {
	if allowed, wait := h.REST.Guard().Allow(r, anonymous.Programs); !allowed {
		rest.WriteTooMany(w, r, wait)
		return
	}
	rest.WriteError(w, http.StatusForbidden, bridge.CodeUnauthorized, "this server answers to localhost alone")
}

// preflight says which requests pages of other sites may send.
func (h *Handler) preflight(w http.ResponseWriter, r *http.Request) {
	if pass, wait := h.REST.Guard().Allow(r, anonymous.Preflights); !pass {
		rest.WriteTooMany(w, r, wait)
		return
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Methods", http.MethodPost)
	header.Set("Access-Control-Allow-Headers", allowed)
	header.Set("Access-Control-Max-Age", "7200")
	w.WriteHeader(http.StatusNoContent)
}

// maxMessage is how large a message may be, in bytes: twice the largest post. A call is decoded several times on its way.
const maxMessage = 512 << 10

// maxPassed is how large a message may be that the SDK's HTTP handler judges, in bytes: it decodes each about ten times. Such
// messages name what they want in some words. Calls of tools, which carry posts, are given to the SDK's server directly.
const maxPassed = 64 << 10

// Fields of requests and answers that pages of other sites may use.
const (
	allowed = "Authorization, Content-Type, Accept, Idempotency-Key, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, " +
		"Traceparent, X-Request-Id"
	exposed = "WWW-Authenticate, Mcp-Session-Id, Mcp-Protocol-Version, X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset"
)

// loopback reports whether a host, with or without a port, is this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.IsLoopback()
}

// call is what the tools know of the request that they serve.
type call struct {
	caller bridge.Caller
	// keys are its Idempotency-Keys, of which it may have one.
	keys []string
	info *request.Info
	// envelope is what a tool has answered.
	envelope []byte
}

type callKey struct{}

// callOf returns the call that a context is of. Every context of this package has one.
func callOf(ctx context.Context) *call {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return &call{caller: bridge.Caller{Scopes: []bridge.Scope{}}, info: request.From(ctx)}
	}
	return c
}

// pass lets the SDK answer.
func (h *Handler) pass(w http.ResponseWriter, r *http.Request, body []byte, c *call) {
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	// Some clients ask for JSON alone, which they get.
	r.Header.Set("Accept", "application/json, text/event-stream")
	out := &answers{ResponseWriter: w, marks: &h.marks, call: c}
	h.sdk.ServeHTTP(out, r)
	out.finish()
}

// authenticate returns who calls, unless the token is not good or was used too often.
func (h *Handler) authenticate(r *http.Request) (bridge.Caller, error) {
	token, ok := rest.BearerToken(r)
	if !ok {
		return bridge.Caller{}, h.REST.RejectUnauthenticated(r, &bridge.Error{
			Code: bridge.CodeUnauthorized, Message: `missing or invalid Authorization header; send "Authorization: Bearer <API key or access token>"`,
		})
	}
	caller, err := h.Tokens(r.Context(), token)
	if err != nil {
		return bridge.Caller{}, h.REST.RejectUnauthenticated(r, err)
	}
	return caller, h.REST.LimitTeam(r.Context(), caller)
}

// refuse answers to a caller who was not let in. A 401 says where tokens come from.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if known, ok := errors.AsType[*bridge.Error](err); ok && known.Code == bridge.CodeUnauthorized {
		invalid := ""
		if r.Header.Get("Authorization") != "" {
			invalid = `error="invalid_token"`
		}
		h.challenge(w.Header(), invalid)
	}
	rest.WriteFailure(r.Context(), w, err)
}

// challenge sets the header that says how to be let in (RFC 6750, section 3; RFC 9728,
// section 5.1).
func (h *Handler) challenge(header http.Header, parameters ...string) {
	if h.ResourceMetadata != "" {
		parameters = append(parameters, `resource_metadata="`+h.ResourceMetadata+`"`)
	}
	var given []string
	for _, p := range parameters {
		if p != "" {
			given = append(given, p)
		}
	}
	header.Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(given, ", ")))
}

// scopes are those to ask for to be allowed what one allows, separated by spaces.
func scopes(need bridge.Scope) string {
	var all []string
	for _, scope := range bridge.Scopes {
		all = append(all, string(scope))
		if scope == need {
			break
		}
	}
	return strings.Join(all, " ")
}

// named is the caller with the name of the agent: that of its registration, or what it
// calls itself, or that of the key.
func (h *Handler) named(caller bridge.Caller, m *message) bridge.Caller {
	for _, name := range []string{caller.Agent, m.client, caller.Key, "an agent"} {
		if caller.Agent = bridge.AgentName(name); caller.Agent != "" {
			break
		}
	}
	return caller
}
