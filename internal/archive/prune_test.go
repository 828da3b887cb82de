// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
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

// needs returns an InUse for the given posts.
func needs(posts ...string) func(string) (bool, error) {
	return func(post string) (bool, error) { return slices.Contains(posts, post), nil }
}

func TestDeleteUnneeded(t *testing.T) {
	a, bucket := open(t)
	for _, name := range []string{"deleted", "there"} {
		must.Succeed(t, a.Put(t.Context(), acme, name, to("x")))
	}
	away := errors.New("the API server is unavailable")
	now := time.Now()
	for _, step := range []struct {
		reason string
		// after is how long ago the records were written.
		after  time.Duration
		before time.Duration
		doing  func() error
		needed func(string) (bool, error)
		want   int
		fails  bool
		left   []string
	}{
		{"a recent record is kept, whether or not it is needed", time.Hour, time.Hour + time.Minute, nil, needs(), 0, false, []string{"deleted", "there"}},
		{"an unneeded record is marked when this is first detected", 10 * time.Hour, time.Hour, nil, needs("there"), 0, false, []string{"deleted", "there"}},
		{
			"a record of unknown use is kept", 59 * time.Hour, time.Hour, nil, func(string) (bool, error) { return false, away }, 0, true,
			[]string{"deleted", "there"},
		},
		{"a marked record is kept during the grace period", 57 * time.Hour, time.Hour, nil, needs("there"), 0, false, []string{"deleted", "there"}},
		{"a returning post restarts the grace period", 57 * time.Hour, time.Hour, nil, needs("there", "deleted"), 0, false, []string{"deleted", "there"}},
		{"a record that is needed again loses its mark", 60 * time.Hour, time.Hour, nil, needs("there"), 0, false, []string{"deleted", "there"}},
		{"the record is deleted after the grace period, and an existing post's record is kept", 108 * time.Hour, time.Hour, nil, needs("there"), 1, false, []string{"there"}},
		{
			"a record that is written later with the same name has its own grace period", 200 * time.Hour, time.Hour,
			func() error { return a.Put(t.Context(), acme, "deleted", to("y")) }, needs("there"), 0, false,
			[]string{"deleted", "there"},
		},
		{
			"a damaged file of notes is replaced: the grace period starts over", 300 * time.Hour, time.Hour,
			func() error {
				_, err := bucket.PutDocument(t.Context(), acme.Prefix()+"unneeded.json", "application/json", []byte("rot"), store.Any)
				return err
			}, needs("there"), 0, false,
			[]string{"deleted", "there"},
		},
		{"the record is deleted after the new grace period", 348 * time.Hour, time.Hour, nil, needs("there"), 1, false, []string{"there"}},
	} {
		if step.doing != nil {
			must.Succeed(t, step.doing())
		}
		at := now.Add(step.after)
		n, _, err := a.Prune(t.Context(), acme, archive.PruneOptions{Now: at, Before: at.Add(-step.before), GracePeriod: 48 * time.Hour, InUse: step.needed})
		if n != step.want || (err != nil) != step.fails {
			t.Errorf("%s: deleted %d, want %d; %v", step.reason, n, step.want, err)
		}
		if diff := cmp.Diff(step.left, names(t, a, acme)); diff != "" {
			t.Errorf("%s: %s", step.reason, diff)
		}
	}
}

// TestDeleteUnneededRewritten checks that a record's entry in the document does not apply to a later record with the
// same name, which was needed when it was written.
func TestDeleteUnneededRewritten(t *testing.T) {
	a, _ := open(t)
	must.Succeed(t, a.Put(t.Context(), acme, "launch", to("x")))
	forget := func(ago time.Duration) int {
		t.Helper()
		at := time.Now().Add(-ago)
		n, _, err := a.Prune(t.Context(), acme, archive.PruneOptions{Now: at, Before: time.Now().Add(time.Hour), GracePeriod: 48 * time.Hour, InUse: needs()})
		must.Succeed(t, err)
		return n
	}
	forget(50 * time.Hour) // It was noted two days ago, and has been written since.
	if n := forget(0); n != 0 {
		t.Errorf("deleted %d records that were written after they were marked, want none", n)
	}
}

// TestDeleteUnneededInParts checks that when there are many records to remove, some are reported as left.
func TestDeleteUnneededInParts(t *testing.T) {
	a, bucket := open(t)
	const many = 1005
	for i := range many {
		if _, err := bucket.PutDocument(t.Context(), fmt.Sprintf("%sposts/p%d.json", acme.Prefix(), i), "application/json", []byte("x"), ""); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().Add(time.Hour)
	for i, want := range []struct {
		after time.Duration
		n     int
		left  bool
	}{{0, 0, false}, {48 * time.Hour, 1000, true}, {48 * time.Hour, 5, false}} {
		at := now.Add(want.after)
		n, left, err := a.Prune(t.Context(), acme, archive.PruneOptions{Now: at, Before: now, GracePeriod: 48 * time.Hour, InUse: needs()})
		if n != want.n || left != want.left || err != nil {
			t.Errorf("call %d: deleted %d, some remain: %v; want %d, %v; %v", i+1, n, left, want.n, want.left, err)
		}
	}
}

// keeps is a transport to a store that refuses to remove some documents, for example because of a retention rule.
type keeps struct {
	under http.Transport
	names []string
}

func (k *keeps) RoundTrip(req *http.Request) (*http.Response, error) {
	held := func(name string) bool { return strings.HasSuffix(req.URL.Path, "/"+name+".json") }
	if req.Method != http.MethodDelete || !slices.ContainsFunc(k.names, held) {
		return k.under.RoundTrip(req)
	}
	body := "<Error><Code>AccessDenied</Code><Message>the document is locked</Message></Error>"
	return &http.Response{
		StatusCode: http.StatusForbidden, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// TestUnremovableDocument checks that a document that cannot be removed does not block the others, and is tried again.
func TestUnremovableDocument(t *testing.T) {
	config, link := storetest.Start(t), &keeps{names: []string{"b"}}
	config.Transport = link
	bucket, err := store.New(config)
	must.Succeed(t, err)
	a, ctx := archive.New(bucket), t.Context()
	fill := func() {
		t.Helper()
		for _, name := range []string{"a", "b", "c", "d"} {
			must.Succeed(t, a.Put(ctx, acme, name, to("x")))
			must.Succeed(t, a.PutRequest(ctx, acme, name, archive.Request{UID: "u"}))
		}
	}
	left := func(reason string, want ...string) {
		t.Helper()
		if got := names(t, a, acme); !slices.Equal(got, want) {
			t.Errorf("%s: %q remain, want %q", reason, got, want)
		}
	}
	fill()
	forget := func(after time.Duration) error {
		now := time.Now().Add(after)
		_, _, err := a.Prune(ctx, acme, archive.PruneOptions{Now: now, Before: now.Add(-time.Hour), GracePeriod: 48 * time.Hour, InUse: needs("d")})
		return err
	}
	must.Succeed(t, forget(2*time.Hour))
	if err := forget(52 * time.Hour); err == nil || !strings.Contains(err.Error(), "1 documents could not be removed") {
		t.Errorf("forgotten while one is locked: %v", err)
	}
	left("the others are forgotten", "b", "d")
	if removed, err := a.ExpireRequests(ctx, acme, time.Now().Add(time.Hour)); err == nil || removed != 3 {
		t.Errorf("%d requests are removed, want 3: %v", removed, err)
	}
	fill()
	if left, err := a.Clear(ctx, acme); err == nil || !left {
		t.Errorf("cleared with a locked record: some remain: %t, %v", left, err)
	}
	left("the others are cleared", "b")

	link.names = nil
	if err := forget(53 * time.Hour); err != nil {
		t.Errorf("marked again: %v", err)
	}
	if left, err := a.Clear(ctx, acme); err != nil || left {
		t.Errorf("cleared: some remain: %t, %v", left, err)
	}
	left("it is not locked any more")
}
