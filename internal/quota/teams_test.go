// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/test/must"
)

// indexer builds a client with the requested index.
type indexer struct {
	builder *fake.ClientBuilder
	err     error
}

func (i *indexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i.builder.WithIndex(obj, field, extract)
	return i.err
}

// late is a client that is created after the index.
type late struct {
	client.Reader
	made func() client.WithWatch
}

func (l *late) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return l.made().List(ctx, list, opts...)
}

func TestOwner(t *testing.T) {
	t.Parallel()
	team := func(name, namespace string, seconds int) client.Object {
		return &v1alpha1.Team{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(1e9+seconds), 0))},
			Spec:       v1alpha1.TeamSpec{Namespace: namespace},
		}
	}
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		team("a", "shared", 2), team("b", "shared", 1), team("c", "shared", 1), team("d", "other", 0))
	directory, err := NewTeams(t.Context(), &late{made: sync.OnceValue(builder.Build)}, &indexer{builder: builder})
	must.Succeed(t, err)
	for namespace, tc := range map[string]struct{ reason, want string }{
		"shared":  {"the oldest, and of the same second the first by name", "b"},
		"other":   {"the only Team", "d"},
		"unowned": {"no team owns it", ""},
	} {
		owner, err := directory.Owner(t.Context(), namespace)
		must.Succeed(t, err)
		got := ""
		if owner != nil {
			got = owner.Name
		}
		if got != tc.want {
			t.Errorf("%s: %q owns it, want %q: %s", namespace, got, tc.want, tc.reason)
		}
	}
}

func TestMedia(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.TeamSpec{Namespace: "keeps", Media: v1alpha1.TeamMedia{KeepLocation: true}}},
		&v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: v1alpha1.TeamSpec{Namespace: "says-nothing"}})
	directory, err := NewTeams(t.Context(), &late{made: sync.OnceValue(builder.Build)}, &indexer{builder: builder})
	must.Succeed(t, err)
	for namespace, want := range map[string]bool{"keeps": true, "says-nothing": false, "nobodys": false} {
		if got, err := directory.Media(t.Context(), namespace); err != nil || got.KeepLocation != want {
			t.Errorf("the team of %s keeps locations: %t, want %t (%v)", namespace, got.KeepLocation, want, err)
		}
	}
}

func TestTeamsNeedTheirIndex(t *testing.T) {
	t.Parallel()
	broken := errors.New("no such kind")
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	if _, err := NewTeams(t.Context(), nil, &indexer{builder: fake.NewClientBuilder().WithScheme(scheme), err: broken}); !errors.Is(err, broken) {
		t.Errorf("error %v, want the indexer's", err)
	}
}

// wanting returns a team that claims a namespace, and either owns it or was denied it.
func wanting(namespace string, owns bool) *v1alpha1.Team {
	team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TeamSpec{Namespace: namespace}}
	conditions.Apply(&team.Status.Conditions, conditions.Summary{Ready: owns, Reason: "Test"}, 1, time.Unix(1e9, 0))
	return team
}

func TestOwned(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	for name, tc := range map[string]struct {
		reason string
		team   *v1alpha1.Team
		want   bool
	}{
		"owned":   {"the team controller recorded it", wanting("team-acme", true), true},
		"refused": {"a Team that names a namespace does not open it", wanting("team-acme", false), false},
		"fresh":   {"the team controller has not processed the Team yet", &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.TeamSpec{Namespace: "team-acme"}}, false},
		"another": {"the Team owns another namespace", wanting("team-other", true), false},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.team)
			teams, err := NewTeams(t.Context(), &late{made: sync.OnceValue(builder.Build)}, &indexer{builder: builder})
			must.Succeed(t, err)
			if got, err := teams.Owned(t.Context(), "team-acme"); got != tc.want || err != nil {
				t.Errorf("%v, %v, want %v: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

// TestOwnershipChanged checks which events pass. Teams are written each time their usage is counted, and each event
// that passes causes a reconciliation of all of the team's objects.
func TestOwnershipChanged(t *testing.T) {
	t.Parallel()
	passes := OwnershipChanged()
	counted := wanting("team-acme", true)
	counted.ResourceVersion, counted.Spec.DisplayName = "2", "Acme"
	for name, tc := range map[string]struct {
		reason string
		got    bool
		want   bool
	}{
		"created":     {"the Team does not own the namespace yet", passes.Create(event.CreateEvent{Object: wanting("team-acme", false)}), false},
		"there":       {"a starting manager reconciles all objects anyway", passes.Create(event.CreateEvent{Object: wanting("team-acme", true), IsInInitialList: true}), false},
		"missed":      {"the watch was interrupted while it acquired its namespace: waiting objects continue", passes.Create(event.CreateEvent{Object: wanting("team-acme", true)}), true},
		"acquired":    {"waiting objects continue", passes.Update(event.UpdateEvent{ObjectOld: wanting("team-acme", false), ObjectNew: wanting("team-acme", true)}), true},
		"lost":        {"deliveries stop", passes.Update(event.UpdateEvent{ObjectOld: wanting("team-acme", true), ObjectNew: wanting("team-acme", false)}), true},
		"status":      {"the owner is the same", passes.Update(event.UpdateEvent{ObjectOld: wanting("team-acme", true), ObjectNew: counted}), false},
		"refused":     {"the Team never owned the namespace", passes.Delete(event.DeleteEvent{Object: wanting("team-acme", false)}), false},
		"deleted":     {"deliveries stop", passes.Delete(event.DeleteEvent{Object: wanting("team-acme", true)}), true},
		"not a write": {"the Team is unchanged", passes.Generic(event.GenericEvent{Object: wanting("team-acme", true)}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: passes %v, want %v: %s", name, tc.got, tc.want, tc.reason)
		}
	}
}

func TestInNamespace(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	conn := func(namespace, name string) client.Object {
		return &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(conn("team-acme", "a"), conn("team-acme", "b"), conn("team-other", "c")).Build()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	wake := InNamespace(nil, c, func() client.ObjectList { return &v1alpha1.ConnectionList{} })
	wake.Delete(t.Context(), event.DeleteEvent{Object: wanting("team-acme", true)}, queue)
	wake.Delete(t.Context(), event.DeleteEvent{Object: &corev1.Namespace{}}, queue)
	var woken []string
	for range queue.Len() {
		request, _ := queue.Get()
		woken = append(woken, request.String())
	}
	slices.Sort(woken)
	if want := []string{"team-acme/a", "team-acme/b"}; !slices.Equal(woken, want) {
		t.Errorf("woke %v, want %v: only objects in the team's namespace", woken, want)
	}
}
