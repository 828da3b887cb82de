// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"context"
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
	timeline   = "/x/2/users/" + demoID + "/tweets"

	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
	jsonUTF8 = "application/json; charset=UTF-8"
)

// signalingClock is a fake clock that signals each new timer.
type signalingClock struct {
	*clocktesting.FakeClock
	timers chan struct{}
}

func newClock() *signalingClock {
	return &signalingClock{
		FakeClock: clocktesting.NewFakeClock(time.Date(2026, 12, 1, 9, 0, 0, 123_000_000, time.UTC)),
		timers:    make(chan struct{}, 100),
	}
}

// NewTimer creates a timer and signals it.
func (c *signalingClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.timers <- struct{}{}
	return timer
}

// box is a running sandbox with a client.
type box struct {
	t     *testing.T
	clock *signalingClock
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

// each returns the string at a path within each element of a list.
func (r reply) each(list string, path ...string) []string {
	out := []string{}
	for i := range r.list(strings.Split(list, ".")...) {
		out = append(out, r.text(append(append(strings.Split(list, "."), strconv.Itoa(i)), path...)...))
	}
	return out
}

// ids returns the IDs in a listing.
func (r reply) ids() []string { return r.each("data", "id") }

// try sends a request and returns an error if there was no response.
func (b *box) try(method, path, token, contentType, body string) (reply, error) {
	b.t.Helper()
	var headers []string
	if token != "" {
		headers = append(headers, "Authorization: Bearer "+token)
	}
	if contentType != "" {
		headers = append(headers, "Content-Type: "+contentType)
	}
	return b.do(b.request(b.t.Context(), method, b.http.URL+path, strings.NewReader(body), headers...))
}

// request returns a request with headers of the form "Name: value".
func (b *box) request(ctx context.Context, method, address string, body io.Reader, headers ...string) *http.Request {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	return req
}

func (b *box) do(req *http.Request) (reply, error) {
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
	r := b.call(method, "/_control"+path, "", jsonType, body)
	if r.status != want {
		b.t.Fatalf("%s /_control%s: status %d, want %d: %s", method, path, r.status, want, r.body)
	}
	return r
}

func (b *box) fault(body string) {
	b.t.Helper()
	b.control(http.MethodPost, "/faults", body, http.StatusCreated)
}

// set changes settings of the demo account on a platform.
func (b *box) set(platform, settings string) {
	b.t.Helper()
	b.control(http.MethodPut, "/accounts/"+platform+"/"+demo(b.t, platform).ID, settings, http.StatusOK)
}

// account creates an account and returns its access token.
func (b *box) account(platform, id, settings string) string {
	b.t.Helper()
	return b.control(http.MethodPut, "/accounts/"+platform+"/"+id, settings, http.StatusCreated).text("data", "access_token")
}

// page requests an address without a token, as a browser does.
func (b *box) page(path string) reply {
	b.t.Helper()
	return b.call(http.MethodGet, path, "", "", "")
}

// restart stops the server and starts another one with the same clock and folder.
func (b *box) restart() *box {
	b.t.Helper()
	return b.restarted(func() {})
}

// restarted is like restart, but calls between after the first server has stopped.
func (b *box) restarted(between func()) *box {
	b.t.Helper()
	if err := b.server.Close(); err != nil {
		b.t.Fatal(err)
	}
	between()
	c := &box{t: b.t, clock: b.clock}
	c.open(b.dir)
	return c
}

// tweet sends a body to POST /2/tweets as the demo account.
func (b *box) tweet(body string) reply {
	b.t.Helper()
	return b.call(http.MethodPost, "/x/2/tweets", demoAccess, jsonType, body)
}

// post publishes a text post as the demo account and returns its id.
func (b *box) post(text string) string {
	b.t.Helper()
	return b.tweet(textBody(text)).want(b.t, "the post "+text, 201).text("data", "id")
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
	return b.call(http.MethodPost, "/x/2/oauth2/token", "", formType, form.Encode())
}

// texts returns all posts' captions, from the control API.
func (b *box) texts() []string {
	b.t.Helper()
	return b.control(http.MethodGet, "/posts", "", http.StatusOK).each("data", "text")
}

// callsOn returns the number of calls to a platform's operation.
func (b *box) callsOn(platform, operation string) int {
	b.t.Helper()
	return b.countOn(platform, operation, "count")
}

// countOn returns one of the counts for a platform's operation.
func (b *box) countOn(platform, operation, number string) int {
	b.t.Helper()
	for _, entry := range b.control(http.MethodGet, "/calls", "", http.StatusOK).list("data") {
		object, _ := entry.(map[string]any)
		if object["platform"] == platform && object["operation"] == operation {
			n, _ := object[number].(float64)
			return int(n)
		}
	}
	b.t.Fatalf("no counter for %s of %s", operation, platform)
	return 0
}

// timeline returns the IDs on a page of the demo account's timeline.
func (b *box) timeline(query string) []string {
	b.t.Helper()
	return b.get(timeline+query).want(b.t, "the timeline"+query, 200).ids()
}

// listenAgain serves the same server at a new address.
func (b *box) listenAgain() { b.http = httptest.NewServer(b.server) }

func demo(t *testing.T, platform string) sandbox.Account {
	t.Helper()
	for _, a := range sandbox.DemoAccounts() {
		if a.Platform == platform {
			return a
		}
	}
	t.Fatalf("no demo account on %s", platform)
	return sandbox.Account{}
}

// as sends a request with the token of a platform's demo account.
func (b *box) as(platform, method, path, contentType, body string) reply {
	b.t.Helper()
	return b.call(method, path, demo(b.t, platform).AccessToken, contentType, body)
}

// read sends a GET with the token of a platform's demo account.
func (b *box) read(platform, path string) reply {
	b.t.Helper()
	return b.as(platform, http.MethodGet, path, "", "")
}

// form posts a form with the token of a platform's demo account.
func (b *box) form(platform, path string, values url.Values) reply {
	b.t.Helper()
	return b.as(platform, http.MethodPost, path, formType, values.Encode())
}
