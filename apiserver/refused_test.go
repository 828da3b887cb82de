// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/herald-social/herald/api/v1alpha1"
	postcontroller "github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/realplatforms"
)

// noTokens has no tokens, because posts in these tests must not reach a platform.
type noTokens struct{}

func (noTokens) Token(context.Context, *v1alpha1.Connection) (platforms.Token, error) {
	return platforms.Token{}, errors.New("no token is to be asked for")
}

func (noTokens) Prefetch(context.Context, *v1alpha1.Connection, time.Time) error {
	return errors.New("no tokens")
}

func (noTokens) Forget(*v1alpha1.Connection) {}

// deliver starts the post controller for the team, and returns the function that stops it. A manager validates every
// post again after it starts.
func (t *team) deliver() (stop func()) {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(adminConfig, ctrl.Options{
		Scheme:     admin.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{t.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Logger:     GinkgoLogr,
	})
	Expect(err).NotTo(HaveOccurred())
	r, err := postcontroller.New(postcontroller.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{}, NewID: rand.Text, Tokens: noTokens{}, Files: files,
		Renditions: rendition.NewRenderer(files), Owned: envtest.EveryNamespace,
		Platforms: realplatforms.All(),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(r.SetupWithManager(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() {
		cancel()
		Eventually(done).Should(Receive(Succeed()))
	}
}

// accepted returns the condition Accepted of a post.
func (t *team) accepted(ctx context.Context, id string) func() string {
	return func() string {
		c := meta.FindStatusCondition(t.stored(ctx, id).Status.Conditions, v1alpha1.ConditionAccepted)
		if c == nil {
			return ""
		}
		return string(c.Status) + " " + c.Reason
	}
}

// setPrivacyLevels sets the privacy levels of a TikTok account.
func (t *team) setPrivacyLevels(ctx context.Context, connection string, levels ...string) {
	GinkgoHelper()
	c := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: connection}}
	Expect(admin.Get(ctx, clientKey(c), c)).To(Succeed())
	before := c.DeepCopy()
	c.Status.TikTok = &v1alpha1.TikTokAccount{PrivacyLevelOptions: levels}
	Expect(admin.Status().Patch(ctx, c, client.MergeFrom(before))).To(Succeed())
}

var _ = Describe("a post that is rejected after its creation", func() {
	gone := func(object client.Object, name string) func(context.Context, *team) {
		return func(ctx context.Context, t *team) {
			object := object.DeepCopyObject().(client.Object)
			object.SetNamespace(t.namespace)
			object.SetName(name)
			Expect(admin.Delete(ctx, object)).To(Succeed())
		}
	}
	DescribeTable("keeps its state, reports the reason in the resource, and can be cancelled",
		func(ctx SpecContext, body func() string, change func(context.Context, *team), reason, words string) {
			t := newTeam(ctx)
			t.connect(ctx, "acme-x", v1alpha1.PlatformX)
			t.connect(ctx, "acme-tiktok", v1alpha1.PlatformTikTok)
			t.verified(ctx, "jpeg", v1alpha1.MimeJPEG, mib)
			t.verified(ctx, "mp4", v1alpha1.MimeMP4, mib)
			id := t.create(ctx, body()).ID
			stop := t.deliver()
			Eventually(t.accepted(ctx, id)).Should(Equal("True " + v1alpha1.ReasonAccepted))
			stop()
			change(ctx, t)
			DeferCleanup(t.deliver())
			Eventually(t.accepted(ctx, id)).Should(Equal("False " + reason))

			stored := t.stored(ctx, id)
			Expect(stored.Status.Targets[0].Message).To(ContainSubstring(words))
			want := "scheduled"
			if stored.Spec.Draft {
				want = "draft"
			}
			got := as[postBody](t.call(ctx, "GET", "/posts/"+id, "")).Data
			Expect(got.Status).To(Equal(want))
			Expect(got.CanCancel).To(BeTrue(), "the post may still be published")
			Expect(got.Platforms[0].ErrorMessage).To(BeNil(), "no target has failed")
			Expect(as[listBody](t.call(ctx, "GET", "/posts?status="+want, "")).Data).To(HaveLen(1))
			r := t.call(ctx, "DELETE", "/posts/"+id, "")
			Expect(r.status).To(Equal(http.StatusOK), "%s", r.body)
			got = as[postBody](t.call(ctx, "GET", "/posts/"+id, "")).Data
			Expect([]any{got.Status, got.CanCancel, got.Platforms[0].Status}).To(Equal([]any{"cancelled", false, "cancelled"}))
			Eventually(func() bool { return t.stored(ctx, id).Status.Finished }).Should(BeTrue(), "the controller lets it be")
			Expect(t.stored(ctx, id).Status.Phase).To(Equal(v1alpha1.PhaseCancelled))
			Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Data).To(BeEmpty())
			t.call(ctx, "DELETE", "/posts/"+id, "").mustFail(409, "CONFLICT", "already cancelled")
		},
		Entry("its connection was deleted", func() string { return text("acme-x", "a", inAnHour()) }, gone(&v1alpha1.Connection{}, "acme-x"),
			v1alpha1.ReasonConnectionNotFound, "create the connection"),
		Entry("its media file was deleted", func() string { return images(1, aimed("acme-x"), inAnHour()) }, gone(&v1alpha1.Media{}, "jpeg"),
			v1alpha1.ReasonMediaNotFound, "create the media file"),
		Entry("its TikTok account turned private", func() string { return film("mp4", aimed("acme-tiktok"), inAnHour()) },
			func(ctx context.Context, t *team) { t.setPrivacyLevels(ctx, "acme-tiktok", "SELF_ONLY") }, v1alpha1.ReasonInvalid, "it can choose SELF_ONLY"),
		Entry("a draft whose connection was deleted", func() string { return text("acme-x", "a", draft) }, gone(&v1alpha1.Connection{}, "acme-x"),
			v1alpha1.ReasonConnectionNotFound, "create the connection"),
	)

	It("is processing until its deadline if it was immediate, and cannot be cancelled", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		id := t.create(ctx, text("acme-x", "a")).ID
		gone(&v1alpha1.Connection{}, "acme-x")(ctx, t)
		DeferCleanup(t.deliver())
		Eventually(t.accepted(ctx, id)).Should(Equal("False " + v1alpha1.ReasonConnectionNotFound))
		got := as[postBody](t.call(ctx, "GET", "/posts/"+id, "")).Data
		Expect([]any{got.Status, got.CanCancel}).To(Equal([]any{"processing", false}), "the post may still be published")
		t.call(ctx, "DELETE", "/posts/"+id, "").mustFail(409, "CONFLICT", "is being delivered")
		Expect(t.stored(ctx, id).Spec.Cancelled).To(BeFalse())
	})
})

// pages returns a text post's body with count targets on the same Facebook page.
func pages(count int, caption string, more ...string) string {
	target := fmt.Sprintf(`{"connection_id":"acme-page","caption":%q}`, caption)
	return fmt.Sprintf(`{"category":"text","targets":[%s%s]%s}`, target, strings.Repeat(","+target, count-1), strings.Join(more, ""))
}

// largestStatus returns the largest target status in practice: during a call, and after its failure.
func largestStatus(index int32, now time.Time) v1alpha1.TargetStatus {
	target := claimed(index, now)
	target.Platform, target.Reason, target.Message = v1alpha1.PlatformFacebook, v1alpha1.ReasonRateLimited, strings.Repeat("m", 2000)
	target.State = v1alpha1.TargetPending
	target.Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonRateLimited, Problem: strings.Repeat("m", 1024), Remedy: strings.Repeat("m", 512)}
	target.NextTryAt, target.TryUntil = v1alpha1.NewTimePtr(now), v1alpha1.NewTimePtr(now)
	target.Attempt.Checkpoint, target.Attempt.ContentHash = strings.Repeat("c", 1024), strings.Repeat("h", 64)
	target.Prepared = &v1alpha1.Prepared{
		ContentHash: strings.Repeat("h", 64), Checkpoint: strings.Repeat("c", 1024), Problem: strings.Repeat("m", 1000), MadeAt: v1alpha1.NewTime(now),
	}
	target.Attempt.AccountID = strings.Repeat("a", 64)
	target.Attempt.SearchFrom, target.Attempt.UnknownSince, target.Attempt.EndedAt = v1alpha1.NewTimePtr(now), v1alpha1.NewTimePtr(now), v1alpha1.NewTimePtr(now)
	return target
}

var _ = Describe("a large post", func() {
	var t *team
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx, onStarter)
		t.connect(ctx, "acme-page", v1alpha1.PlatformFacebook)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
	})

	DescribeTable("is rejected before any reservation, if its outcomes would not fit into the object",
		func(ctx SpecContext, body, words string) {
			t.call(ctx, "POST", "/posts", body).mustFail(400, "VALIDATION_ERROR", words)
			Expect(t.usages(ctx)).To(BeEmpty(), "usage must be empty")
			Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Pagination.Total).To(BeZero())
		},
		Entry("with text that JSON stores in six bytes per character",
			strings.Replace(pages(1, strings.Repeat("<", 60_000), inAnHour()), `"targets":[`, `"targets":[{"connection_id":"acme-x","caption":"counted"},`, 1),
			"targets: the post takes 360"),
		Entry("of ampersands, as a draft", pages(1, strings.Repeat("&", 60_000), draft), "a post may take at most 262144; shorten the captions, or create several posts"),
		Entry("with more text than allowed, as a draft", pages(14, strings.Repeat("a", 60_000), draft), "targets: the post takes 84"),
		Entry("whose one caption is too long", pages(1, strings.Repeat("a", 65_537)), "targets[0].caption: must have at most 65536 characters"),
	)

	DescribeTable("is accepted if it fits, including all later records",
		func(ctx SpecContext, body string) {
			id := t.create(ctx, body).ID
			stored := t.stored(ctx, id)
			Expect(setStatus(ctx, stored, func(s *v1alpha1.PostStatus) {
				for i := range stored.Spec.Targets {
					s.Targets = append(s.Targets, largestStatus(int32(i), time.Now()))
				}
				for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
					s.Conditions = append(s.Conditions, metav1.Condition{
						Type: kind, Status: metav1.ConditionFalse, Reason: "R", Message: strings.Repeat("<", 2000), LastTransitionTime: metav1.Now(),
					})
				}
			})).To(Succeed(), "a claim of every target")
			got := as[postBody](t.call(ctx, "GET", "/posts/"+id, "")).Data
			Expect(got.Status).To(Equal("processing"))
			Expect(got.Platforms[0].Caption).To(Equal(stored.Spec.Targets[0].Caption))
		},
		Entry("three captions of the maximum length", pages(3, strings.Repeat("a", 65_536), inAnHour())),
		Entry("angle brackets up to the limit", pages(4, strings.Repeat("<", 10_800), inAnHour())),
		Entry("a hundred targets up to the limit", pages(100, strings.Repeat("<", 420), inAnHour())),
	)

	It("is rejected by the controller if it was applied without the webhook, and never claimed", func(ctx SpecContext) {
		post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "huge"}, Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText}}
		for range 100 {
			post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{
				ConnectionRef: v1alpha1.LocalReference{Name: "acme-page"}, Caption: strings.Repeat("a", 2_610),
			})
		}
		Expect(posting.Of(post).Size()).To(BeNumerically(">", posting.MaxPost))
		Expect(admin.Create(ctx, post)).To(Succeed(), "the policy counts texts and not the names of fields")
		DeferCleanup(t.deliver())
		Eventually(t.accepted(ctx, "huge")).Should(Equal("False " + v1alpha1.ReasonInvalid))
		got := as[postBody](t.call(ctx, "GET", "/posts/huge", "")).Data
		Expect(got.Status).To(Equal("processing"), "the post can be corrected until the starting deadline")
		for _, target := range t.stored(ctx, "huge").Status.Targets {
			Expect(target.Message).To(ContainSubstring("shorten the captions"))
			Expect(target.Attempt).To(BeNil(), "no attempt exists")
		}
	})

	It("is rejected with its name when it is too large for the store", func(ctx SpecContext) {
		r := t.call(ctx, "POST", "/posts", pages(15, strings.Repeat("<", 65_000)))
		Expect(r.status).To(Equal(http.StatusBadRequest), "%.300s", r.body)
	})
})
