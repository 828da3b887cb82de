// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/delivery"
)

var groupTime = time.Date(2026, 12, 1, 8, 59, 50, 0, time.UTC)

// leading returns the Groups of the leading process. They are stored in an API server that maintains resourceVersions.
func leading(t *testing.T, api client.WithWatch) *Groups {
	t.Helper()
	g := NewGroups(GroupOptions{
		Client: api, APIReader: api, Clock: clocktesting.NewFakeClock(groupTime), Namespace: "herald-system", Prefix: "herald", Within: 5 * time.Second,
		Owners: func(context.Context) []metav1.OwnerReference { return nil }, Failpoint: func(string) {}, Log: logr.Discard(),
	})
	ctx, stop := context.WithCancel(t.Context())
	g.leading = ctx
	t.Cleanup(func() { stop(); g.calls.Wait() })
	return g
}

func newAPI() client.WithWatch { return fake.NewClientBuilder().WithScheme(scheme.Scheme).Build() }

// joined fails the test if a post could not be armed.
func joined(t *testing.T) func(*group, error) *group {
	t.Helper()
	return func(gr *group, err error) *group {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return gr
	}
}

// TestClose verifies when closing another manager's group proves that none of its calls was made.
func TestClose(t *testing.T) {
	due := groupTime.Add(10 * time.Second)
	change := func(t *testing.T, api client.Client, change func(*coordinationv1.Lease)) {
		t.Helper()
		var lease coordinationv1.Lease
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: "herald-system", Name: "herald-group-00"}, &lease); err != nil {
			t.Fatal(err)
		}
		change(&lease)
		if err := api.Update(t.Context(), &lease); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		// happens changes the other process's group.
		happens func(t *testing.T, api client.WithWatch, other *Groups, gr *group)
		want    delivery.GroupState
	}{
		"a group that was never opened is closed": {func(*testing.T, client.WithWatch, *Groups, *group) {}, delivery.GroupClosed},
		"an opened group stays open": {func(t *testing.T, _ client.WithWatch, other *Groups, gr *group) {
			if err := other.open(t.Context(), gr, nil); err != nil {
				t.Fatal(err)
			}
		}, delivery.GroupMayBeOpen},
		"a group that a third manager closed is closed": {func(t *testing.T, api client.WithWatch, _ *Groups, gr *group) {
			if err := leading(t, api).Close(t.Context(), gr.ref); err != nil {
				t.Fatal(err)
			}
		}, delivery.GroupClosed},
		"a closed group stays closed when its Lease gets another group": {func(t *testing.T, api client.WithWatch, _ *Groups, gr *group) {
			third := leading(t, api)
			if err := third.Close(t.Context(), gr.ref); err != nil {
				t.Fatal(err)
			}
			if _, err := third.store(t.Context(), 0, due, false); err != nil {
				t.Fatal(err)
			}
		}, delivery.GroupClosed},
		"a group whose Lease a third manager acquired was closed by it": {func(t *testing.T, api client.WithWatch, _ *Groups, _ *group) {
			if _, err := leading(t, api).store(t.Context(), 0, due, true); err != nil {
				t.Fatal(err)
			}
		}, delivery.GroupClosed},
		"a modified Lease is not proof": {func(t *testing.T, api client.WithWatch, _ *Groups, _ *group) {
			change(t, api, func(l *coordinationv1.Lease) { l.Labels = map[string]string{"by": "somebody"} })
		}, delivery.GroupMayBeOpen},
		"a Lease that was restored after it was opened is not proof": {func(t *testing.T, api client.WithWatch, other *Groups, gr *group) {
			if err := other.open(t.Context(), gr, nil); err != nil {
				t.Fatal(err)
			}
			change(t, api, func(l *coordinationv1.Lease) { l.Annotations[stateAnnotation] = "armed" })
		}, delivery.GroupMayBeOpen},
		"a deleted Lease is not proof": {func(t *testing.T, api client.WithWatch, _ *Groups, gr *group) {
			if err := api.Delete(t.Context(), gr.lease); err != nil {
				t.Fatal(err)
			}
		}, delivery.GroupMayBeOpen},
		"another Lease is never written, whatever a status names": {func(_ *testing.T, _ client.WithWatch, _ *Groups, gr *group) {
			gr.ref = "herald-manager/" + gr.lease.ResourceVersion
		}, delivery.GroupMayBeOpen},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI()
			other := leading(t, api)
			gr := joined(t)(other.arm(t.Context(), due))
			tt.happens(t, api, other, gr)
			g := leading(t, api)
			if got := g.State(gr.ref); got != delivery.GroupUnread {
				t.Fatalf("State = %d before the group was read", got)
			}
			if err := g.Close(t.Context(), gr.ref); err != nil {
				t.Fatal(err)
			}
			if got := g.State(gr.ref); got != tt.want {
				t.Errorf("State = %d, want %d", got, tt.want)
			}
			err := other.open(t.Context(), gr, nil)
			if tt.want == delivery.GroupClosed && !errors.Is(err, errNotOpened) {
				t.Errorf("opening a closed group: %v, want %v", err, errNotOpened)
			}
		})
	}
}

// TestCloseFails covers an API server that does not respond: the group is read again by the next reconciliation.
func TestCloseFails(t *testing.T) {
	api := newAPI()
	gr := joined(t)(leading(t, api).arm(t.Context(), groupTime.Add(time.Minute)))
	away := errors.New("away")
	g := leading(t, interceptor.NewClient(api, interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return away },
	}))
	if err := g.Close(t.Context(), gr.ref); !errors.Is(err, away) {
		t.Errorf("Close = %v, want %v", err, away)
	}
	if got := g.State(gr.ref); got != delivery.GroupUnread {
		t.Errorf("State = %d, want unread: whether the group is closed is unknown", got)
	}
}

// of returns the place of a post with accounts on X.
func of(accounts ...string) place {
	var p place
	for _, account := range accounts {
		p.accounts = append(p.accounts, armedAccount{account, v1alpha1.PlatformX})
	}
	return p
}

// TestJoin checks which posts share a group.
func TestJoin(t *testing.T) {
	due := groupTime.Add(10 * time.Second)
	g := leading(t, newAPI())
	groups := map[*group]int{}
	for range 2 * groupFill {
		groups[joined(t)(g.join(t.Context(), due, place{}))]++
	}
	if len(groups) != 2 {
		t.Errorf("%d posts are in %d groups, want 2", 2*groupFill, len(groups))
	}
	other := joined(t)(g.join(t.Context(), due.Add(time.Minute), place{}))
	if groups[other] > 0 {
		t.Error("posts that are due at different times share a group")
	}
	first := joined(t)(g.join(t.Context(), due, of("account")))
	if next := joined(t)(g.join(t.Context(), due, of("account"))); next != first {
		t.Error("posts of an account are in two groups")
	}
}

// TestJoinRefused checks which posts are not armed but claimed when they are due.
func TestJoinRefused(t *testing.T) {
	due := groupTime.Add(10 * time.Second)
	join := func(t *testing.T, g *Groups, n int, p place) {
		t.Helper()
		for range n {
			joined(t)(g.join(t.Context(), due, p))
		}
	}
	for name, tt := range map[string]struct {
		before func(t *testing.T, g *Groups)
		due    time.Time
		place  place
		want   error
	}{
		"a post with room": {func(t *testing.T, g *Groups) { join(t, g, 1, of("account")) }, due, of("account"), nil},
		"an account whose queued calls exceed the send window": {
			func(t *testing.T, g *Groups) { join(t, g, maxPerAccount, of("account")) }, due, of("account"), ErrNoGroup,
		},
		"an account of a slow platform": {func(t *testing.T, g *Groups) {
			for range 100 {
				g.times.observe(v1alpha1.PlatformX, 4*time.Second)
			}
			join(t, g, 1, of("account"))
		}, due, of("account"), ErrNoGroup},
		"another of its accounts": {func(t *testing.T, g *Groups) { join(t, g, maxPerAccount, of("account")) }, due, of("other"), nil},
		"an account whose claims failed has room again": {func(t *testing.T, g *Groups) {
			for range maxPerAccount {
				g.release(joined(t)(g.join(t.Context(), due, of("account"))), of("account"))
			}
		}, due, of("account"), nil},
		"a post that is due": {func(*testing.T, *Groups) {}, groupTime, place{}, ErrNoGroup},
		"a post that would exceed the memory limit": {
			func(t *testing.T, g *Groups) { join(t, g, 3, place{bytes: maxArmedBytes / 4}) }, due, place{bytes: maxArmedBytes/4 + 1}, ErrNoGroup,
		},
		"a post after another has been recorded": {func(t *testing.T, g *Groups) {
			join(t, g, 1, place{bytes: maxArmedBytes})
			g.forget(maxArmedBytes)
		}, due, place{bytes: maxArmedBytes}, nil},
		"a post of a time that has its share of the Leases": {
			func(t *testing.T, g *Groups) { join(t, g, maxPerTime*groupFill, place{}) }, due, place{}, ErrNoGroup,
		},
		"a post of another time gets a Lease": {
			func(t *testing.T, g *Groups) { join(t, g, maxPerTime*groupFill, place{}) }, due.Add(time.Second), place{}, nil,
		},
		"a process that is not the leader": {func(_ *testing.T, g *Groups) { g.leading = nil }, due, place{}, ErrNoGroup},
	} {
		t.Run(name, func(t *testing.T) {
			g := leading(t, newAPI())
			tt.before(t, g)
			if _, err := g.join(t.Context(), tt.due, tt.place); !errors.Is(err, tt.want) {
				t.Errorf("join = %v, want %v", err, tt.want)
			}
		})
	}
}

// TestForeignGroups checks which Leases are taken while another process's groups are armed.
func TestForeignGroups(t *testing.T) {
	api, due := newAPI(), groupTime.Add(10*time.Second)
	other := leading(t, api)
	var refs []string
	for range maxGroups - 1 {
		refs = append(refs, joined(t)(other.arm(t.Context(), due)).ref)
	}
	g := leading(t, api)
	if free := joined(t)(g.arm(t.Context(), due)); free.slot != maxGroups-1 {
		t.Errorf("the group is in Lease %d, want an unused one", free.slot)
	}
	taken := joined(t)(g.arm(t.Context(), due))
	if err := g.Close(t.Context(), refs[taken.slot]); err != nil || g.State(refs[taken.slot]) != delivery.GroupClosed {
		t.Errorf("without a free Lease, a group was overwritten and is %d (%v), want closed", g.State(refs[taken.slot]), err)
	}
}

// TestClosedVersions checks which of the versions in a Lease count as closed.
func TestClosedVersions(t *testing.T) {
	lease := &coordinationv1.Lease{}
	lease.ResourceVersion = "20"
	setClosed(lease, []string{"9", "19", "20", "100", "put-back"})
	if diff := cmp.Diff([]string{"9", "19"}, closedVersions(lease)); diff != "" {
		t.Errorf("versions below that of the Lease (-want +got):\n%s", diff)
	}
	addClosed(lease)
	if got, want := lease.Annotations[closedAnnotation], "9 19 20"; got != want {
		t.Errorf("the next write lists %q, want %q: the others may be reused", got, want)
	}
}

// TestRemember checks that the states of groups are eventually forgotten.
func TestRemember(t *testing.T) {
	g := leading(t, newAPI())
	g.remember("herald-group-00/1", delivery.GroupClosed)
	g.o.Clock.(*clocktesting.FakeClock).Step(groupStateTTL + 1)
	g.remember("herald-group-00/2", delivery.GroupClosed)
	if got := g.State("herald-group-00/1"); got != delivery.GroupUnread || len(g.known) != 1 {
		t.Errorf("an old group is %d of %d known groups, want unread", got, len(g.known))
	}
}

// TestAddLate covers a claim that is stored after its group was opened, in a process that stops: nothing is sent, and
// that is recorded.
func TestAddLate(t *testing.T) {
	g := leading(t, newAPI())
	scheduler := dispatch.NewScheduler(1).WithArmed(1)
	d := &Delivery{Conn: &v1alpha1.Connection{}, Attempt: "a1"}
	r := &run{Publisher: &Publisher{Groups: g, Scheduler: scheduler}, deliveries: []*Delivery{d}}
	r.calls = []*dispatch.ArmedCall{scheduler.QueueArmed(dispatch.Waiter{ID: "a1"}, d.Gate())}
	r.queue(errStopped)
	post := &v1alpha1.Post{Status: v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{{Attempt: &v1alpha1.Attempt{ID: "a1", SendBefore: v1alpha1.NewTime(groupTime.Add(time.Second))}}}}}
	r.Clock = g.o.Clock
	r.enter(t.Context(), post, d)()
	if got := r.send(t.Context(), post, d); got.Outcome != platforms.NotSent || !got.Withheld {
		t.Errorf("result %+v, want a withheld call", got)
	}
	if len(scheduler.TryAcquire(dispatch.Waiter{ID: "post"}, []string{d.Gate()})) != 1 {
		t.Error("the call still blocks the account's posts")
	}
}

// TestJoinFails covers groups that cannot be stored: the API server is not asked again for each post.
func TestJoinFails(t *testing.T) {
	for name, tt := range map[string]struct {
		why   error
		want  error
		pause time.Duration
	}{
		"an unavailable API server is retried soon, and so are the posts":                             {errors.New("away"), ErrNoGroupYet, ArmPause},
		"a role from an earlier version will not change in time: posts are claimed when they are due": {apierrors.NewForbidden(coordinationv1.Resource("leases"), "", nil), ErrNoGroup, permissionPause},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			g := leading(t, interceptor.NewClient(newAPI(), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					asked++
					return tt.why
				},
			}))
			for _, at := range []time.Duration{0, tt.pause - 1, tt.pause} {
				g.o.Clock.(*clocktesting.FakeClock).SetTime(groupTime.Add(at))
				if _, err := g.join(t.Context(), groupTime.Add(2*time.Minute), place{}); !errors.Is(err, tt.want) || errors.Is(err, ErrNoGroupYet) != errors.Is(tt.want, ErrNoGroupYet) {
					t.Errorf("join = %v, want %v", err, tt.want)
				}
			}
			if asked != 2 {
				t.Errorf("the Lease was read %d times, want 2", asked)
			}
		})
	}
}
