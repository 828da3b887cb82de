// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
	"github.com/herald-social/herald/controllers/post/internal/lookup"
	"github.com/herald-social/herald/test/must"
)

// indexes adds indexes to a fake API server.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(obj, field, extract)
	return nil
}

// TestOpenGates opens the closed gate of an account with connections in two namespaces.
func TestOpenGates(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	moving := &v1alpha1.ShardMove{From: "02", Since: v1alpha1.NewTime(now)}
	unreadable := errors.New("the cache is not filled")
	for _, tt := range []struct {
		name, reason string
		teams        map[string]v1alpha1.TeamStatus
		unreadable   error
		released     bool
		open         bool
	}{
		{"one shard", "no other process publishes on the account", map[string]v1alpha1.TeamStatus{"a": {Shard: "01"}, "b": {Shard: "01"}}, nil, false, true},
		{"two shards", "lookups of the two holders could confuse its posts", map[string]v1alpha1.TeamStatus{"a": {Shard: "01"}, "b": {Shard: "02"}}, nil, false, false},
		{"a team on the way", "its posts are not all labelled", map[string]v1alpha1.TeamStatus{"a": {Shard: "01", Move: moving}}, nil, false, false},
		{"all teams in other shards", "this process never publishes on it", map[string]v1alpha1.TeamStatus{"a": {Shard: "02"}, "b": {Shard: "03"}}, nil, false, true},
		{"no teams", "nobody else publishes on it", nil, nil, false, true},
		{"unreadable teams", "the next check may read them", nil, unreadable, false, false},
		{"released, with two shards", "the next holder has gates of its own", map[string]v1alpha1.TeamStatus{"a": {Shard: "01"}, "b": {Shard: "02"}}, nil, true, true},
		{"released, with unreadable teams", "the cache has ended with the delivery", nil, unreadable, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			must.Succeed(t, v1alpha1.AddToScheme(scheme))
			api := fake.NewClientBuilder().WithScheme(scheme)
			must.Succeed(t, errors.Join(lookup.IndexPosts(t.Context(), indexes{api}), lookup.IndexConnections(t.Context(), indexes{api})))
			for _, namespace := range []string{"a", "b"} {
				api.WithObjects(&v1alpha1.Connection{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}, Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: "1"},
					Status: v1alpha1.ConnectionStatus{ConnectedAt: v1alpha1.NewTimePtr(now)},
				})
			}
			scheduler, on := dispatch.NewScheduler(1), account{v1alpha1.PlatformX, "1"}
			s := newSharding(&Options{
				Client: api.Build(), Clock: clocktesting.NewFakeClock(now),
				Shard: &Shard{Name: "01", Version: "v1", Valid: func() bool { return !tt.released }},
				Team: func(_ context.Context, namespace string) (*v1alpha1.Team, error) {
					if status, ok := tt.teams[namespace]; ok {
						return &v1alpha1.Team{Status: status}, nil
					}
					return nil, tt.unreadable
				},
			}, scheduler)
			insert(s.gates, on, "gate")
			scheduler.SetClosed("gate", true)
			woken := false
			scheduler.TryAcquire(dispatch.Waiter{ID: "p", Team: "a", Wake: func() { woken = true }}, []string{"gate"})
			until := s.open(t.Context(), on)
			if until.IsZero() != tt.open || woken != tt.open {
				t.Errorf("%s: got until %v, and the waiter is woken: %t", tt.reason, until, woken)
			}
			if remain := s.gates[on] != nil; remain == tt.open {
				t.Errorf("%s: the gates are still recorded: %t", tt.reason, remain)
			}
		})
	}
}
