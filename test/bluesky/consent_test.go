// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"testing"

	"github.com/herald-social/herald/test/must"
)

// consenter grants access on the server's pages, through the API that their script uses.
type consenter struct {
	t      *testing.T
	server string
	page   string
	client *http.Client
}

// consent grants access to an account on a consent page, and returns the address that the server redirects to.
func consent(t *testing.T, s *server, a *account, page string) *url.URL {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must.Succeed(t, err)
	c := &consenter{t: t, server: s.URL, page: page, client: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	navigate := func(from string) map[string]string {
		return map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": from, "Referer": page}
	}
	if got := c.send(http.MethodGet, page, nil, navigate("cross-site")); got.status != http.StatusOK {
		t.Fatalf("the consent page is %d %.500s", got.status, got.body)
	}
	signedIn := c.call("sign-in", map[string]any{"locale": "en", "username": a.Handle, "password": a.Password}, "")
	allowed := c.call("consent", map[string]any{"did": a.DID}, signedIn["ephemeralToken"])
	got := c.send(http.MethodGet, allowed["url"], nil, navigate("same-origin"))
	back, err := url.Parse(got.location)
	if err != nil || got.location == "" {
		t.Fatalf("the server does not redirect back: %d %.500s", got.status, got.body)
	}
	return back
}

// pageAnswer is a response to a browser.
type pageAnswer struct {
	status   int
	location string
	body     []byte
}

func (c *consenter) send(method, address string, body []byte, head map[string]string) pageAnswer {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, address, bytes.NewReader(body))
	must.Succeed(c.t, err)
	// The server rejects programs that do not look like a browser.
	request.Header.Set("User-Agent", "Mozilla/5.0")
	for name, value := range head {
		request.Header.Set(name, value)
	}
	response, err := c.client.Do(request)
	must.Succeed(c.t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	must.Succeed(c.t, err)
	return pageAnswer{response.StatusCode, response.Header.Get("Location"), content}
}

// call calls the pages' API, and returns the string fields of its response.
func (c *consenter) call(endpoint string, body map[string]any, token string) map[string]string {
	c.t.Helper()
	at, err := url.Parse(c.server)
	must.Succeed(c.t, err)
	head := map[string]string{
		"Content-Type": "application/json", "Referer": c.page, "Origin": c.server, "Sec-Fetch-Mode": "same-origin", "Sec-Fetch-Site": "same-origin",
	}
	for _, cookie := range c.client.Jar.Cookies(at) {
		if cookie.Name == "csrf-token" {
			head["X-CSRF-Token"] = cookie.Value
		}
	}
	if token != "" {
		head["Authorization"] = "Bearer " + token
	}
	text, err := json.Marshal(body)
	must.Succeed(c.t, err)
	got := c.send(http.MethodPost, c.server+"/@atproto/oauth-provider/~api/"+endpoint, text, head)
	var all map[string]any
	if err := json.Unmarshal(got.body, &all); err != nil || got.status != http.StatusOK {
		c.t.Fatalf("%s is answered %d %s", endpoint, got.status, got.body)
	}
	texts := map[string]string{}
	for name, value := range all {
		texts[name], _ = value.(string)
	}
	return texts
}
