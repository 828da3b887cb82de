// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"
	"time"
)

func (b *tokenBook) byRefresh(refresh string) (grant, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	g := b.refresh[refresh]
	if g == nil {
		return grant{}, false
	}
	return *g, true
}

func (b *tokenBook) knows(token string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.refresh[token] != nil || b.access[token] != nil
}

// grant adds a pair of tokens, in place of an earlier refresh token or beside an earlier access token if it names one.
func (b *tokenBook) grant(rec grantRecord) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.refresh[rec.Replaces]
	if rec.Beside != "" {
		g = b.holders[rec.Beside]
	}
	if g == nil {
		g = &grant{account: rec.Account}
		b.grants[rec.Account] = append(b.grants[rec.Account], g)
	}
	delete(b.refresh, rec.Replaces)
	b.forgetExpired(g, rec.At)
	g.refresh, g.refreshExpires, g.scopes = rec.Refresh, rec.RefreshExpiresAt, rec.Scopes
	if rec.Access != "" {
		g.access = append(g.access, rec.Access)
		b.access[rec.Access] = &accessToken{
			account: rec.Account, issued: rec.At, expires: rec.ExpiresAt, scopes: rec.Scopes,
		}
		b.holders[rec.Access] = g
	}
	if rec.Refresh != "" {
		b.refresh[rec.Refresh] = g
	}
}

// forgetExpired drops the grant's access tokens that ended before at, so that a long-lived grant stays small.
func (b *tokenBook) forgetExpired(g *grant, at time.Time) {
	g.access = slices.DeleteFunc(g.access, func(token string) bool {
		if !b.access[token].endsBefore(at) {
			return false
		}
		delete(b.access, token)
		delete(b.holders, token)
		return true
	})
}

// cut lets the account's access tokens end no later than until.
func (b *tokenBook) cut(account Key, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.grants[account] {
		for _, token := range g.access {
			if t := b.access[token]; t.expires.IsZero() || t.expires.After(until) {
				t.expires = until
			}
		}
	}
}

func (b *tokenBook) revoke(token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.refresh[token]; g != nil {
		for _, access := range g.access {
			delete(b.access, access)
			delete(b.holders, access)
		}
		delete(b.refresh, token)
		b.drop(g)
		return
	}
	if g := b.holders[token]; g != nil {
		g.access = slices.DeleteFunc(g.access, func(other string) bool { return other == token })
		delete(b.access, token)
		delete(b.holders, token)
		if g.refresh == "" && len(g.access) == 0 {
			b.drop(g)
		}
	}
}

// drop removes a grant of which nothing works any more. Call it with the lock held.
func (b *tokenBook) drop(g *grant) {
	b.grants[g.account] = slices.DeleteFunc(b.grants[g.account], func(other *grant) bool { return other == g })
}

// snapshot returns the records that lead to the present tokens. The access tokens of one grant come as grants that
// replace each other, the last one with the refresh token that works.
func (b *tokenBook) snapshot(now time.Time) []record {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []record
	for account, grants := range b.grants {
		for _, g := range grants {
			out = append(out, b.snapshotGrant(account, g, now)...)
		}
	}
	return out
}

func (b *tokenBook) snapshotGrant(account Key, g *grant, now time.Time) []record {
	if len(g.access) == 0 {
		return []record{{Op: opGrant, Grant: &grantRecord{
			Account: account, Refresh: g.refresh, RefreshExpiresAt: g.refreshExpires, Scopes: g.scopes,
		}}}
	}
	var out []record
	for i, token := range g.access {
		t := b.access[token]
		last := i == len(g.access)-1
		if !last && t.endsBefore(now) {
			continue
		}
		// Every step carries the same refresh token and replaces it, or stands beside the step before: the grant is one
		// throughout.
		rec := grantRecord{
			Account: account, Access: token, ExpiresAt: t.expires, Refresh: g.refresh, RefreshExpiresAt: g.refreshExpires,
			Scopes: g.scopes, At: t.issued,
		}
		switch {
		case len(out) == 0:
		case g.refresh != "":
			rec.Replaces = g.refresh
		default:
			rec.Beside = out[len(out)-1].Grant.Access
		}
		out = append(out, record{Op: opGrant, Grant: &rec})
	}
	return out
}
