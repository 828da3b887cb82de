// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package session keeps users signed in to the web application. A session is a sealed cookie, so replicas do not store
// sessions. One Secret holds the state that the replicas share: the sealing keys, the hashes of one-time links, and the
// names of users who signed out everywhere.
package session

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/request"
)

const (
	// renewAfter is how old a cookie must be for Renew to reissue it. Its session still ends at the same time.
	renewAfter = time.Hour
	// maxCookie is the maximum length of a cookie's value. Browsers accept 4,096 bytes including name and attributes
	// (RFC 6265, section 6.1).
	maxCookie = 3800
	// purpose is the sealing purpose of session cookies.
	purpose = "session"
	// base is the name of the cookie.
	base = "herald_session"
)

// ErrTooLarge is returned if a user's groups do not fit into a cookie.
var ErrTooLarge = errors.New("the name and the groups of the person are too long for a cookie")

// Options configures a Manager. All fields are required.
type Options struct {
	// Secrets is the client for Secrets in Herald's namespace, and Name the name of the Secret.
	Secrets   SecretClient
	Namespace string
	Name      string
	// Secure reports that the site is served only over HTTPS.
	Secure bool
	Clock  clock.Clock
	Log    *slog.Logger
}

// Manager issues and reads sessions. It is safe for concurrent use.
type Manager struct {
	*Sealer

	namespace string
	secure    bool
	store     *store
}

// Session is one sign-in of a user.
type Session struct {
	// ID is the session's random id. Values that are sealed for one session contain it.
	ID string
	// Person is the signed-in user.
	Person access.Person
	// SignedIn is when the user signed in, to the millisecond; the session ends Life after it.
	SignedIn time.Time

	issued time.Time
	mark   string
	// sealed is the value of the session's cookie.
	sealed string
}

// content is the cookie's sealed content.
type content struct {
	ID       string        `json:"i"`
	Person   access.Person `json:"p"`
	SignedIn int64         `json:"s"`
	Issued   int64         `json:"t"`
	Mark     string        `json:"m,omitempty"`
}

// NewManager returns a Manager that has no keys until Run.
func NewManager(o Options) *Manager {
	m := &Manager{Sealer: NewSealer(o.Clock), namespace: o.Namespace, secure: o.Secure, store: newStore(o.Secrets, o.Name, o.Clock, o.Log)}
	m.store.creates = true
	m.store.changed = func(s *state) { m.setKeys(s.keys) }
	return m
}

// Run watches the Secret, and adds missing keys, until ctx is done.
func (m *Manager) Run(ctx context.Context) { m.store.run(ctx) }

// Ready returns nil when sessions can be issued and read. The error contains the remedy.
func (m *Manager) Ready() error {
	if m.ready() {
		return nil
	}
	return fmt.Errorf("cannot read the Secret %s/%s with the session keys: %w; install it with its Role (both are in the chart and in config/rbac), or set web.enabled: false",
		m.namespace, m.store.name, m.store.err())
}

// Sign returns the HMAC-SHA256 (RFC 2104) of a string for one purpose. Unlike Seal's keys, its key is not rotated, so a
// signature remains valid as long as the Secret exists. Without a key, Sign returns nil, and no signature is valid.
func (m *Manager) Sign(purpose, text string) []byte {
	key := m.store.current.Load().lasting
	if len(key) != keyBytes {
		return nil
	}
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte("herald/1\x00" + purpose + "\x00" + text)) // a hash never returns an error
	return mac.Sum(nil)
}

// CookieName returns the full name of one of the web application's cookies. With HTTPS it has the prefix __Host-, so
// that browsers reject a cookie from another host or from a page without HTTPS.
func (m *Manager) CookieName(base string) string {
	if m.secure {
		return "__Host-" + base
	}
	return base
}

// SetCookie sets a cookie that scripts and other sites cannot read, with the given lifetime; a lifetime of 0 or less
// removes it. SameSite=Lax sends it when another site links here.
func (m *Manager) SetCookie(w http.ResponseWriter, base, value string, life time.Duration) {
	cookie := &http.Cookie{ //nolint:gosec // G124: browsers reject a Secure cookie over plain HTTP, which is for this machine and for trials
		Name: m.CookieName(base), Value: value, Path: "/", Secure: m.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		MaxAge: int(life.Seconds()),
	}
	if cookie.MaxAge <= 0 {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

// Issue starts a session and replaces the browser's current one, which another site may have planted. The error is
// ErrTooLarge, or an error of Ready.
func (m *Manager) Issue(w http.ResponseWriter, p access.Person) (Session, error) {
	now := m.clock.Now().Truncate(time.Millisecond)
	s := Session{ID: rand.Text(), Person: p, SignedIn: now, issued: now, mark: m.store.current.Load().signedOut[p.Name].Mark}
	return s, m.set(w, s)
}

// Renew reissues a session's old cookie. The session still ends at the same time.
func (m *Manager) Renew(w http.ResponseWriter, s Session) {
	now := m.clock.Now().Truncate(time.Millisecond)
	if now.Sub(s.issued) < renewAfter {
		return
	}
	s.issued = now
	_ = m.set(w, s) // the existing cookie remains valid
}

func (m *Manager) set(w http.ResponseWriter, s Session) error {
	if err := m.Ready(); err != nil {
		return err
	}
	life := s.SignedIn.Add(Life).Sub(m.clock.Now())
	text := m.Seal(purpose, content{
		ID: s.ID, Person: s.Person, SignedIn: s.SignedIn.UnixMilli(), Issued: s.issued.UnixMilli(), Mark: s.mark,
	}, life)
	if len(text) > maxCookie {
		return ErrTooLarge
	}
	m.SetCookie(w, base, text, life)
	return nil
}

// Read returns a request's session, or false if there is no valid one.
func (m *Manager) Read(r *http.Request) (Session, bool) {
	for _, cookie := range r.CookiesNamed(m.CookieName(base)) {
		var c content
		if m.Open(purpose, cookie.Value, &c) != nil || c.Person.Name == "" || m.signedOut(c.Person.Name, c.Mark) {
			continue
		}
		return Session{
			ID: c.ID, Person: c.Person, SignedIn: time.UnixMilli(c.SignedIn), issued: time.UnixMilli(c.Issued), mark: c.Mark, sealed: cookie.Value,
		}, true
	}
	return Session{}, false
}

// signedOut reports whether a user has signed out everywhere since a session with this mark was issued.
func (m *Manager) signedOut(name, mark string) bool {
	out, ok := m.store.current.Load().signedOut[name]
	return ok && out.Mark != mark
}

// IsValid reports whether a session is still valid. It is meant for responses that last for minutes, and reads only the
// cache.
func (m *Manager) IsValid(s Session) bool {
	if s.sealed != "" && m.Open(purpose, s.sealed, &content{}) != nil {
		return false
	}
	return !m.signedOut(s.Person.Name, s.mark) && m.clock.Now().Before(s.SignedIn.Add(Life))
}

// Changed returns a channel that is closed when a session may have become invalid for a reason other than its age. It
// may also be closed for no reason.
func (m *Manager) Changed() <-chan struct{} { return m.store.next() }

// Clear removes the cookie from this browser.
func (m *Manager) Clear(w http.ResponseWriter) { m.SetCookie(w, base, "", 0) }

// SignOutEverywhere ends all of a user's sessions, at all replicas within a moment. If there is an error, the
// sessions continue.
func (m *Manager) SignOutEverywhere(ctx context.Context, name string) error {
	return m.store.update(ctx, func(next *state) error {
		next.signOutEverywhere(name, m.clock.Now())
		return nil
	})
}

type key struct{}

// With returns a context that carries a session and its person.
func With(ctx context.Context, s Session) context.Context {
	return context.WithValue(access.WithPerson(ctx, s.Person), key{}, s)
}

// From returns the session in a context, or false if there is none.
func From(ctx context.Context) (Session, bool) {
	s, ok := ctx.Value(key{}).(Session)
	return s, ok
}

// Handler adds the request's session, if any, to its context, and renews it.
func (m *Manager) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s, ok := m.Read(r); ok {
			request.From(r.Context()).MarkAuthenticated()
			m.Renew(w, s)
			r = r.WithContext(With(r.Context(), s))
		}
		next.ServeHTTP(w, r)
	})
}
