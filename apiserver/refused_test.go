// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"

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
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/facebook"
	"github.com/herald-social/herald/platforms/tiktok"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/test/envtest"
)

// noTokens has no tokens, because no post in these tests may reach a platform.
type noTokens struct{}

func (noTokens) Token(context.Context, *v1alpha1.Connection) (platforms.Token, error) {
	return platforms.Token{}, errors.New("no token is to be asked for")
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
	out := transport.New(transport.Options{})
	r, err := postcontroller.New(postcontroller.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{}, NewID: rand.Text, Tokens: noTokens{}, Files: files,
		Renditions: rendition.NewRenderer(files), Owned: envtest.EveryNamespace,
		Platforms: platforms.Registry{
			v1alpha1.PlatformX:        x.New(x.Config{}, out),
			v1alpha1.PlatformTikTok:   tiktok.New(tiktok.Config{}, out),
			v1alpha1.PlatformFacebook: facebook.New(facebook.Config{}, out),
		},
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

// tells sets the privacy levels of a TikTok account.
func (t *team) tells(ctx context.Context, connection string, levels ...string) {
	GinkgoHelper()
	c := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: connection}}
	Expect(admin.Get(ctx, clientKey(c), c)).To(Succeed())
	before := c.DeepCopy()
	c.Status.TikTok = &v1alpha1.TikTokAccount{PrivacyLevelOptions: levels}
	Expect(admin.Status().Patch(ctx, c, client.MergeFrom(before))).To(Succeed())
}

var _ = Describe("a post that is refused after it was created", func() {
	gone := func(object client.Object, name string) func(context.Context, *team) {
		return func(ctx context.Context, t *team) {
			object := object.DeepCopyObject().(client.Object)
			object.SetNamespace(t.namespace)
			object.SetName(name)
			Expect(admin.Delete(ctx, object)).To(Succeed())
		}
	}
	DescribeTable("stays what it is, says why in the resource, and can be cancelled",
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
			Expect(got.CanCancel).To(BeTrue(), "it may still go out")
			Expect(got.Platforms[0].ErrorMessage).To(BeNil(), "nothing has failed")
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
			func(ctx context.Context, t *team) { t.tells(ctx, "acme-tiktok", "SELF_ONLY") }, v1alpha1.ReasonInvalid, "it can choose SELF_ONLY"),
		Entry("a draft whose connection was deleted", func() string { return text("acme-x", "a", draft) }, gone(&v1alpha1.Connection{}, "acme-x"),
			v1alpha1.ReasonConnectionNotFound, "create the connection"),
	)

	It("is under way until its deadline if it was to go out at once, and cannot be cancelled", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		id := t.create(ctx, text("acme-x", "a")).ID
		gone(&v1alpha1.Connection{}, "acme-x")(ctx, t)
		DeferCleanup(t.deliver())
		Eventually(t.accepted(ctx, id)).Should(Equal("False " + v1alpha1.ReasonConnectionNotFound))
		got := as[postBody](t.call(ctx, "GET", "/posts/"+id, "")).Data
		Expect([]any{got.Status, got.CanCancel}).To(Equal([]any{"processing", false}), "it may still go out")
		t.call(ctx, "DELETE", "/posts/"+id, "").mustFail(409, "CONFLICT", "is being delivered")
		Expect(t.stored(ctx, id).Spec.Cancelled).To(BeFalse())
	})
})
