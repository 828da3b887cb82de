// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func number(at Stamp) string { return fmt.Sprint(at.Milli, "-", at.Serial) }

func contain(t *testing.T, s *Store, text string) Container {
	t.Helper()
	return must(s.CreateContainer(someone, Container{Text: text, Detail: []byte(`{"a":1}`)}, time.Second, number))(t)
}

// TestContainersSurviveRestart publishes one of two containers, changes both and the post, and compares them before and after a restart.
func TestContainersSurviveRestart(t *testing.T) {
	s := open(t, t.TempDir(), newClock())
	create(t, s)
	used, waiting := contain(t, s, "used"), contain(t, s, "waiting")
	post := publish(t, s, Draft{Text: "used", Container: used.ID})
	for _, id := range []string{used.ID, waiting.ID} {
		must(s.ChangeContainer("p", id, func(c *Container) { c.Failure = "changed" }))(t)
	}
	if err := s.SetDetail("p", post.ID, []byte(`{"b":2}`)); err != nil {
		t.Fatal(err)
	}
	used.PostID, used.Failure, waiting.Failure = post.ID, "changed", "changed"
	s = both(t, s, func(t *testing.T, s *Store) {
		for _, want := range []Container{used, waiting} {
			got, _ := s.Container("p", want.ID)
			same(t, "the container", want, got)
		}
		kept, _ := s.Post("p", post.ID)
		same(t, "the post's detail", `{"b":2}`, string(kept.Detail))
		var published *PublishedError
		_, err := s.Publish(someone, Draft{Text: "again", Container: used.ID, NewID: number})
		if !errors.As(err, &published) || published.Post != post.ID {
			t.Errorf("the second publication: %v", err)
		}
	})
	if later := contain(t, s, "later"); later.Stamp.Compare(post.Stamp) <= 0 {
		t.Errorf("stamp %v is not after %v", later.Stamp, post.Stamp)
	}
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Container("p", waiting.ID); ok {
		t.Error("containers survived the reset")
	}
}

func TestContainerRefusals(t *testing.T) {
	s := open(t, "", newClock())
	create(t, s)
	other, nobody := Key{Platform: "p", ID: "2"}, Key{Platform: "p", ID: "3"}
	if _, _, err := s.CreateAccount(Account{Key: other, Username: "other"}, Tokens{}, false); err != nil {
		t.Fatal(err)
	}
	c := contain(t, s, "mine")
	change := func(*Container) {}
	publishing := func(owner Key, container string) func() error {
		return func() error { return second(s.Publish(owner, Draft{Container: container, NewID: number})) }
	}
	for why, tt := range map[string]struct {
		act  func() error
		want error
	}{
		"publishing another account's container": {publishing(other, c.ID), ErrNoContainer},
		"publishing an unknown container":        {publishing(someone, "7"), ErrNoContainer},
		"publishing without an account":          {publishing(nobody, c.ID), ErrNoAccount},
		"creating without an account":            {func() error { return second(s.CreateContainer(nobody, Container{}, 0, number)) }, ErrNoAccount},
		"changing an unknown container":          {func() error { return second(s.ChangeContainer("p", "7", change)) }, ErrNoContainer},
		"changing an unknown post":               {func() error { return s.SetDetail("p", "7", nil) }, ErrNoPost},
	} {
		if err := tt.act(); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", why, err, tt.want)
		}
	}
	same(t, "posts", 0, len(s.Posts("", "")))
}

func TestProcessing(t *testing.T) {
	clock := newClock()
	s := open(t, "", clock)
	create(t, s)
	plain := contain(t, s, "by default")
	zero := time.Duration(0)
	must(s.ChangeAccount(someone, func(a *Account) { a.Settings.Processing, a.Settings.ProcessingError = &zero, "BROKEN" }))(t)
	fast := contain(t, s, "as set")
	same(t, "the end and the result by default", []any{clock.Now().Add(time.Second), ""}, []any{plain.ReadyAt, plain.Failure})
	same(t, "the end and the result as set", []any{clock.Now(), "BROKEN"}, []any{fast.ReadyAt, fast.Failure})
}

func TestFreePostsDoNotCount(t *testing.T) {
	clock := newClock()
	s := open(t, "", clock)
	create(t, s)
	one, start := 1, clock.Now()
	must(s.ChangeAccount(someone, func(a *Account) { a.Settings.Quota = &one }))(t)
	for _, d := range []Draft{{Text: "free", Free: true}, {Text: "counts"}, {Text: "free", Free: true}} {
		publish(t, s, d)
		clock.Step(time.Minute)
	}
	var full *QuotaError
	_, err := s.Publish(someone, Draft{Text: "too many", NewID: number})
	if !errors.As(err, &full) || !full.Resets.Equal(start.Add(time.Minute+QuotaWindow)) {
		t.Errorf("%v, want the quota until a day after the post that counts", err)
	}
	same(t, "counted posts", 1, s.QuotaUsed(someone))
}

// TestContainersWaitForFiles delivers a file and compares the state before and after a restart.
func TestContainersWaitForFiles(t *testing.T) {
	s := open(t, t.TempDir(), newClock())
	create(t, s)
	waiting := func(s *Store) []string {
		out := []string{}
		for _, c := range s.Unfetched("p") {
			out = append(out, c.Text)
		}
		return out
	}
	var ids []string
	for _, text := range []string{"first", "second"} {
		ids = append(ids, must(s.CreateContainer(someone, Container{Text: text, Source: "http://a.b/c"}, 0, number))(t).ID)
	}
	contain(t, s, "no file")
	want := []Media{{SHA256: "5", Bytes: 6, MIMEType: "m"}}
	arrive := func(c *Container) { c.Source, c.Media = "", want }
	same(t, "before a file arrives", []string{"first", "second"}, waiting(s))
	must(s.ChangeContainer("p", ids[0], arrive))(t)
	s = reopen(t, s)
	same(t, "after a restart", []string{"second"}, waiting(s))
	c, _ := s.Container("p", ids[0])
	same(t, "the file", want, c.Media)
	post := publish(t, s, Draft{Container: ids[0]})
	same(t, "a published container stays published", post.ID, must(s.ChangeContainer("p", ids[0], arrive))(t).PostID)
}

// TestPartsBelongToOnePost creates a post from several containers: none of them may be part of another post, not even
// after a restart.
func TestPartsBelongToOnePost(t *testing.T) {
	s := open(t, t.TempDir(), newClock())
	create(t, s)
	a, b, c := contain(t, s, "a"), contain(t, s, "b"), contain(t, s, "c")
	post := publish(t, s, Draft{Parts: []string{a.ID, b.ID}})
	both(t, s, func(t *testing.T, s *Store) {
		var published *PublishedError
		_, err := s.Publish(someone, Draft{Parts: []string{c.ID, b.ID}, NewID: number})
		if !errors.As(err, &published) || published.Container != b.ID || published.Post != post.ID {
			t.Errorf("another post with a used part: %v", err)
		}
		free, _ := s.Container("p", c.ID)
		same(t, "a refused post uses no part", "", free.PostID)
	})
}

func TestDelete(t *testing.T) {
	s := open(t, t.TempDir(), newClock())
	create(t, s)
	root := publish(t, s, Draft{Text: "root"})
	publish(t, s, Draft{Text: "reply", InReplyTo: root.ID, Root: root.ID})
	for _, tt := range []struct {
		why   string
		owner Key
		want  error
	}{
		{"another account's post", Key{Platform: "p", ID: "another"}, ErrNoPost},
		{"one's own post", someone, nil},
		{"a post that is already deleted", someone, ErrNoPost},
	} {
		if err := s.Delete(tt.owner, root.ID); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.why, err, tt.want)
		}
	}
	s = reopen(t, s)
	if _, ok := s.Post("p", root.ID); ok {
		t.Error("a deleted post reappeared after a restart")
	}
	page, _, err := s.Timeline(someone, Range{Limit: 10})
	same(t, "only the reply is left", []any{nil, 1, 1, 1, 1},
		[]any{err, len(page), len(s.Posts("", "")), len(s.Chain("p", root.ID)), s.PostCount(someone)})
	same(t, "a deleted post still counts against the quota", 2, s.QuotaUsed(someone))
	publish(t, s, Draft{Text: "root", DuplicateWindow: time.Hour}) // but is not a duplicate
}
