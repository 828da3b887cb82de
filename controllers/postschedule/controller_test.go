// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postschedule_test

import (
	"context"
	"errors"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
)

const half = 30 * time.Minute

var _ = Describe("A PostSchedule", func() {
	It("creates each post an hour before its time, with the texts in turn", func(ctx SpecContext) {
		s := hourly(ctx)
		Expect(s.at(ctx, -61*time.Minute)).To(Equal(time.Minute), "the time of the first post is not fixed yet")
		Expect(s.posts(ctx)).To(BeEmpty())
		Expect(s.state()).To(Equal("True Scheduled"))
		Expect(s.Status.NextScheduledTime.Time).To(BeTemporally("==", s.first))

		for after := -half; after < 3*time.Hour; after += time.Hour {
			Expect(s.at(ctx, after)).To(Equal(half))
			s.at(ctx, after+time.Minute)
		}
		Expect(s.posts(ctx)).To(Equal([]string{"0 one", "1 two", "2 one", "3 two"}))
		Expect(s.Status.Posts).To(Equal(int32(4)))
		Expect(s.Status.LastScheduledTime.Time).To(BeTemporally("==", s.first.Add(3*time.Hour)))
		Expect(s.drain()).To(ContainElement(HavePrefix("Normal PostCreated created post " + s.Name)))
	})

	It("creates no post twice if the process ends before it writes the status", func(ctx SpecContext) {
		s, boom := hourly(ctx), errors.New("boom")
		s.client = interceptor.NewClient(k8s, interceptor.Funcs{
			SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
				return boom
			},
		})
		_, err := s.tryAt(ctx, -half)
		Expect(err).To(MatchError(boom))
		Expect(s.Status.Posts).To(BeZero())
		s.client = k8s
		s.at(ctx, -half)
		s.at(ctx, half)
		Expect(s.posts(ctx)).To(Equal([]string{"0 one", "1 two"}), "texts follow the order of posts")
	})

	It("does not recreate a post that a user deleted, even after it recorded it", func(ctx SpecContext) {
		s := hourly(ctx)
		s.at(ctx, -half)
		Expect(k8s.DeleteAllOf(ctx, &v1alpha1.Post{}, client.InNamespace(byHand), client.MatchingLabels{v1alpha1.ScheduleLabel: s.Name})).To(Succeed())
		s.at(ctx, -half+time.Minute)
		Expect(s.posts(ctx)).To(BeEmpty())
	})

	It("waits until the posts of a deleted schedule with its name are deleted, and does not repeat earlier times", func(ctx SpecContext) {
		old := hourly(ctx)
		old.at(ctx, -half)
		Expect(k8s.Delete(ctx, old.PostSchedule)).To(Succeed())
		applied := old.DeepCopy()
		applied.ObjectMeta = metav1.ObjectMeta{Namespace: byHand, Name: old.Name}
		s := follow(ctx, applied)
		Expect(s.at(ctx, -half)).To(BeNumerically("<", time.Minute))
		Expect(s.state()).To(Equal("False AwaitingDeletion"))
		Expect(s.Status.Posts).To(BeZero())

		Expect(k8s.DeleteAllOf(ctx, &v1alpha1.Post{}, client.InNamespace(byHand), client.MatchingLabels{v1alpha1.ScheduleLabel: s.Name})).To(Succeed())
		s.at(ctx, -half)
		Expect(s.state()).To(Equal("True Scheduled"))
		Expect(s.posts(ctx)).To(Equal([]string{"0 one"}))
	})

	It("counts a post that remained when its schedule was deleted", func(ctx SpecContext) {
		s := hourly(ctx)
		s.at(ctx, -half)
		var post v1alpha1.Post
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: byHand, Name: s.Name + "-" + s.first.Format("20060102-1504")}, &post)).To(Succeed())
		post.OwnerReferences = nil // as with --cascade=orphan
		Expect(k8s.Update(ctx, &post)).To(Succeed())
		Expect(k8s.Delete(ctx, s.PostSchedule)).To(Succeed())
		applied := s.DeepCopy()
		applied.ObjectMeta = metav1.ObjectMeta{Namespace: byHand, Name: s.Name}
		again := follow(ctx, applied)
		again.at(ctx, -half)
		Expect(again.posts(ctx)).To(Equal([]string{"0 one"}))
		Expect(again.Status.Posts).To(Equal(int32(1)))
	})

	It("applies a change of the template to future posts only", func(ctx SpecContext) {
		s := hourly(ctx)
		s.at(ctx, -half)
		s.update(ctx, func(spec *v1alpha1.PostScheduleSpec) { spec.Texts = []string{"three", "four"} })
		s.at(ctx, -half+time.Minute)
		s.at(ctx, half)
		Expect(s.posts(ctx)).To(Equal([]string{"0 one", "1 four"}))
	})

	It("skips times while it or its team is suspended", func(ctx SpecContext) {
		s := hourly(ctx, func(s *v1alpha1.PostSchedule) { s.Spec.Suspend = true })
		s.at(ctx, -half)
		Expect(s.state()).To(Equal("True Suspended"))
		s.at(ctx, time.Second)
		s.update(ctx, func(spec *v1alpha1.PostScheduleSpec) { spec.Suspend = false })
		s.at(ctx, time.Minute)
		Expect(s.posts(ctx)).To(Equal([]string{"1 one"}), "missed times are not published")

		s.team.Spec.Suspend = true
		s.at(ctx, 90*time.Minute)
		Expect(s.state()).To(Equal("True Suspended"))
		Expect(s.message()).To(ContainSubstring("team"))
		s.at(ctx, 2*time.Hour+time.Second)
		s.team.Spec.Suspend = false
		s.at(ctx, 2*time.Hour+time.Minute)
		Expect(s.posts(ctx)).To(Equal([]string{"1 one", "3 two"}))
	})

	It("skips no times while its team is moved to another shard, which takes seconds", func(ctx SpecContext) {
		s := hourly(ctx)
		s.team.Status.Move = &v1alpha1.ShardMove{From: "00", Since: v1alpha1.NewTime(time.Now())}
		s.team.Status.Suspensions = []v1alpha1.Suspension{{From: s.team.Status.Move.Since}}
		s.at(ctx, -half)
		s.at(ctx, time.Minute)
		s.team.Status = v1alpha1.TeamStatus{}
		s.at(ctx, 2*time.Minute)
		Expect(s.posts(ctx)).To(Equal([]string{"0 one", "1 two"}))
	})

	DescribeTable("labels its posts with the shard of the team", func(ctx SpecContext, shard string, matches types.GomegaMatcher) {
		s := hourly(ctx)
		s.team.Status.Shard = shard
		s.at(ctx, -half)
		var posts v1alpha1.PostList
		Expect(k8s.List(ctx, &posts, client.InNamespace(byHand), client.MatchingLabels{v1alpha1.ScheduleLabel: s.Name})).To(Succeed())
		Expect(posts.Items).To(HaveLen(1))
		Expect(posts.Items[0].Labels).To(matches)
	},
		Entry("so that the leader does not write each post again", "03", HaveKeyWithValue(v1alpha1.ShardLabel, "03")),
		Entry("unless the team has none, as without several shards", "", Not(HaveKey(v1alpha1.ShardLabel))),
	)

	It("creates no posts in a namespace without a team", func(ctx SpecContext) {
		s := hourly(ctx)
		s.team = nil
		s.at(ctx, -half)
		Expect(s.state()).To(Equal("False NoTeam"))
		Expect(s.posts(ctx)).To(BeEmpty())
	})

	It("ends by count, and continues when the count is raised", func(ctx SpecContext) {
		s := hourly(ctx, func(s *v1alpha1.PostSchedule) { s.Spec.Count = new(int32(1)) })
		Expect(s.at(ctx, -half)).To(BeZero())
		Expect(s.state()).To(Equal("True Complete"))
		Expect(s.Status.NextScheduledTime).To(BeNil())
		s.update(ctx, func(spec *v1alpha1.PostScheduleSpec) { spec.Count = new(int32(2)) })
		s.at(ctx, half)
		Expect(s.posts(ctx)).To(Equal([]string{"0 one", "1 two"}))
	})

	It("uses the time zone of the team", func(ctx SpecContext) {
		s := hourly(ctx, func(s *v1alpha1.PostSchedule) { s.Spec.TimeZone = "" })
		s.team.Spec.TimeZone = "Asia/Kolkata" // where the hour begins at half past
		s.at(ctx, -2*time.Minute)
		Expect(s.Status.NextScheduledTime.Minute()).To(Equal(30))
	})

	It("reports the times that it skipped during an outage", func(ctx SpecContext) {
		s := hourly(ctx)
		s.at(ctx, 90*time.Minute)
		Expect(s.posts(ctx)).To(Equal([]string{"1 one", "2 two"}), "only the latest missed time is published")
		Expect(s.drain()).To(ContainElement(HavePrefix("Warning MissedSchedule skipped the post of " + v1alpha1.NewTime(s.first).String())))
	})
})

var _ = Describe("A PostSchedule reports", func() {
	It("a full budget, and continues when there is room", func(ctx SpecContext) {
		s := hourly(ctx)
		full := apierrors.NewForbidden(schema.GroupResource{Group: "social.herald.dev", Resource: "posts"}, "a",
			errors.New("exceeded quota: budget.social.herald.dev, requested: count/posts.social.herald.dev=1, used: count/posts.social.herald.dev=9, limited: count/posts.social.herald.dev=9"))
		s.client = interceptor.NewClient(k8s, interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return full },
		})
		Expect(s.at(ctx, -half)).To(Equal(time.Minute))
		Expect(s.state()).To(Equal("False BudgetLimit"))
		Expect(s.message()).To(ContainSubstring("the team's budget allows 9 stored posts"))
		Expect(meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReconciling)).To(BeTrue())
		s.client = k8s
		s.at(ctx, half)
		Expect(s.state()).To(Equal("True Scheduled"))
		Expect(s.posts(ctx)).To(Equal([]string{"0 one", "1 two"}), "late, within the starting deadline")
	})

	It("a schedule that is not a cron expression", func(ctx SpecContext) {
		s := hourly(ctx, func(s *v1alpha1.PostSchedule) { s.Spec.Schedule = "at nine" })
		Expect(s.at(ctx, -half)).To(BeZero())
		Expect(s.state()).To(Equal("False Invalid"))
		Expect(s.message()).To(ContainSubstring("five fields"))
		Expect(meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
	})

	It("a template whose posts the Kubernetes API rejects, when it is applied", func(ctx SpecContext) {
		s := hourly(ctx, func(s *v1alpha1.PostSchedule) {
			s.Spec.Template.Targets[0].TikTok = &v1alpha1.TikTokOptions{AutoAddMusic: true}
		})
		s.at(ctx, -2*time.Hour)
		Expect(s.state()).To(Equal("False Invalid"))
		Expect(s.message()).To(And(ContainSubstring("with spec.texts[0]: "), ContainSubstring("spec.template.targets"), ContainSubstring("autoAddMusic")))
		Expect(s.posts(ctx)).To(BeEmpty())
		s.update(ctx, func(spec *v1alpha1.PostScheduleSpec) { spec.Template.Targets[0].TikTok = nil })
		s.at(ctx, -2*time.Hour)
		Expect(s.state()).To(Equal("True Scheduled"))
	})

	It("the same text to X each time, when it is applied", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, &v1alpha1.Connection{
			ObjectMeta: metav1.ObjectMeta{Namespace: byHand, Name: "our-x"},
			Spec: v1alpha1.ConnectionSpec{
				Platform: v1alpha1.PlatformX, AccountID: "42", CredentialsSecretRef: v1alpha1.LocalReference{Name: "tokens"},
			},
		})).To(Succeed())
		s := hourly(ctx, func(s *v1alpha1.PostSchedule) {
			s.Spec.Template.Targets[0].ConnectionRef.Name, s.Spec.Texts = "our-x", []string{"one"}
		})
		s.at(ctx, -2*time.Hour)
		repeats := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionTextRepeats)
		Expect(repeats).NotTo(BeNil())
		Expect(repeats.Message).To(ContainSubstring(`connection "our-x"`))
		Expect(s.drain()).To(ContainElement(HavePrefix("Warning SameText X may reject")))
		s.update(ctx, func(spec *v1alpha1.PostScheduleSpec) { spec.Texts = []string{"one", "two"} })
		s.at(ctx, -2*time.Hour)
		Expect(meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionTextRepeats)).To(BeNil())
	})
})

var _ = Describe("The API server", func() {
	DescribeTable("rejects a schedule", func(ctx SpecContext, change edit, want string) {
		s := &v1alpha1.PostSchedule{
			ObjectMeta: metav1.ObjectMeta{Namespace: byHand, Name: "rejected"},
			Spec: v1alpha1.PostScheduleSpec{Schedule: "@daily", Template: v1alpha1.PostTemplate{
				Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "page"}, Caption: "a"}},
			}},
		}
		Expect(k8s.Create(ctx, s.DeepCopy(), client.DryRunAll)).To(Succeed())
		change(s)
		Expect(k8s.Create(ctx, s, client.DryRunAll)).To(MatchError(ContainSubstring(want)))
	},
		Entry("of trees, whose texts cannot alternate", func(s *v1alpha1.PostSchedule) { s.Spec.Template.Category = v1alpha1.CategoryTree }, "a tree cannot recur"),
		Entry("without a text", func(s *v1alpha1.PostSchedule) { s.Spec.Template.Targets[0].Caption = "" }, "every target needs a caption"),
		Entry("that ends before it starts", func(s *v1alpha1.PostSchedule) {
			s.Spec.StartAt, s.Spec.EndAt = v1alpha1.NewTimePtr(time.Unix(2e9, 0)), v1alpha1.NewTimePtr(time.Unix(1e9, 0))
		}, "endAt must not be before startAt"),
		Entry("at intervals, which do not have a time of day", func(s *v1alpha1.PostSchedule) { s.Spec.Schedule = "@every 6h" }, "instead of @every"),
		Entry("with a second time zone", func(s *v1alpha1.PostSchedule) { s.Spec.Schedule = "TZ=UTC 0 9 * * *" }, "set the time zone in timeZone"),
		Entry("with an offset, which does not have daylight saving time", func(s *v1alpha1.PostSchedule) { s.Spec.TimeZone = "+01:00" }, "IANA name"),
		Entry("of images without images", func(s *v1alpha1.PostSchedule) { s.Spec.Template.Category = v1alpha1.CategoryImage }, "the image block is required"),
		Entry("whose posts would have names that are not valid labels", func(s *v1alpha1.PostSchedule) { s.Name = strings.Repeat("a", 49) }, "at most 48 characters"),
		Entry("with more text than etcd accepts", func(s *v1alpha1.PostSchedule) {
			s.Spec.Texts = []string{strings.Repeat("a", 20_000), strings.Repeat("b", 20_000)}
		}, "more than 32,768 characters"),
	)
})

var _ = Describe("A manager", func() {
	It("creates the posts of a schedule's next hour when it is applied", func(ctx SpecContext) {
		s := &v1alpha1.PostSchedule{
			ObjectMeta: metav1.ObjectMeta{Namespace: managed, Name: "often"},
			Spec: v1alpha1.PostScheduleSpec{Schedule: "*/5 * * * *", Template: v1alpha1.PostTemplate{
				Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "page"}, Caption: "a"}},
			}},
		}
		Expect(k8s.Create(ctx, s)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
			g.Expect(s.Status.Posts).To(BeNumerically(">=", 11))
			g.Expect(meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		}).Should(Succeed())
		var posts v1alpha1.PostList
		Expect(k8s.List(ctx, &posts, client.InNamespace(managed))).To(Succeed())
		Expect(posts.Items).To(HaveLen(int(s.Status.Posts)))
		Expect(metav1.IsControlledBy(&posts.Items[0], s)).To(BeTrue())
	})
})
