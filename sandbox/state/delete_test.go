// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"testing"
	"time"
)

func TestDelete(t *testing.T) {
	s := open(t, t.TempDir(), newClock())
	create(t, s)
	root := publish(t, s, "root", "")
	publish(t, s, "reply", root.ID)
	if err := s.Delete(Key{Platform: someone.Platform, ID: "another"}, root.ID); !errors.Is(err, ErrNoPost) {
		t.Errorf("another's post: %v", err)
	}
	if err := s.Delete(someone, root.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(someone, root.ID); !errors.Is(err, ErrNoPost) {
		t.Errorf("again: %v", err)
	}
	for name, s := range map[string]*Store{"read back": reopen(t, s)} {
		if _, ok := s.Post(someone.Platform, root.ID); ok {
			t.Errorf("%s: the post is there", name)
		}
		page, _, err := s.Timeline(someone, Range{Limit: 10})
		if err != nil || len(page) != 1 || len(s.Posts("", "")) != 1 || len(s.Chain("p", root.ID)) != 1 || s.PostCount(someone) != 1 {
			t.Errorf("%s: %d listed, %v; the reply is left", name, len(page), err)
		}
		if n := s.QuotaUsed(someone); n != 2 {
			t.Errorf("%s: %d posts count against the quota, want also the one that is gone", name, n)
		}
		again := Draft{Text: "root", DuplicateWindow: time.Hour, NewID: func(Stamp) string { return "again" }}
		if _, err := s.Publish(someone, again); err != nil {
			t.Errorf("%s: the same text: %v", name, err)
		}
	}
}
