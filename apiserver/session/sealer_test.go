// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/apiserver/session"
)

var begin = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

type value struct {
	Text string `json:"text"`
}

func TestSealer(t *testing.T) {
	key, other := session.NewSealingKey(begin), session.NewSealingKey(begin)
	clock := clocktesting.NewFakeClock(begin)
	sealed := session.NewSealer(clock, key).Seal("cookie", value{"hello"}, time.Hour)
	flipped := func(at int) string {
		raw, _ := base64.RawURLEncoding.DecodeString(sealed)
		raw[(at+len(raw))%len(raw)] ^= 1
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	renamed := other
	renamed.ID = key.ID
	for name, tc := range map[string]struct {
		reason, purpose, text string
		keys                  []session.SealingKey
		after                 time.Duration
		want                  error
	}{
		"unchanged":            {"the purpose matches", "cookie", sealed, []session.SealingKey{key}, 0, nil},
		"by a later key":       {"old keys are kept until their texts have expired", "cookie", sealed, []session.SealingKey{other, key}, time.Minute, nil},
		"to the last":          {"the cookie has not expired yet", "cookie", sealed, []session.SealingKey{key}, time.Hour - time.Millisecond, nil},
		"at its end":           {"the cookie has expired", "cookie", sealed, []session.SealingKey{key}, time.Hour, session.ErrExpired},
		"for another use":      {"an OAuth state is not a session", "state", sealed, []session.SealingKey{key}, 0, session.ErrNotSealed},
		"a part of the cookie": {"the purpose must match exactly", "cookie\x00", sealed, []session.SealingKey{key}, 0, session.ErrNotSealed},
		"a key gone":           {"deleting the keys signs out all users", "cookie", sealed, []session.SealingKey{other}, 0, session.ErrNotSealed},
		"a key of its id":      {"a matching id with another key", "cookie", sealed, []session.SealingKey{renamed}, 0, session.ErrNotSealed},
		"no key":               {"sealed texts need a key", "cookie", sealed, nil, 0, session.ErrNotSealed},
		"flipped at end":       {"the text is authenticated", "cookie", flipped(-1), []session.SealingKey{key}, 0, session.ErrNotSealed},
		"flipped nonce":        {"the nonce is authenticated", "cookie", flipped(9), []session.SealingKey{key}, 0, session.ErrNotSealed},
		"flipped key id":       {"the key id is authenticated", "cookie", flipped(0), []session.SealingKey{key}, 0, session.ErrNotSealed},
		"cut off":              {"the text is incomplete", "cookie", sealed[:len(sealed)/2], []session.SealingKey{key}, 0, session.ErrNotSealed},
		"empty":                {"Seal returns it without a key", "cookie", "", []session.SealingKey{key}, 0, session.ErrNotSealed},
		"other alphabet":       {"each text has one encoding", "cookie", sealed + "=", []session.SealingKey{key}, 0, session.ErrNotSealed},
		"with line breaks":     {"one spelling", "cookie", sealed[:8] + "\n" + sealed[8:], []session.SealingKey{key}, 0, session.ErrNotSealed},
		"endless":              {"the cookie is too long to decode", "cookie", strings.Repeat("A", 1<<20), []session.SealingKey{key}, 0, session.ErrNotSealed},
	} {
		t.Run(name, func(t *testing.T) {
			got := value{"before"}
			err := session.NewSealer(clocktesting.NewFakeClock(begin.Add(tc.after)), tc.keys...).Open(tc.purpose, tc.text, &got)
			if !errors.Is(err, tc.want) || err == nil && got.Text != "hello" || err != nil && got.Text != "before" {
				t.Errorf("%s: got %v and %q, want %v", tc.reason, err, got.Text, tc.want)
			}
		})
	}
}

func TestSealIsOpaque(t *testing.T) {
	s := session.NewSealer(clocktesting.NewFakeClock(begin), session.NewSealingKey(begin))
	first, second := s.Seal("cookie", value{"hello"}, time.Hour), s.Seal("cookie", value{"hello"}, time.Hour)
	if first == second {
		t.Error("sealing the same value twice returned the same text, which reveals equality")
	}
	if strings.Trim(first, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		t.Errorf("%s does not fit into a cookie or an address", first)
	}
	if text := session.NewSealer(clocktesting.NewFakeClock(begin)).Seal("cookie", value{}, time.Hour); text != "" {
		t.Errorf("without a key: %q", text)
	}
}

// FuzzOpen tests any string from a browser: only sealed strings open, and none panics.
func FuzzOpen(f *testing.F) {
	s := session.NewSealer(clocktesting.NewFakeClock(begin), session.SealingKey{ID: "ABCDEFGH", Secret: make([]byte, 32), CreatedAt: begin})
	good := s.Seal("cookie", value{"hello"}, time.Hour)
	f.Add(good)
	f.Add(good[:12])
	f.Add("")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte("ABCDEFGH")))
	f.Add(base64.RawURLEncoding.EncodeToString(append([]byte("ABCDEFGH"), make([]byte, 64)...)))
	f.Fuzz(func(t *testing.T, text string) {
		var got value
		if s.Open("cookie", text, &got) != nil {
			return
		}
		// The sealed text differs in each process of a fuzz run, but its content is always hello.
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if got.Text != "hello" || err != nil || base64.RawURLEncoding.EncodeToString(raw) != text {
			t.Errorf("%q opened as %+v", text, got)
		}
	})
}

// TestSealAThousandPages verifies that a user with the maximum number of Pages can choose one: the sealed state
// contains their tokens.
func TestSealAThousandPages(t *testing.T) {
	t.Parallel()
	s := session.NewSealer(clock.RealClock{}, session.NewSealingKey(time.Now().Add(-time.Hour)))
	pages := make([]string, 1000)
	for i := range pages {
		pages[i] = strings.Repeat("t", 500)
	}
	var got []string
	if err := s.Open("choice", s.Seal("choice", pages, time.Minute), &got); err != nil || len(got) != len(pages) {
		t.Errorf("%d pages, %v", len(got), err)
	}
}
