// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deletions_test deletes Herald's objects in a control plane that, like a cluster, has the namespace and
// garbage collection controllers. Every deletion must complete, regardless of the state of other components. The quota
// controller runs as well, and counts the teams' budgets.
package deletions_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/managertest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/storetest"
	"github.com/herald-social/herald/test/suite"
)

func TestDeletions(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Deletions")
}

var (
	admin    client.Client
	platform sandboxtest.Client
	serial   atomic.Int64

	installation managertest.Installation
	// manager runs during a spec unless the spec stops it.
	manager *managertest.Process
)

var _ = BeforeSuite(func(ctx SpecContext) {
	env := suite.Start(envtest.ControllerManager())
	// The namespace controller rechecks a non-empty namespace every eight seconds.
	SetDefaultEventuallyTimeout(2 * time.Minute)
	admin = env.Client
	Expect(cluster.ApplyFolders(ctx, admin, filepath.Join(envtest.Root(), "config", "rbac"))).To(Succeed())
	platform = sandboxtest.Start(GinkgoT())
	installation = managertest.Installation{
		Env: env, Program: managertest.Build(GinkgoT()), SandboxURL: platform.URL, Store: storetest.Start(GinkgoT()),
	}
})

var _ = BeforeEach(startManager)

func startManager() {
	GinkgoHelper()
	manager = installation.Manager(GinkgoT(), installation.Config(GinkgoT()))
}

// team is a team with an account on X.
type team struct {
	name    string
	account sandboxtest.Account
}

func newTeam(ctx context.Context, change ...func(*v1alpha1.Team)) *team {
	GinkgoHelper()
	t := &team{name: fmt.Sprintf("team-%d", serial.Add(1))}
	created := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: t.name}, Spec: v1alpha1.TeamSpec{
		Namespace: t.name, Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanStarter, State: v1alpha1.SubscriptionActive},
	}}
	for _, edit := range change {
		edit(created)
	}
	t.account = suite.Must(platform.Account(ctx, "x", fmt.Sprintf("19%08d", serial.Add(1)), nil))
	t.make(ctx, created)
	return t
}

// make creates the team in its namespace, and connects the account.
func (t *team) make(ctx context.Context, created *v1alpha1.Team) {
	GinkgoHelper()
	Expect(admin.Create(ctx, created)).To(Succeed())
	t.ready(ctx, created, &created.Status.Conditions)
	conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "x"}}
	Expect(cluster.CreateConnection(ctx, admin, conn, v1alpha1.PlatformX, cluster.Account{
		ID: t.account.ID, AccessToken: t.account.AccessToken, RefreshToken: t.account.RefreshToken,
		ExpiresAt: t.account.ExpiresAt.UTC().Format(time.RFC3339),
	})).To(Succeed())
	t.ready(ctx, conn, &conn.Status.Conditions)
}

func (t *team) ready(ctx context.Context, object client.Object, conditions *[]metav1.Condition) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(*conditions, v1alpha1.ConditionReady)).To(BeTrue(), "%+v", *conditions)
	}).Should(Succeed())
}

func (t *team) fault(ctx context.Context, operation, kind string, times int) {
	GinkgoHelper()
	Expect(platform.Fault(ctx, sandboxtest.Fault{Platform: "x", Account: t.account.ID, Operation: operation, Kind: kind, Times: times, Status: 503})).To(Succeed())
}

// post applies a post as kubectl does.
func (t *team) post(ctx context.Context, text string, change ...func(*v1alpha1.Post)) *v1alpha1.Post {
	GinkgoHelper()
	p := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: fmt.Sprintf("p-%d", serial.Add(1))},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText,
			Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: text}},
		},
	}
	for _, edit := range change {
		edit(p)
	}
	Expect(admin.Create(ctx, p)).To(Succeed())
	return p
}

func phase(ctx context.Context, p *v1alpha1.Post) func() (v1alpha1.PostPhase, error) {
	return func() (v1alpha1.PostPhase, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(p), p)
		return p.Status.Phase, err
	}
}

// inDoubt creates a post whose response is lost, on a platform that does not answer lookups. Herald would look it up
// for an hour.
func (t *team) inDoubt(ctx context.Context) *v1alpha1.Post {
	GinkgoHelper()
	t.fault(ctx, "publish", "drop_after", 1)
	t.fault(ctx, "list", "status", 10_000)
	p := t.post(ctx, fmt.Sprintf("lost %d", serial.Add(1)))
	Eventually(func() (bool, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(p), p)
		open := len(p.Status.Targets) == 1 && p.Status.Targets[0].Attempt != nil && p.Status.Targets[0].Attempt.Outcome == ""
		return open && p.Status.Targets[0].Attempt.EndedAt != nil, err
	}).Should(BeTrue(), "a call of unknown outcome is open")
	return p
}

// events returns the messages of the events in a namespace that have the given reason.
func events(ctx context.Context, namespace, reason string) func() ([]string, error) {
	return func() ([]string, error) {
		var found corev1.EventList
		err := admin.List(ctx, &found, client.InNamespace(namespace))
		var messages []string
		for i := range found.Items {
			if found.Items[i].Reason == reason {
				messages = append(messages, found.Items[i].Message)
			}
		}
		return messages, err
	}
}
