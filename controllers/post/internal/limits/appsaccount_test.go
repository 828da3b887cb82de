// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
)

// oneAccountLimited returns a world where one account has received an app-wide rate limit, and a post for another
// account is probing.
func oneAccountLimited(t *testing.T) *limitsWorld {
	t.Helper()
	w := newLimitsWorld(t)
	w.answered("one", "a", "herald", w.limited(24*time.Hour))
	w.expect("the account that was told waits", "one", "b", false)
	w.expect("a post of another account asks", "two", "b", true)
	w.expect("and goes on asking", "two", "b", true)
	w.expect("the others of that account wait for it", "two", "c", false)
	w.expect("and those of a third one", "three", "d", false)
	return w
}

// holdsApp reports whether the limit of the first account applies to the whole app.
func (w *limitsWorld) holdsApp() bool {
	return w.limits.LimitedApps(func(tell func(*v1alpha1.Connection)) { tell(w.conn("one")) }, w.clock.Now())[v1alpha1.PlatformX]
}

// wentOut is the result of a call that published.
var wentOut = platforms.Result{Outcome: platforms.Posted}

// TestOneAccountLimited: an app-wide limit that one account receives blocks the other accounts until there is a
// response to one probe.
func TestOneAccountLimited(t *testing.T) {
	w := oneAccountLimited(t)
	if !w.holdsApp() {
		t.Error("the app is not held")
	}
	if wake := w.record.Observe(post("b"), &publish.Delivery{Conn: w.conn("two"), Token: platforms.Token{App: "herald"}, Result: wentOut}); wake != wakeAll {
		t.Errorf("it wakes %d", wake)
	}
	if n := w.asking(); n != 1000 {
		t.Errorf("%d of a thousand posts of other accounts may call", n)
	}
	w.expect("the limit holds the account that was told", "one", "b", false)
	if w.holdsApp() {
		t.Error("the app is held")
	}
	w.clock.Step(59 * time.Minute)
	w.restart()
	w.expect("a process that remembers nothing asks again", "two", "e", true)
	w.expect("with one post", "three", "f", false)
	w.answered("two", "e", "herald", wentOut)
	w.expect("and then all go on", "three", "f", true)

	w.clock.Step(time.Minute)
	w.expect("the account may call when its time is over", "one", "b", true)
	w.expect("nobody waits for that", "three", "g", true)
	w.answered("one", "b", "herald", w.limited(24*time.Hour))
	w.expect("told once more, it holds the others once more", "two", "h", true)
	w.expect("for as long as one of them asks", "three", "i", false)
}

// TestTwoAccountsLimited: the same response for two accounts is sufficient evidence.
func TestTwoAccountsLimited(t *testing.T) {
	w := oneAccountLimited(t)
	w.answered("two", "b", "herald", w.limited(24*time.Hour))
	for _, restarted := range []bool{false, true} {
		w.expect(fmt.Sprintf("two accounts are evidence; restarted: %t", restarted), "three", "d", false)
		w.restart()
	}
	w.clock.Step(time.Hour)
	w.expect("in an hour, one finds out", "three", "d", true)
	w.expect("and no other", "four", "e", false)
}

// TestOneAccountLimitedNoAnswer: a call without a response is not evidence.
func TestOneAccountLimitedNoAnswer(t *testing.T) {
	w := oneAccountLimited(t)
	w.answered("two", "b", "herald", platforms.Result{Outcome: platforms.Unknown})
	w.expect("the next one asks", "three", "d", true)
	w.expect("and no other", "two", "c", false)
	w.clock.Step(probeTimeout)
	w.expect("one that is not answered is not waited for", "two", "c", true)
}

// TestOneAccountLimitedCallBefore: a call that was made before the limit is not evidence.
func TestOneAccountLimitedCallBefore(t *testing.T) {
	w := oneAccountLimited(t)
	w.answered("three", "before", "herald", wentOut)
	w.expect("it may have been the last one", "three", "d", false)
	w.answered("two", "b", "herald", wentOut)
	w.expect("the one that asked shows it", "three", "d", true)
}

// TestOneAccountLimitedStaleRead: a reconciliation that read the limit before it was refuted is not blocked.
func TestOneAccountLimitedStaleRead(t *testing.T) {
	w := oneAccountLimited(t)
	conn, now := w.conn("three"), w.clock.Now()
	view, err := w.limits.Read(t.Context(), post("d"), map[string]*v1alpha1.Connection{"three": conn}, now)
	must.Succeed(t, err)
	w.answered("two", "b", "herald", wentOut)
	if until := view.BlockedUntil(conn, now); !until.IsZero() {
		t.Errorf("it waits until %s, and nothing wakes it", until)
	}
}

// TestOneAccountLimitedTwice: two connections of one account count as one account.
func TestOneAccountLimitedTwice(t *testing.T) {
	w := newLimitsWorld(t)
	same := w.conn("two")
	same.Spec.AccountID = "one"
	must.Succeed(t, w.api.Update(t.Context(), same))
	w.answered("one", "a", "herald", w.limited(24*time.Hour))
	w.expect("the other one is of the account that was told", "two", "b", false)
	w.answered("two", "c", "herald", w.limited(24*time.Hour))
	w.expect("told twice, an account is one account", "three", "d", true)
}

// TestOneAccountLimitedRefusal: a platform may check another account's post before the limit of the app.
func TestOneAccountLimitedRefusal(t *testing.T) {
	w := oneAccountLimited(t)
	w.answered("two", "b", "herald", platforms.Result{Outcome: platforms.Refused, Err: platforms.Errorf(platforms.ClassPermanent, "too long")})
	if !w.holdsApp() {
		t.Error("a refusal of a text has lifted the limit of the app")
	}
	w.expect("the next one asks", "three", "d", true)
	w.expect("and no other", "four", "e", false)
}
