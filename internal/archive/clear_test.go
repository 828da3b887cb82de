// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestForget(t *testing.T) {
	a, _ := open(t)
	for _, name := range []string{"deleted", "there"} {
		if err := a.Put(t.Context(), acme, name, to("x")); err != nil {
			t.Fatal(err)
		}
	}
	there := func(post string) (bool, error) { return post == "there", nil }
	away := errors.New("the API server is away")
	for _, tc := range []struct {
		reason string
		before time.Time
		needed func(string) (bool, error)
		want   int
		fails  bool
		left   []string
	}{
		{"a record that is young is kept, whoever needs it", time.Now().Add(-time.Hour), there, 0, false, []string{"deleted", "there"}},
		{"what is not known to be of no use is kept", time.Now().Add(time.Hour), func(string) (bool, error) { return false, away }, 0, true, []string{"deleted", "there"}},
		{"an old one goes, and that of a post which is there stays", time.Now().Add(time.Hour), there, 1, false, []string{"there"}},
	} {
		n, _, err := a.Forget(t.Context(), acme, tc.before, tc.needed)
		if n != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %d went, want %d; %v", tc.reason, n, tc.want, err)
		}
		if diff := cmp.Diff(tc.left, names(t, a, acme)); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}

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

// TestForgetSome shows that whoever has many records removed learns that some are left.
func TestForgetSome(t *testing.T) {
	a, bucket := open(t)
	const many = 1005
	for i := range many {
		if _, err := bucket.PutDocument(t.Context(), fmt.Sprintf("%sposts/p%d.json", acme.Prefix(), i), "application/json", []byte("x"), ""); err != nil {
			t.Fatal(err)
		}
	}
	nobody := func(string) (bool, error) { return false, nil }
	for i, want := range []bool{true, false} {
		if _, left, err := a.Forget(t.Context(), acme, time.Now().Add(time.Hour), nobody); left != want || err != nil {
			t.Errorf("call %d: some are left: %v, want %v; %v", i+1, left, want, err)
		}
	}
}
