// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The transport's headers, in Go's canonical form.
const (
	lastEventIDHeader = "Last-Event-Id"
	// versionHeader carries the protocol revision. Starting with latestVersion, methodHeader and nameHeader repeat fields
	// of the body.
	versionHeader, methodHeader, nameHeader = "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"
	// headersOfCall is the common prefix of these headers and others.
	headersOfCall = "Mcp-"
)

const (
	// assumedVersion is the revision assumed for a client that sends no version header (specification 2025-11-25,
	// transports).
	assumedVersion = "2025-03-26"
	// latestVersion is the first revision without initialize: each request describes its client in full.
	latestVersion = "2026-07-28"
)

// earlierVersions are the revisions in which only the body describes a call.
var earlierVersions = []string{"2024-11-05", assumedVersion, "2025-06-18", "2025-11-25"}

// direct returns a tool call that can go to the SDK's server without the SDK's HTTP handler, or nil if that handler
// must validate the request. The handler decodes a body about ten times, allocating 32 KiB each time, which takes half
// of a call's CPU time.
func (m *message) direct(r *http.Request, body []byte) *jsonrpc.Request {
	if m.tool == nil || len(r.Header[lastEventIDHeader]) > 0 || !m.agrees(r.Header) {
		return nil
	}
	decoded, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return nil
	}
	call, ok := decoded.(*jsonrpc.Request)
	if !ok || !call.IsCall() || call.Method != methodCall {
		return nil
	}
	call.Extra = &mcp.RequestExtra{Header: r.Header}
	return call
}

// agrees reports whether a call's protocol headers match its body, with no additional ones, in a known revision.
func (m *message) agrees(header http.Header) bool {
	of := map[string]string{}
	for name, values := range header {
		if !strings.HasPrefix(name, headersOfCall) {
			continue
		}
		if of[name] = values[0]; len(values) != 1 {
			return false
		}
	}
	if version, named := of[versionHeader]; !named || slices.Contains(earlierVersions, version) {
		delete(of, versionHeader)
		return len(of) == 0 && !m.versioned
	}
	return maps.Equal(of, map[string]string{versionHeader: latestVersion, methodHeader: methodCall, nameHeader: m.tool.name}) && m.version == latestVersion
}

// stateOf returns the SDK's session state, which counts as initialized in a revision with initialize.
func stateOf(header http.Header) *mcp.ServerSessionState {
	switch version := header.Get(versionHeader); version {
	case latestVersion:
		return &mcp.ServerSessionState{}
	default:
		return &mcp.ServerSessionState{
			InitializeParams: &mcp.InitializeParams{ProtocolVersion: cmp.Or(version, assumedVersion)}, InitializedParams: &mcp.InitializedParams{}, LogLevel: "info",
		}
	}
}

// answer runs a call on the SDK's server and writes its response.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, asked *jsonrpc.Request, c *call) error {
	// Like a REST request, a call continues when its client disconnects, because it may already have created a post.
	ctx := context.WithValue(context.WithoutCancel(r.Context()), callKey{}, c)
	e := &exchange{call: asked, answered: make(chan *jsonrpc.Response, 1), closed: make(chan struct{})}
	session, err := h.server.Connect(ctx, e, &mcp.ServerSessionOptions{State: stateOf(r.Header)})
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }() // the session holds no state
	var response *jsonrpc.Response
	select {
	case response = <-e.answered:
	case <-e.closed:
		return io.ErrUnexpectedEOF
	}
	body, err := jsonrpc.EncodeMessage(response)
	if err != nil {
		return err
	}
	if c.envelope != nil {
		body = h.marks.replaced(body, c.envelope)
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(statusOf(response, r.Header.Get(versionHeader)))
	_, _ = w.Write(body) // ignore: the client may be gone
	return nil
}

// statusOf returns a response's HTTP status. Starting with latestVersion, a call with missing metadata is also an HTTP
// error (SEP-2575).
func statusOf(response *jsonrpc.Response, version string) int {
	known, ok := errors.AsType[*jsonrpc.Error](response.Error)
	if ok && version == latestVersion && (known.Code == jsonrpc.CodeInvalidParams || known.Code == mcp.CodeMissingRequiredClientCapabilities) {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// exchange is a connection to the SDK's server that carries one call and its response.
type exchange struct {
	call     *jsonrpc.Request
	once     sync.Once
	answered chan *jsonrpc.Response
	closing  sync.Once
	closed   chan struct{}
}

func (e *exchange) Connect(context.Context) (mcp.Connection, error) { return e, nil }

// Read returns the call, then blocks until Close.
func (e *exchange) Read(ctx context.Context) (message jsonrpc.Message, err error) {
	e.once.Do(func() { message = e.call })
	if message != nil {
		return message, nil
	}
	select {
	case <-e.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write delivers the response. Notifications from the server are dropped, as for every client that receives JSON.
func (e *exchange) Write(_ context.Context, message jsonrpc.Message) error {
	if response, ok := message.(*jsonrpc.Response); ok {
		select {
		case e.answered <- response:
		default:
		}
	}
	return nil
}

func (e *exchange) Close() error {
	e.closing.Do(func() { close(e.closed) })
	return nil
}

// SessionID implements mcp.Connection. It is empty: the server is stateless.
func (e *exchange) SessionID() string { return "" }
