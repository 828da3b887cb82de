// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

func TestCacheReadsAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(c *Cache, conn *v1alpha1.Connection, now *clocktesting.FakePassiveClock)
		want   string
	}{
		"nothing changed": {"the Secret is read once", func(*Cache, *v1alpha1.Connection, *clocktesting.FakePassiveClock) {}, "a1"},
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
		"old": {"no token is held for longer than a minute", func(_ *Cache, _ *v1alpha1.Connection, now *clocktesting.FakePassiveClock) {
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

func TestCacheDoesNotHoldErrors(t *testing.T) {
	source := &loader{err: &Error{Reason: NotFound, Message: "no Secret"}}
	cache := NewCache(source, clock.RealClock{}, nil)
	if _, err := cache.Token(t.Context(), verified("1")); ReasonOf(err) != NotFound {
		t.Fatalf("got %v", err)
	}
	source.err = nil
	if _, err := cache.Token(t.Context(), verified("1")); err != nil {
		t.Errorf("the Secret is there now, but got %v", err)
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
				t.Errorf("the one who gave up got %v", err)
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
func TestCacheForgetsWhatIsBeingRead(t *testing.T) {
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
		t.Errorf("%d tokens are held, the first among them: %v; want %d without it", len(held), there, cacheMax)
	}
}
