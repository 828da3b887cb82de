// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"time"
)

// Tokens are the tokens of a grant.
type Tokens struct {
	// Access is empty if the access token was revoked.
	Access string
	// ExpiresAt is zero if the access token does not expire.
	ExpiresAt time.Time
	// Refresh is empty if the grant has no refresh token.
	Refresh string
	// RefreshExpiresAt is zero if the refresh token does not expire.
	RefreshExpiresAt time.Time
	Scopes           []string
}

// Terms describe the tokens that a platform issues.
type Terms struct {
	Scopes []string
	// Access is the lifetime of access tokens; 0 means that they do not expire.
	Access time.Duration
	// Refresh means that a refresh token is issued with the access token.
	Refresh bool
	// RefreshLife is the lifetime of refresh tokens; 0 means that they do not expire.
	RefreshLife time.Duration
	// Fixed means that a refresh token does not rotate on use.
	Fixed bool
}

// Tokens returns the tokens for a grant at a time, without their strings.
func (t Terms) Tokens(now time.Time) Tokens {
	out := Tokens{Scopes: t.Scopes, ExpiresAt: expiryOf(now, t.Access)}
	if t.Refresh {
		out.RefreshExpiresAt = expiryOf(now, t.RefreshLife)
	}
	return out
}

// expiryOf returns the end of a lifetime that starts now, or zero if it has no end.
func expiryOf(now time.Time, life time.Duration) time.Time {
	if life == 0 {
		return time.Time{}
	}
	return now.Add(life)
}

// Bearer is the identity behind an access token.
type Bearer struct {
	Account  Key
	Scopes   []string
	IssuedAt time.Time
	// ExpiresAt is zero if the token does not expire.
	ExpiresAt time.Time
}

// Expired reports whether the token has expired.
func (b Bearer) Expired(now time.Time) bool { return !b.ExpiresAt.IsZero() && !now.Before(b.ExpiresAt) }

// Allows reports whether the token has the scope.
func (b Bearer) Allows(scope string) bool { return slices.Contains(b.Scopes, scope) }

// access is one access token.
type access struct {
	Token    string    `json:"token"`
	IssuedAt time.Time `json:"issued_at"`
	// ExpiresAt is zero if the token does not expire.
	ExpiresAt time.Time `json:"expires_at"`
}

func (a access) expired(now time.Time) bool { return !a.ExpiresAt.IsZero() && a.ExpiresAt.Before(now) }

// grant is one refresh token with all access tokens that were issued for it and its predecessors. Without a refresh
// token, it is a chain of renewed access tokens.
type grant struct {
	// Number increases in order of creation.
	Number  int64  `json:"number"`
	Account Key    `json:"account"`
	Refresh string `json:"refresh,omitempty"`
	// RefreshExpiresAt is zero if the refresh token does not expire.
	RefreshExpiresAt time.Time `json:"refresh_expires_at,omitzero"`
	Scopes           []string  `json:"scopes,omitempty"`
	Access           []access  `json:"access,omitempty"`
}

// entry returns the grant's database entry. The entry of a grant without tokens deletes it.
func (g grant) entry() entry {
	key := fmt.Sprintf("%016x", g.Number)
	if g.Refresh == "" && len(g.Access) == 0 {
		return entry{bucketGrants, key, nil}
	}
	return entry{bucketGrants, key, g}
}

// endingBy returns a copy of the grant with access tokens that expire at until or earlier.
func (g grant) endingBy(until time.Time) grant {
	g.Access = slices.Clone(g.Access)
	for i, a := range g.Access {
		if a.ExpiresAt.IsZero() || a.ExpiresAt.After(until) {
			g.Access[i].ExpiresAt = until
		}
	}
	return g
}

// with returns the grant with new tokens. It drops expired access tokens, which keeps a long-lived grant small.
func (g grant) with(t Tokens, now time.Time) grant {
	g.Access = slices.DeleteFunc(slices.Clone(g.Access), func(a access) bool { return a.expired(now) })
	g.Access = append(g.Access, access{Token: t.Access, IssuedAt: now, ExpiresAt: t.ExpiresAt})
	g.Refresh, g.RefreshExpiresAt, g.Scopes = t.Refresh, t.RefreshExpiresAt, t.Scopes
	return g
}

// tokenBook indexes all tokens.
type tokenBook struct {
	last    int64             // the highest Number
	grants  map[Key][]*grant  // by account, newest last
	holders map[string]*grant // by access token, and by refresh token
}

func newTokenBook() *tokenBook {
	return &tokenBook{grants: map[Key][]*grant{}, holders: map[string]*grant{}}
}

// add adds a new grant.
func (b *tokenBook) add(g grant) {
	b.last = max(b.last, g.Number)
	b.grants[g.Account] = append(b.grants[g.Account], &g)
	b.index(&g)
}

func (b *tokenBook) index(g *grant) {
	if g.Refresh != "" {
		b.holders[g.Refresh] = g
	}
	for _, a := range g.Access {
		b.holders[a.Token] = g
	}
}

// replace replaces the stored version of a grant.
func (b *tokenBook) replace(by grant) {
	all := b.grants[by.Account]
	i := slices.IndexFunc(all, func(g *grant) bool { return g.Number == by.Number })
	old := all[i]
	delete(b.holders, old.Refresh)
	for _, a := range old.Access {
		delete(b.holders, a.Token)
	}
	if by.entry().value == nil {
		b.grants[by.Account] = slices.Delete(all, i, i+1)
		return
	}
	*old = by
	b.index(old)
}

// byAccess finds the grant of an access token.
func (b *tokenBook) byAccess(token string) (*grant, access, bool) {
	g := b.holders[token]
	if g == nil {
		return nil, access{}, false
	}
	i := slices.IndexFunc(g.Access, func(a access) bool { return a.Token == token })
	if i < 0 {
		return nil, access{}, false
	}
	return g, g.Access[i], true
}

// byRefresh finds the grant of a refresh token; nil if there is none.
func (b *tokenBook) byRefresh(token string) *grant {
	if g := b.holders[token]; g != nil && g.Refresh == token {
		return g
	}
	return nil
}

// Grant issues new tokens for an account. It generates token strings that are empty; without withRefresh, it issues
// only an access token.
func (s *Store) Grant(key Key, t Tokens, withRefresh bool) (Tokens, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.newGrant(key, &t, withRefresh)
	if err := s.save(g.entry()); err != nil {
		return Tokens{}, err
	}
	s.tokens.add(g)
	return t, nil
}

// newGrant creates a grant and fills in the missing token strings of t.
func (s *Store) newGrant(key Key, t *Tokens, withRefresh bool) grant {
	t.fill(key.Platform, withRefresh)
	return grant{Number: s.tokens.last + 1, Account: key}.with(*t, s.clock.Now())
}

// fill generates the missing token strings.
func (t *Tokens) fill(platform string, withRefresh bool) {
	t.Access = cmp.Or(t.Access, platform+"-access-"+rand.Text())
	if withRefresh {
		t.Refresh = cmp.Or(t.Refresh, platform+"-refresh-"+rand.Text())
	}
}

// Rotate exchanges a refresh token for a new access token and, unless the account's terms are Fixed, a new refresh token. The old refresh
// token becomes invalid immediately; old access tokens keep their expiry. It returns false if the refresh token is unknown, already used,
// or expired.
func (s *Store) Rotate(refresh string, terms func(Account) Terms) (Tokens, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, now := s.tokens.byRefresh(refresh), s.clock.Now()
	if old == nil || !old.RefreshExpiresAt.IsZero() && !now.Before(old.RefreshExpiresAt) {
		return Tokens{}, false, nil
	}
	granted := terms(s.accounts[old.Account].info)
	fresh := granted.Tokens(now)
	fresh.Scopes = old.Scopes
	if granted.Fixed {
		fresh.Refresh, fresh.RefreshExpiresAt = old.Refresh, old.RefreshExpiresAt
	}
	fresh.fill(old.Account.Platform, true)
	return s.renewed(old.with(fresh, now), fresh)
}

// Renew exchanges an access token without a refresh token for another one with the same scopes. The old one keeps its
// expiry. It returns false if the token is unknown; the caller checks the expiry.
func (s *Store) Renew(access string, terms func(Account) Terms) (Tokens, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, _, ok := s.tokens.byAccess(access)
	if !ok {
		return Tokens{}, false, nil
	}
	now := s.clock.Now()
	fresh := terms(s.accounts[old.Account].info).Tokens(now)
	fresh.Scopes = old.Scopes
	fresh.fill(old.Account.Platform, false)
	return s.renewed(old.with(fresh, now), fresh)
}

// renewed saves a grant with new tokens.
func (s *Store) renewed(g grant, fresh Tokens) (Tokens, bool, error) {
	if err := s.save(g.entry()); err != nil {
		return Tokens{}, false, err
	}
	s.tokens.replace(g)
	return fresh, true, nil
}

// Bearer returns the identity behind an access token, even an expired one. It returns false for a revoked or unknown
// token.
func (s *Store) Bearer(access string) (Bearer, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	g, a, ok := s.tokens.byAccess(access)
	if !ok {
		return Bearer{}, false
	}
	return Bearer{Account: g.Account, Scopes: g.Scopes, IssuedAt: a.IssuedAt, ExpiresAt: a.ExpiresAt}, true
}

// RefreshOwner returns the account of a refresh token.
func (s *Store) RefreshOwner(refresh string) (Key, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if g := s.tokens.byRefresh(refresh); g != nil {
		return g.Account, true
	}
	return Key{}, false
}

// Tokens returns the account's newest tokens, or empty ones if the account has none.
func (s *Store) Tokens(key Key) Tokens {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := s.tokens.grants[key]
	if len(all) == 0 {
		return Tokens{}
	}
	g := all[len(all)-1]
	out := Tokens{Refresh: g.Refresh, RefreshExpiresAt: g.RefreshExpiresAt, Scopes: g.Scopes}
	if n := len(g.Access); n > 0 {
		out.Access, out.ExpiresAt = g.Access[n-1].Token, g.Access[n-1].ExpiresAt
	}
	return out
}

// Revoke revokes an access token, or a refresh token with all its access tokens. An unknown token is not an error
// (RFC 7009, section 2.2).
func (s *Store) Revoke(token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.tokens.holders[token]
	if found == nil {
		return nil
	}
	g := *found
	g.Access = slices.DeleteFunc(slices.Clone(g.Access), func(a access) bool { return a.Token == token })
	if g.Refresh == token {
		g.Refresh, g.Access = "", nil
	}
	if err := s.save(g.entry()); err != nil {
		return err
	}
	s.tokens.replace(g)
	return nil
}
