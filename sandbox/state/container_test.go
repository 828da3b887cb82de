// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func number(at Stamp) string { return fmt.Sprint(at.Milli, "-", at.Serial) }

func contain(t *testing.T, s *Store, text string) Container {
	t.Helper()
	c, err := s.CreateContainer(someone, Container{Text: text, Detail: []byte(`{"a":1}`)}, time.Second, number)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestContainersAreKept publishes one of two containers and compares both before and after a restart.
func TestContainersAreKept(t *testing.T) {
	s := open(t, t.TempDir(), newClock())
	create(t, s)
	used, waiting := contain(t, s, "used"), contain(t, s, "waiting")
	post, err := s.Publish(someone, Draft{Text: "used", Container: used.ID, NewID: number})
	if err != nil {
		t.Fatal(err)
	}
	used.PostID = post.ID
	check := func(s *Store, reason string) {
		t.Helper()
		for _, want := range []Container{used, waiting} {
			got, ok := s.Container("p", want.ID)
			if diff := cmp.Diff(want, got); !ok || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", reason, ok, diff)
			}
		}
		var published *PublishedError
		if _, err := s.Publish(someone, Draft{Text: "again", Container: used.ID, NewID: number}); !errors.As(err, &published) || published.Post != post.ID {
			t.Errorf("%s: publishing once more: %v", reason, err)
		}
	}
	check(s, "at once")
	s = reopen(t, s)
	check(s, "read back")
	if later := contain(t, s, "later"); later.Stamp.Compare(post.Stamp) <= 0 {
		t.Errorf("stamp %v is not after %v", later.Stamp, post.Stamp)
	}
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Container("p", waiting.ID); ok {
		t.Error("a reset leaves containers")
	}
}

func TestContainerRefusals(t *testing.T) {
	s := open(t, "", newClock())
	create(t, s)
	other := Key{Platform: "p", ID: "2"}
	if _, _, err := s.CreateAccount(Account{Key: other, Username: "other"}, Tokens{}, false); err != nil {
		t.Fatal(err)
	}
	c := contain(t, s, "mine")
	tests := []struct {
		name  string
		owner Key
		draft Draft
		want  error
	}{
		{"of another account", other, Draft{Container: c.ID}, ErrNoContainer},
		{"unknown", someone, Draft{Container: "7"}, ErrNoContainer},
		{"no account", Key{Platform: "p", ID: "3"}, Draft{Container: c.ID}, ErrNoAccount},
	}
	for _, tt := range tests {
		tt.draft.NewID = number
		if _, err := s.Publish(tt.owner, tt.draft); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, err := s.CreateContainer(Key{Platform: "p", ID: "3"}, Container{}, 0, number); !errors.Is(err, ErrNoAccount) {
		t.Errorf("a container without an account: %v", err)
	}
	if got := s.Posts("", ""); len(got) != 0 {
		t.Errorf("%d posts were made", len(got))
	}
}

func TestProcessing(t *testing.T) {
	clock := newClock()
	s := open(t, "", clock)
	create(t, s)
	if c := contain(t, s, "by default"); !c.ReadyAt.Equal(clock.Now().Add(time.Second)) || c.Failure != "" {
		t.Errorf("by default ready at %v, failure %q", c.ReadyAt, c.Failure)
	}
	zero := time.Duration(0)
	if _, err := s.ChangeAccount(someone, func(a *Account) { a.Settings.Processing, a.Settings.ProcessingError = &zero, "BROKEN" }); err != nil {
		t.Fatal(err)
	}
	if c := contain(t, s, "as set"); !c.ReadyAt.Equal(clock.Now()) || c.Failure != "BROKEN" {
		t.Errorf("as set ready at %v, failure %q", c.ReadyAt, c.Failure)
	}
}

func TestFreePostsDoNotCount(t *testing.T) {
	clock := newClock()
	s := open(t, "", clock)
	create(t, s)
	one := 1
	if _, err := s.ChangeAccount(someone, func(a *Account) { a.Settings.Quota = &one }); err != nil {
		t.Fatal(err)
	}
	start := clock.Now()
	for _, d := range []Draft{{Text: "free", Free: true}, {Text: "counts"}, {Text: "free", Free: true}} {
		d.NewID = number
		if _, err := s.Publish(someone, d); err != nil {
			t.Fatalf("%+v: %v", d, err)
		}
		clock.Step(time.Minute)
	}
	var full *QuotaError
	if _, err := s.Publish(someone, Draft{Text: "too many", NewID: number}); !errors.As(err, &full) || !full.Resets.Equal(start.Add(time.Minute+QuotaWindow)) {
		t.Errorf("%v, want the quota until a day after the post that counts", err)
	}
	if counted := s.QuotaUsed(someone); counted != 1 {
		t.Errorf("%d counted, want 1", counted)
	}
}

// TestContainersThatWaitForAFile delivers a file and compares the state before and after a restart.
func TestContainersThatWaitForAFile(t *testing.T) {
	s := open(t, t.TempDir(), newClock())
	create(t, s)
	waiting := func(s *Store) []string {
		out := []string{}
		for _, c := range s.Unfetched("p") {
			out = append(out, c.Text)
		}
		return out
	}
	var made []Container
	for _, text := range []string{"first", "second"} {
		c, err := s.CreateContainer(someone, Container{Text: text, Source: "http://a.b/c"}, 0, number)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, c)
	}
	contain(t, s, "no file")
	want := []Media{{SHA256: "5", Bytes: 6, MIMEType: "m"}}
	arrive := func(c *Container) { c.Source, c.Media = "", want }
	if diff := cmp.Diff([]string{"first", "second"}, waiting(s)); diff != "" {
		t.Errorf("before it arrives (-want +got):\n%s", diff)
	}
	if _, err := s.ChangeContainer("p", made[0].ID, arrive); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s)
	if diff := cmp.Diff([]string{"second"}, waiting(s)); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	if c, _ := s.Container("p", made[0].ID); !cmp.Equal(want, c.Media) {
		t.Errorf("the container has %v", c.Media)
	}
	post, err := s.Publish(someone, Draft{Container: made[0].ID, NewID: number})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.ChangeContainer("p", made[0].ID, arrive); err != nil || c.PostID != post.ID {
		t.Errorf("what is public stays public: %+v, %v", c, err)
	}
	if c, _ := s.Container("p", made[0].ID); c.PostID != post.ID {
		t.Errorf("what is public stays public: %+v", c)
	}
	if _, err := s.ChangeContainer("p", "7", arrive); !errors.Is(err, ErrNoContainer) {
		t.Errorf("changing what does not exist: %v", err)
	}
}

// TestPartsGoIntoOnePost creates a post from several containers: none of them may be part of another post, not even
// after a restart.
func TestPartsGoIntoOnePost(t *testing.T) {
	s := open(t, t.TempDir(), newClock())
	create(t, s)
	a, b, c := contain(t, s, "a"), contain(t, s, "b"), contain(t, s, "c")
	post, err := s.Publish(someone, Draft{Parts: []string{a.ID, b.ID}, NewID: number})
	if err != nil {
		t.Fatal(err)
	}
	check := func(s *Store, reason string) {
		t.Helper()
		var published *PublishedError
		if _, err := s.Publish(someone, Draft{Parts: []string{c.ID, b.ID}, NewID: number}); !errors.As(err, &published) || published.Container != b.ID || published.Post != post.ID {
			t.Errorf("%s: %v", reason, err)
		}
		if free, _ := s.Container("p", c.ID); free.PostID != "" {
			t.Errorf("%s: a refused post used %s", reason, c.ID)
		}
	}
	check(s, "at once")
	check(reopen(t, s), "read back")
}

// TestChangesAreKept changes a published container, an unpublished one, and a post, and compares them after a
// restart.
func TestChangesAreKept(t *testing.T) {
	s := open(t, t.TempDir(), newClock())
	create(t, s)
	used, waiting := contain(t, s, "used"), contain(t, s, "waiting")
	post, err := s.Publish(someone, Draft{Text: "used", Container: used.ID, NewID: number})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{used.ID, waiting.ID} {
		if _, err := s.ChangeContainer("p", id, func(c *Container) { c.Failure = "changed" }); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetDetail("p", post.ID, []byte(`{"b":2}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ChangeContainer("p", "7", func(*Container) {}); !errors.Is(err, ErrNoContainer) {
		t.Errorf("an unknown container: %v", err)
	}
	if err := s.SetDetail("p", "7", nil); !errors.Is(err, ErrNoPost) {
		t.Errorf("an unknown post: %v", err)
	}
	check := func(s *Store, reason string) {
		t.Helper()
		first, _ := s.Container("p", used.ID)
		second, _ := s.Container("p", waiting.ID)
		kept, _ := s.Post("p", post.ID)
		got := []string{first.Failure, first.PostID, second.Failure, second.PostID, string(kept.Detail)}
		if diff := cmp.Diff([]string{"changed", post.ID, "changed", "", `{"b":2}`}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	check(s, "at once")
	check(reopen(t, s), "read back")
}
