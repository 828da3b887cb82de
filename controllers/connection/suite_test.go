// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

func TestConnectionController(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Connection controller")
}

// The manager watches only the namespaces "managed", "limited-team" and "homeless", so that specs that call Reconcile
// step by step have a namespace to themselves.
const (
	managed = "managed"
	byHand  = "by-hand"
	// limitedTeam is the namespace of a team whose plan has limits.
	limitedTeam = "limited-team"
	// homeless has no team until a spec creates one.
	homeless = "homeless"
)

var (
	k8s         client.WithWatch
	server      *rest.Config
	site        sandboxtest.Client
	platform    platforms.Platform
	serial      atomic.Int64
	isTransient *envtest.Passes
	// running is the reconciler of the manager.
	running *connection.Reconciler
)

var _ = BeforeSuite(func(ctx SpecContext) {
	env := suite.Start()
	server = env.Config
	k8s = suite.Must(client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme}))
	Expect(env.Team(ctx, managed)).To(Succeed())
	for _, namespace := range []string{byHand, homeless} {
		Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	}

	site = sandboxtest.Start(GinkgoT())
	onX := x.New(x.Config{APIURL: site.URL + "/x", ClientID: "herald"}, transport.New(transport.Options{}))
	platform = onX

	mgr := suite.Manager(env, env.Config, managed, limitedTeam, homeless)
	teams := suite.Must(quota.NewTeams(ctx, mgr.GetCache(), mgr.GetFieldIndexer()))
	isTransient = &envtest.Passes{Owned: teams.Owned}
	running = suite.Must(connection.New(connection.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Events: mgr.GetEventRecorder("herald-connection"),
		Owned:     isTransient.IsOwned,
		Owner:     teams.Owner,
		Platforms: platforms.Registry{v1alpha1.PlatformX: revocable{onX}},
		Store:     credentials.NewStore(mgr.GetAPIReader(), mgr.GetClient(), clock.RealClock{}, "the manager", apps),
	}))
	Expect(running.SetupWithManager(mgr)).To(Succeed())
	suite.Run(mgr)
})

// apps are the apps of the installation.
var apps = credentials.Apps{
	v1alpha1.PlatformX:       {ID: "herald", Secret: func() string { return "the app's secret" }},
	v1alpha1.PlatformThreads: {ID: "herald", Secret: func() string { return "the app's secret" }},
}

// account is an account in the sandbox, with its Connection and Secret.
type account struct {
	sandboxtest.Account
	conn   *v1alpha1.Connection
	secret *corev1.Secret
}

// newAccount creates an account without connecting it.
func newAccount(ctx context.Context, namespace string, settings map[string]any) *account {
	GinkgoHelper()
	id := fmt.Sprint(1000 + serial.Add(1))
	created := suite.Must(site.Account(ctx, "x", id, settings))
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "acme-" + id}
	a := &account{
		Account: created,
		conn: &v1alpha1.Connection{ObjectMeta: meta, Spec: v1alpha1.ConnectionSpec{
			Platform: v1alpha1.PlatformX, AccountID: id, CredentialsSecretRef: v1alpha1.LocalReference{Name: meta.Name},
		}},
		secret: &corev1.Secret{ObjectMeta: meta, StringData: tokensOf(created)},
	}
	// Remaining connections would keep calling the sandbox.
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // the context of the spec has ended by then
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, a.conn))).To(Succeed())
		Expect(site.ClearFaults(ctx)).To(Succeed())
	})
	return a
}

// newExpired is like newAccount, but the platform refuses the next use of the token as expired.
func newExpired(ctx context.Context, namespace string) *account {
	GinkgoHelper()
	a := newAccount(ctx, namespace, nil)
	a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 1})
	return a
}

// connected creates an account with a connection that the manager has examined.
func connected(ctx context.Context, namespace string) *account {
	GinkgoHelper()
	a := newAccount(ctx, namespace, nil).create(ctx)
	Eventually(a.state(ctx)).Should(Equal("True Connected"))
	return a
}

func tokensOf(a sandboxtest.Account) map[string]string {
	return map[string]string{
		v1alpha1.CredentialsAccessToken: a.AccessToken, v1alpha1.CredentialsRefreshToken: a.RefreshToken,
		v1alpha1.CredentialsExpiresAt: a.ExpiresAt.UTC().Format(time.RFC3339),
	}
}

func (a *account) create(ctx context.Context) *account {
	GinkgoHelper()
	Expect(k8s.Create(ctx, a.secret)).To(Succeed())
	Expect(k8s.Create(ctx, a.conn)).To(Succeed())
	return a
}

func (a *account) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(a.conn)}
}

func (a *account) fault(ctx context.Context, f sandboxtest.Fault) {
	GinkgoHelper()
	f.Platform, f.Account = "x", a.ID
	Expect(site.Fault(ctx, f)).To(Succeed())
}

// probe requests an examination, as the apiserver does, and returns the value of the request.
func (a *account) probe(ctx context.Context) string {
	GinkgoHelper()
	token := fmt.Sprint("probe-", serial.Add(1))
	base := a.read(ctx).DeepCopy()
	a.conn.Annotations = map[string]string{v1alpha1.ProbeAnnotation: token}
	Expect(k8s.Patch(ctx, a.conn, client.MergeFrom(base))).To(Succeed())
	return token
}

func (a *account) read(ctx context.Context) *v1alpha1.Connection {
	GinkgoHelper()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(a.conn), a.conn)).To(Succeed())
	return a.conn
}

// copied creates the working copy of the account without calling the platform.
func (a *account) copied(ctx context.Context) credentials.Credentials {
	GinkgoHelper()
	store := credentials.NewStore(k8s, k8s, clock.RealClock{}, "copier", apps)
	found := suite.Must(store.Find(ctx, a.conn))
	return suite.Must(store.Seed(ctx, a.conn, found.Input))
}

// working reads the account's working copy.
func (a *account) working(ctx context.Context) *corev1.Secret {
	GinkgoHelper()
	var secret corev1.Secret
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: a.conn.Namespace, Name: credentials.WorkingName(a.conn)}, &secret)).To(Succeed())
	return &secret
}

// stored reads the user's Secret.
func (a *account) stored(ctx context.Context) *corev1.Secret {
	GinkgoHelper()
	var secret corev1.Secret
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(a.secret), &secret)).To(Succeed())
	return &secret
}

// state returns a function that reads the Ready condition as "status reason", and the last request that was handled.
func (a *account) state(ctx context.Context) func() string {
	return func() string {
		c := a.read(ctx)
		ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || c.Status.ObservedGeneration != c.Generation {
			return ""
		}
		text := string(ready.Status) + " " + ready.Reason
		if c.Status.LastHandledProbe != "" {
			text += " " + c.Status.LastHandledProbe
		}
		return text
	}
}

// calls returns the number of requests to the sandbox. Specs run one after another, so the difference between two
// counts belongs to one spec.
func calls(ctx context.Context, operation string) int {
	GinkgoHelper()
	counts := suite.Must(site.Calls(ctx, "x"))
	return counts[operation]
}
