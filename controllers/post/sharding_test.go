// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/shardmanager"
	"github.com/herald-social/herald/test/suite"
)

// shardHolder is a manager that holds a shard under a version of its Lease.
type shardHolder struct {
	version string
	// released is set once it has given up the shard.
	released atomic.Bool
	// shard is the shard that every team is assigned to, except the one in the namespace elsewhere.
	shard, elsewhere atomic.Value
}

// confirmed records that the platform has confirmed a connection's account.
func confirmed(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var conn v1alpha1.Connection
		if err := k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &conn); err != nil {
			return err
		}
		conn.Status.ConnectedAt = v1alpha1.NewTimePtr(time.Now())
		return k8s.Status().Update(ctx, &conn)
	})).To(Succeed())
}

// start starts the holder of shard 01, until the end of the spec.
func (h *shardHolder) start(change ...func(*post.Options)) {
	h.shard.Store("01")
	change = append([]func(*post.Options){func(o *post.Options) {
		o.Shard = &post.Shard{Name: "01", Version: h.version, Valid: func() bool { return !h.released.Load() }}
		o.Team = func(_ context.Context, namespace string) (*v1alpha1.Team, error) {
			if namespace == h.elsewhere.Load() {
				return &v1alpha1.Team{Status: v1alpha1.TeamStatus{Shard: "02"}}, nil
			}
			return &v1alpha1.Team{Status: v1alpha1.TeamStatus{Shard: h.shard.Load().(string)}}, nil
		}
		o.Suspension = func(context.Context, string) (bool, []v1alpha1.Suspension, error) { return false, nil, nil }
	}}, change...)
	process := newManager(func(*ctrl.Options) {}, env.Config, GinkgoLogr, interceptor.Funcs{})
	Expect(newReconciler(process).SetupRecords(process)).To(Succeed())
	whole := run(process)
	shard := suite.Must(shardmanager.New(process, cache.Options{DefaultTransform: kubeclient.TransformForCache}, "01"))
	Expect(newReconciler(shard, change...).SetupWithManager(shard)).To(Succeed())
	delivery := run(shard)
	DeferCleanup(func() { delivery.stop(); whole.stop() })
}

func inShard(p *v1alpha1.Post) { metav1.SetMetaDataLabel(&p.ObjectMeta, v1alpha1.ShardLabel, "01") }

// claimedBy stores the claim of another manager, whose call may start until the window ends.
func claimedBy(ctx context.Context, t team, p *v1alpha1.Post, version string, window time.Duration) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now := read(ctx, p)
		at := time.Now()
		now.Status.Targets = []v1alpha1.TargetStatus{{Platform: v1alpha1.PlatformX, State: v1alpha1.TargetPending, Phase: v1alpha1.PhaseProcessing, Attempt: &v1alpha1.Attempt{
			Number: 1, ID: "other-" + p.Name, StartedAt: v1alpha1.NewTime(at), SendBefore: v1alpha1.NewTime(at.Add(window)), AccountID: t.account.ID, Shard: version,
		}}}
		return k8s.Status().Update(ctx, now)
	})).To(Succeed())
}

var _ = Describe("A post of a shard", Serial, func() {
	attemptOf := func(ctx context.Context, p *v1alpha1.Post) func() *v1alpha1.Attempt {
		return func() *v1alpha1.Attempt {
			if targets := read(ctx, p).Status.Targets; len(targets) > 0 {
				return targets[0].Attempt
			}
			return nil
		}
	}

	// The holders of later specs do not deliver the posts that a spec leaves behind.
	AfterEach(func(ctx SpecContext) {
		var left v1alpha1.PostList
		Expect(k8s.List(ctx, &left, client.MatchingLabels{v1alpha1.ShardLabel: "01"})).To(Succeed())
		for i := range left.Items {
			edit(ctx, &left.Items[i], func(p *v1alpha1.Post) { p.Labels[v1alpha1.ShardLabel] = "99" })
		}
	})

	It("names the version of its holder in the claim", func(ctx SpecContext) {
		holder := &shardHolder{version: "v1"}
		holder.start()
		t := newTeam(ctx)
		p := posted(ctx, t.post(ctx, "named", inShard))
		Expect(attemptOf(ctx, p)().Shard).To(Equal("v1"))
		other := t.post(ctx, "unlabelled")
		Consistently(attemptOf(ctx, other)).WithTimeout(time.Second).Should(BeNil(), "the API server selects the posts by their label")
		Expect(k8s.Delete(ctx, other, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	})

	It("waits while another holder may be calling its account", func(ctx SpecContext) {
		t := newTeam(ctx)
		first, second := t.post(ctx, "first", at(time.Hour), inShard), t.post(ctx, "second", at(2*time.Second), inShard)
		claimedBy(ctx, t, first, "before", 4*time.Second)
		over := attemptOf(ctx, first)().SendBefore.Add(2*time.Second + 500*time.Millisecond)
		holder := &shardHolder{version: "now"}
		holder.start()
		posted(ctx, second)
		Expect(attemptOf(ctx, second)().StartedAt.Time).To(BeTemporally(">=", over))
		Expect(attemptOf(ctx, second)().StartedAt.Time).To(BeTemporally("<", over.Add(time.Second)), "it does not wait for the lookup")
	})

	It("is published once the other holder's result is recorded", func(ctx SpecContext) {
		t := newTeam(ctx)
		first, second := t.post(ctx, "first", at(time.Hour), inShard), t.post(ctx, "second", inShard)
		claimedBy(ctx, t, first, "", time.Minute)
		holder := &shardHolder{version: "now"}
		holder.start()
		Consistently(attemptOf(ctx, second)).WithTimeout(time.Second).Should(BeNil())
		Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			now := read(ctx, first)
			now.Status.Targets[0].Attempt.EndedAt = v1alpha1.NewTimePtr(time.Now())
			return k8s.Status().Update(ctx, now)
		})).To(Succeed())
		posted(ctx, second)
	})

	It("is not claimed after its shard was given up", func(ctx SpecContext) {
		holder := &shardHolder{version: "v1"}
		holder.released.Store(true)
		holder.start()
		t := newTeam(ctx)
		p := t.post(ctx, "too late", inShard)
		Consistently(attemptOf(ctx, p)).WithTimeout(time.Second).Should(BeNil())
	})

	It("is not sent if its shard was given up while the claim was stored", func(ctx SpecContext) {
		holder := &shardHolder{version: "v1"}
		holder.start(func(o *post.Options) {
			o.Failpoint = func(point string) {
				if point == post.PointAfterClaim {
					holder.released.Store(true)
				}
			}
		})
		t := newTeam(ctx)
		p := t.post(ctx, "claimed too late", inShard)
		Eventually(attemptOf(ctx, p)).Should(HaveField("Outcome", v1alpha1.OutcomeNotSent))
		Expect(t.published(ctx)).To(BeEmpty())
		next := &shardHolder{version: "v2"}
		next.start()
		posted(ctx, p)
		Expect(attemptOf(ctx, p)().Shard).To(Equal("v2"))
		Expect(suite.Must(platform.Posts(ctx, "x", t.account.ID))).To(HaveLen(1))
	})

	It("is not claimed while its team is assigned to another shard", func(ctx SpecContext) {
		holder := &shardHolder{version: "v1"}
		holder.start()
		holder.shard.Store("02")
		t := newTeam(ctx)
		p := t.post(ctx, "with an outdated label", inShard)
		Consistently(attemptOf(ctx, p)).WithTimeout(time.Second).Should(BeNil())
	})

	It("is not looked up while its team is assigned to another shard", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "in doubt", inShard)
		claimedBy(ctx, t, p, "before", time.Second)
		holder := &shardHolder{version: "now"}
		holder.elsewhere.Store(t.namespace)
		holder.start()
		before := read(ctx, p).Status
		Consistently(func() v1alpha1.PostStatus { return read(ctx, p).Status }).WithTimeout(6*time.Second).Should(Equal(before), "the other holder has posts that the lookup may confuse with it")
		holder.elsewhere.Store("")
		posted(ctx, p)
	})

	It("waits while its account belongs to teams of two shards", func(ctx SpecContext) {
		t, other := newTeam(ctx), newTeam(ctx)
		other.share(ctx, v1alpha1.PlatformX, "shared", t.account)
		confirmed(ctx, t.namespace, "x")
		confirmed(ctx, other.namespace, "shared")
		holder := &shardHolder{version: "v1"}
		holder.elsewhere.Store(other.namespace)
		holder.start()
		p := t.post(ctx, "linked", inShard)
		Consistently(attemptOf(ctx, p)).WithTimeout(2*time.Second).Should(BeNil(), "lookups of the two holders could confuse its posts")
		holder.elsewhere.Store("")
		posted(ctx, p)
	})

	It("is not deleted when it leaves the shard", func(ctx SpecContext) {
		holder := &shardHolder{version: "v1"}
		holder.start()
		t := newTeam(ctx)
		p := t.post(ctx, "moved", at(time.Hour), inShard)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		before := read(ctx, p)
		edit(ctx, p, func(p *v1alpha1.Post) { p.Labels[v1alpha1.ShardLabel] = "02" })
		Consistently(func() v1alpha1.PostStatus { return read(ctx, p).Status }).WithTimeout(time.Second).Should(Equal(before.Status))
		Expect(read(ctx, p).Finalizers).To(Equal(before.Finalizers))
		edit(ctx, p, func(p *v1alpha1.Post) {
			inShard(p)
			p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Second))
		})
		posted(ctx, p)
	})
})
