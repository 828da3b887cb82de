// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

var someone = Key{Platform: "p", ID: "1"}

func open(t *testing.T, dir string, clock *clocktesting.FakeClock) *Store {
	t.Helper()
	s, err := Open(Options{Clock: clock, Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a second Close is harmless
	return s
}

func newClock() *clocktesting.FakeClock {
	return clocktesting.NewFakeClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
}

func create(t *testing.T, s *Store) Tokens {
	t.Helper()
	first := Tokens{ExpiresAt: s.clock.Now().Add(time.Hour), Scopes: []string{"read"}}
	if _, created, err := s.CreateAccount(Account{Key: someone, Username: "Someone"}, first, true); err != nil || !created {
		t.Fatal(created, err)
	}
	return s.Tokens(someone)
}

func publish(t *testing.T, s *Store, text, root string) Post {
	t.Helper()
	post, err := s.Publish(someone, Draft{
		Text: text, InReplyTo: root, Root: root, NewID: func(at Stamp) string { return fmt.Sprint(at.Milli, ".", at.Serial) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return post
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
	s, err := Open(Options{Clock: s.clock, Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestReadBack(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), clock)
	tokens := create(t, s)
	root := publish(t, s, strings.Repeat("long ", 100_000), "")
	publish(t, s, "reply", root.ID)
	last := publish(t, s, "last", "")
	other, err := s.Grant(someone, Tokens{Access: "only-refresh", ExpiresAt: clock.Now().Add(time.Hour)}, true)
	if err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff(posts, s.Posts("", "")); diff != "" {
		t.Errorf("posts (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(chain, s.Chain("p", root.ID)); diff != "" || len(chain) != 2 {
		t.Errorf("chain (-before +after):\n%s", diff)
	}
	if bearer, ok := s.Bearer(next.Access); !ok || !bearer.ExpiresAt.Equal(next.ExpiresAt) || !bearer.Allows("read") {
		t.Errorf("the access token is %v, %v", bearer, ok)
	}
	for _, refresh := range []string{next.Refresh, other.Refresh} {
		if owner, ok := s.RefreshOwner(refresh); !ok || owner != someone {
			t.Errorf("a refresh token is %v, %v", owner, ok)
		}
	}
	if _, ok := s.RefreshOwner(tokens.Refresh); ok {
		t.Error("a used refresh token is back")
	}
	if _, ok := s.Bearer(other.Access); ok {
		t.Error("a revoked access token is back")
	}
	if later := publish(t, s, "later", ""); later.Stamp.Compare(last.Stamp) <= 0 {
		t.Errorf("stamp %v is not after %v, though the clock went back", later.Stamp, last.Stamp)
	}
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s)
	if got := s.Posts("", ""); len(got) != 0 {
		t.Errorf("a reset leaves %d posts", len(got))
	}
	if _, ok := s.Bearer(next.Access); !ok {
		t.Error("a reset takes tokens away")
	}
}

func TestExpiredTokensAreForgotten(t *testing.T) {
	clock := newClock()
	s := open(t, "", clock)
	tokens := create(t, s)
	first := tokens.Access
	for range 100 {
		clock.Step(time.Hour)
		tokens, _, _ = s.Rotate(tokens.Refresh, func(Account) Terms { return Terms{Access: 90 * time.Minute, Refresh: true} })
	}
	if n := len(s.tokens.grants[someone][0].Access); n > 3 {
		t.Errorf("%d access tokens are kept, want those that can still work", n)
	}
	if _, ok := s.Bearer(first); ok {
		t.Error("the first access token is still known")
	}
}

// TestChangeThatCannotBeSaved closes the database below the store, which makes writes fail as on a full disk. The change is not
// acknowledged.
func TestChangeThatCannotBeSaved(t *testing.T) {
	s := open(t, t.TempDir(), newClock())
	create(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Publish(someone, Draft{Text: "lost", NewID: func(Stamp) string { return "1" }}); err == nil {
		t.Error("a post that cannot be saved was acknowledged")
	}
	if got := s.Posts("", ""); len(got) != 0 {
		t.Errorf("%d posts are shown that were not saved", len(got))
	}
}

func TestUsernamesAreUnique(t *testing.T) {
	s := open(t, "", newClock())
	create(t, s)
	_, _, err := s.CreateAccount(Account{Key: Key{Platform: "p", ID: "2"}, Username: "SOMEONE"}, Tokens{}, true)
	var taken *UsernameTakenError
	if !errors.As(err, &taken) || taken.Holder != "1" {
		t.Errorf("error %v, want that account 1 has the name", err)
	}
	if _, created, err := s.CreateAccount(Account{Key: Key{Platform: "q", ID: "2"}, Username: "someone"}, Tokens{}, true); err != nil || !created {
		t.Errorf("on another platform the name is free: %v, %v", created, err)
	}
}
