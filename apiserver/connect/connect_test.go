// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sandboxtest"
)

func objectKey(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func inNamespace(name string) client.InNamespace { return client.InNamespace(name) }

// refuses checks that err is an error for the user, with the given code and words.
func refuses(err error, code bridge.Code, words ...string) {
	GinkgoHelper()
	refusal, ok := errors.AsType[*bridge.Error](err)
	Expect(ok).To(BeTrue(), "the user sees the error: %v", err)
	Expect(refusal.Code).To(Equal(code), refusal.Message)
	for _, word := range words {
		Expect(refusal.Message).To(ContainSubstring(word))
	}
}

var _ = Describe("Connecting an account", func() {
	DescribeTable("on each platform", func(ctx SpecContext, platform v1alpha1.Platform, keys ...string) {
		d, who, account := newDesk(ctx), visitor("oidc:ann"), newAccount(ctx, platform)
		t := d.startFlow(ctx, who, platform, "")

		cookie := t.started.Cookie
		Expect(cookie.HttpOnly && cookie.Secure && cookie.SameSite == http.SameSiteLaxMode).To(BeTrue())
		Expect(cookie.Path).To(Equal("/connect"))
		Expect(cookie.MaxAge).To(Equal(600))
		Expect(cookie.Name).To(HavePrefix("__Secure-"))
		address, err := url.Parse(t.started.Address)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(address.Query().Get("state"))).To(BeNumerically("<=", 500), "X's limit for the state")
		Expect(t.started.Address).NotTo(ContainSubstring(appSecret))

		out, err := t.agree(ctx, account).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Renewed).To(BeFalse())
		Expect(out.Namespace).To(Equal(d.namespace))
		Expect(out.Cookie.Name).To(Equal(cookie.Name))
		Expect(out.Cookie.MaxAge).To(Equal(-1), "the cookie is deleted")

		made, secret := d.stored(ctx, connect.ConnectionName(d.namespace, platform, account))
		Expect(made.UID).To(Equal(out.Connection.UID))
		Expect(made.Spec.Platform).To(Equal(platform))
		Expect(made.Spec.AccountID).To(Equal(account))
		Expect(made.Labels).To(HaveKeyWithValue(v1alpha1.OriginLabel, v1alpha1.OriginWeb))
		Expect(made.Annotations).To(And(
			HaveKeyWithValue(v1alpha1.AuthorAnnotation, "oidc:ann"), HaveKey(v1alpha1.MadeSecretPrefix+secret.Name),
			HaveKeyWithValue(v1alpha1.ProbeAnnotation, Not(BeEmpty())),
		))
		Expect(metav1.IsControlledBy(secret, made)).To(BeTrue(), "the Secret is deleted with its connection")
		Expect(secret.Labels).To(HaveKeyWithValue(v1alpha1.OriginLabel, v1alpha1.OriginWeb))
		for _, key := range append(keys, v1alpha1.CredentialsAccessToken, v1alpha1.CredentialsScopes, v1alpha1.CredentialsGrantedAt) {
			Expect(secret.Data).To(HaveKeyWithValue(key, Not(BeEmpty())))
		}
		Expect(secret.Data).To(HaveLen(len(keys)+3), "no other data")
		Expect(apps().Identify(platform, secret.Annotations[credentials.AppMarkAnnotation],
			string(secret.Data[v1alpha1.CredentialsAccessToken]), string(secret.Data[v1alpha1.CredentialsRefreshToken]))).To(Equal("herald"), "the manager knows the token's owner")
		identity, err := registry[platform].Identify(ctx, platforms.Token{
			Access: string(secret.Data[v1alpha1.CredentialsAccessToken]), Scopes: string(secret.Data[v1alpha1.CredentialsScopes]),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(identity.AccountID).To(Equal(account))

		for _, hidden := range []string{t.back.Get("code"), cookie.Value, string(secret.Data[v1alpha1.CredentialsAccessToken]), appSecret} {
			Expect(d.log.String()).NotTo(ContainSubstring(hidden), "the log contains a secret")
		}
		Expect(d.log.String()).To(And(ContainSubstring("An account was connected"), ContainSubstring("oidc:ann")))
	},
		Entry("X", v1alpha1.PlatformX, v1alpha1.CredentialsRefreshToken, v1alpha1.CredentialsExpiresAt),
		Entry("Threads", v1alpha1.PlatformThreads, v1alpha1.CredentialsExpiresAt),
		Entry("Instagram", v1alpha1.PlatformInstagram, v1alpha1.CredentialsExpiresAt),
		Entry("Facebook, whose Page tokens do not expire", v1alpha1.PlatformFacebook),
		Entry("TikTok", v1alpha1.PlatformTikTok, v1alpha1.CredentialsRefreshToken, v1alpha1.CredentialsExpiresAt, v1alpha1.CredentialsRefreshExpiresAt),
		Entry("YouTube", v1alpha1.PlatformYouTube, v1alpha1.CredentialsRefreshToken, v1alpha1.CredentialsExpiresAt),
	)

	It("is offered for platforms with a configured app", func(ctx SpecContext) {
		d := newDesk(ctx)
		Expect(d.Available()).To(Equal([]v1alpha1.Platform{
			v1alpha1.PlatformFacebook, v1alpha1.PlatformInstagram, v1alpha1.PlatformThreads, v1alpha1.PlatformTikTok, v1alpha1.PlatformX, v1alpha1.PlatformYouTube,
		}))
		d = newDesk(ctx, func(c *connect.Config) { c.Platforms = platforms.Registry{} })
		Expect(d.Available()).To(BeEmpty())
		_, err := d.Start(ctx, visitor("ann"), d.namespace, connect.Wanted{Platform: v1alpha1.PlatformX})
		refuses(err, bridge.CodeNotFound, "accounts of X cannot be connected here", "administrator")
	})

	It("works in several tabs concurrently", func(ctx SpecContext) {
		d, who := newDesk(ctx), visitor("ann")
		first, second := newAccount(ctx, v1alpha1.PlatformX), newAccount(ctx, v1alpha1.PlatformX)
		one, two := d.startFlow(ctx, who, v1alpha1.PlatformX, ""), d.startFlow(ctx, who, v1alpha1.PlatformX, "")
		maps.Copy(two.cookies, one.cookies)
		one.cookies = two.cookies
		Expect(one.cookies).To(HaveLen(2))
		out, err := two.agree(ctx, second).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Connection.Spec.AccountID).To(Equal(second))
		out, err = one.agree(ctx, first).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Connection.Spec.AccountID).To(Equal(first))
	})

	It("creates one connection per account, however many requests are concurrent", func(ctx SpecContext) {
		d, account := newDesk(ctx), newAccount(ctx, v1alpha1.PlatformX)
		var group sync.WaitGroup
		for i := range 4 {
			t := d.startFlow(ctx, visitor(fmt.Sprint("person-", i)), v1alpha1.PlatformX, "").agree(ctx, account)
			group.Go(func() {
				defer GinkgoRecover()
				_, err := t.arrive(ctx)
				Expect(err).NotTo(HaveOccurred())
			})
		}
		group.Wait()
		found, kept := d.all(ctx)
		Expect(found).To(HaveLen(1))
		for i := range kept {
			Expect(found[0].Annotations).To(HaveKey(v1alpha1.MadeSecretPrefix+kept[i].Name), "the manager deletes unused Secrets")
		}
		d.stored(ctx, found[0].Name)
	})

	It("continues when the browser disconnects, because the code is used up", func(ctx SpecContext) {
		d, account := newDesk(ctx), newAccount(ctx, v1alpha1.PlatformX)
		t := d.startFlow(ctx, visitor("ann"), v1alpha1.PlatformX, "").agree(ctx, account)
		gone, leave := context.WithCancel(ctx)
		leave()
		_, err := t.arrive(gone)
		Expect(err).NotTo(HaveOccurred())
	})
})

var _ = Describe("An invalid callback", func() {
	// unknown is the error for a flow that is not the visitor's. It is returned before any call to the platform.
	const unknown = "took longer than ten minutes, was started in another session, or has already ended"

	DescribeTable("connects nothing", func(ctx SpecContext, spoil func(ctx context.Context, t *trip), words ...string) {
		d, account := newDesk(ctx), newAccount(ctx, v1alpha1.PlatformX)
		t := d.startFlow(ctx, visitor("ann"), v1alpha1.PlatformX, "").agree(ctx, account)
		spoil(ctx, t)
		_, err := t.arrive(ctx)
		refuses(err, bridge.CodeValidation, append(words, "nothing was connected")...)
		found, kept := d.all(ctx)
		Expect(found).To(BeEmpty())
		Expect(kept).To(BeEmpty())
	},
		Entry("in another session: an attacker made the user follow the link of the attacker's flow", func(_ context.Context, t *trip) {
			t.who.Session = visitor("ann").Session
		}, unknown),
		Entry("without a session", func(_ context.Context, t *trip) { t.who.Session = "" }, unknown),
		Entry("by another user, in the same session", func(_ context.Context, t *trip) { t.who.Person = "bob" }, unknown),
		Entry("without the cookie", func(_ context.Context, t *trip) { clear(t.cookies) }, unknown),
		Entry("with a forged cookie", func(_ context.Context, t *trip) {
			for name := range t.cookies {
				t.cookies[name] = "made-up"
			}
		}, unknown),
		Entry("with the cookie of another flow under its name", func(ctx context.Context, t *trip) {
			other := t.desk.startFlow(ctx, t.who, v1alpha1.PlatformX, "")
			for name := range t.cookies {
				t.cookies[name] = other.started.Cookie.Value
			}
		}, unknown),
		Entry("without a state", func(_ context.Context, t *trip) { t.back.Del("state") }, unknown),
		Entry("with a state that does not name a cookie", func(_ context.Context, t *trip) { t.back.Set("state", "a;b=c") }, unknown),
		Entry("with another state", func(_ context.Context, t *trip) { t.back.Set("state", strings.Repeat("A", 26)) }, unknown),
		Entry("after more than ten minutes", func(_ context.Context, t *trip) { t.desk.clock.Step(10 * time.Minute) }, unknown),
		Entry("at the URL of another platform", func(_ context.Context, t *trip) { t.platform = v1alpha1.PlatformThreads }, "Threads", "X"),
		Entry("when the user declines", func(ctx context.Context, t *trip) {
			// The link on the page itself.
			_, _, page := get(ctx, t.started.Address)
			Expect(page).To(ContainSubstring("error=access_denied"))
			t.back = url.Values{"error": {"access_denied"}, "state": t.back["state"]}
		}, "not allowed on X", "connect the account again"),
		Entry("when the platform rejects the request", func(_ context.Context, t *trip) {
			t.back = url.Values{"error": {"invalid_scope"}, "error_description": {"<b>call this number</b>"}, "state": t.back["state"]}
		}, "invalid_scope", "administrator"),
		Entry("with an error text from an attacker", func(_ context.Context, t *trip) {
			t.back = url.Values{"error": {"Your account is blocked, call 555"}, "state": t.back["state"]}
		}, "the error unknown"),
		Entry("without a code", func(_ context.Context, t *trip) { t.back.Del("code") }, "no code"),
		Entry("with the code of another flow, whose verifier differs", func(ctx context.Context, t *trip) {
			other := t.desk.startFlow(ctx, t.who, v1alpha1.PlatformX, "").agree(ctx, newAccount(ctx, v1alpha1.PlatformX))
			t.back["code"] = other.back["code"]
		}, "no longer accepts"),
		Entry("with fewer permissions than requested", func(ctx context.Context, t *trip) {
			t.started.Address = strings.ReplaceAll(t.started.Address, "media.write+", "")
			t.agree(ctx, newAccount(ctx, v1alpha1.PlatformX))
		}, "media.write"),
	)

	It("does not connect an account when it is repeated", func(ctx SpecContext) {
		d, account := newDesk(ctx), newAccount(ctx, v1alpha1.PlatformX)
		t := d.startFlow(ctx, visitor("ann"), v1alpha1.PlatformX, "").agree(ctx, account)
		_, err := t.arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, err = t.arrive(ctx)
		refuses(err, bridge.CodeValidation, "no longer accepts")
		_, kept := d.all(ctx)
		Expect(kept).To(HaveLen(1))
	})

	It("checks the user's permission again", func(ctx SpecContext) {
		d, account := newDesk(ctx), newAccount(ctx, v1alpha1.PlatformX)
		may := true
		who := visitor("ann")
		who.May = func(_ context.Context, namespace string, _ connect.Verb) error {
			if may && namespace == d.namespace {
				return nil
			}
			return &bridge.Error{Code: bridge.CodeNotFound, Message: "no such team"}
		}
		t := d.startFlow(ctx, who, v1alpha1.PlatformX, "").agree(ctx, account)
		may = false
		out, err := t.arrive(ctx)
		refuses(err, bridge.CodeNotFound)
		Expect(out.Namespace).To(BeEmpty())
		_, err = d.Start(ctx, who, d.namespace, connect.Wanted{Platform: v1alpha1.PlatformX})
		refuses(err, bridge.CodeNotFound)
		_, err = d.Disconnect(ctx, who, d.namespace, "x-1")
		refuses(err, bridge.CodeNotFound)
		found, _ := d.all(ctx)
		Expect(found).To(BeEmpty())
	})

	It("checks the permission for its own writes: create, patch or delete", func(ctx SpecContext) {
		d, account := newDesk(ctx), newAccount(ctx, v1alpha1.PlatformX)
		var asked []connect.Verb
		var lacks connect.Verb
		who := visitor("ann")
		who.May = func(_ context.Context, _ string, verb connect.Verb) error {
			asked = append(asked, verb)
			if verb == lacks {
				return &bridge.Error{Code: bridge.CodeNotFound, Message: "no right"}
			}
			return nil
		}
		made := d.connect(ctx, who, v1alpha1.PlatformX, account).Connection
		Expect(asked).To(HaveEach(connect.Create))
		_, before := d.stored(ctx, made.Name)

		asked = nil
		_, err := d.startFlow(ctx, who, v1alpha1.PlatformX, made.Name).agree(ctx, account).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(asked).To(HaveEach(connect.Patch))

		lacks = connect.Patch
		_, err = d.Start(ctx, who, d.namespace, connect.Wanted{Reconnect: made.Name})
		refuses(err, bridge.CodeNotFound, "no right")
		_, after := d.stored(ctx, made.Name)
		Expect(after.Name).NotTo(Equal(before.Name))
		_, err = d.startFlow(ctx, who, v1alpha1.PlatformX, "").agree(ctx, account).arrive(ctx)
		refuses(err, bridge.CodeNotFound, "no right")
		_, last := d.stored(ctx, made.Name)
		Expect(last.Name).To(Equal(after.Name), "an account that turns out to be connected is not changed without the right")

		lacks = connect.Delete
		_, err = d.Disconnect(ctx, who, d.namespace, made.Name)
		refuses(err, bridge.CodeNotFound, "no right")
	})

	It("reports that the platform is unavailable", func(ctx SpecContext) {
		d, account := newDesk(ctx), newAccount(ctx, v1alpha1.PlatformX)
		t := d.startFlow(ctx, visitor("ann"), v1alpha1.PlatformX, "").agree(ctx, account)
		Expect(site.Fault(ctx, sandboxtest.Fault{Platform: "x", Operation: "*", Kind: "status", Status: http.StatusServiceUnavailable, Times: 1})).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(site.ClearFaults(ctx)).To(Succeed()) })
		_, err := t.arrive(ctx)
		refuses(err, bridge.CodeReadinessUnavailable, "X is having problems")
	})
})

var _ = Describe("Choosing one of several accounts", func() {
	// offered returns a trip that ended with a choice of several accounts, one of them a bakery.
	offered := func(ctx context.Context) (d *desk, t *trip, out connect.Outcome, bakery string) {
		GinkgoHelper()
		bakery, cafe := newAccount(ctx, v1alpha1.PlatformFacebook), newAccount(ctx, v1alpha1.PlatformFacebook)
		_, err := site.Account(ctx, "facebook", bakery, map[string]any{"display_name": "A bakery"})
		Expect(err).NotTo(HaveOccurred())
		_, err = site.Account(ctx, "facebook", cafe, map[string]any{"display_name": "The café", "pages": []string{bakery}})
		Expect(err).NotTo(HaveOccurred())
		d = newDesk(ctx)
		t = d.startFlow(ctx, visitor("ann"), v1alpha1.PlatformFacebook, "").agree(ctx, cafe)
		out, err = t.arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		return d, t, out, bakery
	}

	It("connects the selected account", func(ctx SpecContext) {
		d, t, out, bakery := offered(ctx)
		Expect(out.Connection).To(BeNil())
		Expect(out.Options).To(HaveLen(2))
		Expect(out.Options[0].Identity.DisplayName).To(Equal("A bakery"), "options are sorted by name")
		Expect(out.Options[0].Connection).To(BeEmpty())
		out, err := d.Choose(ctx, t.who, out.Pending, bakery)
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Connection.Spec.AccountID).To(Equal(bakery))
		_, secret := d.stored(ctx, out.Connection.Name)
		identity, err := registry[v1alpha1.PlatformFacebook].Identify(ctx, platforms.Token{Access: string(secret.Data[v1alpha1.CredentialsAccessToken])})
		Expect(err).NotTo(HaveOccurred())
		Expect(identity.AccountID).To(Equal(bakery))
	})

	It("needs no selection when the account is known", func(ctx SpecContext) {
		d, t, out, bakery := offered(ctx)
		first, err := d.Choose(ctx, t.who, out.Pending, bakery)
		Expect(err).NotTo(HaveOccurred())
		again := d.startFlow(ctx, t.who, v1alpha1.PlatformFacebook, first.Connection.Name).agree(ctx, out.Options[1].Identity.AccountID)
		renewed, err := again.arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(renewed.Connection.UID).To(Equal(first.Connection.UID))
	})

	DescribeTable("refuses", func(ctx SpecContext, spoil func(d *desk, who *connect.Visitor, pending, account *string), words string) {
		d, t, out, account := offered(ctx)
		spoil(d, &t.who, &out.Pending, &account)
		_, err := d.Choose(ctx, t.who, out.Pending, account)
		refuses(err, bridge.CodeValidation, words)
		found, _ := d.all(ctx)
		Expect(found).To(BeEmpty())
	},
		Entry("another session", func(_ *desk, who *connect.Visitor, _, _ *string) { who.Session = "another" }, "another session"),
		Entry("another user", func(_ *desk, who *connect.Visitor, _, _ *string) { who.Person = "bob" }, "another session"),
		Entry("a text that was not sealed here", func(_ *desk, _ *connect.Visitor, pending, _ *string) { *pending = "made-up" }, "start again"),
		Entry("an account that was not offered", func(_ *desk, _ *connect.Visitor, _, account *string) { *account = "902" }, "choose one"),
		Entry("a selection after ten minutes", func(d *desk, _ *connect.Visitor, _, _ *string) { d.clock.Step(10 * time.Minute) }, "ten minutes"),
	)
})

var _ = Describe("Connecting an account again", func() {
	It("keeps the connection and gives it a new Secret", func(ctx SpecContext) {
		d, who, account := newDesk(ctx), visitor("ann"), newAccount(ctx, v1alpha1.PlatformX)
		first := d.connect(ctx, who, v1alpha1.PlatformX, account)
		before, old := d.stored(ctx, first.Connection.Name)

		out, err := d.startFlow(ctx, visitor("bob"), v1alpha1.PlatformX, first.Connection.Name).agree(ctx, account).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Renewed).To(BeTrue())
		after, fresh := d.stored(ctx, first.Connection.Name)
		Expect(after.UID).To(Equal(before.UID), "posts still refer to it")
		Expect(fresh.Name).NotTo(Equal(old.Name))
		Expect(fresh.Data[v1alpha1.CredentialsAccessToken]).NotTo(Equal(old.Data[v1alpha1.CredentialsAccessToken]))
		Expect(metav1.IsControlledBy(fresh, after)).To(BeTrue())
		Expect(after.Annotations).To(And(
			HaveKey(v1alpha1.MadeSecretPrefix+old.Name), HaveKey(v1alpha1.MadeSecretPrefix+fresh.Name), HaveKeyWithValue(v1alpha1.AuthorAnnotation, "bob"),
		))
		Expect(after.Annotations[v1alpha1.ProbeAnnotation]).NotTo(Equal(before.Annotations[v1alpha1.ProbeAnnotation]), "the manager probes it immediately")
	})

	It("also happens when the account is connected as a new one", func(ctx SpecContext) {
		d, account := newDesk(ctx), newAccount(ctx, v1alpha1.PlatformX)
		first := d.connect(ctx, visitor("ann"), v1alpha1.PlatformX, account)
		second := d.connect(ctx, visitor("ann"), v1alpha1.PlatformX, account)
		Expect(second.Renewed).To(BeTrue())
		Expect(second.Connection.UID).To(Equal(first.Connection.UID))
	})

	It("adopts a connection that a user applied under another name", func(ctx SpecContext) {
		d, account := newDesk(ctx), newAccount(ctx, v1alpha1.PlatformX)
		applied := &v1alpha1.Connection{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "demo-x"},
			Spec:       v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: account, CredentialsSecretRef: v1alpha1.LocalReference{Name: "by-hand"}},
		}
		Expect(env.Client.Create(ctx, applied)).To(Succeed())
		Eventually(func() int { return len(connections.List(d.namespace)) }).Should(Equal(1))
		out := d.connect(ctx, visitor("ann"), v1alpha1.PlatformX, account)
		Expect(out.Renewed).To(BeTrue())
		Expect(out.Connection.Name).To(Equal("demo-x"))
		d.stored(ctx, "demo-x")
		found, _ := d.all(ctx)
		Expect(found).To(HaveLen(1))
	})

	It("rejects another account, and names both", func(ctx SpecContext) {
		d, who, account := newDesk(ctx), visitor("ann"), newAccount(ctx, v1alpha1.PlatformX)
		other := newAccount(ctx, v1alpha1.PlatformX)
		first := d.connect(ctx, who, v1alpha1.PlatformX, account)
		_, before := d.stored(ctx, first.Connection.Name)
		_, err := d.startFlow(ctx, who, v1alpha1.PlatformX, first.Connection.Name).agree(ctx, other).arrive(ctx)
		refuses(err, bridge.CodeConflict, "nothing was changed", account, other)
		_, after := d.stored(ctx, first.Connection.Name)
		Expect(after.Name).To(Equal(before.Name))
	})

	It("needs an existing connection", func(ctx SpecContext) {
		d := newDesk(ctx)
		_, err := d.Start(ctx, visitor("ann"), d.namespace, connect.Wanted{Platform: v1alpha1.PlatformX, Reconnect: "x-gone"})
		refuses(err, bridge.CodeNotFound, "x-gone")
	})

	It("completes a connection without a Secret", func(ctx SpecContext) {
		d, account := newDesk(ctx), newAccount(ctx, v1alpha1.PlatformX)
		first := d.connect(ctx, visitor("ann"), v1alpha1.PlatformX, account)
		_, secret := d.stored(ctx, first.Connection.Name)
		// The state that an apiserver leaves behind if it dies before it creates the Secret.
		Expect(env.Client.Delete(ctx, secret)).To(Succeed())
		out := d.connect(ctx, visitor("ann"), v1alpha1.PlatformX, account)
		Expect(out.Connection.UID).To(Equal(first.Connection.UID))
		d.stored(ctx, first.Connection.Name)
	})
})

// closed is a SecretCreator that fails with err.
type closed struct{ err error }

func (c closed) Create(context.Context, *corev1.Secret) error { return c.err }

// overtaken is a SecretCreator that calls meanwhile and then fails.
type overtaken struct{ meanwhile func() }

func (o *overtaken) Create(context.Context, *corev1.Secret) error {
	o.meanwhile()
	return errors.New("etcd has no leader")
}

var _ = Describe("Connecting fails", func() {
	It("if the plan's accounts are used up", func(ctx SpecContext) {
		d, who := newDesk(ctx), visitor("ann")
		d.team = &v1alpha1.Team{}
		d.team.Spec.Subscription.Plan = v1alpha1.PlanStarter
		late := d.startFlow(ctx, who, v1alpha1.PlatformX, "")
		var last connect.Outcome
		var account string
		for range 10 {
			account = newAccount(ctx, v1alpha1.PlatformX)
			last = d.connect(ctx, who, v1alpha1.PlatformX, account)
		}
		Eventually(func() int { return len(connections.List(d.namespace)) }).Should(Equal(10))

		_, err := d.Start(ctx, who, d.namespace, connect.Wanted{Platform: v1alpha1.PlatformX})
		refuses(err, bridge.CodeSubscriptionRequired, "10 connected accounts")
		_, err = late.agree(ctx, newAccount(ctx, v1alpha1.PlatformX)).arrive(ctx)
		refuses(err, bridge.CodeSubscriptionRequired, "10 connected accounts")
		_, err = d.startFlow(ctx, who, v1alpha1.PlatformX, last.Connection.Name).agree(ctx, account).arrive(ctx)
		Expect(err).NotTo(HaveOccurred(), "reconnecting needs no free place in the plan")
	})

	DescribeTable("if the Secret cannot be stored", func(ctx SpecContext, cause error, told bool) {
		d, account := newDesk(ctx, func(c *connect.Config) { c.Secrets = closed{cause} }), newAccount(ctx, v1alpha1.PlatformX)
		_, err := d.startFlow(ctx, visitor("ann"), v1alpha1.PlatformX, "").agree(ctx, account).arrive(ctx)
		if told {
			refuses(err, bridge.CodeReadinessUnavailable, d.namespace, "Team")
		} else {
			Expect(err).To(MatchError(ContainSubstring("etcd")))
		}
		found, _ := d.all(ctx)
		Expect(found).To(BeEmpty(), "a connection without credentials remains")
	},
		Entry("for lack of a permission", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errors.New("no binding yet")), true),
		Entry("because the API server is unavailable", errors.New("etcd has no leader"), false),
	)

	It("without affecting the connection that another tab has completed", func(ctx SpecContext) {
		account := newAccount(ctx, v1alpha1.PlatformX)
		late := &overtaken{}
		d := newDesk(ctx, func(c *connect.Config) { c.Secrets = late })
		other := &desk{Service: connect.New(d.Config), namespace: d.namespace, clock: d.clock, log: d.log}
		other.Secrets = secrets
		late.meanwhile = func() { other.connect(ctx, visitor("bob"), v1alpha1.PlatformX, account) }
		_, err := d.startFlow(ctx, visitor("ann"), v1alpha1.PlatformX, "").agree(ctx, account).arrive(ctx)
		Expect(err).To(MatchError(ContainSubstring("etcd")))
		d.stored(ctx, connect.ConnectionName(d.namespace, v1alpha1.PlatformX, account))
	})

	It("without affecting a connection's old credentials", func(ctx SpecContext) {
		d, account := newDesk(ctx), newAccount(ctx, v1alpha1.PlatformX)
		first := d.connect(ctx, visitor("ann"), v1alpha1.PlatformX, account)
		_, before := d.stored(ctx, first.Connection.Name)
		t := d.startFlow(ctx, visitor("ann"), v1alpha1.PlatformX, first.Connection.Name).agree(ctx, account)
		d.Secrets = closed{errors.New("etcd has no leader")}
		_, err := t.arrive(ctx)
		Expect(err).To(HaveOccurred())
		_, after := d.stored(ctx, first.Connection.Name)
		Expect(after.Name).To(Equal(before.Name))
	})
})

var _ = Describe("Disconnecting an account", func() {
	It("deletes the connection and describes the consequences", func(ctx SpecContext) {
		d, who, account := newDesk(ctx), visitor("ann"), newAccount(ctx, v1alpha1.PlatformX)
		out := d.connect(ctx, who, v1alpha1.PlatformX, account)
		gone, err := d.Disconnect(ctx, who, d.namespace, out.Connection.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(gone.Connection.UID).To(Equal(out.Connection.UID))
		Expect(gone.Message).To(And(ContainSubstring("an hour after their time"), ContainSubstring("settings on X")))
		found, _ := d.all(ctx)
		Expect(found).To(BeEmpty())
		_, err = d.Disconnect(ctx, who, d.namespace, out.Connection.Name)
		refuses(err, bridge.CodeNotFound)

		again := d.connect(ctx, who, v1alpha1.PlatformX, account)
		Expect(again.Connection.Name).To(Equal(out.Connection.Name), "waiting posts continue with the reconnected account")
	})
})
