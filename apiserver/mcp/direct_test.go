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
		"Usual":           {"what most calls are", callTool("list_posts", `{}`), nil, true},
		"Refused":         {"an error of REST is a result", callTool("get_post", `{"id":"none"}`), nil, true},
		"WrongArguments":  {"REST judges them", callTool("list_posts", `{"page":0}`), nil, true},
		"ArgumentsArray":  {"REST judges them", callTool("list_posts", `[]`), nil, true},
		"NoArguments":     {"they may be left out", list + `}}`, nil, true},
		"NullArguments":   {"they may be left out", list + `,"arguments":null}}`, nil, true},
		"IDText":          {"an id may be a text", strings.Replace(callTool("list_posts", `{}`), `"id":1`, `"id":"a \"b\""`, 1), nil, true},
		"IDLarge":         {"it comes back as it is", strings.Replace(callTool("list_posts", `{}`), `"id":1`, `"id":9007199254740993`, 1), nil, true},
		"IDFraction":      {"it is a number", strings.Replace(callTool("list_posts", `{}`), `"id":1`, `"id":1.5`, 1), nil, true},
		"MetaNumber":      {"it is no metadata", list + `,"_meta":7}}`, nil, true},
		"MetaOfOurs":      {"a key of idempotency", list + `,"_meta":{"social.herald.dev/idempotency-key":"k"}}}`, nil, true},
		"Progress":        {"a token of progress changes nothing", list + `,"_meta":{"progressToken":"p"}}}`, nil, true},
		"Unknown":         {"fields that nobody knows are passed over", list + `,"more":{"a":[1]}},"extra":true}`, nil, true},
		"Version2024":     {"the first revision", callTool("list_posts", `{}`), []string{versionHeader, "2024-11-05"}, true},
		"Version2025":     {"the revision of most clients", callTool("list_posts", `{}`), []string{versionHeader, "2025-11-25"}, true},
		"Latest":          {"the revision without initialize", latest("{}"), latestHeader, true},
		"LatestRefused":   {"an error of REST is a result", latest(`{"page":0}`), latestHeader, true},
		"LatestAbilities": {"it says so in each request", strings.Replace(latest("{}"), `,"io.modelcontextprotocol/clientCapabilities":{}`, "", 1), latestHeader, true},
		"LatestOther":     {"the name must be that of the body", latest("{}"), []string{versionHeader, latestVersion, methodHeader, methodCall, nameHeader, "get_post"}, false},
		"LatestBare":      {"the name must be there", latest("{}"), []string{versionHeader, latestVersion, methodHeader, methodCall}, false},
		"LatestEarlier":   {"one revision must be named twice", latest("{}"), []string{versionHeader, "2025-11-25"}, false},
		"LatestParameter": {"it must be that of the body", latest("{}"), append([]string{"Mcp-Param-Page", "1"}, latestHeader...), false},
		"NoID":            {"a notification is answered otherwise", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"list_posts"}}`, nil, false},
		"IDNull":          {"it cannot be answered", strings.Replace(callTool("list_posts", `{}`), `"id":1`, `"id":null`, 1), nil, false},
		"IDObject":        {"it cannot be answered", strings.Replace(callTool("list_posts", `{}`), `"id":1`, `"id":{}`, 1), nil, false},
		"NoVersion":       {"it is no JSON-RPC 2.0", `{"id":1,"method":"tools/call","params":{"name":"list_posts"}}`, nil, false},
		"UnknownTool":     {"the SDK says so", callTool("delete_everything", `{}`), nil, false},
		"UnknownVersion":  {"the SDK refuses it", callTool("list_posts", `{}`), []string{versionHeader, "2030-01-01"}, false},
		"LatestNoMeta":    {"the SDK refuses it", callTool("list_posts", `{}`), []string{versionHeader, "2026-07-28"}, false},
		"MetaVersion":     {"it must be that of the header", list + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, nil, false},
		"MetaVersionNull": {"what that is, the SDK says", list + `,"_meta":{"io.modelcontextprotocol/protocolVersion":null}}}`, nil, false},
		"MethodHeader":    {"it must be that of the body", callTool("list_posts", `{}`), []string{"Mcp-Method", "ping"}, false},
		"ParameterHeader": {"it must be that of the body", callTool("list_posts", `{}`), []string{"Mcp-Param-Page", "1"}, false},
		"Resumed":         {"nothing can be resumed", callTool("list_posts", `{}`), []string{"Last-Event-ID", "1"}, false},
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
