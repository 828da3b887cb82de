// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
)

func post(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: name}
}

var errSilent = errors.New("it does not answer")

func newOutage() (*storeBreaker, *clocktesting.FakeClock) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	return &storeBreaker{clock: clock}, clock
}

// fail executes failing requests for posts.
func (o *storeBreaker) fail(t *testing.T, err error, posts ...types.NamespacedName) {
	t.Helper()
	for _, post := range posts {
		if got := o.execute(post, func() error { return err }); !errors.Is(got, err) {
			t.Fatalf("the request for %s: %v, want %v", post, got, err)
		}
	}
}

// TestStoreBreaker checks whether a request is sent to the store after the requests for two posts have failed.
func TestStoreBreaker(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		pause  time.Duration
		answer error
		// asked is true if the request after the failures is sent. away is how long the store counts as unavailable after it.
		asked bool
		away  time.Duration
	}{
		"at once":              {"the store has just failed", 0, nil, false, 0},
		"within a second":      {"thousands of posts do not query a store that refuses connections", 999 * time.Millisecond, nil, false, 999 * time.Millisecond},
		"after a second":       {"a request has to probe the store", time.Second, nil, true, 0},
		"the probe fails, too": {"the store has been unavailable since the failures", 5 * time.Second, errSilent, true, 5 * time.Second},
		"no such record":       {"a missing record is a response", 5 * time.Second, fmt.Errorf("of a post: %w", archive.ErrNotFound), true, 0},
		"another document":     {"an unreadable document is a response", 5 * time.Second, &unreadable{errSilent}, true, 0},
		"a file is rejected":   {"a rejection is a response", 5 * time.Second, fmt.Errorf("of a post: %w", store.ErrTooLarge), true, 0},
		"the process ends":     {"a cancelled call is not a response", 5 * time.Second, fmt.Errorf("stopped: %w", context.Canceled), true, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			o, clock := newOutage()
			o.fail(t, errSilent, post("a"), post("b"))
			clock.Step(tc.pause)
			if knows := o.isOpen(); knows == tc.asked {
				t.Errorf("%s: open: %v", tc.reason, knows)
			}
			asked := false
			err := o.execute(post("c"), func() error { asked = true; return tc.answer })
			if asked != tc.asked || errors.Is(err, errStoreUnavailable) == asked {
				t.Errorf("%s: called %v, error %v", tc.reason, asked, err)
			}
			if away := o.openFor(); away != tc.away {
				t.Errorf("%s: away for %v, want %v", tc.reason, away, tc.away)
			}
		})
	}
}

// TestFailureOfOnePost checks whether requests for other posts are sent after requests for some posts have failed.
func TestFailureOfOnePost(t *testing.T) {
	silent := func(posts ...types.NamespacedName) func(*testing.T, *storeBreaker) {
		return func(t *testing.T, o *storeBreaker) { t.Helper(); o.fail(t, errSilent, posts...) }
	}
	of := func(err error, posts ...types.NamespacedName) func(*testing.T, *storeBreaker) {
		return func(t *testing.T, o *storeBreaker) { t.Helper(); o.fail(t, err, posts...) }
	}
	healthy := func(t *testing.T, o *storeBreaker) { t.Helper(); o.fail(t, nil, post("healthy")) }
	for name, tc := range map[string]struct {
		reason string
		before []func(*testing.T, *storeBreaker)
		away   bool
	}{
		"one post":                        {"its key may be the cause", []func(*testing.T, *storeBreaker){silent(post("a"))}, false},
		"one post, repeatedly":            {"repeated failures of one post add no evidence", []func(*testing.T, *storeBreaker){silent(post("a"), post("a"), post("a"))}, false},
		"two posts":                       {"the posts only share the store", []func(*testing.T, *storeBreaker){silent(post("a"), post("b"))}, true},
		"two posts with one name":         {"the posts belong to two teams", []func(*testing.T, *storeBreaker){silent(post("a"), types.NamespacedName{Namespace: "other", Name: "a"})}, true},
		"two posts, one saved in between": {"the store serves others", []func(*testing.T, *storeBreaker){silent(post("a")), healthy, silent(post("b"))}, false},
		"one failing among healthy ones": {
			"each success shows that the store is available",
			[]func(*testing.T, *storeBreaker){silent(post("a")), healthy, silent(post("a")), healthy, silent(post("a"))},
			false,
		},
		"keys that are too long": {
			"the store responds with the cause",
			[]func(*testing.T, *storeBreaker){of(store.ErrTooLarge, post("a"), post("b"), post("c"))},
			false,
		},
		"unreadable records":                 {"the store returned them", []func(*testing.T, *storeBreaker){of(&unreadable{errSilent}, post("a"), post("b"))}, false},
		"one silent, one with a long key":    {"the second request got a response", []func(*testing.T, *storeBreaker){silent(post("a")), of(store.ErrTooLarge, post("b")), silent(post("c"))}, false},
		"cancelled passes":                   {"no request was sent", []func(*testing.T, *storeBreaker){of(context.Canceled, post("a"), post("b"))}, false},
		"one unanswered, one cancelled pass": {"one failing post is not enough", []func(*testing.T, *storeBreaker){silent(post("a")), of(context.Canceled, post("b"))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o, clock := newOutage()
			for _, step := range tc.before {
				step(t, o)
			}
			if knows := o.isOpen(); knows != tc.away {
				t.Errorf("%s: away %v, want %v", tc.reason, knows, tc.away)
			}
			asked := o.execute(post("other"), func() error { return nil }) == nil
			if asked == tc.away {
				t.Errorf("%s: another post called: %v, want %v", tc.reason, asked, !tc.away)
			}
			clock.Step(2 * breakerTTL)
			if lasts := o.openFor(); (lasts > 0) != tc.away {
				t.Errorf("%s: away for %v", tc.reason, lasts)
			}
		})
	}
}

// TestUnwritten checks how long the store counts as unwritable after failed writes.
func TestUnwritten(t *testing.T) {
	full := errors.New("no space is left")
	type write struct {
		post string
		err  error
	}
	for name, tc := range map[string]struct {
		reason string
		writes []write
		known  bool
	}{
		"one record":                    {"other records may be accepted", []write{{"a", full}, {"a", full}}, false},
		"two records":                   {"the bucket is full", []write{{"a", full}, {"b", full}}, true},
		"a successful write in between": {"the bucket accepts records", []write{{"a", full}, {"c", nil}, {"b", full}}, false},
		"rejected records":              {"the store names the cause, which concerns these records", []write{{"a", store.ErrTooLarge}, {"b", store.ErrTooLarge}}, false},
		"skipped writes":                {"no request was sent", []write{{"a", errStoreUnavailable}, {"b", errStoreUnavailable}}, false},
		"one failed, one skipped":       {"the second was not sent", []write{{"a", full}, {"b", errStoreUnavailable}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
			rs := New(&Options{Clock: clock})
			for _, w := range tc.writes {
				rs.observeWrite(post(w.post), w.err)
			}
			clock.Step(time.Hour)
			if known := rs.unwritableFor() == time.Hour; known != tc.known {
				t.Errorf("%s: unwritten for %v", tc.reason, rs.unwritableFor())
			}
		})
	}
}

// TestOneRequestProbes executes many requests concurrently.
func TestOneRequestProbes(t *testing.T) {
	o, clock := newOutage()
	others := func(want bool) {
		t.Helper()
		if asked := o.execute(post("other"), func() error { return nil }) == nil; asked != want {
			t.Errorf("called %v, want %v", asked, want)
		}
	}
	others(true)
	o.fail(t, errSilent, post("a"), post("b"))
	clock.Step(time.Second)
	_ = o.execute(post("a"), func() error {
		others(false) // no other request waits for the probe
		clock.Step(15 * time.Second)
		others(false)
		return errSilent
	})
	others(false)
	clock.Step(time.Second)
	_ = o.execute(post("a"), func() error {
		clock.Step(breakerTTL)
		others(true) // the probe may have ended without a result
		return nil
	})
	others(true)
}
