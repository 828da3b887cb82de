// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/herald-social/herald/internal/archive"
)

// TestClearSome shows that a removal of many is done in parts, so that whoever has it done can do
// something else in between.
func TestClearSome(t *testing.T) {
	a, bucket := open(t)
	const many = 1005
	for i := range many {
		if _, err := bucket.PutDocument(t.Context(), fmt.Sprintf("%ssegments/%d", acme.Prefix(), i), "text/plain", []byte("x"), ""); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []bool{true, false, false} {
		if left, err := a.Clear(t.Context(), acme); left != want || err != nil {
			t.Errorf("call %d: something is left: %v, want %v; %v", i+1, left, want, err)
		}
	}
}

// TestClearWaits shows that nothing of a team is left that was being written when it was cleared, nor who wrote it has to take
// it back: a process that dies in between could not.
func TestClearWaits(t *testing.T) {
	a, _ := open(t)
	write := func(name string) error {
		return a.Put(t.Context(), acme, name, func([]byte) ([]byte, error) { return []byte("late"), nil })
	}
	others := a.Writing(archive.Team{Namespace: acme.Namespace, Name: "another"})
	defer others()
	first, second := a.Writing(acme), a.Writing(acme)
	ended := t.Context()
	t.Run("and gives up with who has it done", func(t *testing.T) { ended = t.Context() })
	if left, err := a.Clear(ended, acme); !left || !errors.Is(err, ended.Err()) {
		t.Errorf("something is left: %v; %v", left, err)
	}

	cleared := make(chan error)
	go func() {
		_, err := a.Clear(t.Context(), acme)
		cleared <- err
	}()
	for i, done := range []func(){first, second} {
		if err := write(fmt.Sprintf("post-%d", i)); err != nil {
			t.Fatal(err)
		}
		done()
	}
	if err := <-cleared; err != nil {
		t.Fatal(err)
	}
	for entry, err := range a.Entries(t.Context(), acme) {
		t.Errorf("%s is left (%v)", entry.Post, err)
	}
}
