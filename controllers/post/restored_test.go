// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/rollback"
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
	// old makes the backup an hour old, by the creation time that the apiserver has recorded.
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
		Expect(backup).NotTo(BeNil(), "the delivery did not reach the point of the backup")
		remove(ctx, p)
		return backup, last
	}

	DescribeTable("finds its later outcome, and is not published twice:",
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
		Entry("backed up between its call and the call's record, applied", post.PointAfterAnswer, applied, same),
		Entry("backed up when it was finished, applied", finished, applied, same),
		Entry("backed up before its claim, created through the API", post.PointBeforeClaim, throughAPI, old),
		Entry("backed up between its claim and its call, created through the API", post.PointAfterClaim, throughAPI, old),
		Entry("backed up between its call and the call's record, created through the API", post.PointAfterAnswer, throughAPI, old),
		Entry("backed up when it was finished, created through the API", finished, throughAPI, old),
		Entry("deleted and restored within a minute, created through the API", post.PointBeforeClaim, throughAPI, young),
		Entry("restored with its claim within a minute, created through the API", post.PointAfterClaim, throughAPI, young),
	)

	It("whose last attempt was rejected in the backup is not published again", func(ctx SpecContext) {
		acme.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 503})
		c.aim(client.ObjectKey{Namespace: acme.namespace, Name: "launch"}, post.PointAfterRecord)
		p := acme.apply(ctx, "launch", "hello", applied)
		Eventually(phase(ctx, p), time.Minute).Should(Equal(v1alpha1.PhasePosted))
		last, backup := read(ctx, p), c.picture()
		Expect(backup.Status.Targets[0].ExternalID).To(BeEmpty(), "the platform refused the post at first")
		had := publishesBy(acme.account)
		remove(ctx, p)
		m.stop()
		p = acme.restoreWhole(ctx, backup)
		start()
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(read(ctx, p).Status.Targets[0].ExternalID).To(Equal(last.Status.Targets[0].ExternalID))
		Expect(publishesBy(acme.account)).To(Equal(had))
	})

	It("is looked up on the platform, or left to a user, if the bucket is lost too", func(ctx SpecContext) {
		backup, last := backedUp(ctx, post.PointAfterClaim, applied)
		of := archive.Team{Namespace: acme.namespace, Name: "of-" + acme.namespace}
		Expect(k.Delete(ctx, of, "launch")).To(Succeed())
		m.stop()
		p := acme.restoreWhole(ctx, backup)
		start()
		Eventually(phase(ctx, p), 40*time.Second).Should(Equal(v1alpha1.PhasePosted))
		Expect(read(ctx, p).Status.Targets[0].ExternalID).To(Equal(last.Status.Targets[0].ExternalID))

		By("restoring one without a claim")
		remove(ctx, p)
		Expect(k.Delete(ctx, of, "launch")).To(Succeed())
		backup.Status.Targets[0].Attempt, backup.Status.Targets[0].State = nil, v1alpha1.TargetPending
		m.stop()
		p = acme.restoreWhole(ctx, backup)
		start()
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(publishesBy(acme.account)).To(Equal(1))
	})

	It("keeps its status' publications, although the record lacks them", func(ctx SpecContext) {
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

// failing fails the first list of cancelled posts.
type failing struct {
	client.Reader

	failed *bool
}

func (f failing) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.FieldSelector != nil && o.FieldSelector.String() == "status.phase=cancelled" && !*f.failed {
		*f.failed = true
		return errors.New("the first list fails")
	}
	return f.Reader.List(ctx, list, opts...)
}

var _ = Describe("A cancelled post that a tool applies again", func() {
	// scheduled applies a post as a generator writes it, including fields with false values.
	scheduled := func(ctx context.Context, t team, caption string, at time.Time) error {
		text := `{"apiVersion":"social.herald.dev/v1alpha1","kind":"Post","metadata":{"name":"again","namespace":"` + t.namespace + `"},"spec":{"category":"text",` +
			`"scheduledAt":"` + at.UTC().Format(time.RFC3339) + `","draft":false,"cancelled":false,"targets":[{"connectionRef":{"name":"x"},"caption":"` + caption + `"}]}}`
		p := &v1alpha1.Post{}
		p.Name, p.Namespace = "again", t.namespace
		return k8s.Patch(ctx, p, client.RawPatch(types.ApplyPatchType, []byte(text)), client.FieldOwner("kustomize-controller"), client.ForceOwnership)
	}
	cancelled := func(ctx context.Context, t team) *v1alpha1.Post {
		GinkgoHelper()
		Expect(scheduled(ctx, t, "hello", time.Now().Add(time.Hour))).To(Succeed())
		p := &v1alpha1.Post{}
		p.Name, p.Namespace = "again", t.namespace
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		Expect(cancelPost(ctx, p)).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseCancelled))
		return p
	}
	// seen expects that the status describes the last applied spec.
	seen := func(ctx context.Context, p *v1alpha1.Post) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			now := read(ctx, p)
			g.Expect(now.Status.ObservedGeneration).To(Equal(now.Generation), "tools wait for this status")
			g.Expect(now.Status.Phase).To(Equal(v1alpha1.PhaseCancelled))
			ready := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReady)
			g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonCancelled))
			g.Expect(ready.Message).To(And(HavePrefix("cancelled on "+now.Status.CancelledAt.String()), HaveSuffix("apply it under another name")))
			var events eventsv1.EventList
			g.Expect(k8s.List(ctx, &events, client.InNamespace(p.Namespace))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(HaveField("Type", "Warning"), HaveField("Reason", v1alpha1.ReasonCancelled), HaveField("Note", ready.Message))))
		}).Should(Succeed())
	}

	It("stays cancelled, whatever the manifest contains, and reports it", func(ctx SpecContext) {
		runManager()
		t := newTeam(ctx)
		p := cancelled(ctx, t)
		Expect(scheduled(ctx, t, "hello", time.Now().Add(time.Hour))).To(Succeed(), "applying the manifest does not fail")
		Expect(read(ctx, p).Spec.Cancelled).To(BeFalse(), "the spec equals the manifest")
		seen(ctx, p)
		at := read(ctx, p).Status.CancelledAt
		Expect(scheduled(ctx, t, "edited, and due", time.Now().Add(-time.Second))).To(Succeed())
		seen(ctx, p)
		Expect(read(ctx, p).Status.CancelledAt).To(Equal(at))
		posted(ctx, t.post(ctx, "what comes after it"))
		Expect(t.published(ctx)).To(ConsistOf("what comes after it"))
	})

	It("is recorded as cancelled permanently if an earlier version cancelled it", func(ctx SpecContext) {
		m := startManager()
		t := newTeam(ctx)
		p := cancelled(ctx, t)
		m.stop()
		before := read(ctx, p)
		before.Status.CancelledAt = nil
		Expect(k8s.Status().Update(ctx, before)).To(Succeed())
		Expect(scheduled(ctx, t, "hello", time.Now().Add(time.Hour))).To(MatchError(ContainSubstring("the spec is frozen")), "the status does not contain the cancellation")
		failed := false
		runManager(func(o *post.Options) { o.APIReader = failing{o.APIReader, &failed} })
		Eventually(func() *v1alpha1.Time { return read(ctx, p).Status.CancelledAt }).Should(Equal(before.Status.FinishedAt))
		Expect(failed).To(BeTrue(), "the first list failed, and was repeated")
		Expect(scheduled(ctx, t, "hello", time.Now().Add(time.Hour))).To(Succeed())
		seen(ctx, p)
	})

	It("is reported by the next manager if none was running when it was applied", func(ctx SpecContext) {
		m := startManager()
		t := newTeam(ctx)
		p := cancelled(ctx, t)
		m.stop()
		Expect(scheduled(ctx, t, "hello again", time.Now().Add(-time.Second))).To(Succeed())
		runManager()
		seen(ctx, p)
		Expect(t.published(ctx)).To(BeEmpty())
	})
})

var _ = Describe("A post of a restored cluster", func() {
	DescribeTable("is undecided again when it is deleted and recreated", func(ctx SpecContext, create func(ctx SpecContext, t team) *v1alpha1.Post) {
		t, k := newTeam(ctx), newKeeping()
		p := create(ctx, t)
		noticed := time.Now().Add(time.Second)
		runManager(k.options, func(o *post.Options) {
			o.Rollback = func(context.Context) (rollback.Status, error) {
				return rollback.Status{LastRollback: &rollback.Rollback{DetectedAt: noticed}}, nil
			}
		})
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Eventually(func() []string { return read(ctx, p).Finalizers }).Should(ContainElement(v1alpha1.DeliveryFinalizer))

		remove(ctx, p)
		Expect(k.of(ctx, t.namespace, p.Name)).To(HaveField("Targets", HaveLen(1)), "the post may be published")
		Eventually(time.Now).Should(BeTemporally(">", noticed.Add(time.Second)), "later posts are not from the restored state")
		next := t.apply(ctx, p.Name, p.Spec.Targets[0].Caption)
		Eventually(func() string { return readyReason(ctx, next) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(publishesBy(t.account)).To(BeZero())
	},
		Entry("one created through the API", func(ctx SpecContext, t team) *v1alpha1.Post { return t.post(ctx, "through the API") }),
		Entry("an applied target", func(ctx SpecContext, t team) *v1alpha1.Post { return t.apply(ctx, "launch", "applied") }),
	)

	DescribeTable("keeps its undecided targets", func(ctx SpecContext, edit func(targets []v1alpha1.PostTarget) []v1alpha1.PostTarget) {
		t, k := newTeam(ctx), newKeeping()
		second := t.connect(ctx, "second")
		p := t.apply(ctx, "launch", "hello", func(p *v1alpha1.Post) {
			p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "second"}, Caption: "hello"})
		})
		noticed := v1alpha1.NewTime(time.Now().Add(time.Second)).Time
		runManager(k.options, func(o *post.Options) {
			o.Rollback = func(context.Context) (rollback.Status, error) {
				return rollback.Status{LastRollback: &rollback.Rollback{DetectedAt: noticed}}, nil
			}
		})
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))

		before := read(ctx, p).Spec.Targets
		for _, targets := range [][]v1alpha1.PostTarget{edit(slices.Clone(before)), before} {
			now, err := tryEdit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Targets = targets })
			if err != nil {
				Expect(err).To(MatchError(ContainSubstring("the targets are frozen")))
				continue
			}
			Eventually(func() int64 { return read(ctx, p).Status.ObservedGeneration }).Should(Equal(now.Generation), "the new generation was processed")
		}
		Expect(read(ctx, p).Status.Targets).To(HaveEach(SatisfyAll(HaveField("Attempt", BeNil()), HaveField("State", v1alpha1.TargetUndecided))), "the posts may be published")
		Expect(publishesBy(t.account) + publishesBy(second)).To(BeZero())
	},
		Entry("a target that an edit removes and another edit adds again", func(targets []v1alpha1.PostTarget) []v1alpha1.PostTarget { return targets[:1] }),
		Entry("a target that is added again at another position", func(targets []v1alpha1.PostTarget) []v1alpha1.PostTarget { return targets[1:] }),
		Entry("with another text", func(targets []v1alpha1.PostTarget) []v1alpha1.PostTarget {
			targets[1].Caption = "mended"
			return targets
		}),
	)

	DescribeTable("is looked up before it is reported as cancelled", func(ctx SpecContext, keep func(ctx SpecContext, t team, k *keeping, p *v1alpha1.Post), want v1alpha1.PostPhase, reason string) {
		t, k := newTeam(ctx), newKeeping()
		due := v1alpha1.NewTime(time.Now())
		p := t.apply(ctx, "launch", "hello", func(p *v1alpha1.Post) { p.Spec.ScheduledAt = &due })
		keep(ctx, t, k, p)
		p.Spec.Cancelled = true
		Expect(k8s.Update(ctx, p)).To(Succeed())
		runManager(k.options, func(o *post.Options) {
			o.Rollback = func(context.Context) (rollback.Status, error) {
				return rollback.Status{LastRollback: &rollback.Rollback{DetectedAt: due.Add(time.Second)}}, nil
			}
		})
		Eventually(phase(ctx, p)).Should(Equal(want))
		Expect(readyReason(ctx, p)).To(Equal(reason))
		Expect(publishesBy(t.account)).To(BeZero())
	},
		Entry("a published target", func(ctx SpecContext, t team, k *keeping, p *v1alpha1.Post) {
			was := p.DeepCopy()
			was.Status.Targets = []v1alpha1.TargetStatus{{
				State: v1alpha1.TargetPosted, Platform: v1alpha1.PlatformX, ExternalID: "7",
				Attempt: &v1alpha1.Attempt{Number: 1, ID: "a1", AccountID: t.account.ID, Outcome: v1alpha1.OutcomePosted, StartedAt: *p.Spec.ScheduledAt, SendBefore: *p.Spec.ScheduledAt},
			}}
			of := archive.Team{Namespace: t.namespace, Name: "of-" + t.namespace}
			nobodys := func(string) (v1alpha1.Platform, string, bool) { return "", "", false }
			Expect(k.Put(ctx, of, p.Name, func([]byte) ([]byte, error) { return record.New(was, of.Name, nobodys).Encode() })).To(Succeed())
		}, v1alpha1.PhasePosted, v1alpha1.ReasonPosted),
		Entry("one without a record", func(SpecContext, team, *keeping, *v1alpha1.Post) {}, v1alpha1.PhaseFailed, v1alpha1.ReasonOutcomeUnknown),
	)
})
