// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"
)

func TestRenewedTokens(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), clock)
	life := Terms{Access: 10 * time.Hour}
	first := Tokens{Access: "first", ExpiresAt: clock.Now().Add(life.Access), Scopes: []string{"read"}}
	if _, _, err := s.CreateAccount(Account{Key: someone, Username: "Someone"}, first, false); err != nil {
		t.Fatal(err)
	}
	clock.Step(time.Hour)
	second, ok, err := s.Renew("first", func(Account) Terms { return life })
	if !ok || err != nil || second.Refresh != "" || !second.ExpiresAt.Equal(clock.Now().Add(life.Access)) {
		t.Fatal(second, ok, err)
	}
	if _, ok, _ := s.Renew("made up", func(Account) Terms { return life }); ok {
		t.Error("an unknown token was renewed")
	}
	issued := clock.Now()
	clock.Step(time.Hour)
	check := func(s *Store, reason string) {
		t.Helper()
		old, ok := s.Bearer("first")
		if !ok || old.Expired(clock.Now()) || !old.IssuedAt.Equal(issued.Add(-time.Hour)) {
			t.Errorf("%s: the old token keeps its time: %+v %v", reason, old, ok)
		}
		fresh, ok := s.Bearer(second.Access)
		if !ok || !fresh.IssuedAt.Equal(issued) || !fresh.Allows("read") || fresh.Account != someone {
			t.Errorf("%s: the new token is %+v %v", reason, fresh, ok)
		}
		if got := s.Tokens(someone); got.Access != second.Access || got.Refresh != "" {
			t.Errorf("%s: the newest tokens are %+v", reason, got)
		}
		if n := len(s.tokens.grants[someone]); n != 1 {
			t.Errorf("%s: %d grants, want one that goes on", reason, n)
		}
	}
	check(s, "at once")
	check(reopen(t, s), "read back")
}

func TestFixedRefreshToken(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), clock)
	create(t, s)
	refresh := s.Tokens(someone).Refresh
	terms := func(Account) Terms { return Terms{Access: time.Hour, Refresh: true, Fixed: true} }
	var last Tokens
	for range 3 {
		clock.Step(time.Minute)
		fresh, ok, err := s.Rotate(refresh, terms)
		if !ok || err != nil || fresh.Refresh != refresh || fresh.Access == last.Access {
			t.Fatal(fresh, ok, err)
		}
		last = fresh
	}
	for reason, s := range map[string]*Store{"read back": reopen(t, s)} {
		if got := s.Tokens(someone); got.Refresh != refresh || got.Access != last.Access {
			t.Errorf("%s: %+v", reason, got)
		}
		if owner, ok := s.RefreshOwner(refresh); !ok || owner != someone {
			t.Errorf("%s: the refresh token is %v %v", reason, owner, ok)
		}
	}
}

func TestRefreshTokensEnd(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), clock)
	terms := Terms{Access: time.Hour, Refresh: true, RefreshLife: 24 * time.Hour}
	if _, _, err := s.CreateAccount(Account{Key: someone, Username: "Someone"}, terms.Tokens(clock.Now()), true); err != nil {
		t.Fatal(err)
	}
	clock.Step(24*time.Hour - time.Second)
	fresh, ok, err := s.Rotate(s.Tokens(someone).Refresh, func(Account) Terms { return terms })
	if !ok || err != nil || !fresh.RefreshExpiresAt.Equal(clock.Now().Add(24*time.Hour)) {
		t.Fatal(fresh, ok, err)
	}
	clock.Step(24 * time.Hour)
	for reason, s := range map[string]*Store{"read back": reopen(t, s)} {
		if _, ok, err := s.Rotate(fresh.Refresh, func(Account) Terms { return terms }); ok || err != nil {
			t.Errorf("%s: a refresh token of a day ago was taken, %v", reason, err)
		}
	}
}

func TestTokensWithoutEnd(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), clock)
	if _, _, err := s.CreateAccount(Account{Key: someone, Username: "Someone"}, Tokens{Access: "a"}, false); err != nil {
		t.Fatal(err)
	}
	clock.Step(1000 * 24 * time.Hour)
	second, _, err := s.Renew("a", func(Account) Terms { return Terms{} })
	if err != nil {
		t.Fatal(err)
	}
	for reason, s := range map[string]*Store{"read back": reopen(t, s)} {
		for _, token := range []string{"a", second.Access} {
			if bearer, ok := s.Bearer(token); !ok || bearer.Expired(clock.Now()) {
				t.Errorf("%s: %s is %+v %v", reason, token, bearer, ok)
			}
		}
	}
}

func TestShortenedTokensWithoutEnd(t *testing.T) {
	clock := newClock()
	s := open(t, "", clock)
	if _, _, err := s.CreateAccount(Account{Key: someone, Username: "Someone"}, Tokens{Access: "a"}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ChangeAccount(someone, func(a *Account) { a.Settings.TokenTTL = time.Minute }); err != nil {
		t.Fatal(err)
	}
	for step, want := range []bool{false, true} {
		clock.Step(time.Duration(step) * time.Minute)
		if bearer, _ := s.Bearer("a"); bearer.Expired(clock.Now()) != want {
			t.Errorf("after %d minutes expired is %v", step, !want)
		}
	}
}
