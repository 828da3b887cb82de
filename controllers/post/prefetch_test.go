// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// prefetched records the tokens that are read ahead, with the offset from start until which they are needed.
type prefetched struct {
	Tokens

	start time.Time
	fail  string

	mu    sync.Mutex
	reads []string
}

func (p *prefetched) Prefetch(_ context.Context, conn *v1alpha1.Connection, until time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if conn.Name == p.fail {
		return errors.New("no Secret")
	}
	p.reads = append(p.reads, fmt.Sprintf("%s until %s", conn.Name, until.Sub(p.start)))
	return nil
}

func named(connection string) *v1alpha1.Connection {
	return &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: connection}}
}

func prefetcherOf(t *testing.T, tokens Tokens, c clock.WithTicker, connections ...*v1alpha1.Connection) *tokenPrefetcher {
	t.Helper()
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	objects := fake.NewClientBuilder().WithScheme(scheme)
	for _, conn := range connections {
		objects.WithObjects(conn)
	}
	return newTokenPrefetcher(&Options{Client: objects.Build(), Tokens: tokens, Clock: c})
}

func TestPrefetch(t *testing.T) {
	start := time.Date(2026, 12, 1, 8, 59, 0, 0, time.UTC)
	type waiting struct {
		due         time.Duration
		connections []string
	}
	for name, tt := range map[string]struct {
		reason string
		posts  []waiting
		// at are the times of the checks.
		at   []time.Duration
		want []string
	}{
		"long before":       {"a token that is read later can be used for more posts", []waiting{{time.Minute, []string{"x"}}}, []time.Duration{time.Minute - prefetchAhead - 1}, nil},
		"shortly before":    {"the token must be valid for all posts of that second", []waiting{{time.Minute, []string{"x"}}}, []time.Duration{time.Minute - prefetchAhead}, []string{"x until 1m1s"}},
		"two checks":        {"each second's tokens are read once", []waiting{{time.Minute, []string{"x"}}}, []time.Duration{50 * time.Second, 51 * time.Second}, []string{"x until 1m1s"}},
		"many posts":        {"posts to one account share a read", []waiting{{time.Minute, []string{"x"}}, {time.Minute + 999*time.Millisecond, []string{"x"}}}, []time.Duration{50 * time.Second}, []string{"x until 1m1s"}},
		"many connections":  {"a post may have several targets", []waiting{{time.Minute, []string{"x", "y"}}}, []time.Duration{50 * time.Second}, []string{"x until 1m1s", "y until 1m1s"}},
		"another second":    {"a later post is a reason for another read", []waiting{{time.Minute, []string{"x"}}, {2 * time.Minute, []string{"x"}}}, []time.Duration{50 * time.Second, 110 * time.Second}, []string{"x until 1m1s", "x until 2m1s"}},
		"a late check":      {"its posts are already being claimed", []waiting{{time.Minute, []string{"x"}}}, []time.Duration{61 * time.Second}, nil},
		"just in time":      {"some of this second's posts may still wait", []waiting{{time.Minute, []string{"x"}}}, []time.Duration{61*time.Second - 1}, []string{"x until 1m1s"}},
		"no connection":     {"a connection may be deleted meanwhile; the others are read", []waiting{{time.Minute, []string{"gone", "y"}}}, []time.Duration{50 * time.Second}, []string{"y until 1m1s"}},
		"unreadable Secret": {"the claim reports the error; the others are read", []waiting{{time.Minute, []string{"broken", "y"}}}, []time.Duration{50 * time.Second}, []string{"y until 1m1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			clock, tokens := clocktesting.NewFakeClock(start), &prefetched{start: start, fail: "broken"}
			f := prefetcherOf(t, tokens, clock, named("x"), named("y"), named("broken"))
			for _, p := range tt.posts {
				post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "post"}}
				for _, name := range p.connections {
					post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}})
				}
				f.expect(post, start.Add(p.due))
			}
			for _, at := range tt.at {
				clock.SetTime(start.Add(at))
				f.prefetch(t.Context())
			}
			slices.Sort(tokens.reads)
			if !slices.Equal(tokens.reads, tt.want) {
				t.Errorf("%s: read %q, want %q", tt.reason, tokens.reads, tt.want)
			}
		})
	}
}

// TestPrefetchSkips covers connections whose tokens need not be read.
func TestPrefetchSkips(t *testing.T) {
	start := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, tt := range map[string]struct {
		reason string
		ctx    context.Context
		until  time.Duration
		change func(*v1alpha1.Connection)
		want   int
	}{
		"in use":   {"its posts wait for the token", t.Context(), time.Second, func(*v1alpha1.Connection) {}, 1},
		"disabled": {"its posts are not sent", t.Context(), time.Second, func(conn *v1alpha1.Connection) { conn.Spec.Disabled = true }, 0},
		"being deleted": {"its tokens are about to be revoked", t.Context(), time.Second, func(conn *v1alpha1.Connection) {
			conn.DeletionTimestamp, conn.Finalizers = new(metav1.NewTime(start)), []string{v1alpha1.DeliveryFinalizer}
		}, 0},
		"too late": {"earlier reads took so long that the posts are being claimed", t.Context(), 0, func(*v1alpha1.Connection) {}, 0},
		"stopping": {"the last results need the API server", stopped, time.Second, func(*v1alpha1.Connection) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			conn, tokens := named("x"), &prefetched{start: start}
			tt.change(conn)
			f := prefetcherOf(t, tokens, clocktesting.NewFakeClock(start), conn)
			f.read(tt.ctx, prefetch{client.ObjectKeyFromObject(conn), start.Add(tt.until)})
			if len(tokens.reads) != tt.want {
				t.Errorf("%s: read %q, want %d", tt.reason, tokens.reads, tt.want)
			}
		})
	}
}

// TestPrefetcherForgets checks that seconds whose tokens were read, or which have passed, take no memory.
func TestPrefetcherForgets(t *testing.T) {
	start := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakeClock(start)
	f := prefetcherOf(t, nil, clock)
	for i := range 10 {
		f.expect(&v1alpha1.Post{}, start.Add(time.Duration(i)*time.Second))
	}
	clock.SetTime(start.Add(5 * time.Second).Add(-prefetchAhead))
	f.next()
	if len(f.bySecond) != 4 {
		t.Errorf("%d seconds are left, want the 4 that are not within %s", len(f.bySecond), prefetchAhead)
	}
	clock.SetTime(start.Add(time.Hour))
	if due := f.next(); len(due) != 0 || len(f.bySecond) != 0 {
		t.Errorf("%d seconds are read an hour late, and %d are left", len(due), len(f.bySecond))
	}
}
