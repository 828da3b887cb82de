// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

var _ = Describe("A Connection", func() {
	It("identifies its account, reports it once, and is not checked again immediately", func(ctx SpecContext) {
		a := newAccount(ctx, managed, map[string]any{"display_name": "Acme Inc"}).create(ctx)
		Eventually(a.state(ctx)).Should(Equal("True Connected"))
		c := a.read(ctx)
		Expect(c.Status.AccountName).To(Equal("Acme Inc"))
		Expect(c.Status.Username).To(Equal(a.Username))
		Expect(c.Status.CredentialsVersion).To(Equal(a.working(ctx).ResourceVersion))
		Expect(c.Status.WorkingSecret).To(Equal(a.working(ctx).Name))
		Expect(c.Status.ConnectedAt).NotTo(BeNil())
		Expect(c.Status.TokenExpiresAt.Time).To(BeTemporally("~", a.ExpiresAt, time.Second))
		Expect(meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReconciling)).To(BeFalse())

		Eventually(func(g Gomega) {
			var events eventsv1.EventList
			g.Expect(k8s.List(ctx, &events, client.InNamespace(managed))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(SatisfyAll(HaveField("Regarding.Name", c.Name), HaveField("Reason", "Connected"))))
		}).Should(Succeed())
		asked := calls(ctx, "identity")
		Consistently(func() int { return calls(ctx, "identity") }, time.Second).Should(Equal(asked), "its own status writes must not wake it")
	})

	It("serves each request for a check", func(ctx SpecContext) {
		a := connected(ctx, managed)
		for range 3 {
			probe := a.probe(ctx)
			Eventually(a.state(ctx)).Should(Equal("True Connected " + probe))
		}
	})

	It("renews an expired token, and stores it before it is used", func(ctx SpecContext) {
		a := newExpired(ctx, managed).create(ctx)
		Eventually(a.state(ctx)).Should(Equal("True Connected"))
		secret := a.working(ctx)
		Expect(string(secret.Data["accessToken"])).NotTo(Equal(a.AccessToken))
		Expect(string(secret.Data["refreshToken"])).NotTo(Equal(a.RefreshToken))
		Expect(secret.Annotations).NotTo(HaveKey("social.herald.dev/renewal"), "the claim has ended")
		Expect(a.read(ctx).Status.CredentialsVersion).To(Equal(secret.ResourceVersion))
	})

	It("renews a token before it expires", func(ctx SpecContext) {
		a := newAccount(ctx, managed, map[string]any{"token_ttl_s": 8}).create(ctx)
		token := func() string { return string(a.working(ctx).Data["accessToken"]) }
		Eventually(a.state(ctx)).Should(Equal("True Connected"))
		first := token()
		Expect(first).NotTo(Equal(a.AccessToken), "its end was near from the beginning")
		ends := a.conn.Status.TokenExpiresAt.Time
		Eventually(token).ShouldNot(Equal(first), "the token is renewed before it expires")
		Expect(time.Now()).To(BeTemporally("<", ends))
		Expect(a.state(ctx)()).To(Equal("True Connected"))
	})

	It("stays connected during an outage, and recovers", func(ctx SpecContext) {
		a := connected(ctx, managed)
		name := a.read(ctx).Status.AccountName
		for _, f := range []sandboxtest.Fault{
			{Operation: "identity", Kind: "status", Status: 503, Times: 1},
			// net/http retries for every idle connection that breaks.
			{Operation: "identity", Kind: "drop_before", Times: 1000},
			{Operation: "identity", Kind: "rate_limit", Times: 1, RetryAfterS: 900},
		} {
			a.fault(ctx, f)
			probe := a.probe(ctx)
			Eventually(a.state(ctx)).Should(Equal("False PlatformUnavailable " + probe))
			Expect(a.conn.Status.AccountName).To(Equal(name))
			Expect(site.ClearFaults(ctx)).To(Succeed())
			probe = a.probe(ctx)
			Eventually(a.state(ctx)).Should(Equal("True Connected " + probe))
		}
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "status", Status: 500, Times: 1})
		probe := a.probe(ctx)
		Eventually(a.state(ctx)).Should(Equal("False PlatformUnavailable " + probe))
		Eventually(a.state(ctx)).Should(Equal("True Connected "+probe), "the probe is repeated")
	})

	It("responds within five seconds if the platform does not", func(ctx SpecContext) {
		a := connected(ctx, managed)
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "delay", DelayMS: 20_000, Times: 1})
		probe := a.probe(ctx)
		Eventually(a.state(ctx), 5*time.Second).Should(Equal("False PlatformUnavailable " + probe))
	})

	It("needs a user once its grant is revoked, until the Secret contains another token", func(ctx SpecContext) {
		a := connected(ctx, managed)
		connectedAt := a.conn.Status.ConnectedAt.Time
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_revoked", Times: 1})
		a.fault(ctx, sandboxtest.Fault{Operation: "refresh_token", Kind: "token_revoked", Times: 1})
		probe := a.probe(ctx)
		Eventually(a.state(ctx)).Should(Equal("False Revoked " + probe))
		Expect(meta.IsStatusConditionTrue(a.conn.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
		Expect(meta.FindStatusCondition(a.conn.Status.Conditions, "Ready").Message).To(ContainSubstring("connect the account again"))

		again := suite.Must(site.Account(ctx, "x", a.ID, nil))
		secret := a.stored(ctx)
		secret.StringData = tokensOf(again)
		Expect(k8s.Update(ctx, secret)).To(Succeed())
		probe = a.probe(ctx)
		Eventually(a.state(ctx)).Should(Equal("True Connected " + probe))
		Expect(a.conn.Status.ConnectedAt.Time).To(BeTemporally(">", connectedAt))
	})

	It("reports the expiry of a token that cannot be renewed", func(ctx SpecContext) {
		a := newAccount(ctx, managed, nil)
		delete(a.secret.StringData, v1alpha1.CredentialsRefreshToken)
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 1})
		a.create(ctx)
		Eventually(a.state(ctx)).Should(Equal("False TokenExpired"))
	})

	It("waits for its Secret, and names the invalid key", func(ctx SpecContext) {
		a := newAccount(ctx, managed, nil)
		Expect(k8s.Create(ctx, a.conn)).To(Succeed())
		Eventually(a.state(ctx)).Should(Equal("False CredentialsNotFound"))
		good := a.secret.StringData
		a.secret.StringData = map[string]string{"token": "x"}
		Expect(k8s.Create(ctx, a.secret)).To(Succeed())
		Eventually(a.state(ctx)).Should(Equal("False CredentialsInvalid"))
		Expect(meta.FindStatusCondition(a.conn.Status.Conditions, "Ready").Message).To(ContainSubstring(`"accessToken"`))
		a.secret.StringData = good
		Expect(k8s.Update(ctx, a.secret)).To(Succeed())
		Eventually(a.state(ctx)).Should(Equal("True Connected"))
	})

	It("rejects another account's token", func(ctx SpecContext) {
		a, other := newAccount(ctx, managed, nil), newAccount(ctx, managed, nil)
		a.secret.StringData = other.secret.StringData
		a.create(ctx)
		Eventually(a.state(ctx)).Should(Equal("False AccountMismatch"))
		Expect(a.conn.Status.AccountName).To(BeEmpty())
	})

	It("does not call the platform while it is disabled, but serves requests", func(ctx SpecContext) {
		a := newAccount(ctx, managed, nil)
		a.conn.Spec.Disabled = true
		asked := calls(ctx, "identity")
		a.create(ctx)
		Eventually(a.state(ctx)).Should(Equal("False Disabled"))
		probe := a.probe(ctx)
		Eventually(a.state(ctx)).Should(Equal("False Disabled " + probe))
		Expect(calls(ctx, "identity")).To(Equal(asked))
		a.conn.Spec.Disabled = false
		Expect(k8s.Update(ctx, a.conn)).To(Succeed())
		Eventually(a.state(ctx)).Should(Equal("True Connected " + probe))
	})

	DescribeTable("reports an unsupported platform", func(ctx SpecContext, platform v1alpha1.Platform) {
		a := newAccount(ctx, managed, nil)
		a.conn.Spec.Platform = platform
		if platform == v1alpha1.PlatformMastodon {
			a.conn.Spec.Server = "https://mastodon.example"
			a.conn.Spec.AccountID += "@mastodon.example"
		}
		a.create(ctx)
		Eventually(a.state(ctx)).Should(Equal("False PlatformNotSupported"))
	},
		Entry("of version 1", v1alpha1.PlatformThreads),
		Entry("which version 1 does not have: the schema has its name in every installation", v1alpha1.PlatformBluesky),
		Entry("whose accounts have servers of their own", v1alpha1.PlatformMastodon))

	It("does not leave old credentials behind when the account is reconnected", func(ctx SpecContext) {
		a := newAccount(ctx, managed, nil)
		Expect(k8s.Create(ctx, a.conn)).To(Succeed())
		own := func(secret *corev1.Secret) {
			GinkgoHelper()
			Expect(controllerutil.SetControllerReference(a.conn, secret, k8s.Scheme())).To(Succeed())
			Expect(k8s.Create(ctx, secret)).To(Succeed())
		}
		own(a.secret)
		Eventually(a.state(ctx)).Should(Equal("True Connected"))
		Eventually(func() map[string]string { return a.read(ctx).Annotations }).Should(HaveKeyWithValue("social.herald.dev/credentials-secret", a.secret.Name))

		second := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: managed, Name: a.secret.Name + "-2"}, StringData: tokensOf(a.Account)}
		own(second)
		a.conn.Spec.CredentialsSecretRef.Name = second.Name
		Expect(k8s.Update(ctx, a.conn)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(a.secret), &corev1.Secret{}))
		}).Should(BeTrue())
		Expect(a.state(ctx)()).To(Equal("True Connected"))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(second), second)).To(Succeed())
	})
})

// inspected is X with inspections that the spec controls.
type inspected struct {
	platforms.Platform

	asked atomic.Int64
	tells func() (platforms.AccountInfo, error)
}

func (s *inspected) Inspect(context.Context, platforms.Account) (platforms.AccountInfo, error) {
	s.asked.Add(1)
	return s.tells()
}

var _ = Describe("A survey", func() {
	var (
		a     *account
		x     *inspected
		again func(ctx SpecContext) string
	)
	BeforeEach(func(ctx SpecContext) {
		a = newAccount(ctx, byHand, nil).create(ctx)
		x = &inspected{Platform: platform}
		again = func(ctx SpecContext) string {
			GinkgoHelper()
			a.probe(ctx)
			Expect(newManager("one", k8s, x).Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
			a.read(ctx)
			for _, c := range a.conn.Status.Conditions {
				if c.Type == v1alpha1.ConditionReady {
					return c.Reason
				}
			}
			return ""
		}
	})

	It("returns an account's options, and reads them each time", func(ctx SpecContext) {
		levels := []string{"PUBLIC_TO_EVERYONE", "SELF_ONLY"}
		x.tells = func() (platforms.AccountInfo, error) {
			return platforms.AccountInfo{TikTok: &v1alpha1.TikTokAccount{PrivacyLevelOptions: levels, MaxVideoPostDurationSeconds: 600}}, nil
		}
		Expect(again(ctx)).To(Equal(v1alpha1.ReasonConnected))
		Expect(a.conn.Status.TikTok.PrivacyLevelOptions).To(Equal(levels))
		Expect(a.conn.Status.TikTok.MaxVideoPostDurationSeconds).To(BeEquivalentTo(600))
		levels = []string{"FOLLOWER_OF_CREATOR", "SELF_ONLY"}
		Expect(again(ctx)).To(Equal(v1alpha1.ReasonConnected))
		Expect(a.conn.Status.TikTok.PrivacyLevelOptions).To(Equal(levels), "the offered levels of the private account")
	})

	It("blocks an account without remaining posts, across a restart, until it has some", func(ctx SpecContext) {
		left := 0
		x.tells = func() (platforms.AccountInfo, error) {
			told := platforms.RateLimit{Name: platforms.PostsPerDay, Limit: 50, Remaining: left}
			if left == 0 {
				told.BlockedUntil = time.Now().Add(30 * time.Minute)
			}
			return platforms.AccountInfo{RateLimits: []platforms.RateLimit{told}}, nil
		}
		Expect(again(ctx)).To(Equal(v1alpha1.ReasonConnected), "an account at its limit is not disconnected")
		Expect(a.conn.Status.RateLimitedUntil.Time).To(BeTemporally("~", time.Now().Add(30*time.Minute), time.Minute))
		Expect(a.conn.Status.RateLimitedMessage).To(ContainSubstring("postsPerDay"))
		until := a.conn.Status.RateLimitedUntil.Time

		asked, identified := x.asked.Load(), calls(ctx, "identity")
		next := suite.Must(newManager("the next manager", k8s, x).Reconcile(ctx, a.request()))
		Expect(x.asked.Load()).To(Equal(asked), "the account was probed recently")
		Expect(calls(ctx, "identity")).To(Equal(identified))
		Expect(time.Now().Add(next.RequeueAfter)).To(BeTemporally("<", until), "the next probe is before the quota is needed")

		left = 7
		Expect(again(ctx)).To(Equal(v1alpha1.ReasonConnected))
		Expect(a.conn.Status.RateLimits).To(ConsistOf(HaveField("Remaining", BeEquivalentTo(7))))

		a.conn.Status.RateLimitedUntil = nil // the block is over
		Expect(k8s.Status().Update(ctx, a.conn)).To(Succeed())
		asked = x.asked.Load()
		Expect(again(ctx)).To(Equal(v1alpha1.ReasonConnected))
		Expect(x.asked.Load()).To(Equal(asked), "the known quota is sufficient and recent")
	})

	DescribeTable("that fails", func(ctx SpecContext, class platforms.Class, known bool, want string) {
		x.tells = func() (platforms.AccountInfo, error) {
			return platforms.AccountInfo{TikTok: &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{"SELF_ONLY"}}}, nil
		}
		if known {
			Expect(again(ctx)).To(Equal(v1alpha1.ReasonConnected))
		}
		x.tells = func() (platforms.AccountInfo, error) {
			return platforms.AccountInfo{}, platforms.Errorf(class, "what it says")
		}
		Expect(again(ctx)).To(Equal(want))
		if known {
			Expect(a.conn.Status.TikTok.PrivacyLevelOptions).To(Equal([]string{"SELF_ONLY"}), "the known levels remain")
		}
	},
		Entry("because of a missing permission needs a user", platforms.ClassReconnect, true, v1alpha1.ReasonRevoked),
		Entry("because of an outage is temporary", platforms.ClassTransient, true, v1alpha1.ReasonPlatformUnavailable),
		Entry("because of a token that has just expired is temporary", platforms.ClassRefresh, true, v1alpha1.ReasonPlatformUnavailable),
		Entry("because of a rate limit does not matter", platforms.ClassRateLimited, true, v1alpha1.ReasonConnected),
		Entry("at the first attempt leaves the account unknown", platforms.ClassRateLimited, false, v1alpha1.ReasonPlatformUnavailable),
	)
})
