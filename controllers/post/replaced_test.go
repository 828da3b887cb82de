// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/test/sandboxtest"
)

// fromSecrets makes a manager read tokens as in an installation.
func fromSecrets(o *post.Options) {
	o.Tokens = connection.NewTokens(credentials.NewStore(o.APIReader, o.Client, clock.RealClock{}, "poster", nil), o.Client, clock.RealClock{})
}

// stranger creates another account of the platform, whose token then replaces the token in a team's Secret.
func stranger(ctx context.Context, id string) sandboxtest.Account {
	GinkgoHelper()
	account, err := platform.Account(ctx, "x", id+"99", nil)
	Expect(err).NotTo(HaveOccurred())
	return account
}

// problem returns the reason and the problem of a post's first target, or "" if there is none.
func problem(ctx context.Context, p *v1alpha1.Post) func() string {
	return func() string {
		if targets := read(ctx, p).Status.Targets; len(targets) > 0 && targets[0].Blocked != nil {
			return targets[0].Blocked.Reason + ": " + targets[0].Blocked.Problem
		}
		return ""
	}
}

var _ = Describe("Credentials that somebody replaces in their Secret", func() {
	var t team
	// look runs the connection controller until the spec ends.
	look := func() {
		keeper := t.keepConnections()
		DeferCleanup(func() { keeper.stop() })
	}
	// connected waits until the account is connected, and stops the connection controller. The next probe would be an
	// hour later.
	connected := func(ctx context.Context) {
		GinkgoHelper()
		t.putSecret(ctx, t.account)
		keeper := t.keepConnections()
		Eventually(t.condition(ctx, v1alpha1.ConditionReady)).Should(ContainSubstring("connected as"))
		keeper.stop()
	}
	BeforeEach(func(ctx SpecContext) {
		t = newTeam(ctx)
		connected(ctx)
		runManager(fromSecrets)
	})

	It("are not used before the platform has said whose they are, and never if they are another account's", func(ctx SpecContext) {
		other := stranger(ctx, t.account.ID)
		t.putSecret(ctx, other)
		look() // a probe is requested when the account is used
		p := t.post(ctx, "by the account of the connection")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted), "with the tokens that it has")
		Eventually(t.condition(ctx, v1alpha1.ConditionCredentialsRefused)).Should(And(
			HavePrefix(v1alpha1.ReasonAccountMismatch+": "), ContainSubstring("the token belongs to account")))
		Expect(publishesBy(other)).To(BeZero())

		t.putSecret(ctx, t.account)
		t.probe(ctx, "the right account is there again")
		Eventually(t.condition(ctx, v1alpha1.ConditionCredentialsRefused)).Should(BeEmpty())
		Expect(t.published(ctx)).To(Equal([]string{"by the account of the connection"}))
		Expect(publishesBy(other)).To(BeZero())
	})

	It("are not used from the working copy either, where nobody but Herald should write", func(ctx SpecContext) {
		other := stranger(ctx, t.account.ID)
		conn := t.connection(ctx)
		var copied corev1.Secret
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: conn.Status.WorkingSecret}, &copied)).To(Succeed())
		copied.StringData = map[string]string{v1alpha1.CredentialsAccessToken: other.AccessToken}
		Expect(k8s.Update(ctx, &copied)).To(Succeed())
		p := t.post(ctx, "by nobody else")
		Eventually(problem(ctx, p)).Should(And(HavePrefix(v1alpha1.ReasonConnectionNotReady+": "),
			ContainSubstring(`the credentials of connection "x" cannot be used`), ContainSubstring("changed and have not been checked yet")))
		look() // the probe was requested
		Eventually(problem(ctx, p)).Should(And(HavePrefix(v1alpha1.ReasonConnectionNotReady+": "), ContainSubstring("the token belongs to account")))
		Expect(publishesBy(other)).To(BeZero())

		Expect(k8s.Delete(ctx, &copied)).To(Succeed())
		t.probe(ctx, "it is made again")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(publishesBy(other)).To(BeZero())
	})

	It("are asked about at once, and the post goes out if they are the account's", func(ctx SpecContext) {
		var secret corev1.Secret
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "x"}, &secret)).To(Succeed())
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "example.com/synced", "just now")
		Expect(k8s.Update(ctx, &secret)).To(Succeed())
		look()
		posted(ctx, t.post(ctx, "with the same token"))
		Expect(t.published(ctx)).To(Equal([]string{"with the same token"}))
		Expect(publishesBy(t.account)).To(Equal(1))
	})
})
