// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"
)

// always returns terms that do not depend on the account.
func always(terms Terms) func(Account) Terms { return func(Account) Terms { return terms } }

func TestRenewedTokens(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), clock)
	life := Terms{Access: 10 * time.Hour}
	addTo(t, s, Tokens{Access: "first", ExpiresAt: clock.Now().Add(life.Access), Scopes: []string{"read"}}, false)
	clock.Step(time.Hour)
	second, ok, err := s.Renew("first", always(life))
	if !ok || err != nil || second.Refresh != "" || !second.ExpiresAt.Equal(clock.Now().Add(life.Access)) {
		t.Fatal(second, ok, err)
	}
	if _, ok, _ := s.Renew("made up", always(life)); ok {
		t.Error("an unknown token was renewed")
	}
	issued := clock.Now()
	clock.Step(time.Hour)
	both(t, s, func(t *testing.T, s *Store) {
		if old, ok := s.Bearer("first"); !ok || old.Expired(clock.Now()) || !old.IssuedAt.Equal(issued.Add(-time.Hour)) {
			t.Errorf("the old token's times changed: %+v %v", old, ok)
		}
		if fresh, ok := s.Bearer(second.Access); !ok || !fresh.IssuedAt.Equal(issued) || !fresh.Allows("read") || fresh.Account != someone {
			t.Errorf("the new token is %+v %v", fresh, ok)
		}
		newest := s.Tokens(someone)
		same(t, "the newest tokens, of one grant", []any{second.Access, "", 1}, []any{newest.Access, newest.Refresh, len(s.tokens.grants[someone])})
	})
}

func TestFixedRefreshToken(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), clock)
	refresh := create(t, s).Refresh
	var last Tokens
	for range 3 {
		clock.Step(time.Minute)
		fresh, ok, err := s.Rotate(refresh, always(Terms{Access: time.Hour, Refresh: true, Fixed: true}))
		if !ok || err != nil || fresh.Refresh != refresh || fresh.Access == last.Access {
			t.Fatal(fresh, ok, err)
		}
		last = fresh
	}
	s = reopen(t, s)
	owner, _ := s.RefreshOwner(refresh)
	newest := s.Tokens(someone)
	same(t, "the tokens after a restart", []any{refresh, last.Access, someone}, []any{newest.Refresh, newest.Access, owner})
}

func TestTokensExpire(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), clock)
	terms := Terms{Access: time.Hour, Refresh: true, RefreshLife: 24 * time.Hour}
	addTo(t, s, terms.Tokens(clock.Now()), true)
	first := s.Tokens(someone)
	clock.Step(24*time.Hour - time.Second)
	fresh, ok, err := s.Rotate(first.Refresh, always(terms))
	if !ok || err != nil || !fresh.RefreshExpiresAt.Equal(clock.Now().Add(24*time.Hour)) {
		t.Fatal(fresh, ok, err)
	}
	for range 100 {
		clock.Step(time.Hour)
		fresh, _, _ = s.Rotate(fresh.Refresh, always(terms))
	}
	if n := len(s.tokens.grants[someone][0].Access); n > 3 {
		t.Errorf("%d access tokens are stored, want only valid ones", n)
	}
	if _, ok := s.Bearer(first.Access); ok {
		t.Error("the first access token is still stored")
	}
	clock.Step(24 * time.Hour)
	if _, ok, err := reopen(t, s).Rotate(fresh.Refresh, always(terms)); ok || err != nil {
		t.Errorf("a refresh token was accepted after a day, %v", err)
	}
}

func TestTokensThatNeverExpire(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), clock)
	addTo(t, s, Tokens{Access: "a"}, false)
	clock.Step(1000 * 24 * time.Hour)
	renewed, _, err := s.Renew("a", always(Terms{}))
	if err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s)
	for _, token := range []string{"a", renewed.Access} {
		if bearer, ok := s.Bearer(token); !ok || bearer.Expired(clock.Now()) {
			t.Errorf("%s is %+v %v", token, bearer, ok)
		}
	}
	must(s.ChangeAccount(someone, func(a *Account) { a.Settings.TokenTTL = time.Minute }))(t)
	for minutes, want := range []bool{false, true} {
		clock.Step(time.Duration(minutes) * time.Minute)
		bearer, _ := s.Bearer("a")
		same(t, "a shortened token has expired", want, bearer.Expired(clock.Now()))
	}
}
