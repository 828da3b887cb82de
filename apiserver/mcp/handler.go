// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcp serves the operations of apiserver/rest to agents, as tools of the Model Context Protocol over stateless
// streamable HTTP, with the same field names, responses and limits. The official SDK implements the protocol; this
// package authenticates callers, describes the tools and calls the operations.
//
// Content from others (captions, account names, platform errors) appears only as JSON values, never in a description,
// instruction or prompt, and the instructions name those fields as data. The content is not filtered: a caption that
// looks like an instruction may be honest, and a filter would damage honest captions.
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
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/platforms"
)

// Path and PathV2 are the URL paths of the MCP server's editions.
const (
	Path   = "/mcp"
	PathV2 = "/mcp/v2"
)

// IdempotencyKey is the key in a request's _meta that corresponds to REST's Idempotency-Key header: a tool call that is
// sent again with it takes effect once. Clients that cannot set it may send the header.
const IdempotencyKey = "social.herald.dev/idempotency-key"

// Options configure a Handler.
type Options struct {
	// Service implements the operations; REST, a handler of version 1, runs them.
	Service *bridge.Service
	REST    *rest.Handler
	// Tokens returns the caller that a bearer token belongs to. Its errors are those of bridge.Service.Authenticate,
	// which is used if there is no OAuth.
	Tokens func(ctx context.Context, token string) (bridge.Caller, error)
	// SiteURL is the site's public address.
	SiteURL string
	// ResourceMetadata returns the address of the OAuth protected resource metadata (RFC 9728) for Path or PathV2; nil if
	// there is no OAuth.
	ResourceMetadata func(path string) string
	// Capabilities returns a platform's declared capabilities, or false if this installation cannot publish there.
	Capabilities func(v1alpha1.Platform) (platforms.Capabilities, bool)
	// Version is Herald's version, for clients.
	Version string
	// Server replaces Herald's own tools in protocol tests; nil otherwise.
	Server *mcp.Server
}

// Handler serves the path of one edition.
type Handler struct {
	Options

	edition *edition
	// metadata is the address of the resource metadata; empty if there is no OAuth.
	metadata string
	server   *mcp.Server
	sdk      http.Handler
	marks    marks
	// local is true if the site is on a loopback address.
	local bool
}

// New returns the Handler of version 1.
func New(options Options) (*Handler, error) { return newHandler(options, &v1) }

// NewV2 returns the Handler of version 2, whose tools are the operations of version 2 of the API.
func NewV2(options Options) (*Handler, error) {
	options.REST = options.REST.V2()
	return newHandler(options, &v2)
}

func newHandler(options Options, of *edition) (*Handler, error) {
	h := &Handler{Options: options, edition: of, marks: newMarks()}
	if options.ResourceMetadata != nil {
		h.metadata = options.ResourceMetadata(of.path)
	}
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
		// ServeHTTP checks the host: behind a proxy on the same machine, requests for the site's own host arrive over
		// loopback.
		DisableLocalhostProtection: true,
		MaxRequestBodyBytes:        -1, // ServeHTTP has limited and read the body
	})
	return h, nil
}

// ServeHTTP serves a request. The checks are in the same order as in REST: 401, 429, 405, invalid body, 403. The
// operation's own error comes last and is a tool result, not an HTTP error.
//
// The token is the only credential: no cookie is read, and a page on another site has no token. Pages on any site may
// therefore call the server, such as inspectors and clients in browsers.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, header := r.Context(), w.Header()
	request.From(ctx).Operation = h.edition.label
	header.Set("Cache-Control", "no-store")
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Expose-Headers", exposed)
	if r.Method == http.MethodOptions {
		h.preflight(w, r)
		return
	}
	// A site on a loopback address rejects other hosts, against DNS rebinding, as the transport's specification
	// requires.
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
		rest.WriteMethodNotAllowed(w, r, http.MethodPost) // the server has no streams and no sessions
		return
	}
	body, done, err := h.REST.ReadBody(w, r, caller, maxMessage)
	defer done()
	if err != nil {
		rest.WriteFailure(ctx, w, err)
		return
	}
	m, err := readMessage(body, h.edition)
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

func (h *Handler) refuseHost(w http.ResponseWriter, r *http.Request) {
	if allowed, wait := h.REST.Guard().Allow(r, limits.SurfacePrograms); !allowed {
		rest.WriteTooMany(w, r, wait)
		return
	}
	rest.WriteError(w, http.StatusForbidden, bridge.CodeUnauthorized, "this server accepts only requests for localhost")
}

func (h *Handler) preflight(w http.ResponseWriter, r *http.Request) {
	if pass, wait := h.REST.Guard().Allow(r, limits.SurfacePreflights); !pass {
		rest.WriteTooMany(w, r, wait)
		return
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Methods", http.MethodPost)
	header.Set("Access-Control-Allow-Headers", allowed)
	header.Set("Access-Control-Max-Age", "7200")
	w.WriteHeader(http.StatusNoContent)
}

// maxMessage limits a message, in bytes: twice the largest post. A call is decoded several times.
const maxMessage = 512 << 10

// maxPassed limits a message for the SDK's HTTP handler, in bytes, because the handler decodes a body about ten times.
// These messages are short; tool calls, which carry posts, go directly to the SDK's server.
const maxPassed = 64 << 10

// Headers of requests and responses that pages on other sites may use.
const (
	allowed = "Authorization, Content-Type, Accept, Idempotency-Key, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, " +
		"Traceparent, X-Request-Id"
	exposed = "WWW-Authenticate, Mcp-Session-Id, Mcp-Protocol-Version, X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset"
)

// loopback reports whether a host, with or without a port, is a loopback address.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.IsLoopback()
}

type call struct {
	caller bridge.Caller
	// keys are the request's Idempotency-Keys; more than one is an error.
	keys []string
	info *request.Info
	// envelope is a tool's response body.
	envelope []byte
}

type callKey struct{}

// callOf returns a context's call. Every context in this package has one.
func callOf(ctx context.Context) *call {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return &call{caller: bridge.Caller{Scopes: []bridge.Scope{}}, info: request.From(ctx)}
	}
	return c
}

func (h *Handler) pass(w http.ResponseWriter, r *http.Request, body []byte, c *call) {
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	// Some clients accept only JSON. The response is always JSON.
	r.Header.Set("Accept", "application/json, text/event-stream")
	out := &answers{ResponseWriter: w, marks: &h.marks, call: c}
	h.sdk.ServeHTTP(out, r)
	out.finish()
}

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
	caller.Version1 = h.edition.version1
	return caller, h.REST.LimitTeam(r.Context(), caller)
}

// refuse responds to an unauthenticated request. A 401 contains the address of the authorization server's metadata.
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

// challenge sets WWW-Authenticate (RFC 6750, section 3; RFC 9728, section 5.1).
func (h *Handler) challenge(header http.Header, parameters ...string) {
	if h.metadata != "" {
		parameters = append(parameters, `resource_metadata="`+h.metadata+`"`)
	}
	var given []string
	for _, p := range parameters {
		if p != "" {
			given = append(given, p)
		}
	}
	header.Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(given, ", ")))
}

// scopes returns the scopes that include need, separated by spaces.
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

// named returns the caller with the agent's name: its registered name, self-reported name or key name.
func (h *Handler) named(caller bridge.Caller, m *message) bridge.Caller {
	for _, name := range []string{caller.Agent, m.client, caller.Key, "an agent"} {
		if caller.Agent = bridge.AgentName(name); caller.Agent != "" {
			break
		}
	}
	return caller
}
