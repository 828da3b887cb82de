// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/controllers/retention"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/posting/record"
)

// sweeping is this checkout without a minimum in-cluster retention, so that a team's retention takes effect within one
// Ginkgo spec. It differs from present only in its configuration file.
var sweeping = configured("this version, without a floor of retention", "sweeping.yaml")

// wayOut lists the failpoints of the sweep, in order.
var wayOut = []string{
	retention.PointBeforeArchive, retention.PointAfterRecord, retention.PointAfterArchive, retention.PointAfterRelease, retention.PointAfterDelete,
}

// archived is a published post and the record that it should have.
type archived struct {
	*sent
	last  *v1alpha1.Post
	calls map[v1alpha1.Platform]int
}

// remove deletes the post like a user. Kubernetes increments the generation.
func (a *archived) remove(ctx context.Context) {
	GinkgoHelper()
	Expect(k8s.Delete(ctx, a.DeepCopy())).To(Succeed())
	a.last.Generation++
}

// shelf reads a team's archive in the bucket directly, without the proxy.
type shelf struct {
	team   *team
	bucket *store.Store
}

func shelfOf(tm *team) shelf {
	bucket, err := store.New(files)
	Expect(err).NotTo(HaveOccurred())
	return shelf{tm, bucket}
}

func (s shelf) account(connection string) (v1alpha1.Platform, string, bool) {
	on := v1alpha1.Platform(connection)
	account, ok := s.team.accounts[on]
	return on, accountID(on, account), ok
}

// record returns a post's record, which must exist.
func (s shelf) record(ctx context.Context, g Gomega, name string) *record.Record {
	data, err := archive.New(s.bucket).Get(ctx, archive.Team{Namespace: s.team.namespace, Name: s.team.namespace}, name)
	g.Expect(err).NotTo(HaveOccurred(), "the record of %s", name)
	kept, err := record.Decode(data)
	g.Expect(err).NotTo(HaveOccurred())
	return kept
}

// listed returns the number of a post's entries in the team's lists.
func (s shelf) listed(ctx context.Context, g Gomega, name string) (n int) {
	view, err := lists.NewReader(s.bucket, 1<<20).Open(ctx, lists.Team{Namespace: s.team.namespace, Name: s.team.namespace}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	for _, row := range view.Head(lists.Filter{}) {
		if row.Name == name {
			n++
		}
	}
	return n
}

// expectRecord expects that a post's record is correct.
func (s shelf) expectRecord(ctx context.Context, p *archived) {
	GinkgoHelper()
	want, err := record.New(p.last, s.team.namespace, s.account).Encode()
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(g Gomega) {
		is, err := s.record(ctx, g, p.Name).Encode()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(is).To(MatchJSON(want))
	}).Should(Succeed(), "the record of %s has its outcome", p.Name)
}

// expectArchived expects that a post has left the cluster and is in the archive, with one list entry and with its
// outcome in the record.
func (s shelf) expectArchived(ctx context.Context, p *archived) {
	GinkgoHelper()
	Eventually(func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(p.Post), &v1alpha1.Post{}) }).
		Should(MatchError(apierrors.IsNotFound, "is gone"), "%s leaves the cluster: no finalizer remains", p.Name)
	Eventually(func(g Gomega) { g.Expect(s.listed(ctx, g, p.Name)).To(Equal(1)) }).Should(Succeed(), "%s is listed once", p.Name)
	s.expectRecord(ctx, p)
}

// comesBack applies an archived post again, and expects that it adopts its outcome without calling the platform.
func (s shelf) comesBack(ctx SpecContext, p *archived) {
	GinkgoHelper()
	again := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}, Spec: *p.last.Spec.DeepCopy()}
	create(ctx, again)
	var now v1alpha1.Post
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(again), &now)).To(Succeed())
		g.Expect(now.Status.Phase).To(Equal(v1alpha1.PhasePosted))
		g.Expect(meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionAdopted)).To(BeTrue())
	}).Should(Succeed(), "%s adopts the outcome of the post before it", p.Name)
	Eventually(func(g Gomega) {
		kept := s.record(ctx, g, p.Name)
		g.Expect(kept.UID).To(Equal(now.UID))
		g.Expect(kept.Earlier).To(ContainElement(p.last.UID))
	}).Should(Succeed(), "the record is the restored object's")
	shown := s.team.shown(ctx)
	for i := range p.Spec.Targets {
		Expect(now.Status.Targets[i].ExternalID).To(Equal(p.last.Status.Targets[i].ExternalID))
		for _, part := range p.parts(s.team, i) {
			Expect(shown[part.words]).To(HaveLen(1), "%s is shown once", part.text)
		}
	}
	Expect(publishCallsEverywhere(ctx)).To(Equal(p.calls), "no call was sent for the restored post")
}

var _ = Describe("The archive's crash matrix", Ordered, func() {
	var (
		m    *process
		tm   *team
		kept shelf
	)

	BeforeAll(func(ctx SpecContext) {
		m = sweeping.start()
		tm = newTeam(ctx)
		kept = shelfOf(tm)
	})
	AfterAll(func() { m.kill() })

	kill := func() { m.kill() }
	// of returns the kinds of posts that are killed at each point.
	of := func() []*kind {
		if long {
			return []*kind{aText, aPicture, aTree}
		}
		return []*kind{aText}
	}
	restart := func(met <-chan struct{}, point string) {
		GinkgoHelper()
		Eventually(met).Should(BeClosed(), "a manager comes to %s", point)
		m = m.again()
	}
	finished := func(ctx SpecContext, p *sent) *v1alpha1.Post {
		GinkgoHelper()
		var now v1alpha1.Post
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(p.Post), &now)).To(Succeed())
			g.Expect(now.Status.Finished).To(BeTrue(), "%+v", now.Status)
			g.Expect(now.Status.Phase).To(Equal(v1alpha1.PhasePosted))
		}).Should(Succeed())
		return &now
	}
	published := func(ctx SpecContext, k *kind, why string) *archived {
		GinkgoHelper()
		p := tm.post(ctx, k, why, k.targets()...)
		return &archived{p, finished(ctx, p), publishCallsEverywhere(ctx)}
	}
	retain := func(ctx SpecContext, in v1alpha1.TeamRetention) {
		GinkgoHelper()
		Eventually(func() error {
			var owner v1alpha1.Team
			if err := k8s.Get(ctx, types.NamespacedName{Name: tm.namespace}, &owner); err != nil {
				return err
			}
			owner.Spec.Retention = in
			return k8s.Update(ctx, &owner)
		}).Should(Succeed())
	}

	It("kills the archiver at each of its steps, when a post is finished", func(ctx SpecContext) {
		for _, k := range of() {
			for _, point := range []string{post.PointBeforeKeep, post.PointAfterKeep} {
				met := points.once(point, kill)
				p := tm.post(ctx, k, "finished, killed "+point, k.targets()...)
				restart(met, point)
				out := &archived{p, finished(ctx, p), publishCallsEverywhere(ctx)}
				kept.expectRecord(ctx, out)
				out.remove(ctx)
				kept.expectArchived(ctx, out)
				kept.comesBack(ctx, out)
			}
		}
	})

	It("kills the archiver at each of its steps, when a post is deleted", func(ctx SpecContext) {
		for _, k := range of() {
			for _, point := range []string{post.PointBeforeKeep, post.PointAfterKeep, post.PointBeforeRelease} {
				out := published(ctx, k, "deleted, killed "+point)
				kept.expectRecord(ctx, out)
				met := points.once(point, kill)
				out.remove(ctx)
				restart(met, point)
				kept.expectArchived(ctx, out)
				kept.comesBack(ctx, out)
			}
		}
	})

	// killed waits until the team's retention has removed the posts from the cluster, while managers are killed at the
	// points.
	killed := func(ctx SpecContext, posts []*archived, at ...string) {
		GinkgoHelper()
		for i, point := range at {
			met := points.once(point, kill)
			if i == 0 {
				retain(ctx, v1alpha1.TeamRetention{InCluster: &v1alpha1.Duration{}, Applied: true})
			}
			restart(met, point)
		}
		for _, p := range posts {
			kept.expectArchived(ctx, p)
		}
		retain(ctx, v1alpha1.TeamRetention{})
		// A sweep may still be running with the old retention; it must not remove the recreated posts.
		wait(time.Second)
		for _, p := range posts {
			kept.comesBack(ctx, p)
		}
	}

	It("kills the sweep at each of its steps", func(ctx SpecContext) {
		if !long {
			// Use one point at a time: the posts stay in the cluster until a manager survives long enough.
			posts := []*archived{published(ctx, aText, "sweep 1"), published(ctx, aText, "sweep 2")}
			posts[0].calls = posts[1].calls
			killed(ctx, posts, wayOut...)
			return
		}
		for _, k := range of() {
			for _, point := range slices.Clone(wayOut) {
				killed(ctx, []*archived{published(ctx, k, fmt.Sprintf("sweep, killed %s", point))}, point)
			}
		}
	})
})
