// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/test/issuertest"
	"github.com/herald-social/herald/test/sessiontest"
)

const site = "https://herald.example.com"

// world is a site with its Secret, in a synctest bubble.
type world struct {
	t        *testing.T
	secrets  *sessiontest.Secrets
	sessions *session.Manager
	handlers *signin.Handlers
	handler  http.Handler
	// counted are the sign-ins that ended, such as "oidc refused".
	counted []string
	log     *strings.Builder
	issuer  *issuertest.Issuer
	// down makes the provider unavailable.
	down atomic.Bool
}

// RoundTrip sends a request to the provider without a network.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.down.Load() {
		return nil, errors.New("connection refused")
	}
	out := httptest.NewRecorder()
	w.issuer.ServeHTTP(out, r)
	return out.Result(), nil
}

// newWorld returns a site. With claims, people sign in through a provider that issues them.
func newWorld(t *testing.T, claims map[string]any, edits ...func(*signin.OIDC)) *world {
	t.Helper()
	w := &world{t: t, secrets: sessiontest.New(), log: &strings.Builder{}}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	w.sessions = session.NewManager(session.Options{
		Secrets: w.secrets, Namespace: sessiontest.Namespace, Name: sessiontest.Name, Secure: true, Clock: clock.RealClock{}, Log: log,
	})
	go w.sessions.Run(t.Context())
	synctest.Wait()
	o := signin.Options{
		Sessions: w.sessions, SiteURL: site, Clock: clock.RealClock{}, Log: log, LinkCommand: "herald signin-link",
		OnOutcome: func(by signin.Method, outcome signin.Outcome) {
			w.counted = append(w.counted, string(by)+" "+string(outcome))
		},
		Page: func(title string, body ...g.Node) g.Node {
			return html.Doctype(html.HTML(html.Head(html.TitleEl(g.Text(title))), html.Body(body...)))
		},
	}
	if claims != nil {
		w.issuer = &issuertest.Issuer{URL: "https://id.example.com", RedirectURI: site + "/signin/oidc/callback", Claims: claims}
		o.OIDC = &signin.OIDC{
			IssuerURL: "https://id.example.com", ClientID: issuertest.ClientID,
			ClientSecret:  func() (string, error) { return issuertest.ClientSecret, nil },
			UsernameClaim: "email", UsernamePrefix: "oidc:", GroupsClaim: "groups", GroupsPrefix: "oidc:", Scopes: []string{"profile", "email"},
			Client: &http.Client{Transport: w},
		}
		for _, edit := range edits {
			edit(o.OIDC)
		}
	}
	mux := http.NewServeMux()
	w.handlers = signin.New(o)
	w.handlers.Mount(mux)
	w.handler = http.NewCrossOriginProtection().Handler(mux)
	return w
}

func bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// browser stores cookies, and has one address.
type browser struct {
	*world

	cookies map[string]*http.Cookie
	address string
}

func (w *world) browser() *browser {
	return &browser{world: w, cookies: map[string]*http.Cookie{}, address: "192.0.2.1:1234"}
}

// reply is a response with its body.
type reply struct {
	StatusCode int
	Header     http.Header
	body       string
	cookies    []*http.Cookie
}

// Cookies returns the cookies that the response sets.
func (r *reply) Cookies() []*http.Cookie { return r.cookies }

// do sends a request with the browser's cookies, and stores those that the response sets.
func (b *browser) do(method, path string, edits ...func(*http.Request)) *reply {
	b.t.Helper()
	r := httptest.NewRequest(method, site+path, http.NoBody)
	r.RemoteAddr = b.address
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	for _, edit := range edits {
		edit(r)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	answer := &reply{w.Code, w.Header(), w.Body.String(), (&http.Response{Header: w.Header()}).Cookies()}
	for _, cookie := range answer.Cookies() {
		if b.cookies[cookie.Name] = cookie; cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		}
	}
	return answer
}

// who returns the user whom the browser's cookies sign in, or a zero person.
func (b *browser) who() access.Person {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	s, _ := b.sessions.Read(r)
	return s.Person
}

func text(t *testing.T, answer *reply) string {
	t.Helper()
	return answer.body
}

// link creates a one-time link and returns its path.
func (w *world) link(valid time.Duration) string {
	w.t.Helper()
	token, err := session.AddLink(w.t.Context(), w.secrets, sessiontest.Name, clock.RealClock{}, valid)
	if err != nil {
		w.t.Fatal(err)
	}
	return signin.LinkPath + token
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func form(values url.Values) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Body = io.NopCloser(strings.NewReader(values.Encode()))
	}
}

// TestLinkCommand verifies that only a visitor on the same machine sees the command, which names files on the server.
func TestLinkCommand(t *testing.T) {
	for site, shown := range map[string]bool{
		"http://localhost:8080": true, "http://127.0.0.1:8080": true, "http://[::1]:8080": true,
		"https://herald.example.com": false, "https://localhost.example.com": false, "http://10.0.0.1:8080": false, "http://0.0.0.0:8080": false,
	} {
		bubble(t, func(t *testing.T) {
			mux := http.NewServeMux()
			signin.New(signin.Options{
				Sessions: newWorld(t, nil).sessions, SiteURL: site, Clock: clock.RealClock{}, LinkCommand: "herald signin-link --config /srv/a.yaml",
				Page: func(_ string, body ...g.Node) g.Node { return g.Group(body) },
			}).Mount(mux)
			answer := httptest.NewRecorder()
			mux.ServeHTTP(answer, httptest.NewRequestWithContext(request.With(t.Context(), &request.Info{}), http.MethodGet, "/signin", http.NoBody))
			if got := strings.Contains(answer.Body.String(), "/srv/a.yaml"); answer.Code != http.StatusOK || got != shown {
				t.Errorf("%s: %d, shows the command: %t, want %t: %s", site, answer.Code, got, shown, answer.Body)
			}
		})
	}
}

func TestSignInPage(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		claims map[string]any
		path   string
		want   []string
	}{
		"by a link":          {"the page explains how to get a link", nil, "/signin", []string{"one-time link", "Ask an administrator of this installation for one"}},
		"by a provider":      {"the provider is one click away", map[string]any{}, "/signin", []string{`href="/signin/oidc"`, "id.example.com"}},
		"with a destination": {"users continue where they wanted to go", map[string]any{}, "/signin?return_to=/teams/acme/posts%3Fpage%3D2", []string{`href="/signin/oidc?return_to=%2Fteams%2Facme%2Fposts%3Fpage%3D2"`}},
		"to another site":    {"a foreign link must not redirect", map[string]any{}, "/signin?return_to=https://evil.example", []string{`href="/signin/oidc"`}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				answer := newWorld(t, tc.claims).browser().do(http.MethodGet, tc.path)
				body := text(t, answer)
				for _, want := range tc.want {
					if answer.StatusCode != http.StatusOK || !strings.Contains(body, want) {
						t.Errorf("%s: got %d, want %q in %s", tc.reason, answer.StatusCode, want, body)
					}
				}
				if answer.Header.Get("Cache-Control") != "no-store" || answer.Header.Get("Referrer-Policy") != "same-origin" {
					t.Errorf("got the headers %v", answer.Header)
				}
			})
		})
	}
}

func TestLink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		path := w.link(time.Minute)
		scanner, person := w.browser(), w.browser()
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodGet} {
			if answer := scanner.do(method, path); answer.StatusCode != http.StatusOK || len(answer.Cookies()) > 0 {
				t.Errorf("a mail scanner's request: %d, %v", answer.StatusCode, answer.Cookies())
			}
		}
		page := text(t, person.do(http.MethodGet, path))
		if !strings.Contains(page, `<form method="post"><button type="submit" class="button primary">`) || strings.Contains(page, path) {
			t.Errorf("want a button that posts to the page's own address, which the page does not contain: %s", page)
		}
		answer := person.do(http.MethodPost, path, header("Sec-Fetch-Site", "same-origin"))
		if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/" || person.who().Name != "herald:link" {
			t.Errorf("got %d to %q as %+v", answer.StatusCode, answer.Header.Get("Location"), person.who())
		}
		late := w.browser()
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			answer = late.do(method, path)
			if body := text(t, answer); answer.StatusCode != http.StatusGone || len(answer.Cookies()) > 0 || !strings.Contains(body, "already been used") || strings.Contains(body, "herald signin-link") {
				t.Errorf("%s of a used link: %d, %v, %s", method, answer.StatusCode, answer.Cookies(), body)
			}
		}
		if token := strings.TrimPrefix(path, signin.LinkPath); strings.Contains(w.log.String(), token) {
			t.Errorf("the token is in the log: %s", w.log)
		}
		if !strings.Contains(w.log.String(), `msg="Signed in" person=herald:link by=link`) {
			t.Errorf("the log lacks the signed-in user: %s", w.log)
		}
	})
}

// TestLinkRedirectsBack verifies that a user who requested a page before the sign-in is redirected to it afterwards,
// wherever the link comes from, and never to another site.
func TestLinkRedirectsBack(t *testing.T) {
	const wanted = "/oauth/authorize?client_id=dcr_a.b&state=x%2By&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcb"
	for name, tc := range map[string]struct {
		asked string
		after time.Duration
		want  string
	}{
		"a page":                    {"/signin?return_to=" + url.QueryEscape(wanted), time.Minute, wanted},
		"no address":                {"/signin", 0, "/"},
		"another site":              {"/signin?return_to=" + url.QueryEscape("https://evil.example/"), 0, "/"},
		"long ago":                  {"/signin?return_to=" + url.QueryEscape(wanted), 10 * time.Minute, "/"},
		"more than a cookie's size": {"/signin?return_to=" + url.QueryEscape("/?q="+strings.Repeat("a", 4000)), 0, "/"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := newWorld(t, nil).browser()
				b.do(http.MethodGet, tc.asked)
				time.Sleep(tc.after) //nolint:forbidigo // in a bubble of synctest
				if got := b.do(http.MethodPost, b.link(time.Minute)).Header.Get("Location"); got != tc.want {
					t.Errorf("leads to %q, want %q", got, tc.want)
				}
				// The next sign-in leads to the start page.
				if got := b.do(http.MethodPost, b.link(time.Minute)).Header.Get("Location"); got != "/" {
					t.Errorf("the next one leads to %q", got)
				}
			})
		})
	}
}

// TestLinkByCurl verifies that the address is the only secret: an empty POST without any headers signs in.
func TestLinkByCurl(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newWorld(t, nil).browser()
		if answer := b.do(http.MethodPost, b.link(time.Minute)); answer.StatusCode != http.StatusSeeOther || b.who().Name != access.LinkPerson {
			t.Errorf("got %d as %q", answer.StatusCode, b.who().Name)
		}
	})
}

func TestLinkRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		claims map[string]any
		path   func(*world) string
		method string
		edit   func(*http.Request)
		after  time.Duration
		status int
		want   string
	}{
		"unknown":        {"the link may be incomplete", nil, func(*world) string { return signin.LinkPath + strings.Repeat("A", 43) }, "POST", nil, 0, 404, "whole address"},
		"no token":       {"no such page", nil, func(*world) string { return signin.LinkPath }, "GET", nil, 0, 404, ""},
		"expired":        {"a new link is easy to create", nil, func(w *world) string { return w.link(time.Minute) }, "POST", nil, time.Minute, 410, "expired"},
		"expired, a GET": {"the page reports it before the button is pressed", nil, func(w *world) string { return w.link(time.Minute) }, "GET", nil, time.Hour, 410, "expired"},
		"by OIDC":        {"links are disabled with OIDC", map[string]any{}, func(w *world) string { return w.link(time.Minute) }, "POST", nil, 0, 404, "id.example.com"},
		"from elsewhere": {"another site could sign visitors in", nil, func(w *world) string { return w.link(time.Minute) }, "POST", header("Sec-Fetch-Site", "cross-site"), 0, 403, ""},
		"another origin": {"older browsers send Origin", nil, func(w *world) string { return w.link(time.Minute) }, "POST", header("Origin", "https://evil.example"), 0, 403, ""},
		"a PUT":          {"only GET and POST are supported", nil, func(w *world) string { return w.link(time.Minute) }, "PUT", nil, 0, 405, "GET, POST"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := newWorld(t, tc.claims).browser()
				path := tc.path(b.world)
				time.Sleep(tc.after) //nolint:forbidigo // in a bubble of synctest
				edit := tc.edit
				if edit == nil {
					edit = func(*http.Request) {}
				}
				answer := b.do(tc.method, path, edit)
				if body := text(t, answer); answer.StatusCode != tc.status || len(answer.Cookies()) > 0 || !strings.Contains(body, tc.want) {
					t.Errorf("%s: got %d, %v, %s", tc.reason, answer.StatusCode, answer.Cookies(), body)
				}
			})
		})
	}
}

func TestLinkTries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		guesser, neighbour, other := w.browser(), w.browser(), w.browser()
		guesser.address, neighbour.address, other.address = "[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8:0:1::1]:1"
		unknown := func(letter string) string { return signin.LinkPath + strings.Repeat(letter, 43) }
		reads := 0
		w.secrets.Fail(func(verb string) error {
			if verb == "get" {
				reads++
			}
			return nil
		})
		var last *reply
		for range 31 {
			last = guesser.do(http.MethodPost, unknown("B"))
		}
		if last.StatusCode != http.StatusTooManyRequests || last.Header.Get("Retry-After") == "" || reads != 30 {
			t.Errorf("the 31st try of a minute: %d, %v, after %d questions to the Kubernetes API", last.StatusCode, last.Header, reads)
		}
		if status := neighbour.do(http.MethodGet, unknown("C")).StatusCode; status != http.StatusTooManyRequests {
			t.Errorf("another address of the same network got %d", status)
		}
		if status := other.do(http.MethodGet, unknown("D")).StatusCode; status != http.StatusNotFound {
			t.Errorf("another client got %d", status)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble of synctest
		if status := guesser.do(http.MethodGet, unknown("B")).StatusCode; status != http.StatusNotFound {
			t.Errorf("a minute later: %d", status)
		}
	})
}

// TestLinkBehindAProxy verifies that visitors behind a proxy, who all have one address, do not block each other's
// sign-ins.
func TestLinkBehindAProxy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		used, path := w.link(time.Hour), w.link(time.Hour)
		synctest.Wait()
		guesser, person := w.browser(), w.browser()
		for range 40 {
			guesser.do(http.MethodPost, signin.LinkPath+strings.Repeat("B", 43))
		}
		for range 40 {
			if status := guesser.do(http.MethodGet, path).StatusCode; status != http.StatusOK {
				t.Fatalf("repeated requests by a mail scanner returned %d", status)
			}
		}
		if answer := person.do(http.MethodPost, path); answer.StatusCode != http.StatusSeeOther || person.who().Name == "" {
			t.Errorf("a user with a valid link got %d", answer.StatusCode)
		}
		guesser.do(http.MethodPost, used)
		w.secrets.Fail(func(verb string) error { return errors.New("asked for " + verb) })
		for range 40 {
			if status := guesser.do(http.MethodPost, used).StatusCode; status != http.StatusGone {
				t.Fatalf("a used link was read from the Kubernetes API, or returned %d", status)
			}
		}
	})
}

// TestWithoutKeys verifies that an installation whose Secret cannot be read reports this, with the remedy.
func TestWithoutKeys(t *testing.T) {
	for _, claims := range []map[string]any{nil, {}} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, claims)
			broken := session.NewManager(session.Options{
				Secrets: sessiontest.Missing(), Namespace: sessiontest.Namespace, Name: sessiontest.Name, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
			})
			o := signin.Options{Sessions: broken, SiteURL: site, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Page: func(_ string, body ...g.Node) g.Node { return g.Group(body) }}
			paths := []string{"/signin", w.link(time.Hour)}
			if claims != nil {
				o.OIDC = &signin.OIDC{IssuerURL: "https://id.example.com", Client: &http.Client{Transport: w}}
				paths = []string{"/signin", "/signin/oidc", "/signin/oidc/callback"}
			}
			mux := http.NewServeMux()
			handlers := signin.New(o)
			handlers.Mount(mux)
			if handlers.Ready() == nil {
				t.Error("the handlers report that users can sign in")
			}
			w.handler = mux
			for _, path := range paths {
				answer := w.browser().do(http.MethodGet, path)
				if body := text(t, answer); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "an administrator can find the reason") || strings.Contains(body, sessiontest.Name) {
					t.Errorf("%s: %d, %s", path, answer.StatusCode, body)
				}
			}
		})
	}
}

func TestSignOut(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		form         url.Values
		edit         func(*http.Request)
		fail         error
		status       int
		here, others string
	}{
		"here":           {"the user's other devices stay signed in", url.Values{}, nil, nil, 303, "", access.LinkPerson},
		"everywhere":     {"a lost laptop is signed out", url.Values{"everywhere": {"1"}}, nil, nil, 303, "", ""},
		"stored nowhere": {"a failed sign-out is not reported as done", url.Values{"everywhere": {"1"}}, nil, errors.New("etcd is unavailable"), 503, access.LinkPerson, access.LinkPerson},
		"from elsewhere": {"another site could sign users out", url.Values{"everywhere": {"1"}}, header("Sec-Fetch-Site", "cross-site"), nil, 403, access.LinkPerson, access.LinkPerson},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				here, there := w.browser(), w.browser()
				here.do(http.MethodPost, w.link(time.Hour))
				there.do(http.MethodPost, w.link(time.Hour))
				if tc.fail != nil {
					w.secrets.Fail(func(string) error { return tc.fail })
				}
				edits := []func(*http.Request){form(tc.form)}
				if tc.edit != nil {
					edits = append(edits, tc.edit)
				}
				answer := here.do(http.MethodPost, signin.SignOutPath, edits...)
				if answer.StatusCode != tc.status || here.who().Name != tc.here || there.who().Name != tc.others {
					t.Errorf("%s: got %d, here %q, there %q", tc.reason, answer.StatusCode, here.who().Name, there.who().Name)
				}
			})
		})
	}
	t.Run("by an address", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			b := newWorld(t, nil).browser()
			b.do(http.MethodPost, b.link(time.Hour))
			if answer := b.do(http.MethodGet, signin.SignOutPath); answer.StatusCode != http.StatusMethodNotAllowed || answer.Header.Get("Allow") != "POST" || b.who().Name == "" {
				t.Errorf("GET signed the user out, or returned %d: %q", answer.StatusCode, b.who().Name)
			}
		})
	})
}
