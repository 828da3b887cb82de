// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

const (
	// b13Waiting and b13Teams are the numbers of waiting posts and of their teams.
	b13Waiting, b13Teams = 10_000, 100
	// firstB13 is the first account number.
	firstB13 = firstB12 + 100_000
	// b13Due is the number of posts that become due during a rollout, one every b13Every.
	b13Due   = 300
	b13Every = 100 * time.Millisecond
	// stopLeaderAfter is the time from the first post until the leader stops. Another replica stops before it.
	stopOtherAfter, stopLeaderAfter = 7 * time.Second, 18 * time.Second
	// leaseEvery is the interval between two reads of the Leases.
	leaseEvery = 20 * time.Millisecond
)

// b13Cases are the compared installations. The first has a standby, like the chart's default.
var b13Cases = []struct{ shards, replicas int }{{1, 2}, {4, 3}}

// handedOver is the result for a number of shards.
type handedOver struct {
	Shards   int `json:"shards"`
	Replicas int `json:"replicas"`
	Posts    int `json:"posts"`
	// Memory is the resident memory of each replica once it has started, in MiB. The first one leads.
	Memory []float64 `json:"memory_mib"`
	// Seconds are the times from SIGTERM until other replicas hold all Leases of a stopped replica: of one that does not
	// lead, if there are shards, and of the leader.
	Seconds []float64 `json:"hand_over_s"`
	// P50 and Max are the lateness of posts that become due during these hand-overs, in milliseconds.
	P50 float64 `json:"p50_ms"`
	Max float64 `json:"max_ms"`
}

// b13 compares a leader and its standby with replicas that share the delivery of posts by shards: their memory with
// many waiting posts, and a rollout.
type b13 struct {
	*b12
}

func runB13(ctx context.Context, s *session, r *report, id string) error {
	b := &b13{&b12{session: s, name: "rollout", firstAccount: firstB13}}
	if err := s.prepare(ctx, func() error { return b.addTeams(ctx, s.scaled(b13Teams)) }); err != nil {
		return err
	}
	var all []handedOver
	for _, of := range b13Cases {
		result := handedOver{Shards: of.shards, Replicas: of.replicas, Posts: s.scaled(b13Waiting)}
		if err := b.measure(ctx, &result); err != nil {
			return fmt.Errorf("%d shards, %d replicas: %w", of.shards, of.replicas, err)
		}
		all = append(all, result)
		r.rows = append(r.rows, row{
			id: id, what: fmt.Sprintf("%d shards, %d replicas, %d waiting posts: MiB of each replica; time until the Leases of a stopped replica are held; lateness (p50, last)", of.shards, of.replicas, result.Posts),
			herald: fmt.Sprintf("%.0f; %.2f s; %.0f and %.0f ms", result.Memory, result.Seconds, result.P50, result.Max),
		})
	}
	r.add(id, all)
	return nil
}

func (b *b13) measure(ctx context.Context, result *handedOver) (err error) {
	started := time.Now()
	stored, err := b.stack.StorePosts(ctx, result.Posts, func(i int) *v1alpha1.Post {
		return b.stored(b.teams, i, started.Add(-time.Minute).Add(time.Duration(i)*time.Millisecond))
	})
	if err != nil {
		return err
	}
	edit := func(c *configv1alpha1.ManagerConfiguration) { c.Delivery.Shards = result.Shards }
	if err := b.stack.StartReplicas(ctx, result.Replicas, edit); err != nil {
		return err
	}
	if err := errors.Join(b.awaitShards(ctx, result), b.awaitQuiet(ctx)); err != nil {
		return err
	}
	for _, p := range b.stack.Herald() {
		now, _ := stack.Memory(p.PID())
		result.Memory = append(result.Memory, inMiB(now))
	}
	if err := b.rollOut(ctx, result, edit); err != nil {
		return err
	}
	b.logf("  B13: %+v", *result)
	return errors.Join(b.stack.StopHerald(), stored.Remove(ctx), b.clearTeams(ctx, b.teams), b.clear(ctx))
}

// awaitShards waits until every stored post has a shard, and every replica holds a Lease.
func (b *b13) awaitShards(ctx context.Context, of *handedOver) error {
	if of.Shards == 1 {
		return nil
	}
	return until(ctx, quietFor, "all posts are labelled, and every replica holds a Lease", func(ctx context.Context) (bool, error) {
		held, err := b.leasesByHolder(ctx)
		if err != nil {
			return false, err
		}
		for n := range of.Replicas {
			if held[stack.ReplicaName(n)] == 0 {
				return false, nil
			}
		}
		for _, team := range b.teams {
			left, err := b.posts.Namespace(team.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "!" + v1alpha1.ShardLabel, Limit: 1})
			if err != nil || len(left.Items) > 0 {
				return false, err
			}
		}
		return true, nil
	})
}

// leasesByHolder returns the number of Leases that each replica holds: of the leader and of shards.
func (b *b13) leasesByHolder(ctx context.Context) (map[string]int, error) {
	var leases coordinationv1.LeaseList
	if err := b.stack.Kubernetes.List(ctx, &leases); err != nil {
		return nil, err
	}
	held := map[string]int{}
	for i := range leases.Items {
		lease := &leases.Items[i]
		if strings.Contains(lease.Name, "-shard-") || strings.HasSuffix(lease.Name, "-manager") {
			held[ptr.Deref(lease.Spec.HolderIdentity, "")]++
		}
	}
	return held, nil
}

// rollOut stops a replica that does not lead, if there are shards, after another one has started in its place, and then
// the leader, while posts become due.
func (b *b13) rollOut(ctx context.Context, result *handedOver, edit func(*configv1alpha1.ManagerConfiguration)) error {
	texts := b.texts()
	begin := time.Now().Add(2*b13Due*texts.lead + leadMargin).Truncate(time.Second)
	posts, due := make([]*v1alpha1.Post, b13Due), map[string]time.Time{}
	for i := range posts {
		team := b.connected[i%len(b.connected)]
		at := begin.Add(time.Duration(i) * b13Every)
		posts[i] = texts.post(team, i, at, fmt.Sprintf("during a rollout %d", i), i/len(b.connected)%len(team.Connections))
		due[posts[i].Spec.Targets[0].Caption] = at
	}
	err := inParallel(ctx, posts, func(ctx context.Context, post *v1alpha1.Post) error { return b.stack.Kubernetes.Create(ctx, post) })
	if err == nil {
		err = b.awaitIn(ctx, notScheduled)
	}
	if err == nil && result.Shards > 1 {
		err = errors.Join(b.stack.StartReplica(ctx, result.Replicas, result.Replicas, edit), waitUntil(ctx, begin.Add(stopOtherAfter)), b.handOver(ctx, 1, result))
	}
	if err == nil {
		err = errors.Join(waitUntil(ctx, begin.Add(stopLeaderAfter)), b.handOver(ctx, 0, result))
	}
	if err == nil {
		err = b.awaitIn(ctx, notPosted)
	}
	if err != nil {
		return err
	}
	late, err := (&timely{b.session, texts}).lateness(ctx, due)
	result.P50, result.Max = late.P50, late.Max
	return err
}

// handOver stops a replica, and measures the time until others hold its Leases.
func (b *b13) handOver(ctx context.Context, n int, result *handedOver) error {
	stopped, begun := make(chan struct{}), time.Now()
	go func() {
		defer close(stopped)
		b.stack.StopReplica(n)
	}()
	err := until(ctx, leaseEvery, "the Leases of a stopped replica are held", func(ctx context.Context) (bool, error) {
		held, err := b.leasesByHolder(ctx)
		return held[stack.ReplicaName(n)] == 0 && held[""] == 0, err
	})
	result.Seconds = append(result.Seconds, measure.Rounded(time.Since(begun).Seconds(), 2))
	<-stopped
	return err
}
