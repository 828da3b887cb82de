// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// put writes tokens into the connection's Secret, as a tool does.
func (a *account) put(ctx context.Context, tokens map[string]string) {
	GinkgoHelper()
	secret := a.stored(ctx)
	secret.Data, secret.StringData = nil, tokens
	Expect(k8s.Update(ctx, secret)).To(Succeed())
}

// examined requests an examination, reconciles, and returns the result's reason.
func (a *account) examined(ctx context.Context, r *connection.Reconciler) string {
	GinkgoHelper()
	probe := a.probe(ctx)
	Eventually(func(g Gomega) {
		_, err := r.Reconcile(ctx, a.request())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(a.read(ctx).Status.LastHandledProbe).To(Equal(probe), "two seconds pass after a failed probe")
	}).Should(Succeed())
	ready := meta.FindStatusCondition(a.read(ctx).Status.Conditions, v1alpha1.ConditionReady)
	Expect(ready).NotTo(BeNil())
	return ready.Reason
}

// examined creates an account with a connection that a reconciler has examined.
func examined(ctx context.Context, r *connection.Reconciler) *account {
	GinkgoHelper()
	a := newAccount(ctx, byHand, nil).create(ctx)
	Expect(a.examined(ctx, r)).To(Equal("Connected"))
	return a
}

// condition returns a condition as "reason: message", or "" if there is none.
func (a *account) condition(ctx context.Context, kind string) string {
	GinkgoHelper()
	if c := meta.FindStatusCondition(a.read(ctx).Status.Conditions, kind); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}

// inUse returns the access token in the working copy.
func (a *account) inUse(ctx context.Context) string {
	GinkgoHelper()
	return string(a.working(ctx).Data[v1alpha1.CredentialsAccessToken])
}

// rotate renews the current token, so that the previous refresh token is spent.
func (a *account) rotate(ctx context.Context, r *connection.Reconciler) {
	GinkgoHelper()
	before := a.inUse(ctx)
	a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 1})
	Expect(a.examined(ctx, r)).To(Equal("Connected"))
	Expect(a.inUse(ctx)).NotTo(Equal(before))
}

// grant creates another consent for the account. The previous one stays valid.
func (a *account) grant(ctx context.Context) sandboxtest.Account {
	GinkgoHelper()
	const back, verifier = "http://127.0.0.1/back", "a-verifier-of-forty-three-characters-or-more"
	asked := url.Values{
		"response_type": {"code"}, "client_id": {"herald"}, "redirect_uri": {back}, "state": {"s"}, "account": {a.ID},
		"scope": {"tweet.read tweet.write users.read media.write offline.access"}, "code_challenge": {verifier}, "code_challenge_method": {"plain"},
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request := suite.Must(http.NewRequestWithContext(ctx, http.MethodGet, site.URL+"/x/i/oauth2/authorize?"+asked.Encode(), http.NoBody))
	answer, err := browser.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.Body.Close()).To(Succeed())
	sent := suite.Must(answer.Location())
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"herald"}, "redirect_uri": {back}, "code_verifier": {verifier}, "code": {sent.Query().Get("code")},
	}
	request = suite.Must(http.NewRequestWithContext(ctx, http.MethodPost, site.URL+"/x/2/oauth2/token", strings.NewReader(form.Encode())))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err = browser.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(answer.Body.Close()).To(Succeed()) }()
	var granted struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Seconds int    `json:"expires_in"`
	}
	Expect(json.NewDecoder(answer.Body).Decode(&granted)).To(Succeed())
	Expect(granted.Access).NotTo(BeEmpty())
	fresh := a.Account
	fresh.AccessToken, fresh.RefreshToken, fresh.ExpiresAt = granted.Access, granted.Refresh, time.Now().Add(time.Duration(granted.Seconds)*time.Second)
	return fresh
}

// again re-creates the connection, as a restore or a tool that replaces objects does.
func (a *account) again(ctx context.Context) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(k8s.Delete(ctx, a.conn))).To(Succeed())
	a.conn = &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: a.conn.Namespace, Name: a.conn.Name}, Spec: a.conn.Spec}
	Expect(k8s.Create(ctx, a.conn)).To(Succeed())
}

var _ = Describe("A user's Secret", func() {
	var r *connection.Reconciler
	BeforeEach(func() { r = newManager("one", k8s, platform) })

	It("is only read, and does not disconnect the account if a tool restores it every minute", func(ctx SpecContext) {
		a := examined(ctx, r)
		given := a.stored(ctx)
		for range 3 {
			a.rotate(ctx, r)
			Expect(a.stored(ctx)).To(Equal(given), "Herald does not write to the input Secret")
			a.put(ctx, tokensOf(a.Account))
			given = a.stored(ctx)
			refreshed, inUse := calls(ctx, "refresh_token"), a.inUse(ctx)
			Expect(a.examined(ctx, r)).To(Equal("Connected"))
			Expect(a.inUse(ctx)).To(Equal(inUse))
			Expect(calls(ctx, "refresh_token")).To(Equal(refreshed))
			Expect(a.condition(ctx, v1alpha1.ConditionCredentialsSuperseded)).To(BeEmpty(), "the copy was made from this input")
			Expect(a.condition(ctx, v1alpha1.ConditionCredentialsRefused)).To(BeEmpty())
		}
	})

	It("is adopted if new tokens are valid, and ignored if a tool restores the old ones", func(ctx SpecContext) {
		a := examined(ctx, r)
		a.rotate(ctx, r)
		connectedAt := a.read(ctx).Status.ConnectedAt
		again := a.grant(ctx)
		a.put(ctx, tokensOf(again))
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.inUse(ctx)).To(Equal(again.AccessToken))
		Expect(a.read(ctx).Status.Verified()).To(BeTrue())
		Expect(a.conn.Status.ConnectedAt).NotTo(Equal(connectedAt), "the time of the new connection is recorded")

		a.rotate(ctx, r)
		inUse, asked := a.inUse(ctx), calls(ctx, "refresh_token")
		a.put(ctx, tokensOf(a.Account))
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.condition(ctx, v1alpha1.ConditionCredentialsSuperseded)).To(And(
			HavePrefix("Replaced: "), ContainSubstring(a.secret.Name), ContainSubstring("ignored"), ContainSubstring(a.working(ctx).Name)))
		Expect(a.inUse(ctx)).To(Equal(inUse))
		Expect(calls(ctx, "refresh_token")).To(Equal(asked), "the used refresh token is not sent again")

		a.put(ctx, tokensOf(again))
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.condition(ctx, v1alpha1.ConditionCredentialsSuperseded)).To(BeEmpty())
		Expect(a.inUse(ctx)).To(Equal(inUse))
	})

	DescribeTable("reports why new tokens are not used, and does not disconnect the account", func(ctx SpecContext, bad func(context.Context, *account) map[string]string, words ...string) {
		a := examined(ctx, r)
		a.rotate(ctx, r)
		inUse, refreshed := a.inUse(ctx), calls(ctx, "refresh_token")
		a.put(ctx, bad(ctx, a))
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		told := a.condition(ctx, v1alpha1.ConditionCredentialsRefused)
		for _, word := range words {
			Expect(told).To(ContainSubstring(word))
		}
		Expect(a.read(ctx).Status.Verified()).To(BeTrue(), "posts continue")
		Expect(a.inUse(ctx)).To(Equal(inUse))
		Expect(calls(ctx, "refresh_token")).To(Equal(refreshed), "no refresh token is spent to find out")

		By("requesting only the account of the new tokens")
		asked := calls(ctx, "identity")
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(calls(ctx, "identity")-asked).To(Equal(1), "the token in use")
		Expect(a.condition(ctx, v1alpha1.ConditionCredentialsRefused)).To(Equal(told))

		By("removing the condition when it is corrected")
		a.put(ctx, tokensOf(a.grant(ctx)))
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.condition(ctx, v1alpha1.ConditionCredentialsRefused)).To(BeEmpty())
		Expect(a.inUse(ctx)).NotTo(Equal(inUse))
	},
		Entry("another account's", func(ctx context.Context, _ *account) map[string]string {
			return tokensOf(newAccount(ctx, byHand, nil).Account)
		}, "AccountMismatch: ", "belongs to account", "keeps its current tokens"),
		Entry("no copy", func(context.Context, *account) map[string]string {
			return map[string]string{"token": "x"}
		}, "CredentialsInvalid: ", `"accessToken"`),
		Entry("expired ones", func(_ context.Context, a *account) map[string]string {
			tokens := tokensOf(a.Account)
			tokens[v1alpha1.CredentialsAccessToken] = "ended-long-ago"
			return tokens
		}, "once the current ones stop working"),
	)

	It("makes new tokens wait while the platform does not respond", func(ctx SpecContext) {
		a := examined(ctx, r)
		again := a.grant(ctx)
		a.put(ctx, tokensOf(again))
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "status", Status: 503, Times: 1})
		Expect(a.examined(ctx, r)).To(Equal("Connected"), "the token in use was probed next")
		Expect(a.condition(ctx, v1alpha1.ConditionCredentialsRefused)).To(HavePrefix("PlatformUnavailable: "))
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.condition(ctx, v1alpha1.ConditionCredentialsRefused)).To(BeEmpty())
		Expect(a.inUse(ctx)).To(Equal(again.AccessToken))
	})

	It("is tried last if the current tokens are rejected", func(ctx SpecContext) {
		a := examined(ctx, r)
		again := a.grant(ctx)
		tokens := tokensOf(again)
		tokens[v1alpha1.CredentialsAccessToken] = "ended-long-ago"
		a.put(ctx, tokens)
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_revoked", Times: 1})
		a.fault(ctx, sandboxtest.Fault{Operation: "refresh_token", Kind: "token_revoked", Times: 1})
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.inUse(ctx)).NotTo(BeElementOf(a.AccessToken, again.AccessToken, "ended-long-ago"))
	})

	It("is required: no post is sent without the Secret, and delivery continues with it", func(ctx SpecContext) {
		a := examined(ctx, r)
		a.rotate(ctx, r)
		inUse := a.inUse(ctx)
		Expect(k8s.Delete(ctx, a.stored(ctx))).To(Succeed())
		Expect(a.examined(ctx, r)).To(Equal("CredentialsNotFound"))
		Expect(a.read(ctx).Status.Confirmed()).To(BeFalse())
		Expect(k8s.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: byHand, Name: a.secret.Name}, StringData: tokensOf(a.Account)})).To(Succeed())
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.inUse(ctx)).To(Equal(inUse), "equal tokens in a new Secret are recognized")
	})

	It("must not be one of Herald's own", func(ctx SpecContext) {
		a, b := examined(ctx, r), newAccount(ctx, byHand, nil)
		b.conn.Spec.CredentialsSecretRef.Name = a.working(ctx).Name
		Expect(k8s.Create(ctx, b.conn)).To(Succeed())
		Expect(b.examined(ctx, r)).To(Equal("CredentialsInvalid"))
		Expect(b.condition(ctx, v1alpha1.ConditionReady)).To(ContainSubstring("is Herald's own"))
	})
})

var _ = Describe("The working copy of an account's tokens", func() {
	var r *connection.Reconciler
	BeforeEach(func() { r = newManager("one", k8s, platform) })

	It("is found by a recreated connection with old tokens", func(ctx SpecContext) {
		a := examined(ctx, r)
		a.rotate(ctx, r)
		inUse, refreshed := a.inUse(ctx), calls(ctx, "refresh_token")
		a.again(ctx)
		Expect(a.examined(ctx, newManager("two", k8s, platform))).To(Equal("Connected"))
		Expect(a.inUse(ctx)).To(Equal(inUse))
		Expect(calls(ctx, "refresh_token")).To(Equal(refreshed))
		Expect(a.working(ctx).OwnerReferences).To(BeEmpty(), "Kubernetes would have collected it with the Connection")
	})

	It("is recreated from the tokens in a backup without it", func(ctx SpecContext) {
		a := examined(ctx, r)
		Expect(k8s.Delete(ctx, a.working(ctx))).To(Succeed())
		a.again(ctx)
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.inUse(ctx)).To(Equal(a.AccessToken))

		By("which may be used up; then a user reconnects the account")
		a.rotate(ctx, r)
		Expect(k8s.Delete(ctx, a.working(ctx))).To(Succeed())
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 1})
		Expect(a.examined(ctx, r)).To(Equal("Revoked"))
	})

	It("is shared by an account's connections, so that no refresh token is used twice", func(ctx SpecContext) {
		a := newAccount(ctx, byHand, nil)
		b := &account{Account: a.Account, secret: a.secret, conn: a.conn.DeepCopy()}
		b.conn.Name += "-too"
		a.create(ctx)
		Expect(k8s.Create(ctx, b.conn)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, b.conn))).To(Succeed()) })
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(b.examined(ctx, r)).To(Equal("Connected"))
		Expect(b.read(ctx).Status.WorkingSecret).To(Equal(a.read(ctx).Status.WorkingSecret))
		for _, one := range []*account{a, b, a} {
			one.rotate(ctx, r)
		}
		Expect(b.examined(ctx, r)).To(Equal("Connected"))

		By("renewing it once when both are checked concurrently")
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 2})
		refreshed := calls(ctx, "refresh_token")
		a.probe(ctx)
		b.probe(ctx)
		done := make(chan error, 2)
		for _, one := range []*account{a, b} {
			go func() { _, err := r.Reconcile(ctx, one.request()); done <- err }()
		}
		Expect(<-done).To(Succeed())
		Expect(<-done).To(Succeed())
		Expect(calls(ctx, "refresh_token") - refreshed).To(BeNumerically("<=", 2))
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(b.examined(ctx, r)).To(Equal("Connected"))
	})

	It("does not give a connection with other tokens access to the account", func(ctx SpecContext) {
		a := examined(ctx, r)
		b := &account{Account: a.Account, conn: a.conn.DeepCopy()}
		b.conn.ResourceVersion, b.conn.UID, b.conn.Status = "", "", v1alpha1.ConnectionStatus{}
		b.conn.Name += "-too"
		b.conn.Spec.CredentialsSecretRef.Name = b.conn.Name
		b.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: byHand, Name: b.conn.Name}, StringData: map[string]string{v1alpha1.CredentialsAccessToken: "guessed"}}
		b.create(ctx)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, b.conn))).To(Succeed()) })
		Expect(b.examined(ctx, r)).To(BeElementOf("Revoked", "TokenExpired"))
		Expect(a.examined(ctx, r)).To(Equal("Connected"), "the account's own connection is unaffected")
		Expect(a.condition(ctx, v1alpha1.ConditionCredentialsRefused)).To(BeEmpty())

		By("storing the account's own tokens in a second Secret")
		b.put(ctx, tokensOf(a.grant(ctx)))
		Expect(b.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.condition(ctx, v1alpha1.ConditionCredentialsSuperseded)).To(HavePrefix("Replaced: "), "one account has one set of tokens")
	})

	It("is not created from a Secret whose refresh token two accounts would use", func(ctx SpecContext) {
		a, b := newAccount(ctx, byHand, nil), newAccount(ctx, byHand, nil)
		a.create(ctx)
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		b.conn.Spec.CredentialsSecretRef = a.conn.Spec.CredentialsSecretRef
		Expect(k8s.Create(ctx, b.conn)).To(Succeed())
		refreshed := calls(ctx, "refresh_token")
		// The sandbox applies the fault to the account that the token belongs to.
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 1})
		Expect(b.examined(ctx, r)).To(Equal("CredentialsInvalid"))
		Expect(b.condition(ctx, v1alpha1.ConditionReady)).To(ContainSubstring(a.conn.Name))
		Expect(calls(ctx, "refresh_token")).To(Equal(refreshed))
		a.rotate(ctx, r)
	})

	It("adopts the tokens of an earlier version, which renewed them in the input", func(ctx SpecContext) {
		a := newAccount(ctx, byHand, nil)
		a.secret.Annotations = map[string]string{"social.herald.dev/renewed-at": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}
		a.create(ctx)
		base := a.read(ctx).DeepCopy()
		a.conn.Status.CredentialsVersion, a.conn.Status.VerifiedVersion = a.stored(ctx).ResourceVersion, a.stored(ctx).ResourceVersion
		a.conn.Status.ObservedGeneration, a.conn.Status.LastProbedAt = a.conn.Generation, v1alpha1.NewTimePtr(time.Now())
		meta.SetStatusCondition(&a.conn.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Connected"})
		Expect(k8s.Status().Patch(ctx, a.conn, client.MergeFrom(base))).To(Succeed())

		asked := calls(ctx, "identity")
		Expect(r.Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
		Expect(calls(ctx, "identity")).To(Equal(asked), "starting with ten thousand accounts sends no probes")
		Expect(a.inUse(ctx)).To(Equal(a.AccessToken))
		Expect(a.read(ctx).Status.Verified()).To(BeTrue())
		Expect(a.conn.Status.CredentialsVersion).To(Equal(a.working(ctx).ResourceVersion))

		By("not renewing while a process of that version may renew")
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 1})
		refreshed := calls(ctx, "refresh_token")
		Expect(a.examined(ctx, r)).To(Equal("PlatformUnavailable"))
		Expect(calls(ctx, "refresh_token")).To(Equal(refreshed))

		By("adopting the last tokens that the old process stored")
		again := a.grant(ctx)
		a.put(ctx, tokensOf(again))
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.inUse(ctx)).To(Equal(again.AccessToken))
	})

	It("is recreated with the renewed token if it is deleted during the renewal", func(ctx SpecContext) {
		a := newExpired(ctx, byHand).create(ctx)
		one := newManager("one", k8s, watched{Platform: platform, after: func(ctx context.Context) {
			Expect(k8s.Delete(ctx, a.working(ctx))).To(Succeed())
		}})
		Expect(a.examined(ctx, one)).To(Equal("Connected"))
		Expect(a.inUse(ctx)).NotTo(Equal(a.AccessToken))
		a.put(ctx, tokensOf(a.Account))
		Expect(a.examined(ctx, r)).To(Equal("Connected"), "the copy's input is still known")
		Expect(a.condition(ctx, v1alpha1.ConditionCredentialsRefused)).To(BeEmpty())
	})
})
