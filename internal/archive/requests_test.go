// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
)

func TestRequests(t *testing.T) {
	a, bucket := open(t)
	ctx := t.Context()
	created := archive.Request{UID: "1b9d", Fingerprint: "v1:abc"}
	must.Succeed(t, a.PutRequest(ctx, acme, "p1", created))
	created.Version = 1
	if got, err := a.Request(ctx, acme, "p1"); err != nil || got != created {
		t.Errorf("got %v, %v; want the stored request", got, err)
	}
	for why, of := range map[string]struct {
		team archive.Team
		name string
	}{"another name": {acme, "p2"}, "another team of the namespace": {other, "p1"}} {
		if _, err := a.Request(ctx, of.team, of.name); !errors.Is(err, archive.ErrNotFound) {
			t.Errorf("%s: %v; want ErrNotFound", why, err)
		}
	}
	if got := names(t, a, acme); len(got) > 0 {
		t.Errorf("a request is listed as a post's record: %v", got)
	}
	if _, err := bucket.PutDocument(ctx, acme.Prefix()+"requests/p9.json", "application/json", []byte(`{"version":9,"uid":"x"}`), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Request(ctx, acme, "p9"); err == nil || errors.Is(err, archive.ErrNotFound) {
		t.Errorf("a request of a newer format returned %v; want an error about the format", err)
	}

	for _, step := range []struct {
		why    string
		before time.Time
		left   bool
	}{
		{"its time is not over", time.Now().Add(-time.Hour), true},
		{"its retention has ended", time.Now().Add(time.Hour), false},
		{"the folder is empty", time.Now().Add(time.Hour), false},
	} {
		if _, err := a.ExpireRequests(ctx, acme, step.before); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Request(ctx, acme, "p1"); step.left != (err == nil) {
			t.Errorf("%s: %v", step.why, err)
		}
	}
}

func TestNoRequests(t *testing.T) {
	a := archive.New(store.None())
	_, read := a.Request(t.Context(), acme, "p1")
	got := []bool{errors.Is(read, archive.ErrNone), errors.Is(a.PutRequest(t.Context(), acme, "p1", archive.Request{}), archive.ErrNone)}
	if diff := cmp.Diff([]bool{true, true}, got); diff != "" {
		t.Errorf("without a bucket: %s", diff)
	}
	if n, err := a.ExpireRequests(t.Context(), acme, time.Now()); n != 0 || err != nil {
		t.Errorf("deleted %d, %v; no request is stored", n, err)
	}
}
