// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
)

// TestClearInParts checks that many records are removed in parts, so that the caller can do other work in between.
func TestClearInParts(t *testing.T) {
	a, bucket := open(t)
	const many = 1005
	for i := range many {
		if _, err := bucket.PutDocument(t.Context(), fmt.Sprintf("%ssegments/%d", acme.Prefix(), i), "text/plain", []byte("x"), ""); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []bool{true, false, false} {
		if left, err := a.Clear(t.Context(), acme); left != want || err != nil {
			t.Errorf("call %d: objects remain: %v, want %v; %v", i+1, left, want, err)
		}
	}
}

// TestClearWaits checks that Clear also removes records that were being written when it was called, without the
// writer's help: a writer that dies could not remove them.
func TestClearWaits(t *testing.T) {
	a, _ := open(t)
	others := a.TrackWrite(archive.Team{Namespace: acme.Namespace, Name: "another"})
	defer others()
	first, second := a.TrackWrite(acme), a.TrackWrite(acme)
	ended := t.Context()
	t.Run("a cancelled context ends the wait", func(t *testing.T) { ended = t.Context() })
	for i, done := range []func(){first, second} {
		left, err := a.Clear(ended, acme)
		if !left || !errors.Is(err, ended.Err()) || !strings.Contains(err.Error(), "still being written") {
			t.Errorf("write %d is in progress: objects remain: %v; %v", i, left, err)
		}
		must.Succeed(t, a.Put(t.Context(), acme, fmt.Sprintf("post-%d", i), to("late")))
		done()
	}
	if left, err := a.Clear(t.Context(), acme); left || err != nil {
		t.Errorf("objects remain: %v; %v", left, err)
	}
	if got := names(t, a, acme); len(got) > 0 {
		t.Errorf("%q remain", got)
	}
}

// TestClearWaitsForEarlierWrites checks that Clear continues once the writes in progress have finished, and does not
// wait for later ones: their writers see that the Team is being deleted.
func TestClearWaitsForEarlierWrites(t *testing.T) {
	for name, order := range map[string][2]int{"in order": {0, 1}, "in reverse order": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := archive.New(store.None()) // There is nothing to remove, so only the wait is left.
				writes := []func(){a.TrackWrite(acme), a.TrackWrite(acme)}
				cleared := false
				go func() {
					if _, err := a.Clear(t.Context(), acme); err != nil {
						t.Error(err)
					}
					cleared = true
				}()
				synctest.Wait()
				later := a.TrackWrite(acme)
				defer later()
				for i, write := range order {
					if cleared {
						t.Errorf("cleared after %d of 2 writes", i)
					}
					writes[write]()
					synctest.Wait()
				}
				if !cleared {
					t.Error("waits after both writes")
				}
			})
		})
	}
}
