// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/team"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/test/suite"
)

func TestTeamController(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Team controller")
}

var (
	k8s client.Client
	// asManager and limited have the manager's permissions.
	asManager client.WithWatch
	limited   *rest.Config
	serial    atomic.Int64
	// held is the archive, and stop the suspend switch of all teams.
	held archives
	stop = &installation.Suspension{}
)

// The manager's account and the names in config/rbac.
var (
	manager = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "herald-system", Name: "herald-manager"}
	names   = team.Names{
		RoleBinding: "herald-manager-secrets", ClusterRole: "herald-team-secrets",
		CredentialsBinding: "herald-apiserver-credentials", CredentialsRole: "herald-team-credentials",
	}
	apiserver = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "herald-system", Name: "herald-apiserver"}
)

var _ = BeforeSuite(func() {
	env := suite.Start()
	k8s = env.Client

	held = startArchives()
	// The manager runs with the permissions of an installation and no others.
	apply(env.Client, "manager/role.yaml")
	apply(env.Client, "team_secrets_role.yaml")
	apply(env.Client, "policies.yaml")
	Expect(env.Client.Create(context.Background(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "herald-manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "herald-manager"},
		Subjects:   []rbacv1.Subject{manager},
	})).To(Succeed())
	limited = rest.CopyConfig(env.Config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + manager.Namespace + ":" + manager.Name}
	asManager = suite.Must(client.NewWithWatch(limited, client.Options{Scheme: env.Scheme}))

	mgr := suite.Must(ctrl.NewManager(limited, ctrl.Options{
		Scheme: env.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&rbacv1.RoleBinding{}: names.RoleBindings(), &corev1.ResourceQuota{}: team.Quotas(),
		}},
	}))
	teams := suite.Must(quota.NewTeams(context.Background(), mgr.GetCache(), mgr.GetFieldIndexer()))
	r := suite.Must(team.New(team.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Events: mgr.GetEventRecorder("herald-team"),
		Manager: manager, APIServer: apiserver, ManagerNamespace: manager.Namespace, Names: names, Claimants: teams.Claimants,
		SuspendAll: stop, SuspensionRetention: time.Hour, Records: held,
	}))
	Expect(r.SetupWithManager(mgr)).To(Succeed())
	suite.Run(mgr)
})

// claimants returns the teams that claim a namespace. In a manager, the cache has an index for this.
func claimants(ctx context.Context, namespace string) ([]v1alpha1.Team, error) {
	var all v1alpha1.TeamList
	err := asManager.List(ctx, &all)
	return slices.DeleteFunc(all.Items, func(t v1alpha1.Team) bool { return t.Spec.Namespace != namespace }), err
}

// apply creates the objects in a file of config/rbac.
func apply(k8s client.Client, file string) {
	GinkgoHelper()
	data := suite.Must(os.ReadFile(filepath.Join("..", "..", "config", "rbac", file)))
	for manifest := range bytes.SplitSeq(data, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(manifest, &object.Object)).To(Succeed())
		Expect(k8s.Create(context.Background(), object)).To(Succeed())
	}
}

// name returns a name that no other spec uses.
func name(base string) string { return fmt.Sprintf("%s-%d", base, serial.Add(1)) }

func create(ctx context.Context, teamName, namespace string) *v1alpha1.Team {
	GinkgoHelper()
	t := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: teamName}, Spec: v1alpha1.TeamSpec{Namespace: namespace}}
	Expect(k8s.Create(ctx, t)).To(Succeed())
	return t
}

// ready creates a Team with a namespace of the same name, and waits until it is ready.
func ready(ctx context.Context, base string) *v1alpha1.Team {
	GinkgoHelper()
	n := name(base)
	t := create(ctx, n, n)
	Eventually(readiness(ctx, n)).Should(Equal("True NamespaceReady"))
	return t
}

// readiness returns a function that reads a team's Ready condition as "status reason", once it refers to the current
// generation.
func readiness(ctx context.Context, teamName string) func(g Gomega) string {
	return func(g Gomega) string {
		var t v1alpha1.Team
		g.Expect(k8s.Get(ctx, types.NamespacedName{Name: teamName}, &t)).To(Succeed())
		ready := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || t.Status.ObservedGeneration != t.Generation {
			return ""
		}
		stalled := meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionStalled)
		g.Expect(stalled).To(Equal(ready.Status != metav1.ConditionTrue))
		return string(ready.Status) + " " + ready.Reason
	}
}

func binding(ctx context.Context, namespace string) func() (*rbacv1.RoleBinding, error) {
	return func() (*rbacv1.RoleBinding, error) {
		var b rbacv1.RoleBinding
		err := k8s.Get(ctx, types.NamespacedName{Namespace: namespace, Name: names.RoleBinding}, &b)
		return &b, err
	}
}

// credentials reads the apiserver's role binding.
func credentials(ctx context.Context, namespace string) func() (*rbacv1.RoleBinding, error) {
	return func() (*rbacv1.RoleBinding, error) {
		var b rbacv1.RoleBinding
		err := k8s.Get(ctx, types.NamespacedName{Namespace: namespace, Name: names.CredentialsBinding}, &b)
		return &b, err
	}
}

// Only these specs install and remove the role of the web application.
var _ = Describe("The apiserver's permission to create Secrets", Ordered, func() {
	var n string

	It("is not granted without the web application", func(ctx SpecContext) {
		n = ready(ctx, "acme").Name
		_, err := credentials(ctx, n)()
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})

	It("is granted in existing namespaces when the web application is enabled, and in new ones", func(ctx SpecContext) {
		apply(k8s, "web/team_credentials_role.yaml")
		later := name("beta")
		create(ctx, later, later)
		for _, namespace := range []string{n, later} {
			Eventually(credentials(ctx, namespace)).Should(SatisfyAll(
				HaveField("RoleRef.Name", "herald-team-credentials"),
				HaveField("Subjects", ConsistOf(apiserver)),
				HaveField("OwnerReferences", ConsistOf(HaveField("Name", "herald-team-credentials"))),
			), "Kubernetes deletes it with its owner, the role")
		}
	})

	It("is restored if the binding is deleted or changed", func(ctx SpecContext) {
		b := suite.Must(credentials(ctx, n)())
		b.Subjects[0].Name = "mallory"
		Expect(k8s.Update(ctx, b)).To(Succeed())
		Eventually(credentials(ctx, n)).Should(HaveField("Subjects", ConsistOf(apiserver)))
		Expect(k8s.Delete(ctx, b)).To(Succeed())
		Eventually(func() error { _, err := credentials(ctx, n)(); return err }).Should(Succeed())
	})

	It("belongs to the current role after the web application was disabled and enabled again", func(ctx SpecContext) {
		before := suite.Must(credentials(ctx, n)())
		Expect(k8s.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: names.CredentialsRole}})).To(Succeed())
		apply(k8s, "web/team_credentials_role.yaml")
		Eventually(credentials(ctx, n)).Should(HaveField("OwnerReferences", ConsistOf(HaveField("UID", Not(Equal(before.OwnerReferences[0].UID))))))
	})
})

var _ = Describe("A Team", func() {
	It("gets a namespace with its label, where the manager may access Secrets", func(ctx SpecContext) {
		n := name("acme")
		t := create(ctx, n, n+"-ns")
		Eventually(readiness(ctx, n)).Should(Equal("True NamespaceReady"))

		var namespace corev1.Namespace
		Expect(k8s.Get(ctx, types.NamespacedName{Name: n + "-ns"}, &namespace)).To(Succeed())
		Expect(namespace.Labels).To(HaveKeyWithValue(v1alpha1.TeamLabel, n))
		Expect(namespace.OwnerReferences).To(BeEmpty(), "the namespace remains without its Team")

		secret := func(namespace string) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "credentials",
				OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "APIKey", Name: "a", UID: "1"}},
			}}
		}
		Eventually(func() error { return client.IgnoreAlreadyExists(asManager.Create(ctx, secret(n+"-ns"))) }).Should(Succeed())
		Expect(asManager.Get(ctx, client.ObjectKeyFromObject(secret(n+"-ns")), &corev1.Secret{})).To(Succeed())
		Expect(apierrors.IsForbidden(asManager.Create(ctx, secret("default")))).To(BeTrue(), "the manager may not create Secrets in other namespaces")

		b := suite.Must(binding(ctx, n+"-ns")())
		Expect(b.RoleRef.Name).To(Equal("herald-team-secrets"))
		Expect(b.Subjects).To(ConsistOf(rbacv1.Subject{Kind: "ServiceAccount", Namespace: "herald-system", Name: "herald-manager"}))

		Eventually(func(g Gomega) {
			var events eventsv1.EventList
			g.Expect(k8s.List(ctx, &events)).To(Succeed())
			g.Expect(events.Items).To(ContainElement(SatisfyAll(
				HaveField("Regarding.Name", t.Name), HaveField("Reason", "NamespaceReady"), HaveField("Note", ContainSubstring("kept when the Team is deleted")))))
		}).Should(Succeed())
	})

	It("gets its role binding back if it is deleted or changed", func(ctx SpecContext) {
		n := ready(ctx, "acme").Name

		b := suite.Must(binding(ctx, n)())
		Expect(k8s.Delete(ctx, b)).To(Succeed())
		Eventually(func() error { _, err := binding(ctx, n)(); return err }).Should(Succeed())

		b = suite.Must(binding(ctx, n)())
		b.Subjects = []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "mallory"}}
		Expect(k8s.Update(ctx, b)).To(Succeed())
		Eventually(binding(ctx, n)).Should(HaveField("Subjects", ConsistOf(HaveField("Name", "herald-manager"))))

		wrong := b.DeepCopy()
		Expect(k8s.Delete(ctx, b)).To(Succeed())
		wrong.ObjectMeta = metav1.ObjectMeta{Namespace: n, Name: b.Name}
		wrong.RoleRef.Name = "view"
		_ = k8s.Create(ctx, wrong) // the controller may be quicker; its own binding must remain in the end either way
		Eventually(binding(ctx, n)).Should(HaveField("RoleRef.Name", "herald-team-secrets"))
	})

	It("does not adopt an existing namespace without its label", func(ctx SpecContext) {
		n := name("acme")
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}
		Expect(k8s.Create(ctx, namespace)).To(Succeed())
		create(ctx, n, n)
		Eventually(readiness(ctx, n)).Should(Equal("False NamespaceRefused"))
		_, err := binding(ctx, n)()
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		Expect(err).To(HaveOccurred(), "no rights to the Secrets of a namespace that is no team's")

		namespace.Labels = map[string]string{v1alpha1.TeamLabel: n}
		Expect(k8s.Update(ctx, namespace)).To(Succeed())
		Eventually(readiness(ctx, n)).Should(Equal("True NamespaceReady"))
	})

	It("protects its namespace from a later Team, and releases it when it is deleted", func(ctx SpecContext) {
		first, second, namespace := name("acme"), name("acme"), name("shared")
		elder := create(ctx, first, namespace)
		Eventually(readiness(ctx, first)).Should(Equal("True NamespaceReady"))
		create(ctx, second, namespace)
		Eventually(readiness(ctx, second)).Should(Equal("False NamespaceTaken"))

		Expect(k8s.Delete(ctx, elder)).To(Succeed())
		message := func(g Gomega) string {
			var t v1alpha1.Team
			g.Expect(k8s.Get(ctx, types.NamespacedName{Name: second}, &t)).To(Succeed())
			return meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady).Message
		}
		Eventually(message).Should(ContainSubstring("kubectl label --overwrite"), "the namespace remains, and the message contains the command to adopt it")

		var ns corev1.Namespace
		Expect(k8s.Get(ctx, types.NamespacedName{Name: namespace}, &ns)).To(Succeed())
		ns.Labels[v1alpha1.TeamLabel] = second
		Expect(k8s.Update(ctx, &ns)).To(Succeed())
		Eventually(readiness(ctx, second)).Should(Equal("True NamespaceReady"))
	})

	It("cannot have the manager's own namespace", func(ctx SpecContext) {
		n := name("acme")
		create(ctx, n, "herald-system")
		Eventually(readiness(ctx, n)).Should(Equal("False NamespaceRefused"))
	})
})
