// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// browser consents on the pages of a real server, by their JSON API.
type browser struct {
	t       *testing.T
	origin  string
	page    string
	cookies map[string]string
}

func (b *browser) send(method, address string, body any, head map[string]string) (*http.Response, []byte) {
	b.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, address, bytes.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	for name, value := range head {
		req.Header.Set(name, value)
	}
	var jar []string
	for name, value := range b.cookies {
		jar = append(jar, name+"="+value)
	}
	req.Header.Set("Cookie", strings.Join(jar, "; "))
	req.Header.Set("User-Agent", "Mozilla/5.0")
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := stay.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, c := range resp.Cookies() {
		b.cookies[c.Name] = c.Value
	}
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp, content
}

// call uses the API of the pages.
func (b *browser) call(endpoint string, body map[string]any, token string) map[string]any {
	b.t.Helper()
	head := map[string]string{
		"Content-Type": "application/json", "Referer": b.page, "Origin": b.origin, "Sec-Fetch-Mode": "same-origin", "Sec-Fetch-Site": "same-origin",
		"X-CSRF-Token": b.cookies["csrf-token"],
	}
	if token != "" {
		head["Authorization"] = "Bearer " + token
	}
	resp, content := b.send(http.MethodPost, b.origin+"/@atproto/oauth-provider/~api/"+endpoint, body, head)
	out := map[string]any{}
	if err := json.Unmarshal(content, &out); err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %s %s", endpoint, resp.Status, content)
	}
	return out
}

// TestJudged connects an account of a real server: HERALD_PDS and HERALD_PLC are its address and its directory's.
func TestJudged(t *testing.T) {
	at, directory := os.Getenv("HERALD_PDS"), os.Getenv("HERALD_PLC")
	if at == "" {
		t.Skip("no server")
	}
	back := "http://127.0.0.1:8080/connect/bluesky/callback"
	client := "http://localhost?" + url.Values{"redirect_uri": {back}, "scope": {Scopes}}.Encode()
	p := New(Config{Config: platforms.Config{APIURL: at, ClientID: client}, DirectoryURL: directory}, transport.New(transport.Options{}))
	consent := platforms.Consent{RedirectURI: back, State: "s1", Verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}
	page, of, failure := p.begin(t.Context(), os.Getenv("HERALD_HANDLE"), consent)
	if failure != nil {
		t.Fatal(failure, failure.Err)
	}
	b := &browser{t: t, origin: at, page: page, cookies: map[string]string{}}
	resp, content := b.send(http.MethodGet, page, nil, map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "cross-site"})
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the consent page: %s %.500s", resp.Status, content)
	}
	signed := b.call("sign-in", map[string]any{"locale": "en", "username": os.Getenv("HERALD_HANDLE"), "password": "correct-horse-battery"}, "")
	token, _ := signed["ephemeralToken"].(string)
	agreed := b.call("consent", map[string]any{"did": of.DID}, token)
	to, err := url.Parse(agreed["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(to)
	query := to.Query()
	granted, failure := p.finish(t.Context(), of, platforms.Code{Value: query.Get("code"), RedirectURI: back, Verifier: consent.Verifier}, query.Get("iss"))
	if failure != nil {
		t.Fatal(failure, failure.Err)
	}
	t.Log(granted.Scopes, granted.ExpiresAt)
	publish := func(token platforms.Token, seed byte) {
		t.Helper()
		identity, err := p.Identify(t.Context(), token)
		if err != nil || identity.AccountID != of.DID {
			t.Fatalf("identified %+v, %v", identity, err)
		}
		job := platforms.Job{Account: platforms.Account{ID: of.DID, Token: token}, Content: platforms.Content{Category: v1alpha1.CategoryText, Text: "by OAuth"}, Key: platforms.Key{Sum: [16]byte{seed}}}
		result := p.Publish(t.Context(), job)
		if result.Outcome != platforms.Posted {
			t.Fatalf("published %+v, %v", result, result.Err)
		}
		found, err := p.Lookup(t.Context(), job)
		if err != nil || found.ExternalID != result.ExternalID {
			t.Fatalf("found %+v, %v", found, err)
		}
	}
	publish(granted, 1)
	renewed, err := p.Refresh(t.Context(), granted)
	if err != nil {
		t.Fatal(err)
	}
	publish(renewed, 2)
	if _, err := p.Refresh(t.Context(), granted); err == nil {
		t.Error("a refresh token was valid twice")
	}
}
