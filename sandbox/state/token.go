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
	Access    string
	ExpiresAt time.Time
	// Refresh is empty when the grant cannot be refreshed.
	Refresh string
	Scopes  []string
}

// Bearer is what an access token proves.
type Bearer struct {
	Account   Key
	Scopes    []string
	ExpiresAt time.Time
}

// Allows says whether the token was granted that scope.
func (b Bearer) Allows(scope string) bool { return slices.Contains(b.Scopes, scope) }

// grantRecord is a pair of tokens as the journal keeps it.
type grantRecord struct {
	Account   Key       `json:"account"`
	Access    string    `json:"access,omitempty"`
	ExpiresAt time.Time `json:"expires_at"`
	Refresh   string    `json:"refresh,omitempty"`
	Scopes    []string  `json:"scopes,omitempty"`
	// Replaces is the refresh token that stops working.
	Replaces string    `json:"replaces,omitempty"`
	At       time.Time `json:"at"`
}

type accessToken struct {
	account Key
	expires time.Time
	scopes  []string
}

// grant is one refresh token with all access tokens that came of it and of those it replaced.
type grant struct {
	account Key
	refresh string
	scopes  []string
	access  []string
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
		Account: key, Access: t.Access, ExpiresAt: t.ExpiresAt, Refresh: t.Refresh, Scopes: t.Scopes, At: s.clock.Now(),
	}
}

// Rotate exchanges a refresh token for a new pair; life is the new access token's for that account. The old refresh
// token stops working at once, the old access tokens keep their time. It returns false when the refresh token is not
// known, or was used before.
func (s *Store) Rotate(refresh string, life func(Account) time.Duration) (Tokens, bool, error) {
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
	fresh := Tokens{
		Access: newToken(old.account.Platform, "access"), Refresh: newToken(old.account.Platform, "refresh"),
		ExpiresAt: now.Add(life(a)), Scopes: old.scopes,
	}
	err := s.commit(record{Op: opGrant, Grant: &grantRecord{
		Account: old.account, Access: fresh.Access, ExpiresAt: fresh.ExpiresAt, Refresh: fresh.Refresh,
		Scopes: fresh.Scopes, Replaces: refresh, At: now,
	}})
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
	return Bearer{Account: t.account, Scopes: t.scopes, ExpiresAt: t.expires}, true
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
		out := Tokens{Refresh: g.refresh, Scopes: g.scopes}
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
