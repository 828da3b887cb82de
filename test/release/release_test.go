// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/internal/apitoken"
	"github.com/herald-social/herald/test/suite"
)

// at returns an object's metadata with its namespace and name.
func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// connect creates an account on X and a connection to it in the namespace.
func connect(ctx context.Context, namespace, account string) *v1alpha1.Connection {
	GinkgoHelper()
	created := suite.Must(sandbox.Account(ctx, "x", account, nil))
	connection := &v1alpha1.Connection{ObjectMeta: at(namespace, "x")}
	Expect(cluster.CreateConnection(ctx, admin, connection, v1alpha1.PlatformX, cluster.Account{
		ID: created.ID, AccessToken: created.AccessToken, RefreshToken: created.RefreshToken, Scopes: created.Scopes,
	})).To(Succeed())
	return connection
}

func post(namespace, name, caption string) *v1alpha1.Post {
	return &v1alpha1.Post{ObjectMeta: at(namespace, name), Spec: v1alpha1.PostSpec{
		Category: v1alpha1.CategoryText,
		Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: caption}},
	}}
}

// token gives a key in the namespace a token, without a manager.
func token(ctx context.Context, namespace string) string {
	GinkgoHelper()
	secret := apitoken.New(namespace, "ci")
	key := &v1alpha1.APIKey{ObjectMeta: at(namespace, "ci")}
	key.Spec.Tokens = []v1alpha1.APIKeyToken{{Name: "token", SHA256: apitoken.Hash(namespace, "ci", secret)}}
	Expect(admin.Create(ctx, key)).To(Succeed())
	return secret
}

// call sends a request to the API and returns the status and the body.
func call(method, path, token string, body any) (int, string) {
	GinkgoHelper()
	data := suite.Must(json.Marshal(body))
	req := suite.Must(http.NewRequest(method, site+path, bytes.NewReader(data)))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	return do(http.DefaultClient, req)
}

func do(by *http.Client, req *http.Request) (int, string) {
	GinkgoHelper()
	resp, err := by.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	answer := suite.Must(io.ReadAll(resp.Body))
	return resp.StatusCode, string(answer)
}

var _ = Describe("A release for one team", Ordered, func() {
	var key string

	BeforeAll(func(ctx SpecContext) {
		for team, namespace := range map[string]string{"acme": served, "other": elsewhere} {
			owner := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: team}}
			owner.Spec.Namespace = namespace
			owner.Spec.Subscription = v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited, State: v1alpha1.SubscriptionActive}
			Expect(admin.Create(ctx, owner)).To(Succeed())
		}
		Eventually(func() error {
			return admin.Get(ctx, types.NamespacedName{Name: served}, &corev1.Namespace{})
		}).Should(Succeed())
		createNamespace(ctx, elsewhere)
		key = token(ctx, served)
	})

	It("publishes posts from kubectl and REST", func(ctx SpecContext) {
		connect(ctx, served, "1001")
		applied := post(served, "applied", "by kubectl")
		Expect(admin.Create(ctx, applied)).To(Succeed())
		status, answer := 0, ""
		Eventually(func() int {
			status, answer = call(http.MethodPost, "/api/v1/posts", key, map[string]any{
				"category": "text", "targets": []map[string]any{{"connection_id": "x", "caption": "by REST"}},
			})
			return status
		}).Should(Equal(http.StatusCreated), func() string { return answer })
		Eventually(func() ([]string, error) { return texts(ctx, "1001") }).Should(ConsistOf("by kubectl", "by REST"))
		Eventually(func() bool {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(applied), applied)).To(Succeed())
			return apimeta.IsStatusConditionTrue(applied.Status.Conditions, v1alpha1.ConditionPublished)
		}).Should(BeTrue())
	})

	It("traces a post from the request to the platform call, through both processes", func(ctx SpecContext) {
		const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
		body := suite.Must(json.Marshal(map[string]any{
			"category": "text", "targets": []map[string]any{{"connection_id": "x", "caption": "a caption of ours"}},
		}))
		req := suite.Must(http.NewRequestWithContext(ctx, http.MethodPost, site+"/api/v1/posts", bytes.NewReader(body)))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
		status, answer := do(http.DefaultClient, req)
		Expect(status).To(Equal(http.StatusCreated), answer)
		Eventually(traces.of).WithArguments(trace).Should(ContainElements(
			"herald-apiserver: createPost", "herald-apiserver: check connection", "herald-apiserver: store post",
			"herald-manager: deliver", "herald-manager: claim", "herald-manager: publish", "herald-manager: call platform", "herald-manager: record",
		))
		Expect(traces.said()).NotTo(Or(ContainSubstring("a caption of ours"), ContainSubstring(key), ContainSubstring(sandbox.URL)))
		for _, process := range []string{"manager", "apiserver"} {
			Eventually(logs[process]).Should(gbytes.Say(`"trace_id":"` + trace + `"`))
		}
	})

	It("changes its log level while it runs", func() {
		for process, config := range configs {
			config.Shared().Log.Level = "debug"
			writeConfig(process, config)
		}
		for process, config := range configs {
			Eventually(logs[process]).Should(gbytes.Say(`"is":"DEBUG"`), process)
			config.Shared().Log.Level = ""
			writeConfig(process, config)
		}
		for process := range configs {
			Eventually(logs[process]).Should(gbytes.Say(`"is":"INFO"`), process)
		}
	})

	It("serves profiles at the configured address", func() {
		for process, config := range configs {
			Expect(statusOf("http://"+config.Shared().Profiling.BindAddress+"/debug/pprof/heap")).To(Equal(http.StatusOK), process)
		}
	})

	It("names its objects after itself", func(ctx SpecContext) {
		for reason, object := range map[string]client.Object{
			"the right to the team's Secrets": &rbacv1.RoleBinding{ObjectMeta: at(served, release+"-manager-secrets")},
			"the lease":                       &coordinationv1.Lease{ObjectMeta: at(system, release+"-manager")},
			"the certificate of the webhook":  &corev1.Secret{ObjectMeta: at(system, release+"-webhook-certificate")},
			"the token of its API key":        &corev1.Secret{ObjectMeta: at(served, "x-credentials")},
		} {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed(), reason)
		}
		binding := &rbacv1.RoleBinding{ObjectMeta: at(served, release+"-manager-secrets")}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
		Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: system, Name: release + "-manager"}}))
	})

	It("has its own objects garbage collected on uninstall", func(ctx SpecContext) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: release + "-team-secrets"}}
		webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: release}}
		for object, owner := range map[client.Object]client.Object{
			&rbacv1.RoleBinding{ObjectMeta: at(served, release+"-manager-secrets")}: role,
			&coordinationv1.Lease{ObjectMeta: at(system, release+"-manager")}:       role,
			&corev1.Secret{ObjectMeta: at(system, release+"-webhook-certificate")}:  webhook,
		} {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
				g.Expect(object.GetOwnerReferences()).To(ConsistOf(HaveField("UID", owner.GetUID())), "%T %s", object, object.GetName())
			}).Should(Succeed())
		}
	})

	It("leaves the other team to another installation", func(ctx SpecContext) {
		connect(ctx, elsewhere, "1002")
		untouched := post(elsewhere, "untouched", "not ours")
		Expect(admin.Create(ctx, untouched)).To(Succeed())
		foreign := token(ctx, elsewhere)
		// Wait until a later post of the served team is published: by that time, the other team's post could have been
		// published as well.
		later := post(served, "later", "after theirs")
		Expect(admin.Create(ctx, later)).To(Succeed())
		Eventually(func() ([]string, error) { return texts(ctx, "1001") }).Should(ContainElement("after theirs"))
		Expect(texts(ctx, "1002")).To(BeEmpty())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(untouched), untouched)).To(Succeed())
		Expect(untouched.Status).To(Equal(v1alpha1.PostStatus{ObservedGeneration: -1}), "the API server's defaults")
		Expect(untouched.Finalizers).To(BeEmpty())
		var team v1alpha1.Team
		Expect(admin.Get(ctx, types.NamespacedName{Name: "other"}, &team)).To(Succeed())
		Expect(team.Status).To(Equal(v1alpha1.TeamStatus{ObservedGeneration: -1}), "the API server's defaults")
		var bindings rbacv1.RoleBindingList
		Expect(admin.List(ctx, &bindings, client.InNamespace(elsewhere))).To(Succeed())
		Expect(bindings.Items).To(BeEmpty())
		status, answer := call(http.MethodGet, "/api/v1/connections", foreign, nil)
		Expect(status).To(Equal(http.StatusUnauthorized), answer)
	})

	It("validates only its own team's posts in its webhook", func(ctx SpecContext) {
		Eventually(func() ([]byte, error) {
			var config admissionregistrationv1.ValidatingWebhookConfiguration
			err := admin.Get(ctx, types.NamespacedName{Name: release}, &config)
			return config.Webhooks[0].ClientConfig.CABundle, err
		}).ShouldNot(BeEmpty())
		blank := func(namespace string) error {
			return admin.Create(ctx, post(namespace, "blank", "   "), client.DryRunAll)
		}
		Eventually(blank).WithArguments(served).Should(MatchError(ContainSubstring("blanks")))
		Expect(blank(elsewhere)).To(Succeed())
	})

	It("rejects files with an explanation", func() {
		status, answer := call(http.MethodPost, "/api/v1/media/upload-url", key, map[string]any{"mime_type": "image/png", "size_bytes": 1, "name": "a.png"})
		Expect(status).To(BeNumerically(">=", 400), answer)
		Expect(answer).To(ContainSubstring("has no media store"))
	})

	DescribeTable("serves its metrics to authorized clients", func(ctx SpecContext, process string) {
		account := &corev1.ServiceAccount{ObjectMeta: at("default", "prometheus-"+process)}
		Expect(admin.Create(ctx, account)).To(Succeed())
		request := &authenticationv1.TokenRequest{}
		Expect(admin.SubResource("token").Create(ctx, account, request)).To(Succeed())
		read := func(token string) int {
			req := suite.Must(http.NewRequestWithContext(ctx, http.MethodGet, metrics[process]+"/metrics", http.NoBody))
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			defer transport.CloseIdleConnections()
			status, _ := do(&http.Client{Transport: transport}, req)
			return status
		}
		Expect(read("")).To(Equal(http.StatusUnauthorized), "without a token")
		Expect(read("eyJ"+strconv.Itoa(1))).To(Equal(http.StatusUnauthorized), "with an invalid token")
		Expect(read(request.Status.Token)).To(Equal(http.StatusForbidden), "without the role")
		Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: release + "-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: account.Name}},
		})).To(Succeed())
		Eventually(read).WithArguments(request.Status.Token).Should(Equal(http.StatusOK))
	},
		Entry("of the manager", "manager"),
		Entry("of the apiserver", "apiserver"),
	)

	DescribeTable("serves probes on a separate port", func(process, path string) {
		Expect(statusOf(healths[process] + path)).To(Equal(http.StatusOK))
	},
		Entry("manager, alive", "manager", "/livez"),
		Entry("manager, ready", "manager", "/readyz"),
		Entry("apiserver, alive", "apiserver", "/livez"),
		Entry("apiserver, ready", "apiserver", "/readyz"),
	)
})

// texts returns the captions published on an X account.
func texts(ctx context.Context, account string) ([]string, error) {
	posts, err := sandbox.Posts(ctx, "x", account)
	var out []string
	for _, p := range posts {
		out = append(out, p.Text)
	}
	return out, err
}

var _ = Describe("An apiserver that cannot serve its metrics", func() {
	It("exits with an error that names the field", func() {
		config := configv1alpha1.DefaultAPIServer()
		config.BindAddress, config.Health.BindAddress = ports.ForTest(GinkgoT()), ports.ForTest(GinkgoT())
		config.Metrics.BindAddress = strings.TrimPrefix(metrics["apiserver"], "https://") // already in use
		config.Shutdown.Delay.Duration = 0
		data := suite.Must(yaml.Marshal(config))
		file := filepath.Join(folder, "taken.yaml")
		Expect(os.WriteFile(file, data, 0o600)).To(Succeed())
		out, err := exec.Command(filepath.Join(folder, "herald"), "apiserver", "--config", file,
			"--kubeconfig", filepath.Join(folder, "apiserver.kubeconfig")).CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(out)).To(ContainSubstring("metrics.bindAddress"))
	})
})

var _ = DescribeTable("A process started during an outage of the Kubernetes API waits, alive and not ready", func(process string, config any, health *configv1alpha1.Endpoint) {
	health.BindAddress = ports.ForTest(GinkgoT())
	nowhere := filepath.Join(folder, "nowhere.kubeconfig")
	Expect(os.WriteFile(nowhere, []byte(`apiVersion: v1
kind: Config
current-context: nowhere
clusters: [{name: nowhere, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: nowhere, context: {cluster: nowhere, namespace: default}}]
`), 0o600)).To(Succeed())
	cmd := exec.Command(filepath.Join(folder, "herald"), process, "--config", writeConfig(process+"-waiting", config), "--kubeconfig", nowhere)
	log := gbytes.NewBuffer()
	cmd.Stderr = io.MultiWriter(log, GinkgoWriter)
	Expect(cmd.Start()).To(Succeed())
	Eventually(statusOf).WithArguments("http://" + health.BindAddress + "/livez").Should(Equal(http.StatusOK))
	Expect(statusOf("http://" + health.BindAddress + "/readyz")).To(Equal(http.StatusServiceUnavailable))
	Eventually(log).Should(gbytes.Say("The Kubernetes API cannot be used yet; waiting for it, not ready"))
	Expect(cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
	Expect(cmd.Wait()).To(Succeed(), "the manager stops gracefully")
},
	func() TableEntry {
		config := configv1alpha1.DefaultManager()
		return Entry("manager", "manager", config, &config.Health)
	}(),
	func() TableEntry {
		config := configv1alpha1.DefaultAPIServer()
		return Entry("apiserver", "apiserver", config, &config.Health)
	}(),
)
