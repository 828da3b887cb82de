// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespaces_test runs both processes with the RBAC permissions that the chart grants in an installation for
// selected namespaces. They cannot read or write in other namespaces.
package namespaces_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberest "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/test/chart"
	"github.com/herald-social/herald/test/managertest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/storetest"
	"github.com/herald-social/herald/test/suite"
)

func TestNamespaces(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "an installation for single namespaces")
}

// served are the installation's namespaces; foreign belongs to another installation.
var served = configv1alpha1.Namespaces{"team-acme", "team-beta"}

const foreign = "team-other"

var (
	admin       client.Client
	adminConfig *kuberest.Config
	platform    sandboxtest.Client

	installation       managertest.Installation
	manager, apiserver *managertest.Process
	// address is the apiserver's listen address.
	address string
	// tokens are the tokens of the API keys, by namespace.
	tokens = map[string]string{}
)

// installed are the kinds of objects in the chart that the processes need in a cluster without nodes.
var installed = []string{
	"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Secret", "ServiceAccount", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}

var _ = BeforeSuite(func(ctx SpecContext) {
	env := suite.Start()
	SetDefaultEventuallyTimeout(2 * time.Minute)
	admin, adminConfig = env.Client, env.Config
	for _, namespace := range append([]string{foreign}, served...) {
		Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespace, Labels: map[string]string{v1alpha1.TeamLabel: strings.TrimPrefix(namespace, "team-")},
		}})).To(Succeed())
	}
	install(ctx)
	platform = sandboxtest.Start(GinkgoT())
	installation = managertest.Installation{
		Env: env, Program: managertest.Build(GinkgoT()), SandboxURL: platform.URL, Store: storetest.Start(GinkgoT()),
	}
	start()
	for _, namespace := range append([]string{foreign}, served...) {
		Expect(admin.Create(ctx, team(namespace))).To(Succeed())
	}
	// Make the foreign Team ready, as the other installation does.
	other := team(foreign)
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(other), other)).To(Succeed())
	conditions.Apply(&other.Status.Conditions, conditions.Summary{Ready: true, Reason: v1alpha1.ReasonNamespaceReady}, other.Generation, time.Now())
	Expect(admin.Status().Update(ctx, other)).To(Succeed())
})

// start starts both processes.
func start() {
	GinkgoHelper()
	settings := installation.Config(GinkgoT())
	settings.Namespaces = slices.Clone(served)
	manager = installation.Manager(GinkgoT(), settings)
	door := installation.APIServerConfig(GinkgoT())
	door.Namespaces, address = served, "http://"+door.BindAddress
	apiserver = installation.APIServer(GinkgoT(), door)
}

// condition returns the reason of a Team's Ready condition.
func condition(ctx context.Context, of *v1alpha1.Team) func() string {
	return func() string {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(of), of); err != nil {
			return err.Error()
		}
		return conditions.Reason(of.Status.Conditions)
	}
}

// install applies the chart's objects for the two namespaces.
func install(ctx context.Context) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "values.yaml")
	Expect(os.WriteFile(file, fmt.Appendf(nil, "namespaces: [%s]\n", strings.Join(served, ", ")), 0o600)).To(Succeed())
	objects := suite.Must(chart.Render(ctx, "herald", managertest.Namespace, "minimal-values.yaml", file))
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: managertest.Namespace}}))).To(Succeed())
	for _, object := range objects {
		if slices.Contains(installed, object.GetKind()) {
			Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("helm"))).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
	}
}

func team(namespace string) *v1alpha1.Team {
	return &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: strings.TrimPrefix(namespace, "team-")}, Spec: v1alpha1.TeamSpec{
		Namespace: namespace, Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanStarter, State: v1alpha1.SubscriptionActive},
	}}
}

// post returns a text post for the account in the namespace, as kubectl would apply it.
func post(namespace, name string) *v1alpha1.Post {
	return &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{
			ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: name + " in " + namespace,
		}}},
	}
}

func ready(ctx context.Context, object client.Object, conditions *[]metav1.Condition) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(*conditions, v1alpha1.ConditionReady)).To(BeTrue(), "%+v", *conditions)
	}).Should(Succeed())
}

// connect connects an account on X in a namespace, and waits until it is ready.
func connect(ctx context.Context, namespace string) {
	GinkgoHelper()
	account := suite.Must(platform.Account(ctx, "x", fmt.Sprintf("19%08d", slices.Index(served, namespace)), nil))
	conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}}
	Expect(cluster.CreateConnection(ctx, admin, conn, v1alpha1.PlatformX, cluster.Account{
		ID: account.ID, AccessToken: account.AccessToken, RefreshToken: account.RefreshToken, ExpiresAt: account.ExpiresAt.UTC().Format(time.RFC3339),
	})).To(Succeed())
	ready(ctx, conn, &conn.Status.Conditions)
}

// key creates an API key and returns its token.
func key(ctx context.Context, namespace string) string {
	GinkgoHelper()
	created := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ci"}}
	Expect(admin.Create(ctx, created)).To(Succeed())
	ready(ctx, created, &created.Status.Conditions)
	var secret corev1.Secret
	name := created.Status.Token(v1alpha1.DefaultTokenName).SecretRef.Name
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret)).To(Succeed())
	return string(secret.Data[v1alpha1.APIKeyTokenKey])
}

// answer is a response of the apiserver.
type answer struct {
	Status int
	Body   string
}

// send sends a request with a token. The status is zero until the apiserver listens.
func send(ctx context.Context, token, method, path, body string) answer {
	GinkgoHelper()
	request := suite.Must(http.NewRequestWithContext(ctx, method, address+rest.Prefix+path, bytes.NewBufferString(body)))
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{Body: err.Error()}
	}
	defer response.Body.Close()
	text := suite.Must(io.ReadAll(response.Body))
	return answer{response.StatusCode, string(text)}
}

var _ = Describe("An installation for single namespaces", Ordered, func() {
	It("publishes applied and API posts in each namespace", func(ctx SpecContext) {
		for _, namespace := range served {
			of := team(namespace)
			ready(ctx, of, &of.Status.Conditions)
			connect(ctx, namespace)
			Expect(admin.Create(ctx, post(namespace, "applied"))).To(Succeed())
			token := key(ctx, namespace)
			tokens[namespace] = token
			body := fmt.Sprintf(`{"category":"text","targets":[{"connection_id":"x","caption":"sent to %s"}]}`, namespace)
			Eventually(func() int { return send(ctx, token, http.MethodGet, "/connections", "").Status }).Should(Equal(http.StatusOK))
			Expect(send(ctx, token, http.MethodPost, "/posts", body)).To(HaveField("Status", http.StatusCreated))
			Eventually(func() string { return send(ctx, token, http.MethodGet, "/posts?status=posted", "").Body }).Should(And(ContainSubstring("applied in "+namespace), ContainSubstring("sent to "+namespace), ContainSubstring(`"total":2`)))
			Expect(send(ctx, token, http.MethodPost, "/media/upload-url", `{"name":"a.png","mime_type":"image/png","size_bytes":70}`)).
				To(HaveField("Status", http.StatusCreated))
		}
	})

	It("cannot read the Secrets and posts of a team in another namespace", func(ctx SpecContext) {
		for _, account := range []string{managertest.ManagerAccount, managertest.APIServerAccount} {
			config := kuberest.CopyConfig(adminConfig)
			config.Impersonate.UserName = account
			reader := suite.Must(client.New(config, client.Options{Scheme: admin.Scheme()}))
			for _, list := range []client.ObjectList{
				&v1alpha1.PostList{}, &v1alpha1.MediaList{}, &v1alpha1.ConnectionList{}, &v1alpha1.APIKeyList{}, &corev1.SecretList{},
			} {
				Expect(reader.List(ctx, list, client.InNamespace(foreign))).To(Satisfy(apierrors.IsForbidden), "%s, %T", account, list)
				Expect(reader.List(ctx, list)).To(Satisfy(apierrors.IsForbidden), "%s, %T", account, list)
			}
		}
		of := team(foreign)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(of), of)).To(Succeed())
		Expect(of.Status.Usage).To(BeNil())
		Expect(of.Finalizers).To(BeEmpty())
	})

	It("has all required permissions", func() {
		for _, process := range []*managertest.Process{manager, apiserver} {
			Expect(process.Log()).NotTo(Or(ContainSubstring("orbidden"), ContainSubstring("unknown namespace for the cache")))
		}
	})

	It("serves the remaining namespaces after one loses its Roles, and reports it", func(ctx SpecContext) {
		manager.Stop()
		apiserver.Stop()
		lost := served[1]
		for _, name := range []string{"herald-manager", "herald-apiserver", "herald-apiserver-web"} {
			Expect(admin.Delete(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: lost, Name: name}})).To(Succeed())
		}
		start()
		Eventually(condition(ctx, team(lost))).Should(Equal(v1alpha1.ReasonNamespaceRefused))
		later := post(served[0], "later")
		Expect(admin.Create(ctx, later)).To(Succeed())
		Eventually(func() (v1alpha1.PostPhase, error) {
			err := admin.Get(ctx, client.ObjectKeyFromObject(later), later)
			return later.Status.Phase, err
		}).Should(Equal(v1alpha1.PhasePosted))
		Eventually(func() string { return send(ctx, tokens[served[0]], http.MethodGet, "/posts?status=posted", "").Body }).
			Should(ContainSubstring("later in " + served[0]))
		Expect(send(ctx, tokens[lost], http.MethodGet, "/posts", "")).To(HaveField("Status", http.StatusUnauthorized))
	})

	It("removes its finalizers in the uninstall hook", func(ctx SpecContext) {
		manager.Stop()
		apiserver.Stop()
		release := installation.Release(GinkgoT(), "--install-namespace="+managertest.Namespace, "--wait=1m", "--namespace="+strings.Join(served, ","))
		Expect(release.ExitCode()).To(BeZero(), release.Log())
		var posts v1alpha1.PostList
		Expect(admin.List(ctx, &posts)).To(Succeed())
		Expect(posts.Items).To(HaveLen(2*len(served) + 1))
		for i := range posts.Items {
			Expect(posts.Items[i].Finalizers).To(BeEmpty())
		}
	})
})
