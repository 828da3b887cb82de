// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
)

var _ = Describe("Platform faults", Ordered, func() {
	var (
		m         *manager
		repeating team
		repeated  *v1alpha1.Post
	)
	BeforeAll(func(ctx SpecContext) {
		m = startManager()
		// The outcome takes a while; in the meantime, other specs run.
		repeating = newTeam(ctx)
		posted(ctx, repeating.post(ctx, "same words"))
		repeated = repeating.post(ctx, "same words")
	})
	AfterAll(func() { m.stop() })

	// All posts are sent concurrently, since most of the time is spent waiting. Each has its own account.
	Context("each ends in exactly one publication, or in a failure with a reason", func() {
		type row struct {
			reason   string
			fault    sandboxtest.Fault
			phase    v1alpha1.PostPhase
			attempts int
			message  string
		}
		rows := []row{
			{"published, response lost: found by a lookup", sandboxtest.Fault{Operation: "publish", Kind: "drop_after"}, v1alpha1.PhasePosted, 1, ""},
			{"not published, response lost: proved absent, sent again", sandboxtest.Fault{Operation: "publish", Kind: "drop_before"}, v1alpha1.PhasePosted, 2, ""},
			{"published, responded with 500: found by a lookup", sandboxtest.Fault{Operation: "publish", Kind: "error_after", Status: 500}, v1alpha1.PhasePosted, 1, ""},
			{"503 without effect: proved absent, sent again", sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 503}, v1alpha1.PhasePosted, 2, ""},
			{"rejected permanently", sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 400}, v1alpha1.PhaseFailed, 1, "X"},
			{"rate limited: retried at the time from X's response", sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 1}, v1alpha1.PhasePosted, 2, ""},
			{"slower than the call's timeout, but published", sandboxtest.Fault{Operation: "publish", Kind: "delay", DelayMS: 2300}, v1alpha1.PhasePosted, 1, ""},
			{"slow, but within the timeout", sandboxtest.Fault{Operation: "publish", Kind: "delay", DelayMS: 500}, v1alpha1.PhasePosted, 1, ""},
		}
		type begun struct {
			team team
			text string
			post *v1alpha1.Post
		}
		posts := make([]begun, len(rows))
		BeforeAll(func(ctx SpecContext) {
			for i, row := range rows {
				b := begun{team: newTeam(ctx), text: fmt.Sprintf("fault %d", serial.Add(1))}
				b.team.fault(ctx, row.fault)
				b.post = b.team.post(ctx, b.text)
				posts[i] = b
			}
		})
		for i, row := range rows {
			It(row.reason, func(ctx SpecContext) {
				t, p := posts[i].team, posts[i].post
				Eventually(phase(ctx, p)).Should(Equal(row.phase))
				target := read(ctx, p).Status.Targets[0]
				Expect(target.Attempt.Number).To(BeEquivalentTo(row.attempts))
				Expect(publishesBy(t.account)).To(Equal(row.attempts), "one call for each recorded attempt")
				if row.phase == v1alpha1.PhasePosted {
					Expect(t.published(ctx)).To(Equal([]string{posts[i].text}))
					Expect(target.ExternalID).NotTo(BeEmpty())
					return
				}
				Expect(t.published(ctx)).To(BeEmpty())
				Expect(target.Message).To(ContainSubstring(row.message))
			})
		}
	})

	It("sends again once the connection has been checked after a rejected token", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "token_expired"})
		p := t.post(ctx, "renewed")
		key := client.ObjectKey{Namespace: t.namespace, Name: "x"}
		var conn v1alpha1.Connection
		Eventually(func() string {
			Expect(k8s.Get(ctx, key, &conn)).To(Succeed())
			return conn.Annotations[v1alpha1.ProbeAnnotation]
		}).ShouldNot(BeEmpty(), "the failure requests a probe of the connection")
		t.setReady(ctx, "x", "True", v1alpha1.ReasonConnected, t.account.Username)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"renewed"}))
	})

	It("does not rely on a stale listing", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		t.fault(ctx, sandboxtest.Fault{Operation: "list", Kind: "stale_list", Times: 1, DelayMS: 60000})
		posted(ctx, t.post(ctx, "late in the list"))
		Expect(t.published(ctx)).To(Equal([]string{"late in the list"}))
	})

	It("does not mistake another post's publication for its own", func(ctx SpecContext) {
		Eventually(phase(ctx, repeated)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, repeated).Status.Targets[0].Message).To(ContainSubstring("same content"))
		Expect(repeating.published(ctx)).To(HaveLen(1))
	})
})

var _ = Describe("Kubernetes faults", func() {
	gr := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "posts"}

	// disturb makes the n-th status write for posts return err. The write takes effect if landed is set.
	disturb := func(n int32, landed bool, err error) interceptor.Funcs {
		var count atomic.Int32
		return interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if count.Add(1) != n {
				return c.SubResource(sub).Update(ctx, obj, opts...)
			}
			if landed {
				// The caller must not see the response.
				if e := c.SubResource(sub).Update(ctx, obj.DeepCopyObject().(client.Object), opts...); e != nil {
					return e
				}
			}
			return err
		}}
	}

	DescribeTable("each failing write of a tree ends in each card being published once",
		func(ctx SpecContext, n int32, landed bool) {
			t := newTeam(ctx)
			m := startDisturbed(disturb(n, landed, apierrors.NewInternalError(context.DeadlineExceeded)))
			defer m.stop()
			text := []string{fmt.Sprintf("first %d", serial.Add(1)), "second", "third"}
			p := posted(ctx, t.post(ctx, "", cards(text...)))
			Expect(chain(ctx, "x", t.account, read(ctx, p).Status.Targets[0])).To(Equal(text))
			Expect(publishesBy(t.account)).To(Equal(3), "the lost claim was not published")
		},
		Entry("the record of the first card, with the claim of the second, is lost", int32(2), false),
		Entry("the write is stored, and its response is lost", int32(2), true),
		Entry("the record of the second card, with the claim of the third, is lost", int32(3), false),
		Entry("the write is stored, and its response is lost", int32(3), true),
		Entry("the record of the last card is stored, and its response is lost", int32(4), true),
	)

	DescribeTable("each failing write of an immediate post ends in exactly one publication",
		func(ctx SpecContext, n int32, landed bool, err error) {
			t := newTeam(ctx)
			m := startDisturbed(disturb(n, landed, err))
			defer m.stop()
			posted(ctx, t.post(ctx, "once"))
			Expect(t.published(ctx)).To(Equal([]string{"once"}))
		},
		Entry("claim: conflict", int32(1), false, apierrors.NewConflict(gr, "p", nil)),
		Entry("claim: server error", int32(1), false, apierrors.NewInternalError(context.DeadlineExceeded)),
		Entry("claim: stored, response lost", int32(1), true, apierrors.NewTimeoutError("lost", 0)),
		Entry("claim: too many requests", int32(1), false, apierrors.NewTooManyRequests("busy", 1)),
		Entry("record: conflict", int32(2), false, apierrors.NewConflict(gr, "p", nil)),
		Entry("record: server error", int32(2), false, apierrors.NewInternalError(context.DeadlineExceeded)),
		Entry("record: stored, response lost", int32(2), true, apierrors.NewTimeoutError("lost", 0)),
		Entry("record: too many requests", int32(2), false, apierrors.NewTooManyRequests("busy", 1)),
		Entry("record: rejected as invalid", int32(2), false, apierrors.NewInvalid(schema.GroupKind{Group: gr.Group, Kind: "Post"}, "p", nil)),
	)

	It("keeps a result until it can be written", func(ctx SpecContext) {
		t := newTeam(ctx)
		var blocked atomic.Bool
		var count atomic.Int32
		m := startDisturbed(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if count.Add(1) > 1 && blocked.Load() {
				return apierrors.NewInternalError(context.DeadlineExceeded)
			}
			return c.SubResource(sub).Update(ctx, obj, opts...)
		}}, func(o *post.Options) { o.RecordFor = 300 * time.Millisecond })
		defer m.stop()
		blocked.Store(true)
		p := t.post(ctx, "held in memory")
		Eventually(func() []string { return t.published(ctx) }).Should(HaveLen(1))
		Consistently(phase(ctx, p), time.Second).Should(Equal(v1alpha1.PhaseProcessing))
		blocked.Store(false)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"held in memory"}))
		Expect(read(ctx, p).Status.Targets[0].Attempt.Lookups).To(BeZero(), "the result was in memory")
	})

	It("completes a call in progress when the manager stops", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "delay", DelayMS: 700})
		m := startManager()
		p := t.post(ctx, "last call")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseProcessing))
		m.stop()
		Expect(read(ctx, p).Status.Phase).To(Equal(v1alpha1.PhasePosted), "the result is written before the process ends")
		Expect(t.published(ctx)).To(Equal([]string{"last call"}))
	})

	It("completes a claim in progress when the manager stops, and the claimed call", func(ctx SpecContext) {
		t := newTeam(ctx)
		var stopping sync.Once
		var stop func()
		began := make(chan struct{})
		m := startDisturbed(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			<-began
			stopping.Do(stop)
			// The API server stores a write that has reached it even if the client no longer waits for the response.
			if err := c.SubResource(sub).Update(context.WithoutCancel(ctx), obj, opts...); err != nil {
				return err
			}
			return ctx.Err()
		}})
		stop = m.cancel
		close(began)
		p := t.post(ctx, "claimed late")
		Eventually(phase(ctx, p)).ShouldNot(BeEmpty())
		m.stop()
		Expect(read(ctx, p).Status.Phase).To(Equal(v1alpha1.PhasePosted), "an unrecorded result would be unknown to the next process")
		Expect(t.published(ctx)).To(Equal([]string{"claimed late"}))
	})
})

// slowed lets status writes for posts through one by one at a limited rate, like an API server with a long queue. Like
// an API server, it also stores writes after the client's timeout.
func slowed(perSecond rate.Limit) interceptor.Funcs {
	turns := rate.NewLimiter(perSecond, 1)
	return interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
		if _, isPost := obj.(*v1alpha1.Post); !isPost {
			return c.SubResource(sub).Update(ctx, obj, opts...)
		}
		stored := make(chan error, 1)
		copied := obj.DeepCopyObject().(client.Object)
		go func() {
			if err := turns.Wait(context.WithoutCancel(ctx)); err != nil {
				stored <- err
				return
			}
			stored <- c.SubResource(sub).Update(context.WithoutCancel(ctx), copied, opts...)
		}()
		select {
		case err := <-stored:
			if err == nil {
				*obj.(*v1alpha1.Post) = *copied.(*v1alpha1.Post)
			}
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

var _ = Describe("An API server that stores 30 writes per second", func() {
	It("stores each claim in time for its call", func(ctx SpecContext) {
		const posts = 200
		registry := prometheus.NewRegistry()
		m := startDisturbed(slowed(30), func(o *post.Options) {
			o.Metrics = post.NewMetrics(registry)
			o.MaxConcurrentReconciles = 2 * posts // enough for all posts of one team at once
			o.SendWindow = 5 * time.Second        // the default: 200 writes at once would take 6.7 s
		})
		DeferCleanup(m.stop)
		t := newTeam(ctx)
		for i := range posts {
			t.connect(ctx, fmt.Sprintf("account-%d", i))
		}
		due := time.Now().Add(20 * time.Second) // all posts are created, and stored as scheduled, by then
		var all []*v1alpha1.Post
		for i := range posts {
			all = append(all, t.post(ctx, "at the full hour", func(p *v1alpha1.Post) {
				p.Spec.ScheduledAt = v1alpha1.NewTimePtr(due)
				p.Spec.Targets[0].ConnectionRef.Name = fmt.Sprintf("account-%d", i)
			}))
		}
		for _, p := range all {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
		Expect(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP herald_expired_claims_total Claims that the Kubernetes API did not store within delivery.sendWindow, so that nothing was sent for them. They cost a second write and are made again.
# TYPE herald_expired_claims_total counter
herald_expired_claims_total 0
`), "herald_expired_claims_total")).To(Succeed())
	})
})

var _ = Describe("A claim that the API server stores incompletely", func() {
	// dropping removes the targets' state from the response to the nth claim in a team's namespace, like an API server
	// with a CRD that does not have the field.
	dropping := func(nth int32, t team) interceptor.Funcs {
		var claims atomic.Int32
		return interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			claimed := obj.(*v1alpha1.Post).Status.DeepCopy()
			if err := c.SubResource(sub).Update(ctx, obj, opts...); err != nil {
				return err
			}
			for i := range claimed.Targets {
				if a := claimed.Targets[i].Attempt; a != nil && a.Outcome == "" && obj.GetNamespace() == t.namespace && claims.Add(1) == nth {
					obj.(*v1alpha1.Post).Status.Targets[i].State = ""
				}
			}
			return nil
		}}
	}

	It("prevents the call and reports the reason; the next claim is sent", func(ctx SpecContext) {
		t := newTeam(ctx)
		m := startDisturbed(dropping(1, t))
		defer m.stop()
		p := posted(ctx, t.post(ctx, "claimed twice, sent once"))
		Expect(publishesBy(t.account)).To(Equal(1))
		Expect(read(ctx, p).Status.Targets[0].Attempt.Number).To(BeEquivalentTo(2))
		Eventually(func() []string { return t.events(ctx, p) }).Should(ContainElement(And(
			HavePrefix("RecordDropped: "), ContainSubstring("posts.social.herald.dev that it serves is older than this program"))))
	})

	It("delays a tree, which continues from the same card", func(ctx SpecContext) {
		t := newTeam(ctx)
		m := startDisturbed(dropping(2, t))
		defer m.stop()
		posted(ctx, t.post(ctx, "", cards("the first card", "the second card", "the third card")))
		Expect(t.published(ctx)).To(Equal([]string{"the first card", "the second card", "the third card"}))
		Expect(publishesBy(t.account)).To(Equal(3))
	})
})
