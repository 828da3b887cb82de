// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

func TestShareOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                        string
		shards, replicas, limit, want int
	}{
		"Divisible":     {reason: "each of two replicas holds two of four shards", shards: 4, replicas: 2, limit: 256, want: 128},
		"Indivisible":   {reason: "the replica with two of four shards stays within its limit", shards: 4, replicas: 3, limit: 256, want: 128},
		"OneEach":       {reason: "a replica with one shard needs its whole limit there", shards: 3, replicas: 3, limit: 32, want: 32},
		"MoreReplicas":  {reason: "a replica holds no more than one shard, and some hold none", shards: 2, replicas: 5, limit: 32, want: 32},
		"RoundedDown":   {reason: "three shards together stay within the limit", shards: 3, replicas: 1, limit: 32, want: 10},
		"Least":         {reason: "each shard delivers at least one post at a time, although its process then exceeds the limit", shards: 16, replicas: 2, limit: 4, want: 1},
		"UnknownNumber": {reason: "without a configured number of replicas, one replica may hold all shards", shards: 4, limit: 256, want: 64},
	} {
		t.Run(name, func(t *testing.T) {
			c := configv1alpha1.DefaultManager()
			c.Delivery.Shards, c.Replicas = tc.shards, tc.replicas
			if got := shareOf(c, tc.limit); got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestAssignedBefore(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		team, label string
		served      configv1alpha1.Namespaces
		want        []string
	}{
		"Labelled":   {reason: "the cache will contain its post", team: "01", label: "01", want: []string{"a"}},
		"Unlabelled": {reason: "the cache lacks its post until the leader has labelled it", team: "01"},
		"OtherShard": {reason: "its posts are not in the cache", team: "02", label: "02"},
		"Unassigned": {reason: "its posts are not in the cache", label: "01"},
		"Served":     {reason: "the manager may list posts only in the served namespaces", team: "01", served: configv1alpha1.Namespaces{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			must.Succeed(t, v1alpha1.AddToScheme(scheme))
			post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
			if tc.label != "" {
				metav1.SetMetaDataLabel(&post.ObjectMeta, v1alpha1.ShardLabel, tc.label)
			}
			team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.TeamSpec{Namespace: "a"}, Status: v1alpha1.TeamStatus{Shard: tc.team}}
			var listed []string
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(team, post).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					options := (&client.ListOptions{}).ApplyOptions(opts)
					if options.FieldSelector != nil { // the fake API server cannot select the posts that are not finished
						listed = append(listed, options.Namespace)
						options.FieldSelector = nil
					}
					return c.List(ctx, list, options)
				},
			}).Build()
			teams, err := assignedBefore(t.Context(), api, tc.served, "01")
			must.Succeed(t, err)
			var got []string
			for i := range teams {
				got = append(got, teams[i].Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
			if len(tc.served) > 0 && !slices.Equal(listed, tc.served) {
				t.Errorf("listed the posts in %q, want %q", listed, tc.served)
			}
		})
	}
}
