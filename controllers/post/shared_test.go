// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

const (
	leading   = "leading"
	assisting = "assisting"
)

// replicas are two managers that share uploads. The first one to start leads.
type replicas struct{ lease string }

func newReplicas() *replicas { return &replicas{fmt.Sprintf("replicas-%d", serial.Add(1))} }

// start starts a manager, which leads if no other one does.
func (r *replicas) start(holder string, change ...func(*post.Options)) *manager {
	change = append([]func(*post.Options){func(o *post.Options) { o.Holder, o.HoldFor = holder, time.Second }}, change...)
	return startManagerWith(func(o *ctrl.Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace, o.LeaderElectionReleaseOnCancel = true, r.lease, metav1.NamespaceDefault, true
		o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = new(5*time.Second), new(4*time.Second), new(200*time.Millisecond)
		o.Controller.EnableWarmup = new(true)
	}, env.Config, GinkgoLogr, interceptor.Funcs{}, change...)
}

// run starts a manager that ends with the spec.
func (r *replicas) run(holder string, change ...func(*post.Options)) {
	m := r.start(holder, change...)
	DeferCleanup(m.stop)
}

// stopAt starts a manager that stops working at a failpoint, as if it had died there, until the spec ends.
func (r *replicas) stopAt(point, holder string) {
	ended := make(chan struct{})
	m := r.start(holder, func(o *post.Options) {
		o.Failpoint = func(at string) {
			if at == point {
				<-ended
			}
		}
	})
	DeferCleanup(sync.OnceFunc(func() { close(ended); m.stop() }))
}

// oneUpload gives a manager a single upload slot.
func oneUpload(o *post.Options) { o.MaxUploads = 1 }

// illustrated creates a post with an image, whose upload takes a while.
func illustrated(ctx context.Context, upload, due time.Duration) (team, *v1alpha1.Post) {
	GinkgoHelper()
	t := newTeam(ctx)
	file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
	if upload > 0 {
		t.fault(ctx, sandboxtest.Fault{Operation: "upload", Kind: "delay", DelayMS: int(upload.Milliseconds())})
	}
	p := t.post(ctx, "shared", showing("a"), at(due))
	// Managers of later specs must not prepare it.
	DeferCleanup(func(cleanup SpecContext) { Expect(client.IgnoreNotFound(k8s.Delete(cleanup, p))).To(Succeed()) }) //nolint:contextcheck // the spec's context has ended by then
	return t, p
}

// holderOf returns the holder of the preparation of a post's first target, or "".
func holderOf(ctx context.Context, p *v1alpha1.Post) func() string {
	return func() string {
		if targets := read(ctx, p).Status.Targets; len(targets) > 0 && targets[0].Prepared != nil && targets[0].Prepared.By != nil {
			return targets[0].Prepared.By.Holder
		}
		return ""
	}
}

var _ = Describe("A post with files that two managers may upload", Serial, func() {
	const isReady = "True Prepared"

	// occupied starts a manager that leads, and whose upload slots are taken for a while: its one slot, and the one that
	// another team may always have. It returns a function that stops the manager.
	occupied := func(ctx context.Context, r *replicas, upload time.Duration) (stop func()) {
		GinkgoHelper()
		stop = sync.OnceFunc(r.start(leading, oneUpload).stop)
		DeferCleanup(stop)
		for range 2 {
			_, busy := illustrated(ctx, upload, 10*time.Minute)
			Eventually(holderOf(ctx, busy)).Should(Equal(leading))
		}
		return stop
	}
	publishSoon := func(ctx context.Context, p *v1alpha1.Post) {
		GinkgoHelper()
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Second)) })
		posted(ctx, p)
	}

	It("is uploaded once, whoever does it", func(ctx SpecContext) {
		r := newReplicas()
		r.run(leading)
		r.run(assisting)
		var posts []*v1alpha1.Post
		var teams []team
		for range 8 {
			t, p := illustrated(ctx, 0, 10*time.Minute)
			posts, teams = append(posts, p), append(teams, t)
		}
		for i, p := range posts {
			Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
			Expect(holderOf(ctx, p)()).To(BeEmpty(), "the hold has ended")
			Expect(imagesBy(teams[i].account)).To(Equal(1), "uploads")
		}
	})

	It("is uploaded by a standby if the leader has no slot, and published by the leader", func(ctx SpecContext) {
		r := newReplicas()
		occupied(ctx, r, 20*time.Second)
		r.run(assisting)
		t, p := illustrated(ctx, time.Second, 10*time.Minute)
		Eventually(holderOf(ctx, p)).Should(Equal(assisting))
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
		publishSoon(ctx, p)
		Expect(t.published(ctx)).To(Equal([]string{"shared"}))
		Expect(imagesBy(t.account)).To(Equal(1), "uploads")
	})

	// A process that stops at a failpoint of its upload may still record it, unlike one that was killed.
	DescribeTable("is taken over from a standby that dies", func(ctx SpecContext, point string, most int) {
		r := newReplicas()
		occupied(ctx, r, 4*time.Second)
		r.stopAt(point, assisting)
		t, p := illustrated(ctx, 0, 10*time.Second)
		Eventually(holderOf(ctx, p)).Should(Equal(assisting))
		posted(ctx, p)
		Expect(t.published(ctx)).To(Equal([]string{"shared"}))
		Expect(imagesBy(t.account)).To(BeNumerically("<=", most), "uploads")
	},
		Entry("before its upload", post.PointAfterHold, 1),
		Entry("after its upload", post.PointAfterAhead, 2),
	)

	It("is uploaded once if the standby begins to lead during its upload", func(ctx SpecContext) {
		r := newReplicas()
		stop := occupied(ctx, r, 2*time.Second)
		r.run(assisting)
		t, p := illustrated(ctx, 4*time.Second, 10*time.Minute)
		Eventually(holderOf(ctx, p)).Should(Equal(assisting))
		stop()
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
		publishSoon(ctx, p)
		Expect(t.published(ctx)).To(Equal([]string{"shared"}))
		Expect(imagesBy(t.account)).To(Equal(1), "uploads")
	})

	It("is uploaded again if it is edited during an upload by a standby", func(ctx SpecContext) {
		r := newReplicas()
		occupied(ctx, r, 20*time.Second)
		r.run(assisting)
		t, p := illustrated(ctx, 3*time.Second, 10*time.Minute)
		png := file(ctx, t, "b", "picture.png", v1alpha1.MimePNG)
		Eventually(holderOf(ctx, p)).Should(Equal(assisting))
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Image.MediaRefs[0].Name = "b" })
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
		publishSoon(ctx, p)
		posts := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		Expect(posts).To(HaveLen(1))
		Expect(posts[0].Media[0].SHA256).To(Equal(png))
	})

	It("can be cancelled during an upload by a standby", func(ctx SpecContext) {
		r := newReplicas()
		occupied(ctx, r, 20*time.Second)
		r.run(assisting)
		t, p := illustrated(ctx, 3*time.Second, 10*time.Minute)
		Eventually(holderOf(ctx, p)).Should(Equal(assisting))
		Expect(cancelPost(ctx, read(ctx, p))).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseCancelled))
		Consistently(phase(ctx, p)).WithTimeout(4 * time.Second).Should(Equal(v1alpha1.PhaseCancelled))
		Expect(t.published(ctx)).To(BeEmpty())
	})
})
