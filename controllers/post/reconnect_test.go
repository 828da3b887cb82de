// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// runConnectionController runs the connection controller for one team. In an installation, it runs in the same process.
func (t team) runConnectionController() *manager {
	mgr := suite.Must(ctrl.NewManager(env.Config, ctrl.Options{
		Scheme: env.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{t.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	}))
	out := transport.New(transport.Options{Registerer: prometheus.NewRegistry()})
	r := suite.Must(connection.New(connection.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Events: mgr.GetEventRecorder("herald-connection"),
		Owned:     envtest.EveryNamespace,
		Platforms: platforms.Registry{v1alpha1.PlatformX: x.New(x.Config{APIURL: platform.URL + "/x", ClientID: "herald"}, out)},
		Store:     credentials.NewStore(mgr.GetAPIReader(), mgr.GetClient(), clock.RealClock{}, "keeper", nil),
	}))
	Expect(r.SetupWithManager(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	m := &manager{cancel: cancel, done: make(chan error, 1)}
	go func() { m.done <- mgr.Start(ctx) }()
	return m
}

// putSecret stores the account's tokens in the Secret of the team's connection, as a reconnect does.
func (t team) putSecret(ctx context.Context, account sandboxtest.Account) {
	GinkgoHelper()
	var secret corev1.Secret
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "x"}, &secret)).To(Succeed())
	secret.StringData = map[string]string{
		v1alpha1.CredentialsAccessToken: account.AccessToken, v1alpha1.CredentialsRefreshToken: account.RefreshToken,
		v1alpha1.CredentialsExpiresAt: account.ExpiresAt.UTC().Format(time.RFC3339),
	}
	Expect(k8s.Update(ctx, &secret)).To(Succeed())
}

// probe requests a probe of the team's connection.
func (t team) probe(ctx context.Context, token string) {
	GinkgoHelper()
	conn := t.connection(ctx)
	base := conn.DeepCopy()
	conn.Annotations = map[string]string{v1alpha1.ProbeAnnotation: token}
	Expect(k8s.Patch(ctx, conn, client.MergeFrom(base))).To(Succeed())
}

// condition returns a condition of the team's connection as "reason: message", or "" if there is none.
func (t team) condition(ctx context.Context, kind string) func() string {
	return func() string {
		conn := t.connection(ctx)
		if c := meta.FindStatusCondition(conn.Status.Conditions, kind); c != nil {
			return c.Reason + ": " + c.Message
		}
		return ""
	}
}

// forbidding is a variant of X that refuses to publish for its accounts.
type forbidding struct {
	fast

	refuses *atomic.Bool
}

func (f forbidding) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	if f.refuses.Load() {
		return platforms.Result{Outcome: platforms.Refused, Err: platforms.Errorf(platforms.ClassReconnect, "a permission is missing")}
	}
	return f.fast.Publish(ctx, job)
}

var _ = Describe("A token that is rejected during publication", Ordered, func() {
	var (
		m, keeper *manager
		t         team
	)
	BeforeAll(func() { m = startManager(fromSecrets) })
	AfterAll(func() { m.stop() })
	BeforeEach(func(ctx SpecContext) {
		t = newTeam(ctx)
		t.putSecret(ctx, t.account)
		keeper = t.runConnectionController()
	})
	AfterEach(func() { keeper.stop() })

	It("is renewed if it has expired, and the post is published", func(ctx SpecContext) {
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "token_expired"})
		t.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired"})
		p := posted(ctx, t.post(ctx, "after the renewal"))
		Expect(t.published(ctx)).To(Equal([]string{"after the renewal"}))
		Expect(read(ctx, p).Status.Targets[0].Attempt.Number).To(BeEquivalentTo(2))
	})

	It("makes the post wait if it was revoked, is reported on the connection, and continues when the account is reconnected", func(ctx SpecContext) {
		for _, operation := range []string{"publish", "identity", "refresh_token"} {
			t.fault(ctx, sandboxtest.Fault{Operation: operation, Kind: "token_revoked", Times: 100})
		}
		p := t.post(ctx, "after the reconnect")
		Eventually(t.condition(ctx, v1alpha1.ConditionReady)).Should(And(HavePrefix(v1alpha1.ReasonRevoked), ContainSubstring("connect the account again")))
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonConnectionNotReady))
		Expect(t.published(ctx)).To(BeEmpty())

		m.stop()
		m = startManager(fromSecrets)
		Expect(platform.ClearFaults(ctx)).To(Succeed())
		again := suite.Must(platform.Account(ctx, "x", t.account.ID, nil))
		t.putSecret(ctx, again)
		t.probe(ctx, "somebody asks")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"after the reconnect"}))
	})

	It("is reported on the connection until a post succeeds, even if the platform answers other requests", func(ctx SpecContext) {
		var refuses atomic.Bool
		refuses.Store(true)
		m.stop()
		m = startManager(func(o *post.Options) {
			x, ok := o.Platforms[v1alpha1.PlatformX].(fast)
			Expect(ok).To(BeTrue())
			o.Platforms = platforms.Registry{v1alpha1.PlatformX: forbidding{x, &refuses}}
		})
		Eventually(t.condition(ctx, v1alpha1.ConditionReady)).Should(ContainSubstring("connected as"), "a later probe is not mistaken for the first")
		p := t.post(ctx, "with all permissions")
		Eventually(t.condition(ctx, v1alpha1.ConditionPublishingRefused)).Should(Equal("Refused: a permission is missing"))
		Expect(t.condition(ctx, v1alpha1.ConditionReady)()).To(HavePrefix(v1alpha1.ReasonConnected))
		refuses.Store(false)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Eventually(t.condition(ctx, v1alpha1.ConditionPublishingRefused)).Should(BeEmpty())
	})
})

// fromSecrets makes a manager read tokens as in an installation.
func fromSecrets(o *post.Options) {
	o.Tokens = connection.NewTokens(credentials.NewStore(o.APIReader, o.Client, clock.RealClock{}, "poster", nil), o.Client, clock.RealClock{})
}

// stranger creates another account of the platform, whose token then replaces the token in a team's Secret.
func stranger(ctx context.Context, id string) sandboxtest.Account {
	GinkgoHelper()
	account := suite.Must(platform.Account(ctx, "x", id+"99", nil))
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

var _ = Describe("Credentials that a user replaces in their Secret", func() {
	var t team
	// look runs the connection controller until the spec ends.
	look := func() {
		keeper := t.runConnectionController()
		DeferCleanup(func() { keeper.stop() })
	}
	// connected waits until the account is connected, and stops the connection controller. The next probe would be an
	// hour later.
	connected := func(ctx context.Context) {
		GinkgoHelper()
		t.putSecret(ctx, t.account)
		keeper := t.runConnectionController()
		Eventually(t.condition(ctx, v1alpha1.ConditionReady)).Should(ContainSubstring("connected as"))
		keeper.stop()
	}
	BeforeEach(func(ctx SpecContext) {
		t = newTeam(ctx)
		connected(ctx)
		runManager(fromSecrets)
	})

	It("are not used before the platform has identified their account, and never for another account", func(ctx SpecContext) {
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

	It("are not used from the working copy either, which only Herald should write", func(ctx SpecContext) {
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
		t.probe(ctx, "it is recreated")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(publishesBy(other)).To(BeZero())
	})

	It("are probed immediately, and the post is published if they belong to the account", func(ctx SpecContext) {
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

// locking is a variant of X that has locked one account, and checks it again after a few seconds.
type locking struct {
	fast

	account *atomic.Value
	calls   *atomic.Int32
}

func (l locking) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	if job.Account.ID != l.account.Load() {
		return l.fast.Publish(ctx, job)
	}
	l.calls.Add(1)
	return platforms.Result{Outcome: platforms.Refused, Err: &platforms.Error{
		Class: platforms.ClassRestricted, Subject: platforms.SubjectAccount, Code: "326",
		Problem: "X has temporarily locked this account", Remedy: "sign in at x.com", RetryAt: time.Now().Add(4 * time.Second),
	}}
}

var _ = Describe("An account that its platform has locked", func() {
	const words = "X has temporarily locked this account; sign in at x.com"

	It("is reported by its Connection, delays only its own posts, and continues when it is unlocked", func(ctx SpecContext) {
		t, other := newTeam(ctx), newTeam(ctx)
		var locked atomic.Value
		var calls atomic.Int32
		locked.Store(t.account.ID)
		runManager(func(o *post.Options) {
			inner, ok := o.Platforms[v1alpha1.PlatformX].(fast)
			Expect(ok).To(BeTrue())
			o.Platforms = platforms.Registry{v1alpha1.PlatformX: locking{inner, &locked, &calls}}
		})

		first := t.post(ctx, "the first one")
		Eventually(t.condition(ctx, v1alpha1.ConditionPublishingRefused)).Should(Equal("AccountRestricted: " + words))
		Eventually(func() string { return readyReason(ctx, first) }).Should(Equal(v1alpha1.ReasonAccountRestricted))
		Expect(read(ctx, first).Status.Targets[0].Message).To(HavePrefix(words))
		conn := t.connection(ctx)
		Expect(conn.Status.RateLimitedUntil).NotTo(BeNil(), "the end of the pause is recorded")
		Expect(conn.Status.AppRateLimitedUntil).To(BeNil(), "other accounts of the app are not limited")
		Eventually(func() []string { return t.events(ctx, conn) }).Should(ContainElement(
			And(HavePrefix("AccountRestricted: nothing is sent before "), HaveSuffix(words))))

		second, foreign := t.post(ctx, "the second one"), other.post(ctx, "of another account")
		Eventually(phase(ctx, foreign)).Should(Equal(v1alpha1.PhasePosted))
		Eventually(func() string { return readyReason(ctx, second) }).Should(Equal(v1alpha1.ReasonAccountRestricted))
		Expect(read(ctx, second).Status.Targets[0].Message).To(And(ContainSubstring(`connection "x"`), ContainSubstring(words)))
		Expect(read(ctx, second).Status.Targets[0].Attempt).To(BeNil(), "no call was made")

		locked.Store("")
		Eventually(phase(ctx, first), 20*time.Second).Should(Equal(v1alpha1.PhasePosted))
		Eventually(phase(ctx, second), 20*time.Second).Should(Equal(v1alpha1.PhasePosted))
		Eventually(t.condition(ctx, v1alpha1.ConditionPublishingRefused)).Should(BeEmpty())
		Expect(calls.Load()).To(BeNumerically("<=", 2), "a locked account is called once or twice")
	})

	It("is distinguished from an unknown error code, which is counted", func(ctx SpecContext) {
		t := newTeam(ctx)
		registry := prometheus.NewRegistry()
		runManager(func(o *post.Options) {
			inner, ok := o.Platforms[v1alpha1.PlatformX].(fast)
			Expect(ok).To(BeTrue())
			o.Platforms = platforms.Registry{v1alpha1.PlatformX: odd{inner}}
			o.Unlisted = unlisted.New(registry)
		})
		p := t.post(ctx, "with an odd answer")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Status.Targets[0].Message).To(ContainSubstring("the error 999"))
		Expect(t.condition(ctx, v1alpha1.ConditionPublishingRefused)()).To(BeEmpty(), "the account itself has no problem")
		Eventually(func() ([]*dto.MetricFamily, error) { return registry.Gather() }).Should(ContainElement(HaveField("Metric", ContainElement(And(
			HaveField("Label", ContainElement(And(HaveField("Name", HaveValue(Equal("code"))), HaveField("Value", HaveValue(Equal("999")))))),
			HaveField("Label", ContainElement(And(HaveField("Name", HaveValue(Equal("operation"))), HaveField("Value", HaveValue(Equal(unlisted.Publish)))))),
			HaveField("Counter.Value", HaveValue(BeNumerically(">=", 1))),
		)))))
	})
})

// odd is a variant of X that refuses each post with a code that is missing from the error table.
type odd struct{ fast }

func (odd) Publish(context.Context, platforms.Job) platforms.Result {
	return platforms.Result{Outcome: platforms.Refused, Err: &platforms.Error{
		Class: platforms.ClassPermanent, Problem: "X refused the request with the error 999", Code: "999", Unlisted: true,
	}}
}
