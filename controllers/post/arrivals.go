// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/lookup"
	"github.com/herald-social/herald/internal/kubeclient"
)

// arrivals lists the posts of each team that arrives in the shard while this process holds it. Until the cache contains
// all of them, it may lack the last claim of the previous shard's holder.
type arrivals struct {
	o *Options

	mu    sync.Mutex
	teams map[types.UID]*arrival
}

// arrival is the last arrival of a team.
type arrival struct {
	assignment
	// caughtUpAt is the time since which the cache contains the team's posts, or zero.
	caughtUpAt time.Time
	// comparing is set during a comparison. Only this comparison uses the other fields.
	comparing bool
	// missing holds the posts that were listed first and that the cache has not contained since then.
	// Posts that are created later had no other holder, and do not extend the wait.
	missing map[types.UID]listedPost
	// since is the time of the first comparison, listedAt that of the last list, and loggedAt that of the last log line.
	since, listedAt, loggedAt time.Time
}

// listedPost identifies a version of a listed post.
type listedPost struct{ name, version string }

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

const (
	// catchUpPause is the time between two comparisons of the cache with the API server.
	catchUpPause = 100 * time.Millisecond
	// relistPause is the time between two lists, which find the missing posts that were deleted. Labelling 10,000 posts
	// takes minutes.
	relistPause = time.Second
	// reportAfter is the time after which a log line reports missing posts, and the time between two such lines.
	reportAfter = 30 * time.Second
)

func newArrivals(o *Options) *arrivals {
	a := &arrivals{o: o, teams: map[types.UID]*arrival{}}
	for i := range o.AssignedBefore {
		if team := &o.AssignedBefore[i]; !team.Moving() {
			a.teams[team.UID] = &arrival{assignment: assignmentOf(team), caughtUpAt: o.Clock.Now()}
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
	if err != nil || !a.belongs(team) {
		return false, err
	}
	arrived, compares := a.begin(team)
	if !compares {
		return !a.at(arrived).IsZero(), nil
	}
	complete, err := a.compare(ctx, namespace, arrived)
	a.mu.Lock()
	defer a.mu.Unlock()
	arrived.comparing = false
	if err != nil || !complete {
		return false, err
	}
	arrived.caughtUpAt, arrived.missing = a.o.Clock.Now(), nil
	return true, nil
}

// mayLookUp reports whether the calls of a namespace's posts to the given accounts may be looked up: the cache must
// contain all posts that a lookup may confuse with them. A post that no team owns is looked up by any shard's holder,
// since no holder publishes it.
func (a *arrivals) mayLookUp(ctx context.Context, namespace string, accounts []account) (bool, error) {
	if a.o.Shard == nil {
		return true, nil
	}
	namespaces := map[string]struct{}{namespace: {}}
	for _, on := range accounts {
		others, err := lookup.NamespacesOf(ctx, a.o.Client, on.platform, on.id)
		if err != nil {
			return false, err //nolint:wrapcheck // the error names the operation
		}
		for _, other := range others {
			namespaces[other] = struct{}{}
		}
	}
	for each := range namespaces {
		team, err := a.o.Team(ctx, each)
		if err != nil {
			return false, err
		}
		if team == nil || each != namespace && team.Status.Shard == "" {
			continue
		}
		if ready, err := a.caughtUp(ctx, each); err != nil || !ready {
			return false, err
		}
	}
	return true, nil
}

// arrivedAt returns the time since which this process delivers the posts of a namespace, or the current time if it does
// not, so that nothing counts as recorded by this process.
func (a *arrivals) arrivedAt(ctx context.Context, namespace string) (time.Time, error) {
	team, err := a.o.Team(ctx, namespace)
	if err != nil {
		return time.Time{}, err
	}
	if a.belongs(team) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if arrived := a.teams[team.UID]; arrived != nil && arrived.assignment == assignmentOf(team) && !arrived.caughtUpAt.IsZero() {
			return arrived.caughtUpAt, nil
		}
	}
	return a.o.Clock.Now(), nil
}

// belongs reports whether a team belongs to the shard and is not being moved.
func (a *arrivals) belongs(team *v1alpha1.Team) bool {
	return team != nil && !team.Moving() && team.Status.Shard == a.o.Shard.Name
}

// begin returns the arrival of a team, and whether the caller must compare its posts. Others do not wait for that.
func (a *arrivals) begin(team *v1alpha1.Team) (arrived *arrival, compares bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	is := assignmentOf(team)
	if arrived = a.teams[team.UID]; arrived == nil || arrived.assignment != is {
		arrived = &arrival{assignment: is, since: a.o.Clock.Now()}
		a.teams[team.UID] = arrived
	}
	compares = arrived.caughtUpAt.IsZero() && !arrived.comparing
	arrived.comparing = arrived.comparing || compares
	return arrived, compares
}

func (a *arrivals) at(arrived *arrival) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return arrived.caughtUpAt
}

// compare reports whether the cache contains all posts that the first comparison listed, in the listed version or a
// newer one, except those that have ended since. The list includes posts without the label of the shard, which the cache
// does not contain yet: one of them may be in a call by a manager that did not share the posts.
func (a *arrivals) compare(ctx context.Context, namespace string, arrived *arrival) (complete bool, err error) {
	now := a.o.Clock.Now()
	if arrived.missing == nil || now.Sub(arrived.listedAt) >= relistPause {
		listed, err := a.list(ctx, namespace)
		if err != nil {
			return false, err
		}
		missing := listed
		if arrived.missing != nil {
			missing = arrived.missing
		}
		maps.DeleteFunc(missing, func(post types.UID, _ listedPost) bool { _, ok := listed[post]; return !ok })
		arrived.missing, arrived.listedAt = missing, now
	}
	cached, err := a.cached(ctx, namespace)
	if err != nil {
		return false, err
	}
	maps.DeleteFunc(arrived.missing, func(post types.UID, listed listedPost) bool {
		order, err := resourceversion.CompareResourceVersion(cached[post], listed.version)
		return err == nil && order >= 0
	})
	a.report(ctx, namespace, arrived, now)
	return len(arrived.missing) == 0, nil
}

// report logs from time to time that posts are missing. The team's posts wait for as long as one cannot be labelled.
func (a *arrivals) report(ctx context.Context, namespace string, arrived *arrival, now time.Time) {
	if len(arrived.missing) == 0 || now.Sub(arrived.since) < reportAfter || now.Sub(arrived.loggedAt) < reportAfter {
		return
	}
	arrived.loggedAt = now
	var example string
	for _, post := range arrived.missing {
		example = post.name
		break
	}
	ctrl.LoggerFrom(ctx).Info("the posts of a team wait until the leader has labelled all of its unfinished posts with their shard", "namespace", namespace,
		"shard", a.o.Shard.Name, "missing", len(arrived.missing), "example", example, "since", arrived.since)
}

// list returns the unfinished posts in a namespace, including those of other shards.
func (a *arrivals) list(ctx context.Context, namespace string) (map[types.UID]listedPost, error) {
	posts := map[types.UID]listedPost{}
	err := kubeclient.EachUnfinishedPost(ctx, a.o.APIReader, func(page []metav1.PartialObjectMetadata) error {
		for i := range page {
			posts[page[i].UID] = listedPost{page[i].Name, page[i].ResourceVersion}
		}
		return nil
	}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("cannot list the posts of a team that has arrived in this shard: %w", err)
	}
	return posts, nil
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
