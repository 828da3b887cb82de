// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/request"
)

// TestDirect verifies that a call that bypasses the SDK's HTTP handler gets exactly that handler's response, and that
// all requests that need its validation are passed to it.
func TestDirect(t *testing.T) {
	t.Parallel()
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_posts"`
	latest := func(arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_posts","arguments":` + arguments +
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	}
	latestHeader := []string{versionHeader, latestVersion, methodHeader, methodCall, nameHeader, "list_posts"}
	for name, tc := range map[string]struct {
		reason, body string
		header       []string
		direct       bool
	}{
		"Usual":           {"an ordinary call", callTool("list_posts", `{}`), nil, true},
		"Refused":         {"REST's error is the result", callTool("get_post", `{"id":"none"}`), nil, true},
		"WrongArguments":  {"REST validates them", callTool("list_posts", `{"page":0}`), nil, true},
		"ArgumentsArray":  {"REST validates them", callTool("list_posts", `[]`), nil, true},
		"NoArguments":     {"arguments are optional", list + `}}`, nil, true},
		"NullArguments":   {"arguments are optional", list + `,"arguments":null}}`, nil, true},
		"IDText":          {"an id may be a string", strings.Replace(callTool("list_posts", `{}`), `"id":1`, `"id":"a \"b\""`, 1), nil, true},
		"IDLarge":         {"the response repeats the id", strings.Replace(callTool("list_posts", `{}`), `"id":1`, `"id":9007199254740993`, 1), nil, true},
		"IDFraction":      {"a fraction is a valid id", strings.Replace(callTool("list_posts", `{}`), `"id":1`, `"id":1.5`, 1), nil, true},
		"MetaNumber":      {"metadata must be an object", list + `,"_meta":7}}`, nil, true},
		"MetaOfOurs":      {"the metadata contains an idempotency key", list + `,"_meta":{"social.herald.dev/idempotency-key":"k"}}}`, nil, true},
		"Progress":        {"progress is not reported, so its token has no effect", list + `,"_meta":{"progressToken":"p"}}}`, nil, true},
		"Unknown":         {"unknown fields are ignored", list + `,"more":{"a":[1]}},"extra":true}`, nil, true},
		"Version2024":     {"the first revision is supported", callTool("list_posts", `{}`), []string{versionHeader, "2024-11-05"}, true},
		"Version2025":     {"an ordinary revision", callTool("list_posts", `{}`), []string{versionHeader, "2025-11-25"}, true},
		"Latest":          {"this revision does not need initialize", latest("{}"), latestHeader, true},
		"LatestRefused":   {"REST's error is the result", latest(`{"page":0}`), latestHeader, true},
		"LatestAbilities": {"the client declares its capabilities in each request", strings.Replace(latest("{}"), `,"io.modelcontextprotocol/clientCapabilities":{}`, "", 1), latestHeader, true},
		"LatestOther":     {"the header must contain the body's tool name", latest("{}"), []string{versionHeader, latestVersion, methodHeader, methodCall, nameHeader, "get_post"}, false},
		"LatestBare":      {"the header with the name is required", latest("{}"), []string{versionHeader, latestVersion, methodHeader, methodCall}, false},
		"LatestEarlier":   {"header and body must contain the same revision", latest("{}"), []string{versionHeader, "2025-11-25"}, false},
		"LatestParameter": {"the header must match the body", latest("{}"), append([]string{"Mcp-Param-Page", "1"}, latestHeader...), false},
		"NoID":            {"a notification gets a different response", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"list_posts"}}`, nil, false},
		"IDNull":          {"a null id cannot be answered", strings.Replace(callTool("list_posts", `{}`), `"id":1`, `"id":null`, 1), nil, false},
		"IDObject":        {"an object cannot be an id", strings.Replace(callTool("list_posts", `{}`), `"id":1`, `"id":{}`, 1), nil, false},
		"NoVersion":       {"the request is not JSON-RPC 2.0", `{"id":1,"method":"tools/call","params":{"name":"list_posts"}}`, nil, false},
		"UnknownTool":     {"the SDK reports it", callTool("delete_everything", `{}`), nil, false},
		"UnknownVersion":  {"the SDK rejects it", callTool("list_posts", `{}`), []string{versionHeader, "2030-01-01"}, false},
		"LatestNoMeta":    {"the SDK rejects it", callTool("list_posts", `{}`), []string{versionHeader, "2026-07-28"}, false},
		"MetaVersion":     {"the body must match the header", list + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, nil, false},
		"MetaVersionNull": {"the SDK interprets it", list + `,"_meta":{"io.modelcontextprotocol/protocolVersion":null}}}`, nil, false},
		"MethodHeader":    {"the header must match the body", callTool("list_posts", `{}`), []string{"Mcp-Method", "ping"}, false},
		"ParameterHeader": {"the header must match the body", callTool("list_posts", `{}`), []string{"Mcp-Param-Page", "1"}, false},
		"Resumed":         {"streams cannot be resumed", callTool("list_posts", `{}`), []string{"Last-Event-ID", "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			var h *Handler
			w.handler(t, func(o *Options) {
				var err error
				if h, err = New(*o); err != nil {
					t.Fatal(err)
				}
			})
			ask := func() (*http.Request, *httptest.ResponseRecorder) {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, strings.NewReader(tc.body))
				r.Header.Set("Content-Type", "application/json")
				for i := 0; i+1 < len(tc.header); i += 2 {
					r.Header.Set(tc.header[i], tc.header[i+1])
				}
				return r, httptest.NewRecorder()
			}
			of := func() *call {
				return &call{caller: bridge.Caller{Namespace: namespace, Key: "k", Agent: "a"}, info: &request.Info{ID: "r", Header: http.Header{}}}
			}
			m, err := readMessage([]byte(tc.body), &v1)
			if err != nil {
				t.Fatal(err)
			}
			r, got := ask()
			asked := m.direct(r, []byte(tc.body))
			if (asked != nil) != tc.direct {
				t.Fatalf("%s: direct: %t", tc.reason, asked != nil)
			}
			if asked == nil {
				return
			}
			c := of()
			r = r.WithContext(request.With(r.Context(), c.info))
			if err := h.answer(got, r, asked, c); err != nil {
				t.Fatal(err)
			}
			r, want := ask()
			c = of()
			h.pass(want, r.WithContext(request.With(r.Context(), c.info)), []byte(tc.body), c)
			if got.Code != want.Code || got.Body.String() != want.Body.String() || got.Header().Get("Content-Type") != want.Header().Get("Content-Type") {
				t.Errorf("%s:\n%d %s\n%d %s", tc.reason, got.Code, got.Body, want.Code, want.Body)
			}
		})
	}
}
