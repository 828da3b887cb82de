// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/posting/delivery"
)

var groupTime = time.Date(2026, 12, 1, 8, 59, 50, 0, time.UTC)

// leading returns the groups of a process that leads, and stores them in an API server that keeps resourceVersions.
func leading(t *testing.T, api client.WithWatch) *Groups {
	t.Helper()
	g := NewGroups(GroupOptions{
		Client: api, APIReader: api, Clock: clocktesting.NewFakeClock(groupTime), Namespace: "herald-system", Prefix: "herald", Within: time.Second,
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
		// happens is what happens to the group of the other process.
		happens func(t *testing.T, api client.WithWatch, other *Groups, gr *group)
		want    delivery.GroupState
	}{
		"a group that nobody has opened is closed": {func(*testing.T, client.WithWatch, *Groups, *group) {}, delivery.GroupClosed},
		"a group that was opened stays open": {func(t *testing.T, _ client.WithWatch, other *Groups, gr *group) {
			if err := other.open(t.Context(), gr, nil); err != nil {
				t.Fatal(err)
			}
		}, delivery.GroupMayBeOpen},
		"a group that a third manager has closed is closed": {func(t *testing.T, api client.WithWatch, _ *Groups, gr *group) {
			if err := leading(t, api).Close(t.Context(), gr.ref); err != nil {
				t.Fatal(err)
			}
		}, delivery.GroupClosed},
		"it stays closed when its Lease gets another group": {func(t *testing.T, api client.WithWatch, _ *Groups, gr *group) {
			third := leading(t, api)
			if err := third.Close(t.Context(), gr.ref); err != nil {
				t.Fatal(err)
			}
			joined(t)(third.arm(t.Context(), due))
		}, delivery.GroupClosed},
		"a group whose Lease a third manager has taken over was closed by that": {func(t *testing.T, api client.WithWatch, _ *Groups, _ *group) {
			joined(t)(leading(t, api).arm(t.Context(), due))
		}, delivery.GroupClosed},
		"a Lease that somebody has changed proves nothing": {func(t *testing.T, api client.WithWatch, _ *Groups, _ *group) {
			change(t, api, func(l *coordinationv1.Lease) { l.Labels = map[string]string{"by": "somebody"} })
		}, delivery.GroupMayBeOpen},
		"a Lease that was put back after it was opened proves nothing": {func(t *testing.T, api client.WithWatch, other *Groups, gr *group) {
			if err := other.open(t.Context(), gr, nil); err != nil {
				t.Fatal(err)
			}
			change(t, api, func(l *coordinationv1.Lease) { l.Annotations[stateAnnotation] = "armed" })
		}, delivery.GroupMayBeOpen},
		"a Lease that is gone proves nothing": {func(t *testing.T, api client.WithWatch, _ *Groups, gr *group) {
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

// TestJoin covers which posts share a group.
func TestJoin(t *testing.T) {
	due := groupTime.Add(10 * time.Second)
	g := leading(t, newAPI())
	groups := map[*group]int{}
	for range 2 * groupFill {
		groups[joined(t)(g.join(t.Context(), due, nil))]++
	}
	if len(groups) != 2 {
		t.Errorf("%d posts are in %d groups, want 2", 2*groupFill, len(groups))
	}
	other := joined(t)(g.join(t.Context(), due.Add(time.Minute), nil))
	if groups[other] > 0 {
		t.Error("posts that are due at different times share a group")
	}
	first := joined(t)(g.join(t.Context(), due, []string{"account"}))
	for range perAccount - 1 {
		if next := joined(t)(g.join(t.Context(), due, []string{"account"})); next != first {
			t.Error("posts of an account are in two groups, which may be opened in any order")
		}
	}
	if _, err := g.join(t.Context(), due, []string{"account"}); !errors.Is(err, ErrNoGroup) {
		t.Errorf("one post too many of an account: %v, want %v", err, ErrNoGroup)
	}
	if _, err := g.join(t.Context(), groupTime, nil); !errors.Is(err, ErrNoGroup) {
		t.Errorf("a post that is due: %v, want %v", err, ErrNoGroup)
	}
	g.leading = nil
	if _, err := g.join(t.Context(), due, nil); !errors.Is(err, ErrNoGroup) {
		t.Errorf("a process that does not lead: %v, want %v", err, ErrNoGroup)
	}
}

// TestJoinWithoutRights covers a role of an earlier version: posts are claimed when they are due, and the API server is
// not asked for each of them.
func TestJoinWithoutRights(t *testing.T) {
	asked := 0
	g := leading(t, interceptor.NewClient(newAPI(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			asked++
			return errors.New("forbidden")
		},
	}))
	for range 10 {
		if _, err := g.join(t.Context(), groupTime.Add(10*time.Second), nil); !errors.Is(err, ErrNoGroup) {
			t.Errorf("join = %v, want %v", err, ErrNoGroup)
		}
	}
	if asked != 1 {
		t.Errorf("the Lease was read %d times, want 1", asked)
	}
}
