// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/posting/record"
	"github.com/herald-social/herald/test/sandboxtest"
)

// finished is the last point for a backup of a post in these specs. The other points are failpoints.
const finished = "finished"

// camera takes a backup of a post when the manager reaches a failpoint.
type camera struct {
	mu    sync.Mutex
	point string
	of    client.ObjectKey
	taken *v1alpha1.Post
}

// aim sets the post and the point of the next backup.
func (c *camera) aim(of client.ObjectKey, point string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of, c.point, c.taken = of, point, nil
}

func (c *camera) at(point string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var p v1alpha1.Post
	if point == c.point && c.taken == nil && k8s.Get(context.Background(), c.of, &p) == nil {
		c.taken = &p
	}
}

func (c *camera) picture() *v1alpha1.Post {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
}

// restoreWhole creates an object again with its status, as Velero does if it is configured to restore the status of
// posts.
func (t team) restoreWhole(ctx context.Context, was *v1alpha1.Post) *v1alpha1.Post {
	GinkgoHelper()
	p := t.restore(ctx, was)
	p.Status = *was.Status.DeepCopy()
	Expect(k8s.Status().Update(ctx, p)).To(Succeed())
	return p
}

var _ = Describe("A post that is restored with its status", func() {
	var (
		m    *manager
		k    *keeping
		acme team
		c    *camera
	)
	start := func() {
		m = startManager(k.options, func(o *post.Options) { o.Failpoint = c.at })
	}
	BeforeEach(func(ctx SpecContext) {
		k, c = newKeeping(), &camera{}
		start()
		DeferCleanup(func() { m.stop() })
		acme = newTeam(ctx)
		// The next leader searches the namespaces of all Teams for finished posts without a record.
		acme.createTeam(ctx)
	})

	applied := func(p *v1alpha1.Post) { p.Finalizers = nil }
	// old makes the backup an hour old, by the creation time that the apiserver has noted.
	old := func(p *v1alpha1.Post) {
		p.Annotations[v1alpha1.BornAnnotation] = v1alpha1.NewTime(time.Now().Add(-time.Hour)).String()
	}
	young := func(p *v1alpha1.Post) {
		p.Annotations[v1alpha1.BornAnnotation] = v1alpha1.NewTime(time.Now().Add(-10 * time.Second)).String()
	}
	same := func(*v1alpha1.Post) {}

	// backedUp publishes a post, takes a backup at the given point of its delivery, and deletes it.
	backedUp := func(ctx SpecContext, point string, how func(*v1alpha1.Post)) (backup, last *v1alpha1.Post) {
		GinkgoHelper()
		c.aim(client.ObjectKey{Namespace: acme.namespace, Name: "launch"}, point)
		p := posted(ctx, acme.apply(ctx, "launch", "hello", how))
		last = read(ctx, p)
		if backup = c.picture(); point == finished {
			backup = last
		}
		Expect(backup).NotTo(BeNil(), "nobody came to the point")
		remove(ctx, p)
		return backup, last
	}

	DescribeTable("reads what became of it since, and is not published twice:",
		func(ctx SpecContext, point string, how, since func(*v1alpha1.Post)) {
			backup, last := backedUp(ctx, point, how)
			since(backup)
			m.stop()
			p := acme.restoreWhole(ctx, backup)
			start()
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
			Expect(read(ctx, p).Status.Targets[0].ExternalID).To(Equal(last.Status.Targets[0].ExternalID))
			Eventually(func() types.UID { return k.of(ctx, acme.namespace, "launch").UID }).Should(Equal(p.UID))
			Expect(publishesBy(acme.account)).To(Equal(1))
		},
		Entry("backed up before its claim, applied", post.PointBeforeClaim, applied, same),
		Entry("backed up between its claim and its call, applied", post.PointAfterClaim, applied, same),
		Entry("backed up between its call and the note of it, applied", post.PointAfterAnswer, applied, same),
		Entry("backed up when it was finished, applied", finished, applied, same),
		Entry("backed up before its claim, made through the API", post.PointBeforeClaim, throughAPI, old),
		Entry("backed up between its claim and its call, made through the API", post.PointAfterClaim, throughAPI, old),
		Entry("backed up between its call and the note of it, made through the API", post.PointAfterAnswer, throughAPI, old),
		Entry("backed up when it was finished, made through the API", finished, throughAPI, old),
		Entry("deleted and put back within a minute, made through the API", post.PointBeforeClaim, throughAPI, young),
		Entry("put back with its claim within a minute, made through the API", post.PointAfterClaim, throughAPI, young),
	)

	It("whose last try was refused in the backup does not go out again", func(ctx SpecContext) {
		acme.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 503})
		c.aim(client.ObjectKey{Namespace: acme.namespace, Name: "launch"}, post.PointAfterRecord)
		p := acme.apply(ctx, "launch", "hello", applied)
		Eventually(phase(ctx, p), time.Minute).Should(Equal(v1alpha1.PhasePosted))
		last, backup := read(ctx, p), c.picture()
		Expect(backup.Status.Targets[0].ExternalID).To(BeEmpty(), "it was refused at first")
		had := publishesBy(acme.account)
		remove(ctx, p)
		m.stop()
		p = acme.restoreWhole(ctx, backup)
		start()
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(read(ctx, p).Status.Targets[0].ExternalID).To(Equal(last.Status.Targets[0].ExternalID))
		Expect(publishesBy(acme.account)).To(Equal(had))
	})

	It("is looked up on the platform, or left to a person, if the bucket is lost too", func(ctx SpecContext) {
		backup, last := backedUp(ctx, post.PointAfterClaim, applied)
		of := archive.Team{Namespace: acme.namespace, Name: "of-" + acme.namespace}
		Expect(k.Delete(ctx, of, "launch")).To(Succeed())
		m.stop()
		p := acme.restoreWhole(ctx, backup)
		start()
		Eventually(phase(ctx, p), 40*time.Second).Should(Equal(v1alpha1.PhasePosted))
		Expect(read(ctx, p).Status.Targets[0].ExternalID).To(Equal(last.Status.Targets[0].ExternalID))

		By("restoring one that was not claimed yet")
		remove(ctx, p)
		Expect(k.Delete(ctx, of, "launch")).To(Succeed())
		backup.Status.Targets[0].Attempt, backup.Status.Targets[0].State = nil, v1alpha1.TargetPending
		m.stop()
		p = acme.restoreWhole(ctx, backup)
		start()
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(publishesBy(acme.account)).To(Equal(1))
	})

	It("keeps what its status says to be out, although the record does not know it", func(ctx SpecContext) {
		backup, last := backedUp(ctx, finished, applied)
		was := k.of(ctx, acme.namespace, "launch")
		was.Targets[0].State, was.Targets[0].Phase, was.Targets[0].ExternalID, was.Targets[0].PostedAt = v1alpha1.TargetUndecided, v1alpha1.PhaseFailed, "", nil
		was.Targets[0].Attempt.Outcome = v1alpha1.OutcomeUnknown
		Expect(k.Put(ctx, archive.Team{Namespace: acme.namespace, Name: "of-" + acme.namespace}, "launch", func([]byte) ([]byte, error) { return was.Encode() })).To(Succeed())
		m.stop()
		// One of two targets was not sent when the backup was taken.
		backup.Spec.Targets = append(backup.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "second"}, Caption: "hello"})
		second := acme.connect(ctx, "second")
		backup.Status.Finished, backup.Status.FinishedAt, backup.Status.FinishedOn, backup.Status.Phase = false, nil, "", v1alpha1.PhaseProcessing
		p := acme.restoreWhole(ctx, backup)
		start()
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(read(ctx, p).Status.Targets[0].ExternalID).To(Equal(last.Status.Targets[0].ExternalID))
		Expect(publishesBy(acme.account)).To(Equal(1))
		Expect(publishesBy(second)).To(Equal(1))
		Eventually(func() *record.Record { return k.of(ctx, acme.namespace, "launch") }).Should(HaveField("UID", p.UID))
	})
})
