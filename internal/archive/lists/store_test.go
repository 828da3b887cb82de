// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

func posted(i int) lists.Entry {
	at := epoch.Add(time.Duration(i) * time.Second)
	return lists.Entry{
		Name: fmt.Sprintf("p%04d", i), UID: fmt.Sprintf("%08x-0000-4000-8000-000000000000", i), Title: "t", DisplayAt: at, FinishedAt: at,
		Kind: lists.Kind{Status: v1alpha1.PhasePosted, Targets: []lists.Target{{Platform: v1alpha1.PlatformX, Status: v1alpha1.PhasePosted}}},
	}
}

func many(n int) []lists.Entry {
	out := make([]lists.Entry, n)
	for i := range out {
		out[i] = posted(i)
	}
	return out
}

// TestRealStore has two writers for one team's lists. One of them has an outdated index, as a deposed leader does.
func TestRealStore(t *testing.T) {
	files, err := store.New(storetest.Start(t))
	must.Succeed(t, err)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	first, second := lists.NewWriter(files, clock), lists.NewWriter(files, clock)
	some := many(1203)
	for i, w := range []*lists.Writer{first, second, first, second} {
		must.Succeed(t, w.Add(t.Context(), acme, some[i*300:(i+1)*300]))
	}
	must.Succeed(t, first.Add(t.Context(), acme, some[1198:]))
	if state, err := first.Stats(t.Context(), acme); err != nil || state.Posts != 1203 || state.Revision != 5 {
		t.Fatalf("%+v, %v; want 1,203 posts at revision 5", state, err)
	}
	reader := lists.NewReader(files, 1<<20)
	view, err := reader.Open(t.Context(), acme, nil)
	must.Succeed(t, err)
	total := len(view.Head(lists.Filter{}))
	for _, s := range view.Segments(lists.Filter{}) {
		rows, err := view.Rows(t.Context(), s.ID)
		must.Succeed(t, err)
		total += len(rows)
	}
	if total != 1203 {
		t.Errorf("%d are listed", total)
	}
	if again, err := reader.Open(t.Context(), acme, view); again != view || err != nil {
		t.Errorf("an unchanged list was read again: %v", err)
	}
	n, err := second.Expire(t.Context(), acme, epoch.Add(100*time.Second), 1000, func(context.Context, []lists.Ref) error { return nil })
	if err != nil || n != 100 {
		t.Errorf("%d expired, %v; want 100", n, err)
	}
	must.Succeed(t, second.Remove(t.Context(), acme))
	for object, err := range files.List(t.Context(), "_herald/archive/") {
		t.Errorf("remaining after the team's deletion: %s, %v", object.Key, err)
	}
	if state, err := first.Stats(t.Context(), acme); err != nil || state.Posts == 0 {
		t.Errorf("got %+v, %v from the other writer", state, err)
	}
	must.Succeed(t, first.Add(t.Context(), acme, some[:1]))
	if state, err := first.Stats(t.Context(), acme); err != nil || state.Posts != 1 {
		t.Errorf("%+v, %v; want the entry that was added since", state, err)
	}
}

// TestDamagedLists checks that damaged files are detected.
func TestDamagedLists(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		damage func(key string, data []byte) []byte
	}{
		"Cut":     {"the end is missing", func(_ string, data []byte) []byte { return data[:len(data)-1] }},
		"Flipped": {"a bit is another", func(_ string, data []byte) []byte { data[len(data)/2] ^= 1; return data }},
		"Empty":   {"the file is empty", func(string, []byte) []byte { return nil }},
	} {
		for _, part := range []string{"index", "segments/"} {
			files := storetest.NewMemory(time.Now)
			w := small(lists.NewWriter(files, clocktesting.NewFakePassiveClock(epoch)))
			must.Succeed(t, w.Add(t.Context(), acme, many(20)))
			prefix := "_herald/archive/team-acme/acme/" + part
			for key, data := range files.Files {
				if len(key) >= len(prefix) && key[:len(prefix)] == prefix {
					files.Files[key] = tc.damage(key, data)
				}
			}
			if _, err := lists.NewReader(files, 1<<20).Open(t.Context(), acme, nil); !errors.Is(err, lists.ErrDamaged) {
				t.Errorf("%s of %s: %s, and the error is %v", name, part, tc.reason, err)
			}
		}
	}
	files := storetest.NewMemory(time.Now)
	must.Succeed(t, lists.NewWriter(files, clocktesting.NewFakePassiveClock(epoch)).Add(t.Context(), acme, many(1)))
	files.Files["_herald/archive/team-other/other/index"] = files.Files["_herald/archive/team-acme/acme/index"]
	if _, err := lists.NewReader(files, 1<<20).Open(t.Context(), lists.Team{Namespace: "team-other", Name: "other"}, nil); !errors.Is(err, lists.ErrDamaged) {
		t.Errorf("an index that was copied from another team: %v", err)
	}
}

// TestRebuild checks that lists with a damaged or missing file are complete after a rebuild, and unchanged until then.
func TestRebuild(t *testing.T) {
	t.Parallel()
	flip := func(data []byte) []byte { data[len(data)/2] ^= 1; return data }
	gone := func([]byte) []byte { return nil }
	// The index begins with its hash and its format.
	newer := func(data []byte) []byte {
		rest := bytes.Replace(data[16:], []byte("HLx1"), []byte("HLx2"), 1)
		sum := sha256.Sum256(rest)
		return append(sum[:16:16], rest...)
	}
	for name, tc := range map[string]struct {
		reason, part string
		damage       func([]byte) []byte
	}{
		"index damaged":    {"the index is the only directory", "index", flip},
		"another format":   {"another version of Herald wrote it", "index", newer},
		"segments damaged": {"a merge reads them", "segments/", flip},
		"no segments":      {"the folder was deleted", "segments/", gone},
	} {
		files := storetest.NewMemory(time.Now)
		clock := clocktesting.NewFakePassiveClock(epoch)
		must.Succeed(t, small(lists.NewWriter(files, clock)).Add(t.Context(), acme, many(20)))
		for key, data := range files.Files {
			if strings.Contains(key, "/"+tc.part) {
				if files.Files[key] = tc.damage(data); files.Files[key] == nil {
					delete(files.Files, key)
				}
			}
		}
		w := small(lists.NewWriter(files, clock))
		if err := w.Add(t.Context(), acme, many(30)[20:]); !errors.Is(err, lists.ErrDamaged) {
			t.Fatalf("%s: %s, and the error is %v", name, tc.reason, err)
		}
		before := maps.Clone(files.Files)
		cut := func(yield func([]lists.Entry, error) bool) { _ = yield(many(9), nil) && yield(nil, errCut) }
		if _, err := w.Rebuild(t.Context(), acme, cut); !errors.Is(err, errCut) || !bytes.Equal(files.Files[indexKey], before[indexKey]) {
			t.Errorf("%s: an aborted rebuild changed the index, or returned %v", name, err)
		}
		whole := func(yield func([]lists.Entry, error) bool) { _ = yield(many(9), nil) && yield(many(20), nil) }
		if n, err := w.Rebuild(t.Context(), acme, whole); err != nil || n != 20 {
			t.Errorf("%s: %d posts, %v; want 20", name, n, err)
		}
		if err := w.Add(t.Context(), acme, many(30)[20:]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		view, err := lists.NewReader(files, 1<<20).Open(t.Context(), acme, nil)
		if err != nil || view.Posts() != 30 || view.Revision() < 2 {
			t.Errorf("%s: %+v, %v; want 30 posts", name, view, err)
		}
	}
}

const indexKey = "_herald/archive/team-acme/acme/index"

var errCut = errors.New("cut off")

// TestInvalidEntries checks that invalid entries are rejected.
func TestInvalidEntries(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		change func(*lists.Entry)
	}{
		"Unfinished": {"the post may still change", func(e *lists.Entry) { e.Status = v1alpha1.PhaseProcessing }},
		"Nameless":   {"the entry could not be read by name", func(e *lists.Entry) { e.Name = "" }},
		"NoUID":      {"the entry could not be distinguished from another one with its name", func(e *lists.Entry) { e.UID = "" }},
		"Title":      {"readers would reject the title", func(e *lists.Entry) { e.Title = string(make([]byte, 1025)) }},
	} {
		files := storetest.NewMemory(time.Now)
		e := posted(1)
		tc.change(&e)
		if err := lists.NewWriter(files, clocktesting.NewFakePassiveClock(epoch)).Add(t.Context(), acme, []lists.Entry{e}); err == nil || len(files.Files) > 0 {
			t.Errorf("%s: %s, but it was accepted", name, tc.reason)
		}
	}
}

// TestExpireKeepsLockedEntries keeps some of the expired posts in the lists.
func TestExpireKeepsLockedEntries(t *testing.T) {
	locked := errors.New("it is locked")
	for name, tc := range map[string]struct {
		reason string
		stay   []string
		plain  bool
		gone   int
	}{
		"one":  {"the remaining posts stay listed", []string{"p0001"}, false, 4},
		"all":  {"no entry is deleted", []string{"p0000", "p0001", "p0002", "p0003", "p0004"}, false, 0},
		"away": {"the error does not name an entry", nil, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Now())
			w := lists.NewWriter(storetest.NewMemory(clock.Now), clock)
			must.Succeed(t, w.Add(t.Context(), acme, many(5)))
			n, err := w.Expire(t.Context(), acme, epoch.Add(time.Hour), 100, func(context.Context, []lists.Ref) error {
				if tc.plain {
					return locked
				}
				stay := &lists.RetainedError{Names: map[string]bool{}, Err: locked}
				for _, name := range tc.stay {
					stay.Names[name] = true
				}
				return stay
			})
			if n != tc.gone || !errors.Is(err, locked) {
				t.Errorf("%s: deleted %d, want %d: %v", tc.reason, n, tc.gone, err)
			}
			if state, err := w.Stats(t.Context(), acme); err != nil || state.Posts != int64(5-tc.gone) {
				t.Errorf("%s: %+v are listed, %v", tc.reason, state, err)
			}
			view, err := w.View(t.Context(), acme)
			must.Succeed(t, err)
			for _, name := range tc.stay {
				if !view.Has(name) {
					t.Errorf("%s: %s is not listed", tc.reason, name)
				}
			}
			if n, err = w.Expire(t.Context(), acme, epoch.Add(time.Hour), 100, func(context.Context, []lists.Ref) error { return nil }); err != nil || n != 5-tc.gone {
				t.Errorf("%s: deleted %d afterwards, %v", tc.reason, n, err)
			}
		})
	}
}
