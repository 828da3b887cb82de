// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/sandbox"
)

const (
	demoID     = "1500000000000000001"
	demoAccess = "x-access-demo"
)

// tellingClock is a fake clock that signals each new timer.
type tellingClock struct {
	*clocktesting.FakeClock
	timers chan struct{}
}

func newClock() *tellingClock {
	return &tellingClock{
		FakeClock: clocktesting.NewFakeClock(time.Date(2026, 12, 1, 9, 0, 0, 123_000_000, time.UTC)),
		timers:    make(chan struct{}, 100),
	}
}

// NewTimer creates a timer and signals it.
func (c *tellingClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.timers <- struct{}{}
	return timer
}

// box is a running sandbox with a client.
type box struct {
	t     *testing.T
	clock *tellingClock
	dir   string
	// lenient applies to the next opened server.
	lenient bool
	plain   []string
	siteURL string
	server  *sandbox.Server
	http    *httptest.Server
	client  *http.Client
}

func start(t *testing.T, dir string) *box {
	t.Helper()
	b := &box{t: t, clock: newClock()}
	b.open(dir)
	return b
}

// startLenient starts a sandbox in lenient mode, like cmd/herald-sandbox.
func startLenient(t *testing.T) *box {
	t.Helper()
	b := &box{t: t, clock: newClock(), lenient: true}
	b.open("")
	return b
}

// open starts a server with the box's clock.
func (b *box) open(dir string) {
	b.t.Helper()
	server, err := sandbox.New(sandbox.Options{Clock: b.clock, StateDir: dir, Lenient: b.lenient, PlainHosts: b.plain, SiteURL: b.siteURL})
	if err != nil {
		b.t.Fatal(err)
	}
	b.dir, b.server, b.http = dir, server, httptest.NewServer(server)
	// Connections are not reused, because Go's client silently retries a GET on a closed reused connection.
	b.client = &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	b.t.Cleanup(func() {
		b.http.Close()
		if err := b.server.Close(); err != nil {
			b.t.Error(err)
		}
	})
}

type reply struct {
	status int
	header http.Header
	body   string
}

// at returns the value at a path of names and list indexes in the JSON response.
func (r reply) at(names ...string) any {
	var value any
	if json.Unmarshal([]byte(r.body), &value) != nil {
		return nil
	}
	for _, name := range names {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

func (r reply) text(names ...string) string {
	s, _ := r.at(names...).(string)
	return s
}

func (r reply) list(names ...string) []any {
	l, _ := r.at(names...).([]any)
	return l
}

// try sends a request and returns an error if there was no response.
func (b *box) try(method, path, token, contentType, body string) (reply, error) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.http.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: string(content)}, err
}

func (b *box) call(method, path, token, contentType, body string) reply {
	b.t.Helper()
	r, err := b.try(method, path, token, contentType, body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func (b *box) get(path string) reply { return b.call(http.MethodGet, path, demoAccess, "", "") }

// control calls the control API and fails the test unless the status is want.
func (b *box) control(method, path, body string, want int) reply {
	b.t.Helper()
	r := b.call(method, "/_control"+path, "", "application/json", body)
	if r.status != want {
		b.t.Fatalf("%s /_control%s: status %d, want %d: %s", method, path, r.status, want, r.body)
	}
	return r
}

func (b *box) fault(body string) {
	b.t.Helper()
	b.control(http.MethodPost, "/faults", body, http.StatusCreated)
}

// tweet sends a body to POST /2/tweets as the demo account.
func (b *box) tweet(body string) reply {
	b.t.Helper()
	return b.call(http.MethodPost, "/x/2/tweets", demoAccess, "application/json", body)
}

// post publishes a text as the demo account and returns its id.
func (b *box) post(text string) string {
	b.t.Helper()
	r := b.tweet(textBody(text))
	if r.status != http.StatusCreated {
		b.t.Fatalf("post %q: %d %s", text, r.status, r.body)
	}
	return r.text("data", "id")
}

func textBody(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(map[string]string{"text": text}) // encoding a string cannot fail
	return out.String()
}

// refresh exchanges a refresh token as a public client.
func (b *box) refresh(token string) reply {
	b.t.Helper()
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {"tests"}}
	return b.call(http.MethodPost, "/x/2/oauth2/token", "", "application/x-www-form-urlencoded", form.Encode())
}

// texts returns all posts' texts, from the control API.
func (b *box) texts() []string {
	b.t.Helper()
	var out []string
	for _, post := range b.control(http.MethodGet, "/posts", "", http.StatusOK).list("data") {
		object, _ := post.(map[string]any)
		text, _ := object["text"].(string)
		out = append(out, text)
	}
	return out
}

// calls returns the number of calls of an X operation.
func (b *box) calls(operation string) int {
	b.t.Helper()
	return b.callsOn("x", operation)
}

// callsOn returns the number of calls of a platform's operation.
func (b *box) callsOn(platform, operation string) int {
	b.t.Helper()
	for _, entry := range b.control(http.MethodGet, "/calls", "", http.StatusOK).list("data") {
		object, _ := entry.(map[string]any)
		if object["platform"] == platform && object["operation"] == operation {
			n, _ := object["count"].(float64)
			return int(n)
		}
	}
	b.t.Fatalf("no counter for %s of %s", operation, platform)
	return 0
}

// timeline returns the IDs on a page of the demo account's timeline.
func (b *box) timeline(query string) []string {
	b.t.Helper()
	r := b.get("/x/2/users/" + demoID + "/tweets" + query)
	if r.status != http.StatusOK {
		b.t.Fatalf("timeline%s: %d %s", query, r.status, r.body)
	}
	out := []string{}
	for _, post := range r.list("data") {
		object, _ := post.(map[string]any)
		id, _ := object["id"].(string)
		out = append(out, id)
	}
	return out
}

// listenAgain serves the same server at a new address.
func (b *box) listenAgain() { b.http = httptest.NewServer(b.server) }
