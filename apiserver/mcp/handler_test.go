// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/rest"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// text returns the arguments of create_post for a text post to X.
func text(caption string, more ...string) string {
	quoted, _ := json.Marshal(caption)
	return `{"category":"text","targets":[{"connection_id":"acme-x","caption":` + string(quoted) + `}]` + strings.Join(more, "") + `}`
}

// TestUnauthorized verifies that a 401 tells clients where to get tokens.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	const metadata = `resource_metadata="https://herald.example.com/.well-known/oauth-protected-resource/mcp"`
	for name, tc := range map[string]struct {
		reason, method, authorization string
		oauth                         bool
		want                          string
	}{
		"None":        {"a missing token is not an invalid one", "POST", "", true, "Bearer " + metadata},
		"NoneOfGet":   {"clients probe for a stream with GET", "GET", "", true, "Bearer " + metadata},
		"Unknown":     {"the client should request a new token", "POST", "Bearer nope", true, `Bearer error="invalid_token", ` + metadata},
		"OtherScheme": {"only bearer tokens are accepted", "POST", "Basic YTpi", true, `Bearer error="invalid_token", ` + metadata},
		"NoOAuth":     {"no authorization server exists", "POST", "", false, "Bearer"},
		"NoOAuthBad":  {"no authorization server exists, and the token is invalid", "DELETE", "Bearer nope", false, `Bearer error="invalid_token"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := newWorld().serve(t, func(o *Options) {
				if !tc.oauth {
					o.ResourceMetadata = nil
				}
			})
			r := send(t, tc.method, address, "", `[`, "Authorization", tc.authorization)
			if r.status != http.StatusUnauthorized || r.header.Get("WWW-Authenticate") != tc.want || !strings.HasPrefix(r.body, `{"error":{"code":"UNAUTHORIZED","message":"`) {
				t.Errorf("%s: %d %q %s", tc.reason, r.status, r.header.Get("WWW-Authenticate"), r.body)
			}
		})
	}
}

// TestRefusedByHTTP verifies that HTTP errors are the same as in REST.
func TestRefusedByHTTP(t *testing.T) {
	t.Parallel()
	address := newWorld().serve(t)
	for name, tc := range map[string]struct {
		reason, method, body string
		header               []string
		status               int
		says                 string
	}{
		"Get":        {"streams are not supported", "GET", "", nil, 405, `"code":"VALIDATION_ERROR"`},
		"Delete":     {"sessions are not supported", "DELETE", "", []string{"Mcp-Session-Id", "abc"}, 405, `"code":"VALIDATION_ERROR"`},
		"Put":        {"the protocol does not use PUT", "PUT", ping, nil, 405, `"code":"VALIDATION_ERROR"`},
		"Form":       {"the content type must be JSON", "POST", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, `"code":"VALIDATION_ERROR"`},
		"Compressed": {"the decompressed size is unlimited", "POST", "x", []string{"Content-Encoding", "gzip"}, 415, `"code":"VALIDATION_ERROR"`},
		"TooLarge":   {"the limit is twice the size of the largest post", "POST", callTool("create_post", text(strings.Repeat("a", 512<<10))), nil, 413, "larger than 524288 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := send(t, tc.method, address, "key", tc.body, tc.header...)
			if r.status != tc.status || !strings.Contains(r.body, tc.says) || tc.status == 405 && r.header.Get("Allow") != "POST" {
				t.Errorf("%s: %d %s %v", tc.reason, r.status, r.body, r.header)
			}
		})
	}
}

// TestBadMessages verifies that invalid messages get a JSON response and have no effect.
func TestBadMessages(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, body string
		status       int
		says         string
	}{
		"Empty":          {"the body is empty", "", 400, "-32700"},
		"Garbage":        {"the body is not JSON", "{{{", 400, "-32700"},
		"Null":           {"the body is not an object", "null", 400, "-32700"},
		"Trailing":       {"parsers could disagree", ping + ping, 400, "-32700"},
		"Batch":          {"one request is one message: limits count requests", "[" + ping + "]", 400, "batches are not supported"},
		"Twice":          {"parsers could disagree", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, 400, "appears twice"},
		"TwiceDeep":      {"parsers could disagree", callTool("create_post", text("a", `,"draft":true,"draft":false`)), 400, "params.arguments.draft: appears twice"},
		"NotUTF8":        {"the body is not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", 400, "-32700"},
		"HalfPair":       {"the caption is not valid text", callTool("create_post", `{"category":"\ud83d"}`), 400, "-32700"},
		"Deep":           {"no client needs such depth", `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 101), 400, "-32700"},
		"NoVersion":      {"the request is not JSON-RPC 2.0", `{"id":1,"method":"ping"}`, 400, `"error"`},
		"OldVersion":     {"the request is not JSON-RPC 2.0", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, 400, `"error"`},
		"Answer":         {"the server did not send a request", `{"jsonrpc":"2.0","id":1}`, 202, ""},
		"UnknownMethod":  {"no such method", `{"jsonrpc":"2.0","id":1,"method":"posts/delete"}`, 400, "posts/delete"},
		"IDObject":       {"an object cannot be an id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, 400, `"error"`},
		"NoID":           {"a tool call is not a notification", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"list_posts"}}`, 400, `"error"`},
		"UnknownTool":    {"no such tool", callTool("delete_everything", `{}`), 200, `unknown tool \"delete_everything\"`},
		"BadVersion":     {"the version is not supported", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 400, "nsupported protocol version"},
		"UnknownURI":     {"no such resource", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}`, 200, "-32602"},
		"UnknownPrompt":  {"no such prompt", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x"}}`, 200, "-32602"},
		"PromptWithout":  {"the argument is required", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"announce"}}`, 200, "the argument what is missing"},
		"Subscribe":      {"subscriptions are not supported", `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"herald://accounts"}}`, 200, `"error"`},
		"MetaNotObject":  {"the metadata must be an object", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":7}}`, 200, "-32602"},
		"NewWithoutMeta": {"the latest revision requires it in each request", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, 400, `"error"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			var header []string
			switch name {
			case "BadVersion":
				header = []string{"Mcp-Protocol-Version", "1999-01-01"}
			case "NewWithoutMeta":
				header = []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}
			}
			r := send(t, "POST", w.serve(t), "key", tc.body, header...)
			if r.status != tc.status || !strings.Contains(r.body, tc.says) {
				t.Errorf("%s: %d %s, want %d and %q", tc.reason, r.status, r.body, tc.status, tc.says)
			}
			if tc.status != 202 && (!json.Valid([]byte(r.body)) || !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") || !strings.Contains(r.body, `"jsonrpc":"2.0"`)) {
				t.Errorf("%s: got %q %s", tc.reason, r.header.Get("Content-Type"), r.body)
			}
			if len(w.posts) > 0 {
				t.Errorf("%s: a post was created", tc.reason)
			}
		})
	}
}

// TestRevisions verifies that a client of any revision can list and call tools, with or without initialize.
func TestRevisions(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run("Revision"+version, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			session := connect(t, w.serve(t), "key", version)
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 6 {
				t.Fatalf("%v, %v", tools, err)
			}
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "create_post", Arguments: json.RawMessage(text("Hello", `,"draft":true`))})
			if err != nil || result.IsError {
				t.Fatalf("%+v, %v", result, err)
			}
			// Clients of the latest revision send their name with each call; the others sent it once, with initialize, which a
			// stateless server does not store.
			want := "deploy"
			if version == "" || version >= "2026" {
				want = "inspector"
			}
			if got := w.only(t).Annotations[v1alpha1.AgentAnnotation]; got != want {
				t.Errorf("the post names %q, want %q", got, want)
			}
			if capabilities := session.InitializeResult().Capabilities; capabilities.Logging != nil || //nolint:staticcheck // SA1019: the test verifies that it is not offered
				capabilities.Completions != nil || capabilities.Tools == nil || capabilities.Tools.ListChanged || capabilities.Resources.Subscribe || capabilities.Resources.ListChanged || capabilities.Prompts.ListChanged {
				t.Errorf("got the capabilities %+v", capabilities)
			}
			if !strings.Contains(session.InitializeResult().Instructions, "list_connections") {
				t.Error("the instructions are missing")
			}
		})
	}
}

// TestAccept uses the latest client with an Accept header that lists only JSON, or with none.
func TestAccept(t *testing.T) {
	t.Parallel()
	address := newWorld().serve(t)
	for _, accept := range []string{"application/json", "*/*", "", "application/json, text/event-stream"} {
		r := send(t, "POST", address, "key", ping, "Accept", accept)
		if r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") {
			t.Errorf("Accept %q: %d %s", accept, r.status, r.body)
		}
	}
}

// TestScopes verifies what each scope permits. A request without the scope is rejected before it has an effect, with
// the scopes to request.
func TestScopes(t *testing.T) {
	t.Parallel()
	draft := text("Hello", `,"draft":true`)
	for name, tc := range map[string]struct {
		token, body string
		status      int
		// scope is the scope in the challenge.
		scope string
	}{
		"NothingLists":     {"nothing", callTool("list_posts", `{}`), 403, "read"},
		"NothingAccounts":  {"nothing", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"herald://accounts"}}`, 403, "read"},
		"NothingTools":     {"nothing", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 200, ""},
		"ReadLists":        {"read", callTool("list_posts", `{}`), 200, ""},
		"ReadConnections":  {"read", callTool("list_connections", `{}`), 200, ""},
		"ReadGets":         {"read", callTool("get_post", `{"id":"p1"}`), 200, ""},
		"ReadDrafts":       {"read", callTool("create_post", draft), 403, "read draft"},
		"ReadUploads":      {"read", callTool("create_media_upload_url", `{}`), 403, "read draft"},
		"ReadCancels":      {"read", callTool("cancel_post", `{"id":"p1"}`), 403, "read draft"},
		"DraftDrafts":      {"draft", callTool("create_post", draft), 200, ""},
		"DraftPublishes":   {"draft", callTool("create_post", text("Hello")), 200, ""},
		"DraftCancels":     {"draft", callTool("cancel_post", `{"id":"p1"}`), 200, ""},
		"PublishLists":     {"publish", callTool("list_posts", `{}`), 200, ""},
		"PublishPublishes": {"publish", callTool("create_post", draft), 200, ""},
		"KeyPublishes":     {"key", callTool("create_post", draft), 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			r := send(t, "POST", w.serve(t), tc.token, tc.body)
			want := ""
			if tc.scope != "" {
				want = `Bearer error="insufficient_scope", scope="` + tc.scope + `", resource_metadata="https://herald.example.com/.well-known/oauth-protected-resource/mcp"`
			}
			if r.status != tc.status || r.header.Get("WWW-Authenticate") != want {
				t.Errorf("%d %s %q", r.status, r.body, r.header.Get("WWW-Authenticate"))
			}
			if tc.status == 403 && (!strings.Contains(r.body, `{"error":{"code":"INSUFFICIENT_SCOPE"`) || len(w.posts) > 0) {
				t.Errorf("got %s and %d posts", r.body, len(w.posts))
			}
		})
	}
}

// TestRateLimit verifies that MCP and REST share a rate limit.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	address := newWorld().serve(t, func(o *Options) {
		o.REST = rest.NewHandler(o.Service, rest.Limits{Teams: limits.NewRateLimiter(1, clock.RealClock{})})
	})
	first, second := send(t, "POST", address, "key", ping), send(t, "POST", address, "key", callTool("list_posts", `{}`))
	if first.status != 200 || first.header.Get("RateLimit-Remaining") != "0" {
		t.Errorf("%d %v", first.status, first.header)
	}
	if second.status != 429 || !strings.Contains(second.body, "RATE_LIMITED") || second.header.Get("Retry-After") == "" {
		t.Errorf("%d %s %v", second.status, second.body, second.header)
	}
}

// TestCrossOrigin verifies that pages on other sites may call with a token, and that cookies are ignored.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	address := newWorld().serve(t)
	preflight := send(t, "OPTIONS", address, "", "", "Origin", "https://inspector.example", "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "authorization,content-type,mcp-protocol-version")
	if preflight.status != 204 || preflight.header.Get("Access-Control-Allow-Origin") != "*" || preflight.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%d %v", preflight.status, preflight.header)
	}
	for _, name := range []string{"Authorization", "Content-Type", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
		if !strings.Contains(preflight.header.Get("Access-Control-Allow-Headers"), name) {
			t.Errorf("%s may not be sent", name)
		}
	}
	r := send(t, "POST", address, "", ping, "Origin", "https://inspector.example", "Cookie", "herald=key")
	if r.status != 401 || !strings.Contains(r.header.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
		t.Errorf("%d %v", r.status, r.header)
	}
	if r := send(t, "POST", address, "key", ping, "Origin", "https://inspector.example"); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestHost verifies that a site on a loopback address accepts only loopback hosts, and that any other site accepts
// whatever host its proxies send.
func TestHost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, site, host string
		status             int
	}{
		"LocalRun":      {"local requests are accepted", "http://localhost:8080", "localhost:8080", 200},
		"LocalRunByIP":  {"local requests are accepted", "http://127.0.0.1:8080", "[::1]:8080", 200},
		"LocalRebound":  {"DNS rebinding is rejected", "http://localhost:8080", "evil.example.com", 403},
		"LocalLookLike": {"DNS rebinding is rejected", "http://localhost:8080", "localhost.evil.example.com:8080", 403},
		"Sidecar":       {"a sidecar proxy forwards requests over loopback", "https://herald.example.com", "herald.example.com", 200},
		"Service":       {"clients in the cluster use the Service's name", "https://herald.example.com", "herald-apiserver.herald-system.svc", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := newWorld().serve(t, func(o *Options) { o.SiteURL = tc.site })
			if r := send(t, "POST", address, "key", ping, "Host", tc.host); r.status != tc.status {
				t.Errorf("%s: %d %s", tc.reason, r.status, r.body)
			}
		})
	}
}

// TestListen verifies that a subscription gets its response immediately, because there are no notifications: no request stays
// open.
func TestListen(t *testing.T) {
	t.Parallel()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	r := send(t, "POST", newWorld().serve(t), "key",
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{`+meta+`,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["herald://accounts"]}}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	if r.status != 200 || !strings.Contains(r.body, `"result"`) || strings.Contains(r.body, `"toolsListChanged":true`) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestPanic verifies that a panic fails only one request, and that its cause is logged.
func TestPanic(t *testing.T) {
	t.Parallel()
	w := newWorld()
	r := send(t, "POST", w.serve(t), "key", callTool("get_post", `{"id":"panic"}`))
	if r.status != 200 || !strings.Contains(r.body, "-32603") || !strings.Contains(r.body, "r-17") || strings.Contains(r.body, "haunted") {
		t.Errorf("%d %s", r.status, r.body)
	}
	if w.info.Err == nil || !strings.Contains(w.info.Err.Error(), "haunted") {
		t.Errorf("the log contains %v", w.info.Err)
	}
}

// TestOperations verifies that labels have bounded cardinality, regardless of the input.
func TestOperations(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		callTool("create_post", `{}`): "mcp create_post",
		callTool("list_posts", `{}`):  "mcp list_posts",
		callTool("rm_rf", `{}`):       "mcp tools/call",
		ping:                          "mcp ping",
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`:         "mcp tools/list",
		`{"jsonrpc":"2.0","id":1,"method":"x-` + "\u00e4" + `"}`: "mcp",
		`{`: "mcp",
	} {
		w := newWorld()
		send(t, "POST", w.serve(t), "key", body)
		if w.info.Operation != want || w.info.Key != "deploy" || w.info.Namespace != namespace {
			t.Errorf("%s is logged as %+v, want %q", body, w.info, want)
		}
	}
}

// TestNameOfTheAgent verifies an agent's name: its registered name, self-reported name or key name, without invisible
// characters.
func TestNameOfTheAgent(t *testing.T) {
	t.Parallel()
	h := &Handler{}
	for name, tc := range map[string]struct {
		reason string
		caller bridge.Caller
		client string
		want   string
	}{
		"Registered": {"a user approved this name", bridge.Caller{Key: "grant", Agent: "Claude"}, "Evil", "Claude"},
		"Says":       {"the name comes from the request", bridge.Caller{Key: "deploy"}, "inspector", "inspector"},
		"SaysNot":    {"the client has sent its name to another replica", bridge.Caller{Key: "deploy"}, "", "deploy"},
		"Invisible":  {"invisible characters are not a name", bridge.Caller{Key: "deploy"}, "\u200b\U000e0041\x1b", "deploy"},
		"Hidden":     {"control characters are removed", bridge.Caller{}, "A\x1b[31m\U000e0049\U000e0067B\u202eC\n\n  D\ufe0f", "A[31mBC D"},
		"Long":       {"pages have room for a short name", bridge.Caller{}, strings.Repeat("ä", 200), strings.Repeat("ä", 80) + "…"},
		"Nothing":    {"the agent always has a name", bridge.Caller{}, "", "an agent"},
	} {
		if got := h.named(tc.caller, &message{client: tc.client}).Agent; got != tc.want {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// TestDescriptionsFit verifies that no client truncates a description, and that descriptions use the tools' names.
func TestDescriptionsFit(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"instructions": instructions, "instructions of version 2": instructionsV2}
	if !strings.Contains(instructions, "To move a scheduled post:") {
		t.Error("no tool moves a post, and the instructions do not explain how to")
	}
	for i := range tools {
		texts[tools[i].name] = tools[i].description
	}
	tools := v2.tools
	for i := range tools {
		texts["version 2: "+tools[i].name] = tools[i].description
	}
	for name, said := range texts {
		if len(said) > maxDescription {
			t.Errorf("%s: %d bytes, which clients would truncate", name, len(said))
		}
		for i := range tools {
			if strings.Contains(said, tools[i].operation) {
				t.Errorf("%s calls a tool %s", name, tools[i].operation)
			}
		}
	}
}

// TestResourcesAndPrompts lists the resources and prompts.
func TestResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	session := connect(t, newWorld().serve(t), "read", "")
	read := func(uri string) string {
		t.Helper()
		got, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatal(err)
		}
		return got.Contents[0].Text
	}
	resources, err := session.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) != 2 {
		t.Fatalf("%v, %v", resources, err)
	}
	var rules struct {
		Data []platformRules `json:"data"`
	}
	if err := json.Unmarshal([]byte(read(platformsURI)), &rules); err != nil || len(rules.Data) != 4 {
		t.Fatalf("%+v, %v", rules, err)
	}
	if diff := cmp.Diff(platformRules{
		Platform: v1alpha1.PlatformX, Categories: []v1alpha1.Category{"text", "image", "video", "tree"}, Caption: &limit{280, "weighted characters"}, MaxImages: 4,
		MaxVideoBytes: 512 << 20, Card: &cardRules{MaxMedia: 4, MaxVideos: 1, MaxImageBytes: 5 << 20, MaxVideoBytes: 512 << 20},
	}, rules.Data[0]); diff != "" {
		t.Errorf("the rules of X: %s", diff)
	}
	accounts := read(accountsURI)
	for _, want := range []string{
		`"id":"acme-x","platform":"x","account_name":"Acme","username":"acme_x"`, `"state":"ready"`,
		`"tiktok":{"tiktok_privacy_levels":["SELF_ONLY"],"allows_comments":true,"allows_duets":false,"allows_stitches":true}`,
	} {
		if !strings.Contains(accounts, want) {
			t.Errorf("the accounts %s lack %s", accounts, want)
		}
	}
	listed, err := session.ListPrompts(t.Context(), nil)
	if err != nil || len(listed.Prompts) != len(prompts) {
		t.Fatalf("%v, %v", listed, err)
	}
	for _, p := range listed.Prompts {
		given := map[string]string{}
		for _, argument := range p.Arguments {
			given[argument.Name] = "the " + argument.Name + " of it"
		}
		got, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: p.Name, Arguments: given})
		if err != nil {
			t.Fatal(err)
		}
		said := got.Messages[0].Content.(*mcp.TextContent).Text
		for _, value := range given {
			if !strings.Contains(said, value) {
				t.Errorf("the prompt %s lacks %q: %s", p.Name, value, said)
			}
		}
	}
}

// FuzzReader verifies that no body makes a read-only token write, even if two JSON parsers would disagree about the
// body, and that every response is JSON.
func FuzzReader(f *testing.F) {
	create := callTool("create_post", text("Hello", `,"draft":true`))
	for _, body := range []string{
		create, ping, "", "[" + create + "]", strings.Replace(create, `"name"`, `"n\u0061me"`, 1), strings.Replace(create, `"name":`, `"name":"list_posts","name":`, 1),
		strings.Replace(create, `"name":`, `"Name":"list_posts","name":`, 1), strings.Replace(create, `"method":`, `"method":"ping","method":`, 1),
		strings.Replace(create, "tools/call", `tools\/call`, 1), strings.Replace(create, "create_post", "create_post\x00", 1), create + create, "\ufeff" + create,
	} {
		f.Add(body)
	}
	w := newWorld()
	handler := w.handler(f, func(o *Options) { o.REST = rest.NewHandler(o.Service, rest.Limits{}) })
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer read")
		r.Header.Set("Content-Type", "application/json")
		out := httptest.NewRecorder()
		handler.ServeHTTP(out, r)
		if out.Body.Len() > 0 && !json.Valid(out.Body.Bytes()) {
			t.Errorf("got %d %q", out.Code, out.Body)
		}
		if len(w.posts) > 0 {
			t.Errorf("a caller with read access created a post with %q", body)
		}
	})
}
