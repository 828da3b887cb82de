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

// Headers of the transport, as Go writes them.
const (
	lastEventIDHeader = "Last-Event-Id"
	// versionHeader names the revision of the protocol. methodHeader and nameHeader repeat what the body says, from latestVersion on.
	versionHeader, methodHeader, nameHeader = "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"
	// headersOfCall begins the names of these and of others.
	headersOfCall = "Mcp-"
)

const (
	// assumedVersion is the revision of a client that names none (specification 2025-11-25, transports).
	assumedVersion = "2025-03-26"
	// latestVersion is the first without initialize: each request says all that there is to know of its client.
	latestVersion = "2026-07-28"
)

// earlierVersions are the revisions in which a call is its body alone.
var earlierVersions = []string{"2024-11-05", assumedVersion, "2025-06-18", "2025-11-25"}

// direct returns the call of a tool that can be given to the SDK's server as it is; nil for what its HTTP handler has to
// judge first. That handler decodes a body about ten times, into 32 KiB each, which is half of what a call takes of the
// processor.
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

// agrees reports whether the headers say of a call what its body says, and nothing more, in a revision that is known.
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

// stateOf is what the SDK's server is told of a client. Of a revision with initialize, that it has been.
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

// answer lets the SDK's server answer a call, and writes what it says.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, asked *jsonrpc.Request, c *call) error {
	// As by HTTP, a call that has begun is not given up when its client leaves: it may have posted.
	ctx := context.WithValue(context.WithoutCancel(r.Context()), callKey{}, c)
	e := &exchange{call: asked, answered: make(chan *jsonrpc.Response, 1), closed: make(chan struct{})}
	session, err := h.server.Connect(ctx, e, &mcp.ServerSessionOptions{State: stateOf(r.Header)})
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }() // nothing is left of it
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
	_, _ = w.Write(body) // the client may have gone
	return nil
}

// statusOf is the status of an answer: from latestVersion on, a call that says too little of itself is an error of HTTP as well
// (SEP-2575).
func statusOf(response *jsonrpc.Response, version string) int {
	known, ok := errors.AsType[*jsonrpc.Error](response.Error)
	if ok && version == latestVersion && (known.Code == jsonrpc.CodeInvalidParams || known.Code == mcp.CodeMissingRequiredClientCapabilities) {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// exchange is a connection of the SDK's server over which one call comes and one answer goes.
type exchange struct {
	call     *jsonrpc.Request
	once     sync.Once
	answered chan *jsonrpc.Response
	closing  sync.Once
	closed   chan struct{}
}

// Connect implements mcp.Transport.
func (e *exchange) Connect(context.Context) (mcp.Connection, error) { return e, nil }

// Read returns the call, and then waits for the end.
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

// Write takes the answer. What the server says besides has nowhere to go, as for every client that gets JSON.
func (e *exchange) Write(_ context.Context, message jsonrpc.Message) error {
	if response, ok := message.(*jsonrpc.Response); ok {
		select {
		case e.answered <- response:
		default:
		}
	}
	return nil
}

// Close ends Read.
func (e *exchange) Close() error {
	e.closing.Do(func() { close(e.closed) })
	return nil
}

// SessionID implements mcp.Connection: there are no sessions.
func (e *exchange) SessionID() string { return "" }
