// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
)

// limitsWorld is a Limits with four connections for Herald's app, and one for another app.
type limitsWorld struct {
	t      *testing.T
	clock  *clocktesting.FakeClock
	api    client.Client
	limits *Limits
	record *Recorder
}

func newLimitsWorld(t *testing.T) *limitsWorld {
	t.Helper()
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Connection{}).
		WithIndex(&v1alpha1.Connection{}, appBlockedField, func(obj client.Object) []string {
			if conn, ok := obj.(*v1alpha1.Connection); ok && conn.Status.AppRateLimitedUntil != nil {
				return []string{string(conn.Spec.Platform)}
			}
			return nil
		})
	for name, app := range map[string]string{"one": "herald", "two": "herald", "three": "herald", "four": "herald", "foreign": ""} {
		builder.WithObjects(&v1alpha1.Connection{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)},
			Spec:       v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: name},
			Status:     v1alpha1.ConnectionStatus{App: app},
		})
	}
	w := &limitsWorld{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)), api: builder.Build()}
	w.restart()
	return w
}

// restart simulates a new process without any state.
func (w *limitsWorld) restart() {
	o := &Options{
		Client: w.api, APIReader: w.api, Clock: w.clock,
		Apps: credentials.Apps{v1alpha1.PlatformX: {ID: "herald", Secret: func() string { return "s" }}},
	}
	w.limits = New(o)
	w.record = NewRecorder(o, w.limits)
}

func (w *limitsWorld) conn(name string) *v1alpha1.Connection {
	w.t.Helper()
	var conn v1alpha1.Connection
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: "team", Name: name}, &conn); err != nil {
		w.t.Fatal(err)
	}
	return &conn
}

func post(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: name}
}

// answered applies and records the response to a post's call on a connection.
func (w *limitsWorld) answered(name, by, app string, result platforms.Result) {
	w.t.Helper()
	d := &publish.Delivery{Conn: w.conn(name), Token: platforms.Token{App: app}, Result: result}
	w.record.Observe(post(by), d)
	if _, _, err := w.record.Record(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
}

// limited returns a response with an app-wide rate limit.
func (w *limitsWorld) limited(d time.Duration) platforms.Result {
	return platforms.Result{Outcome: platforms.Refused, Err: &platforms.Error{
		Class: platforms.ClassQuota, Problem: "used up", AppWide: true, RetryAt: w.clock.Now().Add(d),
	}}
}

// limitedTwice applies an app-wide rate limit to two accounts.
func (w *limitsWorld) limitedTwice(d time.Duration) {
	w.t.Helper()
	w.answered("one", "a", "herald", w.limited(d))
	w.answered("four", "z", "herald", w.limited(d))
}

// may reports whether a post may call a connection's platform now, using the same checks as a reconciliation.
func (w *limitsWorld) may(name, by string) bool {
	w.t.Helper()
	conn, now := w.conn(name), w.clock.Now()
	view, err := w.limits.Read(w.t.Context(), post(by), map[string]*v1alpha1.Connection{name: conn}, now)
	if err != nil {
		w.t.Fatal(err)
	}
	return view.BlockedUntil(conn, now).IsZero() && view.AcquireProbe(conn, now)
}

// allowedPosts returns the number of posts, out of a thousand, that may call.
func (w *limitsWorld) allowedPosts() (n int) {
	w.t.Helper()
	for i := range 1000 {
		if w.may("two", fmt.Sprint("p", i)) {
			n++
		}
	}
	return n
}

func (w *limitsWorld) expect(reason, name, by string, want bool) {
	w.t.Helper()
	if got := w.may(name, by); got != want {
		w.t.Errorf("%s: post %s may call %s: %t, want %t", reason, by, name, got, want)
	}
}

func TestAppLimitLastsAtMostAnHour(t *testing.T) {
	w := newLimitsWorld(t)
	w.limitedTwice(31 * 24 * time.Hour)
	w.expect("the app does not accept calls", "two", "b", false)
	w.expect("another app accepts calls", "foreign", "b", true)
	w.answered("foreign", "c", "", w.limited(31*24*time.Hour))
	w.expect("the limited account does not call", "foreign", "b", false)
	w.clock.Step(time.Hour - time.Second)
	w.expect("the hour is not over", "two", "b", false)
	w.expect("the account still waits", "foreign", "b", false)
	w.clock.Step(time.Second)
	w.expect("one call probes, however long the platform says", "two", "b", true)
	w.expect("the account may call, too", "foreign", "b", true)
}

func TestOnePostProbes(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted: %t", restarted), func(t *testing.T) {
			w := newLimitsWorld(t)
			w.limitedTwice(24 * time.Hour)
			w.clock.Step(time.Hour)
			if restarted {
				w.restart()
			}
			if n := w.allowedPosts(); n != 1 {
				t.Fatalf("%d of a thousand posts probe the limit, want 1", n)
			}
			w.expect("the probing post may continue", "two", "p0", true)

			w.answered("two", "p0", "herald", w.limited(24*time.Hour))
			if n := w.allowedPosts(); n != 0 {
				t.Fatalf("%d posts call although the limit still applies", n)
			}
			w.clock.Step(time.Hour)
			w.expect("the next post may probe", "two", "q", true)
			w.expect("all other posts wait", "two", "r", false)

			w.answered("two", "q", "herald", platforms.Result{Outcome: platforms.Posted})
			if n := w.allowedPosts(); n != 1000 {
				t.Fatalf("%d of a thousand posts may call although the limit still applies", n)
			}
		})
	}
}

func TestProbeMayFail(t *testing.T) {
	w := newLimitsWorld(t)
	w.answered("one", "a", "herald", w.limited(time.Minute))
	w.clock.Step(time.Minute)
	w.expect("one asks", "two", "b", true)
	w.expect("another post waits", "two", "c", false)
	w.answered("two", "b", "herald", platforms.Result{Outcome: platforms.NotSent})
	w.expect("an unsent call shows nothing, and the next post probes", "two", "c", true)
	w.expect("only one post probes", "two", "d", false)
	w.limits.CancelProbes(post("c"))
	w.expect("a deleted post's probe passes to the next", "two", "d", true)
	w.clock.Step(probeTimeout)
	w.expect("a slow probe passes to the next", "two", "e", true)
}

// TestProbeMayTakeLong: a probing post may upload for hours, with a reconciliation for each part. The others do not
// wait for it, regardless of the number of such posts.
func TestProbeMayTakeLong(t *testing.T) {
	const step = probeTimeout / 4
	for _, slow := range []int{1, 3, 100} {
		t.Run(fmt.Sprintf("%d slow posts", slow), func(t *testing.T) {
			w := newLimitsWorld(t)
			w.answered("one", "a", "herald", w.limited(time.Minute))
			w.clock.Step(time.Minute)
			rounds := 0
			for waited := time.Duration(0); waited < 30*time.Minute; waited += step {
				calling := 0
				for i := range slow {
					if w.may("one", fmt.Sprint("slow", i)) {
						calling++
					}
				}
				if waited%probeTimeout == 0 {
					rounds++
				}
				if most := 1 << (rounds - 1); calling > most {
					t.Fatalf("%d posts probe after %s, want at most %d", calling, waited, most)
				}
				if w.may("two", "b") {
					return
				}
				w.clock.Step(step)
			}
			t.Error("the post of another team waited for half an hour")
		})
	}
}

// TestWokenPosts checks that not all of a thousand waiting posts are woken when the platform does not respond.
func TestWokenPosts(t *testing.T) {
	w := newLimitsWorld(t)
	w.answered("one", "a", "herald", w.limited(time.Minute))
	said := func(by string, result platforms.Result) int {
		return w.record.Observe(post(by), &publish.Delivery{Conn: w.conn("two"), Token: platforms.Token{App: "herald"}, Result: result})
	}
	late := w.limited(time.Second)
	w.clock.Step(time.Minute)
	w.expect("one asks", "two", "b", true)
	if n := said("b", platforms.Result{Outcome: platforms.Unknown}); n != wakeSome {
		t.Errorf("a lost response wakes %d", n)
	}
	w.expect("the next post probes", "two", "c", true)
	if n := said("b", platforms.Result{Outcome: platforms.Unknown}); n != wakeNone {
		t.Errorf("recording the result wakes %d", n)
	}
	if n := said("b", late); n != wakeNone {
		t.Errorf("the late record of a limit that has passed wakes %d", n)
	}
	w.expect("the lost response does not end the limit", "two", "d", false)
	if n := said("c", platforms.Result{Outcome: platforms.Posted}); n != wakeAll {
		t.Errorf("the end of the limit wakes %d", n)
	}
}

// TestClockSetBack checks that waiting for a probe ends even if the clock is set back.
func TestClockSetBack(t *testing.T) {
	w := newLimitsWorld(t)
	w.answered("one", "a", "herald", w.limited(time.Minute))
	w.clock.Step(25 * time.Hour)
	w.expect("one asks", "one", "b", true)
	w.clock.Step(-24 * time.Hour)
	w.expect("its time is over by any clock", "two", "c", true)
}

func TestLiftedByHand(t *testing.T) {
	w := newLimitsWorld(t)
	w.answered("one", "a", "herald", w.limited(time.Hour))
	w.expect("the account waits", "one", "b", false)
	w.expect("one post probes the app", "two", "b", true)
	w.expect("the other posts wait", "two", "c", false)
	conn := w.conn("one")
	if conn.Status.App != "herald" || conn.Status.AppRateLimitedUntil == nil || conn.Status.RateLimitedUntil == nil {
		t.Errorf("the connection's status is %+v", conn.Status)
	}
	conn.Status.RateLimitedUntil, conn.Status.AppRateLimitedUntil = nil, nil
	must.Succeed(t, w.api.Status().Update(t.Context(), conn))
	w.expect("the process trusts the connection", "one", "b", true)
	if n := w.allowedPosts(); n != 1000 {
		t.Errorf("%d of a thousand posts continue immediately", n)
	}
}

func TestAppLimitOfAnother(t *testing.T) {
	w := newLimitsWorld(t)
	// Limits for a token of another app are no longer stored as app-wide, but the status may be from an earlier version
	// of Herald.
	conn := w.conn("foreign")
	conn.Status.AppRateLimitedUntil = v1alpha1.NewTimePtr(w.clock.Now().Add(time.Hour))
	must.Succeed(t, w.api.Status().Update(t.Context(), conn))
	w.expect("no team holds the others", "one", "a", true)
	if held := w.limits.LimitedApps(func(tell func(*v1alpha1.Connection)) { tell(conn) }, w.clock.Now()); len(held) != 1 || held[v1alpha1.PlatformX] {
		t.Errorf("limited apps: %v", held)
	}
}

// TestConnectionStateIsDropped checks that the state of a connection is dropped with it.
func TestConnectionStateIsDropped(t *testing.T) {
	w := newLimitsWorld(t)
	conn := w.conn("one")
	conn.Status.RateLimits = []v1alpha1.RateLimit{{Name: "postsPerDay", Limit: 10, Remaining: 9, ObservedAt: v1alpha1.NewTime(w.clock.Now())}}
	w.record.RecordPublication(conn)
	w.record.Observe(post("a"), &publish.Delivery{Conn: conn, Result: w.limited(time.Hour)})
	w.record.Observe(post("a"), &publish.Delivery{Conn: conn, Result: platforms.Result{
		Outcome: platforms.Refused, Err: &platforms.Error{Class: platforms.ClassReconnect},
	}})
	if len(w.limits.accounts) != 1 {
		t.Fatalf("%d accounts are stored", len(w.limits.accounts))
	}
	w.limits.Forget(conn.UID)
	if len(w.limits.accounts) != 0 {
		t.Errorf("%d accounts stay", len(w.limits.accounts))
	}
}

// oneAccountLimited returns a world where one account has received an app-wide rate limit, and a post for another
// account is probing.
func oneAccountLimited(t *testing.T) *limitsWorld {
	t.Helper()
	w := newLimitsWorld(t)
	w.answered("one", "a", "herald", w.limited(24*time.Hour))
	w.expect("the limited account waits", "one", "b", false)
	w.expect("another account's post probes", "two", "b", true)
	w.expect("the post continues to probe", "two", "b", true)
	w.expect("the account's other posts wait", "two", "c", false)
	w.expect("a third account's posts wait", "three", "d", false)
	return w
}

// limitsWholeApp reports whether the limit of the first account applies to the whole app.
func (w *limitsWorld) limitsWholeApp() bool {
	return w.limits.LimitedApps(func(tell func(*v1alpha1.Connection)) { tell(w.conn("one")) }, w.clock.Now())[v1alpha1.PlatformX]
}

// wentOut is the result of a call that published.
var wentOut = platforms.Result{Outcome: platforms.Posted}

// TestOneAccountLimited: an app-wide limit that one account receives blocks the other accounts until there is a
// response to one probe.
func TestOneAccountLimited(t *testing.T) {
	w := oneAccountLimited(t)
	if !w.limitsWholeApp() {
		t.Error("the app is not limited")
	}
	if wake := w.record.Observe(post("b"), &publish.Delivery{Conn: w.conn("two"), Token: platforms.Token{App: "herald"}, Result: wentOut}); wake != wakeAll {
		t.Errorf("the probe wakes %d", wake)
	}
	if n := w.allowedPosts(); n != 1000 {
		t.Errorf("%d of a thousand posts of other accounts may call", n)
	}
	w.expect("the limit blocks the limited account", "one", "b", false)
	if w.limitsWholeApp() {
		t.Error("the app is limited")
	}
	w.clock.Step(59 * time.Minute)
	w.restart()
	w.expect("a new process probes again", "two", "e", true)
	w.expect("only one post probes", "three", "f", false)
	w.answered("two", "e", "herald", wentOut)
	w.expect("all posts continue", "three", "f", true)

	w.clock.Step(time.Minute)
	w.expect("the account may call when its time is over", "one", "b", true)
	w.expect("no other account waits", "three", "g", true)
	w.answered("one", "b", "herald", w.limited(24*time.Hour))
	w.expect("a repeated limit blocks the others again", "two", "h", true)
	w.expect("the others wait while one post probes", "three", "i", false)
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
	w.expect("after an hour, one post probes", "three", "d", true)
	w.expect("no other post probes", "four", "e", false)
}

// TestOneAccountLimitedNoAnswer: a call without a response is not evidence.
func TestOneAccountLimitedNoAnswer(t *testing.T) {
	w := oneAccountLimited(t)
	w.answered("two", "b", "herald", platforms.Result{Outcome: platforms.Unknown})
	w.expect("the next post probes", "three", "d", true)
	w.expect("no other post probes", "two", "c", false)
	w.clock.Step(probeTimeout)
	w.expect("an unanswered probe passes to the next", "two", "c", true)
}

// TestOneAccountLimitedCallBefore: a call that was made before the limit is not evidence.
func TestOneAccountLimitedCallBefore(t *testing.T) {
	w := oneAccountLimited(t)
	w.answered("three", "before", "herald", wentOut)
	w.expect("the limit may still apply", "three", "d", false)
	w.answered("two", "b", "herald", wentOut)
	w.expect("the probe ends the limit", "three", "d", true)
}

// TestOneAccountLimitedStaleRead: a reconciliation that read the limit before it was refuted is not blocked.
func TestOneAccountLimitedStaleRead(t *testing.T) {
	w := oneAccountLimited(t)
	conn, now := w.conn("three"), w.clock.Now()
	view, err := w.limits.Read(t.Context(), post("d"), map[string]*v1alpha1.Connection{"three": conn}, now)
	must.Succeed(t, err)
	w.answered("two", "b", "herald", wentOut)
	if until := view.BlockedUntil(conn, now); !until.IsZero() {
		t.Errorf("the post waits until %s without a wake-up", until)
	}
}

// TestOneAccountLimitedTwice: two connections of one account count as one account.
func TestOneAccountLimitedTwice(t *testing.T) {
	w := newLimitsWorld(t)
	same := w.conn("two")
	same.Spec.AccountID = "one"
	must.Succeed(t, w.api.Update(t.Context(), same))
	w.answered("one", "a", "herald", w.limited(24*time.Hour))
	w.expect("the other post belongs to the limited account", "two", "b", false)
	w.answered("two", "c", "herald", w.limited(24*time.Hour))
	w.expect("a limit that one account hits twice is evidence from one account", "three", "d", true)
}

// TestOneAccountLimitedRefusal: a platform may check another account's post before the limit of the app.
func TestOneAccountLimitedRefusal(t *testing.T) {
	w := oneAccountLimited(t)
	w.answered("two", "b", "herald", platforms.Result{Outcome: platforms.Refused, Err: platforms.Errorf(platforms.ClassPermanent, "too long")})
	if !w.limitsWholeApp() {
		t.Error("a refusal of a text has lifted the limit of the app")
	}
	w.expect("the next post probes", "three", "d", true)
	w.expect("no other post probes", "four", "e", false)
}
