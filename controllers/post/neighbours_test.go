// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/sandboxtest"
)

var _ = Describe("A team beside another one", func() {
	var attacker, victim team
	BeforeEach(func(ctx SpecContext) {
		attacker, victim = newTeam(ctx), newTeam(ctx)
		runManager()
	})

	It("is not held by the limit of an app that the other one brought along", func(ctx SpecContext) {
		attacker.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: http.StatusPaymentRequired, Times: 1000})
		refused := attacker.post(ctx, "of an app without credits")
		Eventually(func() string { return readyReason(ctx, refused) }).Should(Equal(v1alpha1.ReasonRateLimited))

		p := victim.post(ctx, "of Herald's app, which has some")
		Eventually(phase(ctx, p), 10*time.Second).Should(Equal(v1alpha1.PhasePosted))
		conn := attacker.connection(ctx)
		Expect(conn.Status.AppRateLimitedUntil).To(BeNil())
		Expect(conn.Status.RateLimitedUntil).NotTo(BeNil(), "the account that was told so waits")
	})

	It("keeps what it published although the other one says that it is theirs", func(ctx SpecContext) {
		By("making a post of which nothing can tell whether it was published: an annotation suffices")
		fake := attacker.post(ctx, "never sent", restored)
		Eventually(func() string { return readyReason(ctx, fake) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(publishesBy(attacker.account)).To(BeZero())

		By("losing the answer to the victim's call")
		victim.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		claimed := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(claimed)
			claim(context.WithoutCancel(ctx), victim, fake)
		}()
		p := victim.post(ctx, "hello from the victim")
		Eventually(claimed).Should(BeClosed())
		Eventually(phase(ctx, p), 40*time.Second).Should(Equal(v1alpha1.PhasePosted))
		Expect(publishesBy(victim.account)).To(Equal(1))
		Expect(victim.published(ctx)).To(HaveLen(1))
		Expect(saidWrong(ctx, fake)()).To(ContainSubstring("is not one of account"))
		Expect(readyReason(ctx, fake)).To(Equal(v1alpha1.ReasonOutcomeUnknown), "it is asked about again")
	})

	It("says what a person told of its own, and what the platform did not confirm", func(ctx SpecContext) {
		Eventually(phase(ctx, attacker.post(ctx, "sent before the backup"))).Should(Equal(v1alpha1.PhasePosted))
		online, err := platform.Posts(ctx, "x", attacker.account.ID)
		Expect(err).NotTo(HaveOccurred())
		for id, unconfirmed := range map[string]bool{online[0].ID: false, "42": true} {
			p := attacker.post(ctx, "sent before the backup", restored)
			Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
			settle(ctx, p, "0=posted:"+id)
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
			t := read(ctx, p).Status.Targets[0]
			Expect(t.ExternalID).To(Equal(id))
			Expect(t.Unconfirmed).To(Equal(unconfirmed), id)
			account := attacker.account.ID
			if unconfirmed {
				account = ""
			}
			Expect(t.Attempt.AccountID).To(Equal(account), "an id that only a person told is no account's")
		}
	})

	It("never publishes to an account that was not verified", func(ctx SpecContext) {
		By("a connection that says that the token is another account's, while the platform does not tell")
		Expect(k8s.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: victim.namespace},
			StringData: map[string]string{v1alpha1.CredentialsAccessToken: victim.account.AccessToken},
		})).To(Succeed())
		Expect(k8s.Create(ctx, &v1alpha1.Connection{
			ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: victim.namespace},
			Spec: v1alpha1.ConnectionSpec{
				Platform: v1alpha1.PlatformX, AccountID: "999", CredentialsSecretRef: v1alpha1.LocalReference{Name: "new"},
			},
		})).To(Succeed())
		victim.setReady(ctx, "new", metav1.ConditionFalse, v1alpha1.ReasonPlatformUnavailable, "")
		p := victim.post(ctx, "for account 999", func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "new" })
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonConnectionNotReady))
		Consistently(func() int { return publishesBy(victim.account) }, time.Second).Should(BeZero())
	})
})

// claim waits for a team's first post, and then resolves another team's post with its id.
func claim(ctx context.Context, of team, fake *v1alpha1.Post) {
	var id string
	Eventually(func() bool {
		posts, err := platform.Posts(ctx, "x", of.account.ID)
		if err == nil && len(posts) > 0 {
			id = posts[0].ID
		}
		return id != ""
	}, 20*time.Second, 10*time.Millisecond).Should(BeTrue())
	settle(ctx, fake, "0=posted:"+id)
}
