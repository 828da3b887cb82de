// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

func TestArrivals(t *testing.T) {
	moved := v1alpha1.NewTime(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	team := func(change func(*v1alpha1.Team)) *v1alpha1.Team {
		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{UID: "t"}, Status: v1alpha1.TeamStatus{Shard: "01"}}
		change(team)
		return team
	}
	same := func(*v1alpha1.Team) {}
	arrived := func(t *v1alpha1.Team) { t.Status.Move = &v1alpha1.ShardMove{From: "02", Since: moved, Until: &moved} }
	for _, tt := range []struct {
		name, reason  string
		before        []v1alpha1.Team
		now           *v1alpha1.Team
		cached, store string
		want          bool
	}{
		{"assigned before", "the cache was filled after that", []v1alpha1.Team{*team(same)}, team(same), "", "7", true},
		{"arrived", "the cache has the last version of its post", []v1alpha1.Team{*team(same)}, team(arrived), "7", "7", true},
		{"arrived, with an older post", "the last claim of the previous holder may be missing", []v1alpha1.Team{*team(same)}, team(arrived), "7", "10", false},
		{"arrived, without its post", "the event for its new label has not come yet", nil, team(arrived), "", "7", false},
		{"arrived, with a newer post", "the post has changed after the list", nil, team(arrived), "10", "7", true},
		{"newly assigned", "a team without posts has nothing to wait for", nil, team(same), "", "", true},
		{"moving", "its posts are not all labelled", nil, team(func(t *v1alpha1.Team) { t.Status.Move = &v1alpha1.ShardMove{From: "02", Since: moved} }), "7", "7", false},
		{"in another shard", "the label is outdated", []v1alpha1.Team{*team(same)}, team(func(t *v1alpha1.Team) { t.Status.Shard = "02" }), "7", "7", false},
		{"no team", "nobody owns the namespace", nil, nil, "7", "7", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newArrivals(&Options{
				Shard: &Shard{Name: "01"}, Client: postsAt(t, tt.cached), APIReader: postsAt(t, tt.store), AssignedBefore: tt.before,
				Team: func(context.Context, string) (*v1alpha1.Team, error) { return tt.now, nil },
			})
			got, err := a.caughtUp(t.Context(), "team-a")
			must.Succeed(t, err)
			if got != tt.want {
				t.Errorf("%s: got %t", tt.reason, got)
			}
		})
	}
}

// postsAt returns a client with a post in a version, or without a post.
func postsAt(t *testing.T, version string) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	// The fake API server cannot select the posts that are not finished.
	with := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			return c.List(ctx, list, client.InNamespace("team-a"))
		},
	})
	if version != "" {
		with = with.WithObjects(&v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "a", UID: types.UID("p"), ResourceVersion: version, Labels: map[string]string{v1alpha1.ShardLabel: "01"},
		}})
	}
	return with.Build()
}
