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

// The methods of the protocol that do something for a caller.
const (
	methodCall = "tools/call"
	methodRead = "resources/read"
)

// methods are those that a client may call, as labels of metrics.
var methods = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "tools/list": true, methodCall: true, "resources/list": true,
	"resources/templates/list": true, methodRead: true, "prompts/list": true, "prompts/get": true, "completion/complete": true,
	"subscriptions/listen": true, "notifications/initialized": true, "notifications/cancelled": true,
}

// message is what has to be known of a message before the SDK reads it.
type message struct {
	method string
	// tool is the one that is called; nil if none is, or one that there is not.
	tool *tool
	// client is what the client calls itself, if it says so with each request.
	client string
	// idempotency is the key of its _meta; nil for none. One that is no text, or far too long, is the empty one, which is refused.
	idempotency *string
	// version is the revision of the protocol in its _meta, and versioned says that it has one there, of whatever kind.
	version   string
	versioned bool
}

// maxWord is how long a word of a message may be, in characters: what it calls, and who calls.
const maxWord = 1 << 10

// errBatch is that of an array of messages. The protocol had those for some months of 2025.
var errBatch = errors.New("a body is one JSON-RPC message; batches are not taken: send each message by itself")

// readMessage reads a body as strictly as REST does. The SDK reads it again: two readers
// could understand what is refused here differently.
func readMessage(body []byte) (*message, error) {
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
	text := func(v strictjson.Value) string { return v.Text(0, maxWord) } // a longer one means nothing here
	params := root.Field("params")
	meta := params.Field("_meta")
	m := &message{
		method:      text(root.Field("method")),
		client:      text(meta.Field(mcp.MetaKeyClientInfo).Field("name")),
		idempotency: strictjson.Pointer(meta.Field(IdempotencyKey).OrNull(), text),
		version:     text(meta.Field(mcp.MetaKeyProtocolVersion)),
		versioned:   meta.Field(mcp.MetaKeyProtocolVersion).IsSet(),
	}
	if m.method == methodCall {
		m.tool = toolNamed(text(params.Field("name")))
	}
	return m, nil
}

// operation is the label of the request in the log, the metrics and the trace: one of few.
func (m *message) operation() string {
	switch {
	case m.tool != nil:
		return "mcp " + m.tool.name
	case methods[m.method]:
		return "mcp " + m.method
	default:
		return "mcp"
	}
}

// scope is what the caller needs for it; empty for what every caller may.
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

// keys are the Idempotency-Keys of a request: those of its header, and that of its _meta unless it is the same.
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

// writeRPCError answers to what is no message.
func writeRPCError(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(rpcError(code, text)) //nolint:gosec // G705: it is JSON and says so, with nosniff; the client may have gone
}

// rpcError is the answer to a message whose id is not known.
func rpcError(code int, text string) []byte {
	type wireError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	out, _ := json.Marshal(struct { // it holds nothing that JSON has not
		Version string    `json:"jsonrpc"`
		ID      *int      `json:"id"`
		Error   wireError `json:"error"`
	}{"2.0", nil, wireError{code, text}})
	return out
}
