// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

func open(t *testing.T) (*archive.Archive, *store.Store) {
	t.Helper()
	bucket, err := store.New(storetest.Start(t))
	must.Succeed(t, err)
	return archive.New(bucket), bucket
}

var (
	acme  = archive.Team{Namespace: "team-acme", Name: "acme"}
	other = archive.Team{Namespace: "team-acme", Name: "acme-two"}
	next  = archive.Team{Namespace: "team-acme", Name: "acme-t"}
)

// to returns a join that replaces any record with the given text.
func to(text string) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return []byte(text), nil }
}

// adding returns a join that appends to the existing record.
func adding(text string) func([]byte) ([]byte, error) {
	return func(before []byte) ([]byte, error) { return append(before, text...), nil }
}

func names(t *testing.T, a *archive.Archive, team archive.Team) []string {
	t.Helper()
	found := []string{}
	for entry, err := range a.Entries(t.Context(), team) {
		must.Succeed(t, err)
		if time.Since(entry.At).Abs() > time.Hour {
			t.Errorf("%s was written at %s", entry.Post, entry.At)
		}
		found = append(found, entry.Post)
	}
	return found
}

// TestEntriesAreSortedByKey uses the real store.
func TestEntriesAreSortedByKey(t *testing.T) {
	a, _ := open(t)
	want := []string{"p", "p-a", "p-a-b", "p-a.b", "p.a", "p.json", "p.json.a", "p.k", "p0", "pa", "pa-b"}
	for _, post := range want {
		must.Succeed(t, a.Put(t.Context(), acme, post, to("{}")))
	}
	got := names(t, a, acme)
	slices.SortFunc(want, archive.CompareKeys)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if slices.IsSorted(got) {
		t.Errorf("%q is sorted by name, so the test proves nothing", got)
	}
}

func TestArchive(t *testing.T) {
	a, bucket := open(t)
	ctx := t.Context()

	t.Run("a missing record returns ErrNotFound", func(t *testing.T) {
		if _, err := a.Get(ctx, acme, "launch"); !errors.Is(err, archive.ErrNotFound) {
			t.Error(err)
		}
		if got := names(t, a, acme); len(got) > 0 {
			t.Error(got)
		}
	})
	t.Run("a record is joined with the existing one", func(t *testing.T) {
		for _, text := range []string{"one", ",two"} {
			must.Succeed(t, a.Put(ctx, acme, "launch", adding(text)))
		}
		if got, err := a.Get(ctx, acme, "launch"); err != nil || string(got) != "one,two" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("an identical record is not written again", func(t *testing.T) {
		object, err := bucket.Stat(ctx, acme.Prefix()+"posts/launch.json")
		must.Succeed(t, err)
		must.Succeed(t, a.Put(ctx, acme, "launch", to("one,two")))
		if again, err := bucket.Stat(ctx, object.Key); err != nil || !again.ModifiedAt.Equal(object.ModifiedAt) {
			t.Errorf("the record was written at %s and %s, %v", object.ModifiedAt, again.ModifiedAt, err)
		}
	})
	t.Run("concurrent writes are merged", func(t *testing.T) {
		// The second one writes between the first one's read and write.
		first := true
		err := a.Put(ctx, acme, "race", func(before []byte) ([]byte, error) {
			if first {
				first = false
				must.Succeed(t, a.Put(ctx, acme, "race", to("b")))
			}
			return append(before, 'a'), nil
		})
		if got, read := a.Get(ctx, acme, "race"); err != nil || read != nil || string(got) != "ba" {
			t.Errorf("%q, %v, %v", got, err, read)
		}
	})
	t.Run("a failed merge does not write", func(t *testing.T) {
		failure := errors.New("no")
		if err := a.Put(ctx, acme, "failed", func([]byte) ([]byte, error) { return nil, failure }); !errors.Is(err, failure) {
			t.Error(err)
		}
		if _, err := a.Get(ctx, acme, "failed"); !errors.Is(err, archive.ErrNotFound) {
			t.Error(err)
		}
	})
	t.Run("each team has its own", func(t *testing.T) {
		for _, team := range []archive.Team{other, next} {
			must.Succeed(t, a.Put(ctx, team, "launch", to(team.Name)))
		}
		if diff := cmp.Diff([]string{"launch", "race"}, names(t, a, acme)); diff != "" {
			t.Error(diff)
		}
		if got, err := a.Get(ctx, other, "launch"); err != nil || string(got) != "acme-two" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("more than a record has is not read", func(t *testing.T) {
		must.Succeed(t, a.Put(ctx, acme, "large", to(strings.Repeat("x", archive.MaxRecord+1))))
		if _, err := a.Get(ctx, acme, "large"); !errors.Is(err, store.ErrTooLarge) {
			t.Error(err)
		}
	})
	t.Run("deleting a record twice succeeds", func(t *testing.T) {
		for range 2 {
			must.Succeed(t, a.Delete(ctx, acme, "large"))
		}
		if _, err := a.Get(ctx, acme, "large"); !errors.Is(err, archive.ErrNotFound) {
			t.Error(err)
		}
	})
	t.Run("clearing a team keeps other teams' records", func(t *testing.T) {
		for left := true; left; {
			var err error
			if left, err = a.Clear(ctx, acme); err != nil {
				t.Fatal(err)
			}
		}
		if got := names(t, a, acme); len(got) > 0 {
			t.Error(got)
		}
		for _, team := range []archive.Team{other, next} {
			if diff := cmp.Diff([]string{"launch"}, names(t, a, team)); diff != "" {
				t.Errorf("team %s: %s", team.Name, diff)
			}
		}
	})
}

func TestMissingStore(t *testing.T) {
	a := archive.New(store.None())
	_, read := a.Get(t.Context(), acme, "launch")
	for name, err := range map[string]error{
		"Get": read, "Put": a.Put(t.Context(), acme, "launch", to("x")), "Delete": a.Delete(t.Context(), acme, "launch"),
	} {
		if !errors.Is(err, archive.ErrNone) {
			t.Errorf("%s: got %v, want ErrNone without a store", name, err)
		}
	}
	if !a.Absent() {
		t.Error("an archive without a bucket exists")
	}
	if left, err := a.Clear(t.Context(), acme); left || err != nil {
		t.Errorf("clearing without a store returned %v", err)
	}
}
