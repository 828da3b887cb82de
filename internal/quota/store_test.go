// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package quota_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/usage"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/must"
)

const limit = 30

var (
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	env  *envtest.Environment
)

func TestMain(m *testing.M) { os.Exit(envtest.Main(m, &env)) }

// replica returns another process's store, with its own client.
func replica(t *testing.T) *quota.UsageStore {
	t.Helper()
	c, err := client.New(env.Config, client.Options{Scheme: env.Scheme})
	must.Succeed(t, err)
	return quota.NewUsageStore(quota.NewAPI(c, c))
}

// team creates the namespace of a team.
func team(t *testing.T, name string) string {
	t.Helper()
	must.Succeed(t, env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	return name
}

var uses = []usage.Use{{Count: 1, At: noon}}

// reserveOrConfirm counts one action for a post: a reservation or, with a UID, a delivery. It reports whether that was
// granted.
func reserveOrConfirm(ctx context.Context, s *quota.UsageStore, namespace, post string, uid types.UID) (granted bool, err error) {
	err = s.Amend(ctx, namespace, plan.XPosts(noon), func(u *v1alpha1.Usage) error {
		if uid == "" {
			granted = len(usage.Reserve(u, usage.Reservation{Post: post, Request: "r-" + post, Uses: uses}, limit, noon)) == 0
		} else {
			granted = len(usage.Confirm(u, usage.PostUses{Name: post, UID: uid, Uses: uses}, limit, noon)) == 0
		}
		return nil
	})
	return granted, err
}

func used(t *testing.T, s *quota.UsageStore, namespace string) int {
	t.Helper()
	u, err := s.Read(t.Context(), namespace, plan.XPosts(noon))
	must.Succeed(t, err)
	return int(u.Status.Used)
}

// Three processes with many requests each, and a manager that delivers posts without a reservation, never exceed the
// limit together.
func TestRaceNeverExceedsTheLimit(t *testing.T) {
	t.Parallel()
	namespace := team(t, "race")
	stores := []*quota.UsageStore{replica(t), replica(t), replica(t)}
	var granted, returned atomic.Int64
	done := make(chan struct{})
	var watching, racing sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			u, err := stores[0].Read(t.Context(), namespace, plan.XPosts(noon))
			if err != nil {
				t.Error(err)
				return
			}
			if u.Status.Used > limit || int(u.Status.Used) != len(u.Status.Entries) {
				t.Errorf("%d of %d are used by %d posts", u.Status.Used, limit, len(u.Status.Entries))
				return
			}
		}
	})
	for i := range 96 {
		racing.Go(func() {
			store, post := stores[i%3], fmt.Sprintf("p%d", i)
			var uid types.UID
			if i%3 == 2 {
				uid = types.UID(fmt.Sprintf("uid-%d", i)) // the manager at a claim
			}
			ok, err := reserveOrConfirm(t.Context(), store, namespace, post, uid)
			if err != nil {
				t.Errorf("reserve for %s: %v", post, err)
				return
			}
			if !ok {
				return
			}
			granted.Add(1)
			if i%5 == 0 { // this post is cancelled immediately
				err := store.Amend(t.Context(), namespace, plan.XPosts(noon), func(u *v1alpha1.Usage) error {
					usage.Settle(u, usage.PostUses{Name: post, UID: uid, Uses: []usage.Use{{Final: true}}})
					return nil
				})
				if err != nil {
					t.Errorf("return for %s: %v", post, err)
				}
				returned.Add(1)
			}
		})
	}
	racing.Wait()
	close(done)
	watching.Wait()
	if got := used(t, stores[1], namespace); int64(got) != granted.Load()-returned.Load() {
		t.Errorf("usage is %d, but %d were granted and %d returned", got, granted.Load(), returned.Load())
	}
	if granted.Load() < limit {
		t.Errorf("only %d of 96 were granted, although %d fit", granted.Load(), limit)
	}
}

// Many concurrent requests for the same post, such as a repeated request, count once.
func TestRaceOfOnePostCountsOnce(t *testing.T) {
	t.Parallel()
	namespace := team(t, "once")
	stores := []*quota.UsageStore{replica(t), replica(t)}
	var racing sync.WaitGroup
	for i := range 32 {
		racing.Go(func() {
			err := stores[i%2].Amend(t.Context(), namespace, plan.XPosts(noon), func(u *v1alpha1.Usage) error {
				if refused := usage.Reserve(u, usage.Reservation{Post: "same", Request: fmt.Sprint(i), Uses: uses}, 1, noon); len(refused) > 0 {
					return fmt.Errorf("refused: %+v", refused)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	racing.Wait()
	if got := used(t, stores[0], namespace); got != 1 {
		t.Errorf("%d are used; want 1", got)
	}
}

func TestUsagesAreIndependent(t *testing.T) {
	t.Parallel()
	store, ctx := replica(t), t.Context()
	one, other := team(t, "apart"), team(t, "apart-too")
	account := v1alpha1.UsageSpec{Resource: v1alpha1.ResourceTikTokDrafts, Account: strings.Repeat("An Account!", 11), Period: "24h"}
	second := account
	second.Account = "another"
	enter := func(u *v1alpha1.Usage) error {
		if len(u.Status.Entries) > 0 {
			t.Errorf("%s/%s has entries of another Usage", u.Namespace, u.Name)
		}
		usage.Reserve(u, usage.Reservation{Post: "a", Uses: uses}, limit, noon)
		return nil
	}
	for _, counter := range []v1alpha1.UsageSpec{plan.XPosts(noon), plan.XPosts(noon.AddDate(0, 1, 0)), plan.XPosts(noon.AddDate(1, 0, 0)), account, second} {
		if err := store.Amend(ctx, one, counter, enter); err != nil {
			t.Error(err)
		}
	}
	if err := store.Amend(ctx, other, account, enter); err != nil {
		t.Error(err)
	}
	var found v1alpha1.UsageList
	if err := env.Client.List(ctx, &found, client.InNamespace(one)); err != nil || len(found.Items) != 5 {
		t.Errorf("found %d Usages of the team (%v), want five", len(found.Items), err)
	}
	if name := quota.Name(new(plan.XPosts(noon))); name != "x-posts-2026-11" {
		t.Errorf("the count of November is called %s", name)
	}
}

func TestEmptyUsageIsNotStored(t *testing.T) {
	t.Parallel()
	namespace, store := team(t, "nothing"), replica(t)
	err := store.Amend(t.Context(), namespace, plan.XPosts(noon), func(u *v1alpha1.Usage) error {
		usage.Release(u, "a", "")
		return nil
	})
	if err != nil {
		t.Errorf("returning an empty reservation returned %v", err)
	}
	var found v1alpha1.UsageList
	if err := env.Client.List(t.Context(), &found, client.InNamespace(namespace)); err != nil || len(found.Items) > 0 {
		t.Errorf("an empty reservation created a Usage: %+v %v", found.Items, err)
	}
}

// broken is an API that fails, or behaves like a process that crashes between its writes.
type broken struct {
	quota.API

	get, create, update error
}

func (b *broken) Get(ctx context.Context, namespace, name string) (*v1alpha1.Usage, error) {
	if b.get != nil {
		return nil, b.get
	}
	return b.API.Get(ctx, namespace, name)
}

func (b *broken) Create(ctx context.Context, u *v1alpha1.Usage) (*v1alpha1.Usage, error) {
	if b.create != nil {
		return nil, b.create
	}
	return b.API.Create(ctx, u)
}

func (b *broken) UpdateStatus(ctx context.Context, u *v1alpha1.Usage) (*v1alpha1.Usage, error) {
	if b.update != nil {
		return nil, b.update
	}
	return b.API.UpdateStatus(ctx, u)
}

func TestFailures(t *testing.T) {
	t.Parallel()
	namespace, boom := team(t, "failures"), errors.New("boom")
	for name, tc := range map[string]struct {
		reason string
		api    broken
		want   string
	}{
		"Read":   {"the count cannot be read", broken{get: boom}, "cannot read Usage failures/x-posts-2026-11: boom"},
		"Create": {"the count cannot be created", broken{create: boom}, "cannot create Usage failures/x-posts-2026-11: boom"},
	} {
		tc.api.API = quota.NewAPI(env.Client, env.Client)
		if _, err := reserveOrConfirm(t.Context(), quota.NewUsageStore(&tc.api), namespace, "a", ""); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %s: error %v, want %q", name, tc.reason, err, tc.want)
		}
	}
	api := &broken{API: quota.NewAPI(env.Client, env.Client), update: boom}
	store := quota.NewUsageStore(api)
	if _, err := reserveOrConfirm(t.Context(), store, namespace, "a", ""); err == nil || err.Error() != "cannot write Usage failures/x-posts-2026-11: boom" {
		t.Errorf("error %v when it cannot be written", err)
	}
	if got := used(t, store, namespace); got != 0 {
		t.Errorf("%d are used, although the count was never written", got)
	}
	api.update = nil
	if ok, err := reserveOrConfirm(t.Context(), store, namespace, "a", ""); err != nil || !ok {
		t.Errorf("an existing Usage was not reused: %v %v", ok, err)
	}
	if err := store.Amend(t.Context(), namespace, plan.XPosts(noon), func(*v1alpha1.Usage) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("error %v, want that of the change", err)
	}
}

func TestUsageOfAnotherCounterIsRejected(t *testing.T) {
	t.Parallel()
	namespace, store := team(t, "else"), replica(t)
	counter := plan.XPosts(noon)
	foreign := &v1alpha1.Usage{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: quota.Name(&counter)},
		Spec:       v1alpha1.UsageSpec{Resource: "y-posts", Period: counter.Period},
	}
	must.Succeed(t, env.Client.Create(t.Context(), foreign))
	if _, err := reserveOrConfirm(t.Context(), store, namespace, "a", ""); err == nil || !strings.Contains(err.Error(), "else/x-posts-2026-11") || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("error %v, want the Usage and the remedy", err)
	}
}

func TestAmendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := reserveOrConfirm(ctx, replica(t), "ends", "a", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

// Three replicas count the same usage at the same time, and only one of them writes.
func TestCountOfABudget(t *testing.T) {
	t.Parallel()
	namespace := team(t, "budget")
	stores := []*quota.UsageStore{replica(t), replica(t), replica(t)}
	uses := func(n int64) []v1alpha1.BudgetUse {
		return []v1alpha1.BudgetUse{{Item: v1alpha1.BudgetPosts, Used: n, Limit: 10}, {Item: v1alpha1.BudgetKeys, Used: 1, Limit: 20}}
	}
	const apart = 10 * time.Second
	var racing sync.WaitGroup
	var later atomic.Int64
	for i := range 3 {
		racing.Go(func() {
			if err := stores[i].RecordBudget(t.Context(), namespace, uses(int64(i+1)), noon, apart); errors.Is(err, quota.ErrRecentlyWritten) {
				later.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	racing.Wait()
	if later.Load() != 2 {
		t.Errorf("%d of three have to wait, want two", later.Load())
	}
	read := func() *v1alpha1.Usage {
		t.Helper()
		u, err := stores[0].Read(t.Context(), namespace, plan.BudgetCounter())
		must.Succeed(t, err)
		return u
	}
	first := read()
	if first.Name != "budget" || first.Status.Limit != 100 || first.Status.Used != int32(first.Status.Budget[0].Used)*10 {
		t.Errorf("Usage %s reads %+v", first.Name, first.Status)
	}
	for _, tc := range []struct {
		reason  string
		uses    []v1alpha1.BudgetUse
		at      time.Time
		want    error
		written bool
	}{
		{"unchanged", first.Status.Budget, noon.Add(time.Second), nil, false},
		{"the count was written a moment ago", uses(7), noon.Add(apart - time.Millisecond), quota.ErrRecentlyWritten, false},
		{"the last write was long enough ago", uses(7), noon.Add(apart), nil, true},
		{"another process's clock is ahead", uses(8), noon, nil, true},
	} {
		before := read().ResourceVersion
		if err := stores[1].RecordBudget(t.Context(), namespace, tc.uses, tc.at, apart); !errors.Is(err, tc.want) {
			t.Errorf("%s: error %v, want %v", tc.reason, err, tc.want)
		}
		if written := read().ResourceVersion != before; written != tc.written {
			t.Errorf("%s: written %v, want %v", tc.reason, written, tc.written)
		}
	}
}
