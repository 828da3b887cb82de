// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	clearing := &waiting{Context: t.Context(), begun: make(chan struct{})}
	cleared := make(chan error, 1)
	go func() {
		_, err := a.Clear(clearing, acme)
		cleared <- err
	}()
	<-clearing.begun

	ended, end := context.WithCancel(t.Context())
	end()
	for i, done := range []func(){first, second} {
		left, err := a.Clear(ended, acme)
		if !left || !errors.Is(err, ended.Err()) || !strings.Contains(err.Error(), "still being written") {
			t.Errorf("while write %d is under way, who gives up to wait is told %v, and that something is left: %v", i, err, left)
		}
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

// waiting is a context that tells when somebody waits for its end, among other things.
type waiting struct {
	context.Context //nolint:containedctx // it is one

	once  sync.Once
	begun chan struct{}
}

func (w *waiting) Done() <-chan struct{} {
	w.once.Do(func() { close(w.begun) })
	return w.Context.Done()
}
