// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// form is the media type of forms.
const form = "application/x-www-form-urlencoded"

// door is a request without valid credentials.
type door struct {
	reason, method, path string
	header               http.Header
	body                 string
	// first is the status of the first response.
	first int
	// most is the number of responses before 429; zero means the limit for unauthenticated clients.
	most int
	// open means that no request is rejected.
	open bool
}

func with(name, value string) http.Header { return http.Header{name: {value}} }

// allDoors are all entry points.
var allDoors = []door{
	{reason: "REST without a key", method: http.MethodGet, path: "/api/v1/posts", first: 401},
	{reason: "REST with a made-up key", method: http.MethodGet, path: "/api/v1/posts", header: with("Authorization", "Bearer herald_made_up"), first: 401},
	{reason: "REST with a request body", method: http.MethodPost, path: "/api/v1/posts", header: with("Content-Type", "application/json"), body: "{}", first: 401},
	{reason: "an unknown path of REST", method: http.MethodGet, path: "/api/v1/nothing", first: 401},
	{reason: "MCP without a token", method: http.MethodPost, path: "/mcp", header: with("Content-Type", "application/json"), body: "{}", first: 401},
	{reason: "MCP with a made-up token", method: http.MethodPost, path: "/mcp", header: with("Authorization", "Bearer hoa_made_up"), body: "{}", first: 401},
	{reason: "a browser's preflight request to MCP", method: http.MethodOptions, path: "/mcp", first: 204},
	{reason: "the start page", method: http.MethodGet, path: "/", first: 303},
	{reason: "the sign-in page", method: http.MethodGet, path: "/signin", first: 200},
	{reason: "a made-up sign-in link", method: http.MethodGet, path: "/signin/link/" + strings.Repeat("a", 43), first: 404, most: 30},
	{reason: "signing out of a session that does not exist", method: http.MethodPost, path: "/signout", header: with("Content-Type", form), first: 303},
	{reason: "a team's page", method: http.MethodGet, path: "/teams/demo/posts", first: 303},
	{reason: "a team's form", method: http.MethodPost, path: "/teams/demo/posts/new", header: with("Content-Type", form), body: "a=b", first: 401},
	{reason: "a preview", method: http.MethodPost, path: "/teams/demo/compose/check", header: with("Content-Type", form), body: "a=b", first: 401},
	{reason: "an upload", method: http.MethodPost, path: "/teams/demo/media", header: with("Content-Type", form), body: "a=b", first: 401},
	{reason: "a post's events", method: http.MethodGet, path: "/teams/demo/posts/p/events", header: with("Accept", "text/event-stream"), first: 204},
	{reason: "a platform's callback", method: http.MethodGet, path: "/connect/x/callback?code=a&state=b", first: 401},
	{reason: "a server's callback", method: http.MethodGet, path: "/connect/mastodon/callback/mastodon.example?code=a&state=b", first: 401},
	{reason: "the consent page for an agent", method: http.MethodGet, path: "/oauth/authorize?client_id=a", first: 303},
	{reason: "a form from another site", method: http.MethodPost, path: "/teams/demo/posts/new", header: with("Origin", "https://evil.example"), first: 403},
	{reason: "an asset of the pages", method: http.MethodGet, path: "/assets/nothing.css", first: 404},
	{reason: "an unknown path", method: http.MethodGet, path: "/nothing", first: 404},
	{reason: "an unclean path", method: http.MethodGet, path: "/a//b", first: 404},
	{reason: "the OpenAPI document", method: http.MethodGet, path: "/docs", first: 200},
	{reason: "the text for language models", method: http.MethodGet, path: "/openapi.json", first: 200},
	{reason: "a semicolon in a query, which net/http logs", method: http.MethodGet, path: "/docs?a;b", first: 200},
	{reason: "the metadata for agents", method: http.MethodGet, path: "/.well-known/oauth-protected-resource", first: 200},
	{reason: "a browser's preflight request to OAuth", method: http.MethodOptions, path: "/oauth/token", first: 204},
	{reason: "OAuth with an unsupported method", method: http.MethodGet, path: "/oauth/token", first: 405},
	{reason: "an empty OAuth form", method: http.MethodPost, path: "/oauth/token", header: with("Content-Type", form), first: 401},
	{
		reason: "a made-up code", method: http.MethodPost, path: "/oauth/token", header: with("Content-Type", form), first: 400,
		body: "client_id=a&grant_type=authorization_code&code=b", most: 300,
	},
	{
		reason: "a made-up refresh token", method: http.MethodPost, path: "/oauth/token", header: with("Content-Type", form), first: 400,
		body: "client_id=a&grant_type=refresh_token&refresh_token=b", most: 300,
	},
	{reason: "a made-up token to revoke", method: http.MethodPost, path: "/oauth/revoke", header: with("Content-Type", form), body: "token=a", first: 200},
	{reason: "an empty registration", method: http.MethodPost, path: "/oauth/register", first: 400, most: 6000},
	{reason: "the health, for load balancers", method: http.MethodGet, path: "/health", first: 200, open: true},
	{reason: "version 2 without a key", method: http.MethodGet, path: "/api/v2/posts", first: 401},
	{reason: "version 2 with a made-up key", method: http.MethodGet, path: "/api/v2/posts?q=a", header: with("Authorization", "Bearer herald_made_up"), first: 401},
	{reason: "a change without a key", method: http.MethodPatch, path: "/api/v2/posts/p", header: with("Content-Type", "application/json"), body: "{}", first: 401},
	{reason: "a validation without a key", method: http.MethodPost, path: "/api/v2/posts/validate", header: with("Content-Type", "application/json"), body: "{}", first: 401},
	{reason: "version 2 of MCP without a token", method: http.MethodPost, path: "/mcp/v2", header: with("Content-Type", "application/json"), body: "{}", first: 401},
	{reason: "a browser's preflight request to version 2 of MCP", method: http.MethodOptions, path: "/mcp/v2", first: 204},
	{reason: "the OpenAPI document of version 2", method: http.MethodGet, path: "/openapi-v2.json", first: 200},
}

// doors sends more requests to each entry point than one unauthenticated client may send.
func doors(t *testing.T, under *target) {
	limit := configv1alpha1.DefaultAPIServer().RequestsPerMinute
	for i, d := range allDoors {
		t.Run(d.reason, func(t *testing.T) {
			from := 20_000 + i
			_, logged := under.logged(t, 0)
			most := limit
			if d.most > 0 {
				most = d.most
			}
			by, answered := client(t, from), map[int]int{}
			var refused *answer
			// In the meantime, the limit recovers by ten requests per second.
			for range most + most/5 + 100 {
				got, err := request(t.Context(), by, d.method, "http://"+under.Site+d.path, d.header, d.body)
				must.Succeed(t, err)
				answered[got.status]++
				if got.status == http.StatusTooManyRequests {
					refused = &got
				}
			}
			d.verify(t, answered, refused, most)
			lines, _ := under.logged(t, logged)
			own := 0
			for _, line := range lines {
				if strings.Contains(string(line), fmt.Sprintf("127.1.%d.%d", byte(from>>8), byte(from))) {
					own++
				}
			}
			// Each status is logged once, and again after a minute.
			if own > 2*(len(answered)+1) {
				t.Errorf("unauthenticated requests caused %d log lines", own)
			}
			under.served(t, from)
		})
	}
	signedIn(t, under)
}

// verify checks the counts by status, and the last rejection, which is nil if there was none.
func (d *door) verify(t *testing.T, answered map[int]int, refused *answer, most int) {
	t.Helper()
	t.Logf("responses: %v", answered)
	switch {
	case answered[d.first] == 0:
		t.Errorf("responses: %v, want %d among them", answered, d.first)
	case d.open:
		if refused != nil {
			t.Errorf("%d were refused", answered[http.StatusTooManyRequests])
		}
	case refused == nil:
		t.Errorf("responses: %v; unauthenticated clients are not limited after %d requests", answered, most)
	case refused.header.Get("Retry-After") == "" || !refused.closed:
		t.Errorf("the rejection has no Retry-After header, or leaves the connection open: %v", refused.header)
	}
}

// signedIn expects that a signed-in user can open pages from an address that has reached the limit for unauthenticated
// clients.
func signedIn(t *testing.T, under *target) {
	t.Helper()
	const from = 20_007 // the door "the start page" has used up the limit of this address
	by := client(t, from)
	link, err := under.running.SignInLink(t.Context())
	must.Succeed(t, err)
	site := "http://" + under.Site
	// The link is used from another address, because this one has reached its limit.
	got, err := request(t.Context(), client(t, 30_000), http.MethodPost, strings.Replace(link, under.running.Site(), site, 1), with("Content-Type", form), "")
	must.Succeed(t, err)
	if len(got.cookies) == 0 {
		t.Fatalf("the one-time link returned %d without a session", got.status)
	}
	header := http.Header{}
	for _, c := range got.cookies {
		if c.Value != "" {
			header.Add("Cookie", c.Name+"="+c.Value)
		}
	}
	for _, path := range []string{"/", "/docs", "/teams/demo/posts"} {
		if got, err = request(t.Context(), by, http.MethodGet, site+path, header, ""); err != nil || got.status == http.StatusTooManyRequests {
			t.Errorf("a signed-in user got %d, %v at %s", got.status, err, path)
		}
	}
}
