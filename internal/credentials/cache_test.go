// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// loader numbers the tokens that it returns. Each has the version in the status.
type loader struct {
	loads atomic.Int32
	err   error
	wait  func()
}

func (l *loader) Load(_ context.Context, conn *v1alpha1.Connection) (Credentials, error) {
	n := l.loads.Add(1)
	if l.wait != nil {
		l.wait()
	}
	return Credentials{Token: Token{Access: fmt.Sprint("a", n)}, Version: conn.Status.CredentialsVersion}, l.err
}

// verified returns a connection whose credentials the platform confirmed in the given version.
func verified(version string) *v1alpha1.Connection {
	conn := connection()
	conn.Status.CredentialsVersion, conn.Status.VerifiedVersion = version, version
	return conn
}

func TestCacheRefreshes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(c *Cache, conn *v1alpha1.Connection, now *clocktesting.FakePassiveClock)
		want   string
	}{
		"unchanged": {"the Secret is read once", func(*Cache, *v1alpha1.Connection, *clocktesting.FakePassiveClock) {}, "a1"},
		"renewed": {"the status names the version of a renewed token", func(_ *Cache, conn *v1alpha1.Connection, _ *clocktesting.FakePassiveClock) {
			conn.Status.CredentialsVersion, conn.Status.VerifiedVersion = "2", "2"
		}, "a2"},
		"reconnected": {"a new connection of the account has another Secret", func(_ *Cache, conn *v1alpha1.Connection, _ *clocktesting.FakePassiveClock) {
			conn.Spec.CredentialsSecretRef.Name = "acme-x-2"
		}, "a2"},
		"recreated": {"a Connection of the same name may be another account", func(_ *Cache, conn *v1alpha1.Connection, _ *clocktesting.FakePassiveClock) {
			conn.UID = "u2"
		}, "a2"},
		"forgotten": {"the platform refused the token", func(c *Cache, conn *v1alpha1.Connection, _ *clocktesting.FakePassiveClock) {
			c.Forget(conn)
		}, "a2"},
		"old": {"tokens are cached for at most a minute", func(_ *Cache, _ *v1alpha1.Connection, now *clocktesting.FakePassiveClock) {
			now.SetTime(noon.Add(cacheFor + 1))
		}, "a2"},
		"nearly old": {"until then it is", func(_ *Cache, _ *v1alpha1.Connection, now *clocktesting.FakePassiveClock) {
			now.SetTime(noon.Add(cacheFor - time.Second))
		}, "a1"},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(noon)
			cache, conn := NewCache(&loader{}, now, nil), verified("1")
			if _, err := cache.Token(t.Context(), conn); err != nil {
				t.Fatal(err)
			}
			tc.change(cache, conn, now)
			got, err := cache.Token(t.Context(), conn)
			if err != nil || got.Access != tc.want {
				t.Errorf("%s: got %q, %v, want %q", tc.reason, got.Access, err, tc.want)
			}
		})
	}
}

func TestCachePrefetches(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// age is the age of the cached token, and until how much longer it is needed.
		age, until time.Duration
		change     func(conn *v1alpha1.Connection)
		want       int32
	}{
		"not cached":  {"the token is read ahead of its use", cacheFor + 1, 15 * time.Second, nil, 2},
		"long enough": {"the cached token can be used until then", 45 * time.Second, 15 * time.Second, nil, 1},
		"too short":   {"the cached token would expire just before its use", 46 * time.Second, 15 * time.Second, nil, 2},
		"renewed":     {"the cached token is not the current one", time.Second, 15 * time.Second, func(conn *v1alpha1.Connection) { conn.Status.CredentialsVersion = "2" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(noon)
			source, conn := &loader{}, verified("1")
			cache := NewCache(source, now, nil)
			if _, err := cache.Token(t.Context(), conn); err != nil {
				t.Fatal(err)
			}
			now.SetTime(noon.Add(tc.age))
			if tc.change != nil {
				tc.change(conn)
				conn.Status.VerifiedVersion = conn.Status.CredentialsVersion
			}
			if err := cache.Prefetch(t.Context(), conn, now.Now().Add(tc.until)); err != nil {
				t.Fatal(err)
			}
			if got := source.loads.Load(); got != tc.want {
				t.Errorf("%s: the Secret was read %d times, want %d", tc.reason, got, tc.want)
			}
			now.SetTime(now.Now().Add(tc.until - 1))
			if _, err := cache.Token(t.Context(), conn); err != nil || source.loads.Load() != tc.want {
				t.Errorf("%s: the token was read again when it was needed (%v)", tc.reason, err)
			}
		})
	}
}

// A read outlives its caller, so a caller that was cancelled before must not start one.
func TestCacheReadsNothingAfterCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	source := &loader{}
	cache := NewCache(source, clock.RealClock{}, nil)
	if _, err := cache.Token(ctx, verified("1")); !errors.Is(err, context.Canceled) || source.loads.Load() != 0 {
		t.Errorf("got %v after %d reads", err, source.loads.Load())
	}
}

func TestCacheDropsErrors(t *testing.T) {
	source := &loader{err: &Error{Reason: NotFound, Message: "no Secret"}}
	cache := NewCache(source, clock.RealClock{}, nil)
	if _, err := cache.Token(t.Context(), verified("1")); ReasonOf(err) != NotFound {
		t.Fatalf("got %v", err)
	}
	source.err = nil
	if _, err := cache.Token(t.Context(), verified("1")); err != nil {
		t.Errorf("the Secret exists now, but got %v", err)
	}
}

// Many posts over one Connection become due at the same time.
func TestCacheReadsOnceForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		source := &loader{wait: func() { <-answer }}
		cache := NewCache(source, clock.RealClock{}, nil)
		impatient, giveUp := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if _, err := cache.Token(impatient, verified("1")); !errors.Is(err, context.Canceled) {
				t.Errorf("the cancelled caller got %v", err)
			}
		})
		synctest.Wait()
		for range 50 {
			waiting.Go(func() {
				if got, err := cache.Token(t.Context(), verified("1")); err != nil || got.Access != "a1" {
					t.Errorf("got %q, %v", got.Access, err)
				}
			})
		}
		synctest.Wait()
		giveUp()
		synctest.Wait()
		close(answer)
		waiting.Wait()
		if n := source.loads.Load(); n != 1 {
			t.Errorf("the Secret was read %d times", n)
		}
	})
}

// A token that was being read while it was refused must not be cached.
func TestCacheDropsReadsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		source := &loader{wait: func() { <-answer }}
		cache := NewCache(source, clock.RealClock{}, nil)
		var waiting sync.WaitGroup
		waiting.Go(func() { _, _ = cache.Token(t.Context(), verified("1")) })
		synctest.Wait()
		cache.Forget(verified("1"))
		close(answer)
		waiting.Wait()
		if got, err := cache.Token(t.Context(), verified("1")); err != nil || got.Access != "a2" {
			t.Errorf("got %q, %v; want the Secret read again", got.Access, err)
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(noon)
	cache := NewCache(&loader{}, now, nil)
	first := types.UID("")
	for i := range cacheMax + 10 {
		conn := verified("1")
		conn.UID = types.UID(fmt.Sprint("u", i))
		if i == 0 {
			first = conn.UID
		}
		now.SetTime(noon.Add(time.Duration(i)))
		if _, err := cache.Token(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
	}
	held := cache.tokens.Keys()
	if there := slices.Contains(held, any(first)); there || len(held) != cacheMax {
		t.Errorf("%d tokens are cached, including the first: %v; want %d without it", len(held), there, cacheMax)
	}
}

// stored is a Secret: a token, its version, and the hash of a different input.
type stored struct{ token, version, other string }

func (s *stored) Load(context.Context, *v1alpha1.Connection) (Credentials, error) {
	return Credentials{Token: Token{Access: s.token}, Version: s.version, Other: s.other}, nil
}

// A Secret may be replaced at any time, and is not watched.
func TestCacheReturnsConfirmedTokens(t *testing.T) {
	status := func(version, confirmed string) func(*v1alpha1.Connection) {
		return func(conn *v1alpha1.Connection) {
			conn.Status.CredentialsVersion, conn.Status.VerifiedVersion = version, confirmed
		}
	}
	earlier := func(ready metav1.ConditionStatus) func(*v1alpha1.Connection) {
		return func(conn *v1alpha1.Connection) {
			status("2", "")(conn)
			meta.SetStatusCondition(&conn.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: ready, Reason: "AsSaid"})
		}
	}
	none := func(*v1alpha1.Connection) {}
	for _, tc := range []struct {
		reason string
		// replaced is the Secret after token a was read in version 1. said then changes the status.
		replaced stored
		said     func(*v1alpha1.Connection)
		want     string
		asked    []string
	}{
		{"the Secret is unchanged", stored{"a", "1", ""}, none, "a", nil},
		{"another process replaced it", stored{"b", "2", ""}, none, "", []string{"2"}},
		{"a changed label is not another token", stored{"a", "2", ""}, none, "a", nil},
		{"the platform confirmed the new one", stored{"b", "2", ""}, status("2", "2"), "b", nil},
		{"the platform did not identify the new token's account", stored{"b", "2", ""}, status("2", ""), "", nil},
		{"the platform did not identify the old token's account either", stored{"a", "1", ""}, status("1", ""), "", nil},
		{"the confirmed version differs from the last one examined", stored{"a", "1", ""}, status("2", "1"), "", []string{"1"}},
		{"before an upgrade it was connected by these credentials", stored{"b", "2", ""}, earlier(metav1.ConditionTrue), "b", nil},
		{"before an upgrade, the platform did not identify the account", stored{"b", "2", ""}, earlier(metav1.ConditionFalse), "", nil},
		{"the Secret was replaced again before the platform confirmed it", stored{"c", "3", ""}, status("2", "2"), "", []string{"3"}},
		{"the Secret was missing, and is read again", stored{"b", "2", ""}, status("", ""), "", nil},
	} {
		now, secret := clocktesting.NewFakePassiveClock(noon), &stored{"a", "1", ""}
		var asked []string
		cache := NewCache(secret, now, func(_ context.Context, _ *v1alpha1.Connection, version string) error {
			asked = append(asked, version)
			return nil
		})
		conn := verified("1")
		if got, err := cache.Token(t.Context(), conn); err != nil || got.Access != "a" {
			t.Fatalf("%s: at first got %q, %v", tc.reason, got.Access, err)
		}
		*secret = tc.replaced
		tc.said(conn)
		now.SetTime(noon.Add(cacheFor + 1))
		// It is requested only once, regardless of how many posts need the token.
		for range 3 {
			got, err := cache.Token(t.Context(), conn)
			switch {
			case tc.want != "" && (err != nil || got.Access != tc.want):
				t.Errorf("%s: got %q, %v, want %q", tc.reason, got.Access, err, tc.want)
			case tc.want == "" && (ReasonOf(err) != Unverified || got.Access != "" || !strings.Contains(err.Error(), `"acme-x"`)):
				t.Errorf("%s: got %q, %v, want that Secret acme-x is not verified", tc.reason, got.Access, err)
			}
		}
		if !slices.Equal(asked, tc.asked) {
			t.Errorf("%s: probed the versions %v, want %v", tc.reason, asked, tc.asked)
		}
	}
}

// One account's confirmation, or refusal by the platform, does not apply to another account.
func TestCacheStoresConfirmedTokens(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(*Cache, *v1alpha1.Connection)
	}{
		{"a Connection of the same name may be another account", func(_ *Cache, conn *v1alpha1.Connection) { conn.UID = "u2" }},
		{"the platform refused it", func(c *Cache, conn *v1alpha1.Connection) { c.Forget(conn) }},
	} {
		secret := &stored{"a", "1", ""}
		cache, conn := NewCache(secret, clocktesting.NewFakePassiveClock(noon), nil), verified("1")
		if _, err := cache.Token(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		secret.version = "2"
		tc.change(cache, conn)
		if got, err := cache.Token(t.Context(), conn); ReasonOf(err) != Unverified {
			t.Errorf("%s: got %q, %v, want it not verified", tc.reason, got.Access, err)
		}
	}
}

// A renewal is stored a few seconds before the status has its version; posts do not wait for that.
func TestCacheFollowsARenewal(t *testing.T) {
	for _, tc := range []struct {
		reason, old, want string
	}{
		{"the confirmed token was renewed", "a", "b"},
		{"a user stored another token", "c", ""},
	} {
		secret := &stored{"a", "1", ""}
		clock := clocktesting.NewFakePassiveClock(noon)
		cache, conn := NewCache(secret, clock, nil), verified("1")
		if _, err := cache.Token(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		*secret = stored{"b", "2", ""}
		cache.Renewed(Token{Access: tc.old}, Token{Access: "b"})
		clock.SetTime(noon.Add(2 * cacheFor))
		if got, err := cache.Token(t.Context(), conn); got.Access != tc.want {
			t.Errorf("%s: got %q, %v, want %q", tc.reason, got.Access, err, tc.want)
		}
	}
}

// A failed request for an examination is repeated by the next caller that needs the token.
func TestCacheRetriesExamination(t *testing.T) {
	asked, refuse := 0, errors.New("the API server does not answer")
	cache := NewCache(&stored{"b", "2", ""}, clocktesting.NewFakePassiveClock(noon), func(context.Context, *v1alpha1.Connection, string) error {
		asked++
		err := refuse
		refuse = nil
		return err
	})
	for range 3 {
		if _, err := cache.Token(t.Context(), verified("1")); ReasonOf(err) != Unverified {
			t.Errorf("got %v", err)
		}
	}
	if asked != 2 {
		t.Errorf("probed %d times, want twice", asked)
	}
}

// A caller that waits for the confirmation waits for the status, not for the next minute.
func TestCacheFollowsTheStatus(t *testing.T) {
	secret := &stored{"b", "2", ""}
	cache := NewCache(secret, clocktesting.NewFakePassiveClock(noon), nil)
	if _, err := cache.Token(t.Context(), verified("1")); ReasonOf(err) != Unverified {
		t.Fatalf("got %v", err)
	}
	if got, err := cache.Token(t.Context(), verified("2")); err != nil || got.Access != "b" {
		t.Errorf("got %q, %v", got.Access, err)
	}
	unsure := verified("2")
	unsure.Status.VerifiedVersion = ""
	if got, err := cache.Token(t.Context(), unsure); ReasonOf(err) != Unverified {
		t.Errorf("got %q, %v although the platform rejected it", got.Access, err)
	}
}

// An examination adopts the input's new tokens; until then, the working copy is used.
func TestCacheReportsNewInput(t *testing.T) {
	now, secret := clocktesting.NewFakePassiveClock(noon), &stored{"a", "1", ""}
	asked := 0
	cache := NewCache(secret, now, func(context.Context, *v1alpha1.Connection, string) error { asked++; return nil })
	for i, tc := range []struct {
		reason, other string
		disabled      bool
		asked         int
	}{
		{"the input is the working copy's source", "", false, 0},
		{"a user stored other tokens", "h1", false, 1},
		{"one examination is enough for them", "h1", false, 1},
		{"the credentials were replaced again", "h2", false, 2},
		{"the credentials of a disabled connection are not examined", "h3", true, 2},
		{"until it is enabled", "h3", false, 3},
		{"the working copy's source is restored", "", false, 3},
	} {
		secret.other = tc.other
		conn := verified("1")
		conn.Spec.Disabled = tc.disabled
		now.SetTime(noon.Add(time.Duration(i+1) * (cacheFor + 1)))
		if got, err := cache.Token(t.Context(), conn); err != nil || got.Access != "a" {
			t.Errorf("%s: got %q, %v: the working copy is used", tc.reason, got.Access, err)
		}
		if asked != tc.asked {
			t.Errorf("%s: probed %d times, want %d", tc.reason, asked, tc.asked)
		}
	}
}
