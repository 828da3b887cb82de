// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
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
				Clock: clocktesting.NewFakeClock(moved.Time), Shard: &Shard{Name: "01"}, Client: postsAt(t, tt.cached), APIReader: postsAt(t, tt.store), AssignedBefore: tt.before,
				Team: func(context.Context, string) (*v1alpha1.Team, error) { return tt.now, nil },
			})
			got, err := a.caughtUp(t.Context(), "team-a")
			must.Succeed(t, err)
			if got != tt.want {
				t.Errorf("%s: got %t", tt.reason, got)
			}
			got, err = a.mayLookUp(t.Context(), "team-a", nil)
			must.Succeed(t, err)
			if want := tt.want || tt.now == nil; got != want {
				t.Errorf("may look up: got %t, want %t; a post without a team is looked up, too", got, want)
			}
		})
	}
}

// listing is a cache or an API server with posts, by their UIDs, in versions.
type listing struct {
	client.Reader

	posts map[string]string
	lists int
}

func (l *listing) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	l.lists++
	if selected := (&client.ListOptions{}).ApplyOptions(opts).LabelSelector; selected != nil {
		return fmt.Errorf("the list omits the posts that are not selected by %s", selected)
	}
	for uid, version := range l.posts {
		of := metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}
		switch list := list.(type) {
		case *v1alpha1.PostList:
			list.Items = append(list.Items, v1alpha1.Post{ObjectMeta: of})
		case *metav1.PartialObjectMetadataList:
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: of})
		}
	}
	return nil
}

// TestArrivalOfUnlabelledPosts compares the cache with the API server twice, while the leader labels the posts of a team
// that was assigned when shards were turned on.
func TestArrivalOfUnlabelledPosts(t *testing.T) {
	type versions = map[string]string
	for _, tt := range []struct {
		name, reason  string
		cached, store versions // at the second comparison
		pause         time.Duration
		lists         int
		want, logged  bool
	}{
		{name: "not labelled", reason: "the old leader may be calling the account for it", store: versions{"p": "7"}, pause: catchUpPause, lists: 1},
		{name: "labelled", reason: "its event has come", cached: versions{"p": "8"}, store: versions{"p": "8"}, pause: catchUpPause, lists: 1, want: true},
		{name: "labelled and changed", reason: "the version that was listed first is enough", cached: versions{"p": "8"}, store: versions{"p": "9"}, pause: relistPause, lists: 2, want: true},
		{name: "an older version", reason: "it may lack the claim", cached: versions{"p": "6"}, store: versions{"p": "7"}, pause: relistPause, lists: 2},
		{name: "finished or deleted", reason: "it is listed no more", pause: relistPause, lists: 2, want: true},
		{name: "a new post", reason: "a post created since then had no other holder", cached: versions{"p": "8"}, store: versions{"p": "8", "q": "9"}, pause: relistPause, lists: 2, want: true},
		{name: "never labelled", reason: "the log must show what the team's posts wait for", store: versions{"p": "7"}, pause: reportAfter, lists: 2, logged: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clk := clocktesting.NewFakeClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
			cached, store := &listing{}, &listing{posts: versions{"p": "7"}}
			a := newArrivals(&Options{
				Clock: clk, Shard: &Shard{Name: "01"}, Client: reading{from: cached}, APIReader: store,
				Team: func(context.Context, string) (*v1alpha1.Team, error) {
					return &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{UID: "t"}, Status: v1alpha1.TeamStatus{Shard: "01"}}, nil
				},
			})
			logged := 0
			ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(string, string) { logged++ }, funcr.Options{}))
			if got, err := a.caughtUp(ctx, "team-a"); got || err != nil {
				t.Fatalf("the cache lacks the post: got %t, %v", got, err)
			}
			cached.posts, store.posts = tt.cached, tt.store
			clk.Step(tt.pause)
			got, err := a.caughtUp(ctx, "team-a")
			must.Succeed(t, err)
			if got != tt.want || store.lists != tt.lists || logged > 0 != tt.logged {
				t.Errorf("%s: got %t, want %t; %d lists, want %d; %d log lines", tt.reason, got, tt.want, store.lists, tt.lists, logged)
			}
		})
	}
}

// reading is a client that reads from a listing.
type reading struct {
	client.Client

	from *listing
}

func (r reading) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.from.List(ctx, list, opts...)
}

// TestArrivedAt checks since when a lookup may rely on what this process has recorded.
func TestArrivedAt(t *testing.T) {
	start := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	moved := v1alpha1.NewTime(start.Add(time.Hour))
	home := v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{UID: "t"}, Status: v1alpha1.TeamStatus{Shard: "01"}}
	back := *home.DeepCopy()
	back.Status.Move = &v1alpha1.ShardMove{From: "02", Since: moved, Until: &moved}
	away := *back.DeepCopy()
	away.Status.Shard = "02"
	for _, tt := range []struct {
		name, reason string
		team         *v1alpha1.Team
		compared     bool
		want         time.Duration
	}{
		{"assigned before", "this process has recorded everything since it took over the shard", &home, false, 0},
		{"moved back", "another process recorded some of it", &back, true, 2 * time.Hour},
		{"moved back, not caught up", "nothing is certain yet", &back, false, 3 * time.Hour},
		{"moved away", "another process records it", &away, true, 3 * time.Hour},
		{"no team", "any process may have recorded it", nil, true, 3 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clk := clocktesting.NewFakeClock(start)
			a := newArrivals(&Options{
				Clock: clk, Shard: &Shard{Name: "01"}, Client: postsAt(t, ""), APIReader: postsAt(t, ""), AssignedBefore: []v1alpha1.Team{home},
				Team: func(context.Context, string) (*v1alpha1.Team, error) { return tt.team, nil },
			})
			clk.SetTime(start.Add(2 * time.Hour))
			if tt.compared {
				_, err := a.caughtUp(t.Context(), "team-a")
				must.Succeed(t, err)
			}
			clk.SetTime(start.Add(3 * time.Hour))
			got, err := a.arrivedAt(t.Context(), "team-a")
			must.Succeed(t, err)
			if got != start.Add(tt.want) {
				t.Errorf("%s: got %s after the start, want %s", tt.reason, got.Sub(start), tt.want)
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
