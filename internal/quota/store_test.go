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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/test/envtest"
)

var (
	noon  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	limit = quota.Limit{Most: 30}
	env   *envtest.Environment
)

func TestMain(m *testing.M) {
	var err error
	if env, err = envtest.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	usage := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: quota.DefaultNamespace}}
	if err := env.Client.Create(context.Background(), usage); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// replica is a store as another process has it: with a client of its own.
func replica(t *testing.T) *quota.Store {
	t.Helper()
	maps, err := typedcorev1.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return quota.NewStore(maps, "", clocktesting.NewFakePassiveClock(noon))
}

func one(post string, uid types.UID) *quota.Reservation {
	return &quota.Reservation{Post: post, UID: uid, Items: []quota.Item{{Count: 1, At: noon}}}
}

// Three processes, many requests each, and a manager that delivers what never
// was reserved: what is granted is never more than the limit, at no moment.
func TestRaceNeverExceedsTheLimit(t *testing.T) {
	t.Parallel()
	counter := quota.XPosts("race", noon)
	stores := []*quota.Store{replica(t), replica(t), replica(t)}
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
			page, err := stores[0].Entries(t.Context(), counter)
			if err != nil {
				t.Error(err)
				return
			}
			if used := page.Used(); used > limit.Most {
				t.Errorf("%d of %d are used", used, limit.Most)
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
			answer, err := store.Take(t.Context(), counter, one(post, uid), limit)
			if err != nil {
				t.Errorf("take for %s: %v", post, err)
				return
			}
			if len(answer.Refused) > 0 {
				return
			}
			granted.Add(1)
			if i%5 == 0 { // this post is cancelled at once
				if err := store.Return(t.Context(), counter, post, uid, func(int) int { return 0 }); err != nil {
					t.Errorf("return for %s: %v", post, err)
				}
				returned.Add(1)
			}
		})
	}
	racing.Wait()
	close(done)
	watching.Wait()
	page, err := stores[1].Entries(t.Context(), counter)
	if err != nil {
		t.Fatal(err)
	}
	if used := page.Used(); int64(used) != granted.Load()-returned.Load() {
		t.Errorf("%d are used, but %d were granted and %d given back", used, granted.Load(), returned.Load())
	}
	if granted.Load() < int64(limit.Most) {
		t.Errorf("only %d of 96 were granted, although %d fit", granted.Load(), limit.Most)
	}
}

// The same post asked for by many at once, as when a request is sent again,
// counts once.
func TestRaceOfOnePostCountsOnce(t *testing.T) {
	t.Parallel()
	counter := quota.XPosts("once", noon)
	stores := []*quota.Store{replica(t), replica(t)}
	var added atomic.Int64
	var racing sync.WaitGroup
	for i := range 32 {
		racing.Go(func() {
			answer, err := stores[i%2].Take(t.Context(), counter, one("same", ""), limit)
			if err != nil || len(answer.Refused) > 0 {
				t.Errorf("%+v %v", answer, err)
			}
			added.Add(int64(len(answer.Added)))
		})
	}
	racing.Wait()
	page, err := stores[0].Entries(t.Context(), counter)
	if err != nil || page.Used() != 1 || added.Load() != 1 {
		t.Errorf("%d are used, taken %d times (%v); want 1", page.Used(), added.Load(), err)
	}
}

func TestMonthsAndAccountsAreApart(t *testing.T) {
	t.Parallel()
	ns, store, ctx := "apart", replica(t), t.Context()
	last := time.Date(2026, 11, 30, 23, 59, 59, 999e6, time.UTC)
	tokyo := time.FixedZone("JST", 9*3600)
	for _, b := range []quota.Counter{
		quota.XPosts(ns, last), quota.XPosts(ns, last.Add(time.Millisecond)), quota.XPosts(ns, last.AddDate(1, 0, 0)),
	} {
		if answer, err := store.Take(ctx, b, &quota.Reservation{Post: "a", Items: []quota.Item{{Count: 30, At: last}}}, limit); err != nil || len(answer.Refused) > 0 {
			t.Errorf("%s: %+v %v", b.Name, answer, err)
		}
	}
	if name := quota.XPosts(ns, last.In(tokyo)).Name; name != "apart.x-posts.2026-11" {
		t.Errorf("the month of a time in Tokyo is counted in %s; months are those of UTC", name)
	}
	if answer, err := store.Check(ctx, quota.XPosts(ns, last), one("b", ""), limit); err != nil || len(answer.Refused) != 1 || answer.Used != 30 {
		t.Errorf("a full month takes another: %+v %v", answer, err)
	}
	connection := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "first", UID: "c1"},
		Spec:       v1alpha1.ConnectionSpec{AccountID: strings.Repeat("An Account!", 20)},
	}
	drafts := quota.TikTokDrafts(connection)
	if _, err := store.Take(ctx, drafts, one("a", ""), quota.Limit{Most: 5, Within: 24 * time.Hour}); err != nil {
		t.Error(err)
	}
	anew := connection.DeepCopy()
	anew.Name, anew.UID = "second", "c2"
	if again := quota.TikTokDrafts(anew); again != drafts {
		t.Errorf("another connection to the same account counts in %s; the account is still the same", again.Name)
	}
	anew.Spec.AccountID = "another"
	if other := quota.TikTokDrafts(anew); other == drafts {
		t.Errorf("two accounts are counted in %s", other.Name)
	}
	if _, err := store.Take(ctx, quota.XPosts(ns+"-too", last), one("a", ""), limit); err != nil {
		t.Error(err)
	}
	counters, err := store.Counters(ctx, ns)
	if err != nil || len(counters) != 4 {
		t.Errorf("found %+v (%v), want the four books of the team and none of another's", counters, err)
	}
	for _, b := range counters {
		month, ofX := b.Month()
		if ofX != (b.Kind == quota.KindXPosts) || ofX && quota.XPosts(ns, month) != b {
			t.Errorf("book %+v is of %s (%v)", b, month, ofX)
		}
	}
}

func TestReturnTouchesNobodyElses(t *testing.T) {
	t.Parallel()
	counter, store, ctx := quota.XPosts("return", noon), replica(t), t.Context()
	none := func(int) int { return 0 }
	if err := store.Return(ctx, counter, "a", "", none); err != nil {
		t.Errorf("nothing was taken, so nothing is to be given back: %v", err)
	}
	if err := env.Client.Get(ctx, types.NamespacedName{Namespace: quota.DefaultNamespace, Name: counter.Name}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("a book was made for nothing: %v", err)
	}
	if _, err := store.Take(ctx, counter, one("a", "uid-1"), limit); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []types.UID{"", "uid-2"} {
		if err := store.Return(ctx, counter, "a", uid, none); err != nil {
			t.Fatal(err)
		}
		if page, err := store.Entries(ctx, counter); err != nil || page.Used() != 1 {
			t.Errorf("%q gave back what the delivery of uid-1 took (%v)", uid, err)
		}
	}
	if err := store.Return(ctx, counter, "a", "uid-1", none); err != nil {
		t.Fatal(err)
	}
	if page, err := store.Entries(ctx, counter); err != nil || len(page) != 0 {
		t.Errorf("it was not given back: %+v %v", page, err)
	}
}

func TestWhatNobodyCanReadIsNotNothing(t *testing.T) {
	t.Parallel()
	ns, store, ctx := "unreadable", replica(t), t.Context()
	counter := quota.XPosts(ns, noon)
	broken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: quota.DefaultNamespace, Name: counter.Name}, Data: map[string]string{"a": "30?"}}
	if err := env.Client.Create(ctx, broken); err != nil {
		t.Fatal(err)
	}
	_, err := store.Take(ctx, counter, one("b", ""), limit)
	if err == nil || !strings.Contains(err.Error(), counter.Name) || !strings.Contains(err.Error(), `data["a"]`) {
		t.Errorf("error %v, want one that names the ConfigMap and the key", err)
	}
}

func TestDropsWhatIsOverUnread(t *testing.T) {
	t.Parallel()
	counter, store, ctx := quota.XPosts("over", noon), replica(t), t.Context()
	broken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: quota.DefaultNamespace, Name: counter.Name}, Data: map[string]string{"a": "30?"}}
	if err := env.Client.Create(ctx, broken); err != nil {
		t.Fatal(err)
	}
	if err := store.Drop(ctx, counter, func(quota.Entries) bool { return true }); err == nil {
		t.Error("a book that nobody can read was asked what it holds")
	}
	if err := store.Drop(ctx, counter, nil); err != nil {
		t.Errorf("nobody needs to read what is over: %v", err)
	}
	if page, err := store.Entries(ctx, counter); err != nil || len(page) != 0 {
		t.Errorf("the book is still there: %+v %v", page, err)
	}
}

func TestDropLosesNothingThatIsWritten(t *testing.T) {
	t.Parallel()
	counter, store, ctx := quota.XPosts("drop", noon), replica(t), t.Context()
	if _, err := store.Take(ctx, counter, one("a", ""), limit); err != nil {
		t.Fatal(err)
	}
	other := replica(t)
	// Another process takes an item after the entries were found unneeded.
	err := store.Drop(ctx, counter, func(quota.Entries) bool {
		if _, err := other.Take(ctx, counter, one("b", ""), limit); err != nil {
			t.Error(err)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if page, err := store.Entries(ctx, counter); err != nil || page.Used() != 2 {
		t.Errorf("the book was dropped with what somebody wrote meanwhile: %+v %v", page, err)
	}
	if err := store.Drop(ctx, counter, func(p quota.Entries) bool { return p.Used() == 2 }); err != nil {
		t.Fatal(err)
	}
	if page, err := store.Entries(ctx, counter); err != nil || len(page) != 0 {
		t.Errorf("the book is still there: %+v %v", page, err)
	}
}

func TestAmendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	counter, store := quota.XPosts("ends", noon), replica(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Take(ctx, counter, one("a", ""), limit); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}
