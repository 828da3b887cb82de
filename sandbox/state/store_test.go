// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

var someone = Key{Platform: "p", ID: "1"}

// must returns a value, and fails the test if there was an error.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// second returns the error of a call.
func second[T any](_ T, err error) error { return err }

// same fails the test if two values differ.
func same(t *testing.T, why string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", why, diff)
	}
}

func open(t *testing.T, dir string, clock *clocktesting.FakeClock) *Store {
	t.Helper()
	s := must(Open(Options{Clock: clock, Dir: dir, Logger: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(func() { _ = s.Close() }) // a second Close is harmless
	return s
}

// reopen closes a store and reads its folder back.
func reopen(t *testing.T, s *Store) *Store {
	t.Helper()
	if s.db == nil {
		t.Fatal("the store is in memory only")
	}
	dir := filepath.Dir(s.db.Path())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	clock, _ := s.clock.(*clocktesting.FakeClock)
	return open(t, dir, clock)
}

// both runs a check before and after a restart, and returns the reopened store.
func both(t *testing.T, s *Store, check func(*testing.T, *Store)) *Store {
	t.Helper()
	t.Run("at once", func(t *testing.T) { check(t, s) })
	again := reopen(t, s)
	t.Run("after a restart", func(t *testing.T) { check(t, again) })
	return again
}

func newClock() *clocktesting.FakeClock {
	return clocktesting.NewFakeClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
}

// addTo creates the account with its first tokens.
func addTo(t *testing.T, s *Store, first Tokens, withRefresh bool) {
	t.Helper()
	if _, created, err := s.CreateAccount(Account{Key: someone, Username: "Someone"}, first, withRefresh); err != nil || !created {
		t.Fatal(created, err)
	}
}

func create(t *testing.T, s *Store) Tokens {
	t.Helper()
	addTo(t, s, Tokens{ExpiresAt: s.clock.Now().Add(time.Hour), Scopes: []string{"read"}}, true)
	return s.Tokens(someone)
}

func publish(t *testing.T, s *Store, d Draft) Post {
	t.Helper()
	d.NewID = number
	return must(s.Publish(someone, d))(t)
}

func TestReadBack(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), clock)
	tokens := create(t, s)
	root := publish(t, s, Draft{Text: strings.Repeat("long ", 100_000)})
	publish(t, s, Draft{Text: "reply", InReplyTo: root.ID, Root: root.ID})
	last := publish(t, s, Draft{Text: "last"})
	other := must(s.Grant(someone, Tokens{Access: "only-refresh", ExpiresAt: clock.Now().Add(time.Hour)}, true))(t)
	if err := s.Revoke(other.Access); err != nil {
		t.Fatal(err)
	}
	clock.Step(time.Minute)
	next, ok, err := s.Rotate(tokens.Refresh, func(Account) Terms { return Terms{Access: 2 * time.Minute, Refresh: true} })
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	posts, chain := s.Posts("", ""), s.Chain("p", root.ID)
	clock.Step(-time.Hour)
	s = reopen(t, s)
	same(t, "the posts", posts, s.Posts("", ""))
	same(t, "the chain", chain, s.Chain("p", root.ID))
	same(t, "the length of the chain", 2, len(chain))
	if bearer, ok := s.Bearer(next.Access); !ok || !bearer.ExpiresAt.Equal(next.ExpiresAt) || !bearer.Allows("read") {
		t.Errorf("the access token is %v, %v", bearer, ok)
	}
	for refresh, want := range map[string]Key{next.Refresh: someone, other.Refresh: someone, tokens.Refresh: {}} { // the last one is used up
		owner, _ := s.RefreshOwner(refresh)
		same(t, "the owner of a refresh token", want, owner)
	}
	if _, ok := s.Bearer(other.Access); ok {
		t.Error("a revoked access token is accepted")
	}
	if later := publish(t, s, Draft{Text: "later"}); later.Stamp.Compare(last.Stamp) <= 0 {
		t.Errorf("stamp %v is not after %v, though the clock went back", later.Stamp, last.Stamp)
	}
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s)
	same(t, "posts after a reset", 0, len(s.Posts("", "")))
	if _, ok := s.Bearer(next.Access); !ok {
		t.Error("tokens survived the reset")
	}
}

// TestUnsavedChange closes the database below the store, which makes writes fail as on a full disk. The change is not
// acknowledged.
func TestUnsavedChange(t *testing.T) {
	s := open(t, t.TempDir(), newClock())
	create(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Publish(someone, Draft{Text: "lost", NewID: number}); err == nil {
		t.Error("a post was acknowledged although it was not saved")
	}
	same(t, "posts that were not saved", 0, len(s.Posts("", "")))
}

func TestUsernamesAreUnique(t *testing.T) {
	s := open(t, "", newClock())
	create(t, s)
	_, _, err := s.CreateAccount(Account{Key: Key{Platform: "p", ID: "2"}, Username: "SOMEONE"}, Tokens{}, true)
	var taken *UsernameTakenError
	if !errors.As(err, &taken) || taken.Holder != "1" {
		t.Errorf("error %v, want that account 1 has the name", err)
	}
	_, created, err := s.CreateAccount(Account{Key: Key{Platform: "q", ID: "2"}, Username: "someone"}, Tokens{}, true)
	same(t, "on another platform the name is free", []any{true, nil}, []any{created, err})
}
