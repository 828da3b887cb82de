// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
)

// arrivals lists the posts of each team that arrives in the shard while this process holds it. Until the cache contains
// all of them, it may lack the last claim of the previous shard's holder.
type arrivals struct {
	o *Options

	mu sync.Mutex
	// complete holds, by team, the assignment that the cache has caught up with.
	complete map[types.UID]assignment
}

// assignment identifies a team's stay in a shard. A team that is moved away and back arrives again.
type assignment struct {
	shard string
	since v1alpha1.Time
}

func assignmentOf(team *v1alpha1.Team) assignment {
	a := assignment{shard: team.Status.Shard}
	if team.Status.Move != nil {
		a.since = team.Status.Move.Since
	}
	return a
}

// unfinished selects the posts that the cache contains.
var unfinished = client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("status.finished", "true")}

// catchUpPause is the time between two comparisons of the cache with the API server.
const catchUpPause = 100 * time.Millisecond

func newArrivals(o *Options) *arrivals {
	a := &arrivals{o: o, complete: map[types.UID]assignment{}}
	for i := range o.AssignedBefore {
		if team := &o.AssignedBefore[i]; !team.Moving() {
			a.complete[team.UID] = assignmentOf(team)
		}
	}
	return a
}

// caughtUp reports whether the cache contains all posts that the team of a namespace had when it arrived. It does if
// there is only one shard.
func (a *arrivals) caughtUp(ctx context.Context, namespace string) (bool, error) {
	if a.o.Shard == nil {
		return true, nil
	}
	team, err := a.o.Team(ctx, namespace)
	if err != nil || team == nil || team.Moving() || team.Status.Shard != a.o.Shard.Name {
		return false, err
	}
	is := assignmentOf(team)
	a.mu.Lock()
	complete := a.complete[team.UID] == is
	a.mu.Unlock()
	if complete {
		return true, nil
	}
	if complete, err = a.compare(ctx, namespace); err != nil || !complete {
		return false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.complete[team.UID] = is
	return true, nil
}

// compare lists the unfinished posts of a namespace in the shard, and reports whether the cache contains all of them in
// the listed version or a newer one.
func (a *arrivals) compare(ctx context.Context, namespace string) (complete bool, err error) {
	complete = true
	err = kubeclient.EachPage(ctx, func(ctx context.Context, of kubeclient.Page) (string, error) {
		page := metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PostList"))
		if err := a.o.APIReader.List(ctx, &page, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.ShardLabel: a.o.Shard.Name},
			unfinished, client.Limit(of.Limit), client.Continue(of.Continue)); err != nil {
			return "", fmt.Errorf("cannot list the posts of a team that was moved to this shard: %w", err)
		}
		cached, err := a.cached(ctx, namespace)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			order, err := resourceversion.CompareResourceVersion(cached[page.Items[i].UID], page.Items[i].ResourceVersion)
			if err != nil || order < 0 {
				complete = false
			}
		}
		return page.Continue, nil
	})
	return complete, err
}

// cached returns the versions of the cached posts in a namespace.
func (a *arrivals) cached(ctx context.Context, namespace string) (map[types.UID]string, error) {
	var posts v1alpha1.PostList
	if err := a.o.Client.List(ctx, &posts, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the cached posts: %w", err)
	}
	versions := map[types.UID]string{}
	for i := range posts.Items {
		versions[posts.Items[i].UID] = posts.Items[i].ResourceVersion
	}
	return versions, nil
}
