// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// Methods of the protocol that Herald handles itself.
const (
	methodCall = "tools/call"
	methodRead = "resources/read"
)

// methods are the known client methods, used as metric labels.
var methods = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "tools/list": true, methodCall: true, "resources/list": true,
	"resources/templates/list": true, methodRead: true, "prompts/list": true, "prompts/get": true, "completion/complete": true,
	"subscriptions/listen": true, "notifications/initialized": true, "notifications/cancelled": true,
}

// message holds the fields of a request that Herald reads before the SDK.
type message struct {
	edition *edition
	method  string
	// tool is the tool being called; nil for any other method or an unknown tool.
	tool *tool
	// client is the client's self-reported name, if the request contains one.
	client string
	// idempotency is the key in _meta, or nil. A key that is not a string, or is too long, becomes "", which is rejected.
	idempotency *string
	// version is the protocol revision in _meta; versioned reports whether _meta has that field, regardless of its type.
	version   string
	versioned bool
}

// maxWord limits the names in a message, such as the tool and the client, in characters.
const maxWord = 1 << 10

// errBatch rejects an array of messages. The protocol had batches for a few months in 2025.
var errBatch = errors.New("the body must be one JSON-RPC message; batches are not supported: send each message separately")

// readMessage parses a body as strictly as REST does. The SDK parses it again; being strict prevents the two parsers
// from reading one body differently.
func readMessage(body []byte, of *edition) (*message, error) {
	for _, c := range body {
		if c == '[' {
			return nil, errBatch
		}
		if c > ' ' {
			break
		}
	}
	root, err := strictjson.Parse(body)
	if err != nil {
		return nil, err
	}
	text := func(v strictjson.Value) string { return v.Text(0, maxWord) } // a longer name matches nothing
	params := root.Field("params")
	meta := params.Field("_meta")
	m := &message{
		edition:     of,
		method:      text(root.Field("method")),
		client:      text(meta.Field(mcp.MetaKeyClientInfo).Field("name")),
		idempotency: strictjson.Pointer(meta.Field(IdempotencyKey).OrNull(), text),
		version:     text(meta.Field(mcp.MetaKeyProtocolVersion)),
		versioned:   meta.Field(mcp.MetaKeyProtocolVersion).IsSet(),
	}
	if m.method == methodCall {
		m.tool = of.toolNamed(text(params.Field("name")))
	}
	return m, nil
}

// operation is the request's label in logs, metrics and traces. Its cardinality is bounded.
func (m *message) operation() string {
	switch {
	case m.tool != nil:
		return m.edition.label + " " + m.tool.name
	case methods[m.method]:
		return m.edition.label + " " + m.method
	default:
		return m.edition.label
	}
}

// scope returns the scope that the message requires, or "" if it requires none.
func (m *message) scope() bridge.Scope {
	switch {
	case m.tool != nil:
		return m.tool.scope
	case m.method == methodRead:
		return bridge.ScopeRead
	default:
		return ""
	}
}

// keys returns a request's Idempotency-Keys: those in its headers, and the one in _meta unless it is the same.
func (m *message) keys(r *http.Request) []string {
	keys := slices.Clone(r.Header.Values(rest.KeyHeader))
	if m.idempotency != nil && !slices.Equal(keys, []string{*m.idempotency}) {
		keys = append(keys, *m.idempotency)
	}
	return keys
}

// Codes of JSON-RPC 2.0, section 5.1.
const (
	codeParse   = -32700
	codeInvalid = -32600
)

func writeRPCError(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(rpcError(code, text)) //nolint:gosec // G705: the response is application/json, with nosniff; the client may be gone
}

// rpcError returns a JSON-RPC error for a message whose id is unknown.
func rpcError(code int, text string) []byte {
	type wireError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	out, _ := json.Marshal(struct { // the fields always encode
		Version string    `json:"jsonrpc"`
		ID      *int      `json:"id"`
		Error   wireError `json:"error"`
	}{"2.0", nil, wireError{code, text}})
	return out
}
