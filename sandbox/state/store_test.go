// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
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

// TestCompaction rotates tokens until the journal is large, and compares what is known before and after a restart.
func TestCompaction(t *testing.T) {
	dir, clock := t.TempDir(), newClock()
	path := filepath.Join(dir, journalName)
	s := open(t, dir, clock)
	tokens := create(t, s)
	root := publish(t, s, "first", "")
	publish(t, s, "reply", root.ID)
	gone := publish(t, s, "gone", "")
	if err := s.Delete(someone, gone.ID); err != nil {
		t.Fatal(err)
	}
	other, err := s.Grant(someone, Tokens{Access: "only-refresh", ExpiresAt: clock.Now().Add(time.Hour)}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Revoke(other.Access); err != nil {
		t.Fatal(err)
	}
	for size(t, path) <= compactAbove {
		clock.Step(time.Minute)
		next, ok, err := s.Rotate(tokens.Refresh, func(Account) Terms { return Terms{Access: 2 * time.Minute, Refresh: true} })
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		tokens = next
	}
	posts, chain := s.Posts("", ""), s.Chain("p", root.ID)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	for range 2 { // the first opening compacts, the second reads what it wrote
		s = open(t, dir, clock)
		if got := size(t, path); got > 10_000 {
			t.Errorf("the journal still has %d bytes", got)
		}
		if diff := cmp.Diff(posts, s.Posts("", "")); diff != "" {
			t.Errorf("posts (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(chain, s.Chain("p", root.ID)); diff != "" {
			t.Errorf("chain (-before +after):\n%s", diff)
		}
		if n, _ := s.QuotaUsed(someone); n != 0 {
			t.Errorf("%d posts of days ago count", n)
		}
		if bearer, ok := s.Bearer(tokens.Access); !ok || !bearer.ExpiresAt.Equal(tokens.ExpiresAt) || !bearer.Allows("read") {
			t.Errorf("the access token is %v, %v", bearer, ok)
		}
		for _, refresh := range []string{tokens.Refresh, other.Refresh} {
			if owner, ok := s.RefreshOwner(refresh); !ok || owner != someone {
				t.Errorf("a refresh token is %v, %v", owner, ok)
			}
		}
		if _, ok := s.Bearer(other.Access); ok {
			t.Error("a revoked access token is back")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir, clock)
	if later := publish(t, s, "later", ""); later.Stamp.Compare(gone.Stamp) <= 0 {
		t.Errorf("stamp %v is not after %v", later.Stamp, gone.Stamp)
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
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
	if n := len(s.tokens.access); n > 3 {
		t.Errorf("%d access tokens are kept, want those that can still work", n)
	}
	if _, ok := s.Bearer(first); ok {
		t.Error("the first access token is still known")
	}
}

// TestJournalThatCannotBeWritten closes the file below the store, as a full disk would: nothing is acknowledged.
func TestJournalThatCannotBeWritten(t *testing.T) {
	s := open(t, t.TempDir(), newClock())
	create(t, s)
	if err := s.journal.file.Close(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{os.ErrClosed, errJournalBroken} {
		_, err := s.Publish(someone, Draft{Text: "lost", NewID: func(Stamp) string { return "1" }})
		if !errors.Is(err, want) {
			t.Errorf("attempt %d: %v, want %v", i, err, want)
		}
	}
	if got := s.Posts("", ""); len(got) != 0 {
		t.Errorf("%d posts are shown that were not kept", len(got))
	}
}

// TestPartlyWrittenLine checks that a line that could be written only in part does not spoil the next.
func TestPartlyWrittenLine(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, newClock())
	create(t, s)
	if _, err := s.journal.file.WriteString(`{"op":"post","po`); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("no space left")
	if err := s.journal.takeBack(cause); !errors.Is(err, cause) {
		t.Errorf("error %v hides its cause", err)
	}
	publish(t, s, "next", "")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := open(t, dir, newClock()).Posts("", ""); len(got) != 1 || got[0].Text != "next" {
		t.Errorf("read back %v", got)
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

func TestLinesOfAnyLength(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, newClock())
	create(t, s)
	long := strings.Repeat("long ", 100_000)
	publish(t, s, long, "")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := open(t, dir, newClock()).Posts("", ""); len(got) != 1 || got[0].Text != long {
		t.Errorf("%d posts read back", len(got))
	}
}
