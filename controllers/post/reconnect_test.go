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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// keepConnections runs the connection controller for one team, which runs in the same process in an installation.
func (t team) keepConnections() *manager {
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

// forbidding is X that refuses to publish for its accounts.
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

var _ = Describe("A token that is refused when a post is sent", Ordered, func() {
	var (
		m, keeper *manager
		t         team
	)
	BeforeAll(func() { m = startManager(fromSecrets) })
	AfterAll(func() { m.stop() })
	BeforeEach(func(ctx SpecContext) {
		t = newTeam(ctx)
		t.putSecret(ctx, t.account)
		keeper = t.keepConnections()
	})
	AfterEach(func() { keeper.stop() })

	It("is renewed if it has ended, and the post goes out", func(ctx SpecContext) {
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "token_expired"})
		t.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired"})
		p := posted(ctx, t.post(ctx, "after the renewal"))
		Expect(t.published(ctx)).To(Equal([]string{"after the renewal"}))
		Expect(read(ctx, p).Status.Targets[0].Attempt.Number).To(BeEquivalentTo(2))
	})

	It("has the post wait if it was revoked, says why on the connection, and lets it go when the account is connected again", func(ctx SpecContext) {
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
		again, err := platform.Account(ctx, "x", t.account.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		t.putSecret(ctx, again)
		t.probe(ctx, "somebody asks")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"after the reconnect"}))
	})

	It("is shown on the connection also if the platform answers questions, until a post succeeds", func(ctx SpecContext) {
		var refuses atomic.Bool
		refuses.Store(true)
		m.stop()
		m = startManager(func(o *post.Options) {
			x, ok := o.Platforms[v1alpha1.PlatformX].(fast)
			Expect(ok).To(BeTrue())
			o.Platforms = platforms.Registry{v1alpha1.PlatformX: forbidding{x, &refuses}}
		})
		Eventually(t.condition(ctx, v1alpha1.ConditionReady)).Should(ContainSubstring("connected as"), "what comes later is not taken for the first look's")
		p := t.post(ctx, "with all permissions")
		Eventually(t.condition(ctx, v1alpha1.ConditionPublishingRefused)).Should(Equal("Refused: a permission is missing"))
		Expect(t.condition(ctx, v1alpha1.ConditionReady)()).To(HavePrefix(v1alpha1.ReasonConnected))
		refuses.Store(false)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Eventually(t.condition(ctx, v1alpha1.ConditionPublishingRefused)).Should(BeEmpty())
	})
})
