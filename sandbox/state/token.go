// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"crypto/rand"
	"slices"
	"sync"
	"time"
)

// Tokens are what an account's owner has granted to a client.
type Tokens struct {
	// Access is empty when the access token has been revoked.
	Access string
	// ExpiresAt is zero when the access token does not end by itself.
	ExpiresAt time.Time
	// Refresh is empty when the grant cannot be refreshed.
	Refresh string
	// RefreshExpiresAt is zero when the refresh token does not end by itself.
	RefreshExpiresAt time.Time
	Scopes           []string
}

// Terms say what an account's owner grants on a platform.
type Terms struct {
	Scopes []string
	// Access is the life of access tokens; 0 means that they do not end by themselves.
	Access time.Duration
	// Refresh says that a refresh token comes with the access token.
	Refresh bool
	// RefreshLife is that of refresh tokens; 0 means that they do not end by themselves.
	RefreshLife time.Duration
	// Fixed says that a refresh token stays the same when it is used.
	Fixed bool
}

// Tokens are the terms' tokens when they are given now, still without their strings.
func (t Terms) Tokens(now time.Time) Tokens {
	out := Tokens{Scopes: t.Scopes, ExpiresAt: endOf(now, t.Access)}
	if t.Refresh {
		out.RefreshExpiresAt = endOf(now, t.RefreshLife)
	}
	return out
}

// endOf is when a life that begins now ends; zero when it does not.
func endOf(now time.Time, life time.Duration) time.Time {
	if life == 0 {
		return time.Time{}
	}
	return now.Add(life)
}

// Bearer is what an access token proves.
type Bearer struct {
	Account Key
	Scopes  []string
	// IssuedAt is zero for a token of a time when it was not written down.
	IssuedAt time.Time
	// ExpiresAt is zero when the token does not end by itself.
	ExpiresAt time.Time
}

// Expired says whether the token's time is over.
func (b Bearer) Expired(now time.Time) bool { return !b.ExpiresAt.IsZero() && !now.Before(b.ExpiresAt) }

// Allows says whether the token was granted that scope.
func (b Bearer) Allows(scope string) bool { return slices.Contains(b.Scopes, scope) }

// grantRecord is a pair of tokens as the journal keeps it.
type grantRecord struct {
	Account   Key       `json:"account"`
	Access    string    `json:"access,omitempty"`
	ExpiresAt time.Time `json:"expires_at"`
	Refresh   string    `json:"refresh,omitempty"`
	Scopes    []string  `json:"scopes,omitempty"`
	// RefreshExpiresAt is zero when the refresh token does not end by itself.
	RefreshExpiresAt time.Time `json:"refresh_expires_at,omitzero"`
	// Replaces is the refresh token that was used; unless it is Refresh itself, it stops working.
	Replaces string `json:"replaces,omitempty"`
	// Beside is an access token of the same grant, where no refresh token holds it together.
	Beside string    `json:"beside,omitempty"`
	At     time.Time `json:"at"`
}

type accessToken struct {
	account         Key
	issued, expires time.Time // expires is zero when it does not end by itself
	scopes          []string
}

// endsBefore says whether the token's time is over before at.
func (t *accessToken) endsBefore(at time.Time) bool {
	return !t.expires.IsZero() && t.expires.Before(at)
}

// grant is one refresh token with all access tokens that came of it and of those it replaced; or, without a refresh
// token, the access tokens that came of each other.
type grant struct {
	account        Key
	refresh        string
	refreshExpires time.Time // zero when it does not end by itself
	scopes         []string
	access         []string
}

// tokenBook knows all tokens.
type tokenBook struct {
	mu      sync.RWMutex
	access  map[string]*accessToken
	refresh map[string]*grant
	holders map[string]*grant // by access token
	grants  map[Key][]*grant  // by account, the latest last
}

func newTokenBook() *tokenBook {
	return &tokenBook{
		access: map[string]*accessToken{}, refresh: map[string]*grant{},
		holders: map[string]*grant{}, grants: map[Key][]*grant{},
	}
}

// Grant gives a new pair of tokens for an account. Empty token strings are made up; withRefresh false gives an access
// token only.
func (s *Store) Grant(key Key, t Tokens, withRefresh bool) (Tokens, error) {
	s.change.RLock()
	defer s.change.RUnlock()
	rec := record{Op: opGrant, Grant: s.newGrant(key, &t, withRefresh)}
	return t, s.commit(rec)
}

// newGrant fills in the token strings that t lacks.
func (s *Store) newGrant(key Key, t *Tokens, withRefresh bool) *grantRecord {
	t.Access = cmp.Or(t.Access, newToken(key.Platform, "access"))
	if withRefresh {
		t.Refresh = cmp.Or(t.Refresh, newToken(key.Platform, "refresh"))
	}
	return &grantRecord{
		Account: key, Access: t.Access, ExpiresAt: t.ExpiresAt, Refresh: t.Refresh, RefreshExpiresAt: t.RefreshExpiresAt,
		Scopes: t.Scopes, At: s.clock.Now(),
	}
}

// Rotate exchanges a refresh token for a new access token and, unless the account's terms are Fixed, a new refresh
// token. Then the old one stops working at once; the old access tokens keep their time. It returns false when the refresh
// token is not known, was used before, or is over.
func (s *Store) Rotate(refresh string, terms func(Account) Terms) (Tokens, bool, error) {
	// One at a time: two requests with the same token must not both win.
	s.change.Lock()
	defer s.change.Unlock()
	old, ok := s.tokens.byRefresh(refresh)
	if !ok {
		return Tokens{}, false, nil
	}
	a, ok := s.Account(old.account)
	if !ok {
		return Tokens{}, false, nil
	}
	now := s.clock.Now()
	if !old.refreshExpires.IsZero() && !now.Before(old.refreshExpires) {
		return Tokens{}, false, nil
	}
	granted := terms(a)
	fresh := granted.Tokens(now)
	fresh.Scopes = old.scopes
	if granted.Fixed {
		fresh.Refresh, fresh.RefreshExpiresAt = old.refresh, old.refreshExpires
	}
	rec := s.newGrant(old.account, &fresh, true)
	rec.Replaces = refresh
	err := s.commit(record{Op: opGrant, Grant: rec})
	return fresh, err == nil, err
}

// Renew gives the holder of an access token, for which there is no refresh token, another one with the same scopes. The
// old one keeps its time. It returns false when the token is not known; whether its time is over is for the caller to
// look at.
func (s *Store) Renew(access string, terms func(Account) Terms) (Tokens, bool, error) {
	s.change.RLock()
	defer s.change.RUnlock()
	bearer, ok := s.Bearer(access)
	if !ok {
		return Tokens{}, false, nil
	}
	a, ok := s.Account(bearer.Account)
	if !ok {
		return Tokens{}, false, nil
	}
	fresh := terms(a).Tokens(s.clock.Now())
	fresh.Scopes = bearer.Scopes
	rec := s.newGrant(bearer.Account, &fresh, false)
	rec.Beside = access
	err := s.commit(record{Op: opGrant, Grant: rec})
	return fresh, err == nil, err
}

func newToken(platform, kind string) string { return platform + "-" + kind + "-" + rand.Text() }

// Bearer returns what an access token stands for, also when it has expired, but not when it was revoked or never given.
func (s *Store) Bearer(access string) (Bearer, bool) {
	s.tokens.mu.RLock()
	defer s.tokens.mu.RUnlock()
	t := s.tokens.access[access]
	if t == nil {
		return Bearer{}, false
	}
	return Bearer{Account: t.account, Scopes: t.scopes, IssuedAt: t.issued, ExpiresAt: t.expires}, true
}

// RefreshOwner returns whose refresh token it is.
func (s *Store) RefreshOwner(refresh string) (Key, bool) {
	g, ok := s.tokens.byRefresh(refresh)
	if !ok {
		return Key{}, false
	}
	return g.account, true
}

// Tokens returns the account's newest tokens; empty ones when it has none that work.
func (s *Store) Tokens(key Key) Tokens {
	s.tokens.mu.RLock()
	defer s.tokens.mu.RUnlock()
	for _, g := range slices.Backward(s.tokens.grants[key]) {
		out := Tokens{Refresh: g.refresh, RefreshExpiresAt: g.refreshExpires, Scopes: g.scopes}
		if len(g.access) > 0 {
			out.Access = g.access[len(g.access)-1]
			out.ExpiresAt = s.tokens.access[out.Access].expires
		}
		if out.Access != "" || out.Refresh != "" {
			return out
		}
	}
	return Tokens{}
}

// Revoke ends an access token, or a refresh token and all access tokens that came of it. An unknown one is no error
// (RFC 7009, section 2.2).
func (s *Store) Revoke(token string) error {
	s.change.RLock()
	defer s.change.RUnlock()
	if !s.tokens.knows(token) {
		return nil
	}
	return s.commit(record{Op: opRevoke, Token: token})
}
