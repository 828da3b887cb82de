// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/test/envtest"
)

const (
	ownNamespace = "herald-system"
	webSecret    = "herald-web"
)

// output is a log that several goroutines write to.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// withWeb adds the web application to a server, over plain HTTP.
func withWeb(log io.Writer) func(*apiserver.Config) {
	return func(c *apiserver.Config) {
		c.Web = &apiserver.WebConfig{Namespace: ownNamespace, SignInSecret: webSecret, LinkCommand: "herald signin-link"}
		c.SiteURL = "http://" + c.Listener.Addr().String()
		c.Log = slog.New(slog.NewTextHandler(log, nil))
	}
}

// grantWeb grants the permissions in config/rbac/web, for an installation in a namespace, to a user in place of a
// service account. Cluster-scoped objects may already exist from another installation in the suite.
func grantWeb(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	grantPeople(ctx)
	own := &rbacv1.Role{}
	readRole(filepath.Join("web", "bindings.yaml"), 1, own)
	own.Namespace = namespace
	Expect(admin.Create(ctx, own)).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: own.Name}, Subjects: apiserverUser,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name},
	})).To(Succeed())
}

// apiserverUser is the apiserver as a user.
var apiserverUser = []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: envtest.APIServerAccount}}

// grantPeople grants the apiserver's permissions for people's actions in all namespaces, and waits until they are in
// force.
func grantPeople(ctx context.Context) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{}
	readRole(filepath.Join("web", "role.yaml"), 0, role)
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, role))).To(Succeed())
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: apiserverUser,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}))).To(Succeed())
	Eventually(func() (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: envtest.APIServerAccount, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "any", Verb: "create", Group: "events.k8s.io", Resource: "events"},
		}}
		err := admin.Create(ctx, review)
		return review.Status.Allowed, err
	}).Should(BeTrue())
}

// readRole reads one document of a file in config/rbac.
func readRole(file string, document int, into client.Object) {
	GinkgoHelper()
	manifest, err := os.ReadFile(filepath.Join("..", "config", "rbac", file))
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.UnmarshalStrict([]byte(strings.Split(string(manifest), "\n---\n")[document]), into)).To(Succeed())
}

// linkIn creates a one-time sign-in link of an installation and returns its path.
func linkIn(ctx context.Context, namespace string) string {
	GinkgoHelper()
	secrets, err := kube.NewSecrets(adminConfig, "apiserver-test", namespace)
	Expect(err).NotTo(HaveOccurred())
	token, err := session.AddLink(ctx, secrets, webSecret, clock.RealClock{}, time.Minute)
	Expect(err).NotTo(HaveOccurred())
	return signin.LinkPath + token
}

// bindLink gives the user behind a one-time link one of Herald's roles in a team.
func (t *team) bindLink(ctx context.Context, name string) *rbacv1.RoleBinding {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{}
	readRole(filepath.Join("users", "people_roles.yaml"), slices.Index([]string{"viewer", "editor", "admin"}, name), role)
	Expect(role.Name).To(Equal("herald-" + name))
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, role))).To(Succeed())
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: access.LinkPerson}},
	}
	Expect(admin.Create(ctx, binding)).To(Succeed())
	return binding
}

// visited is a page's response.
type visited struct {
	StatusCode int
	Header     http.Header
	cookies    []*http.Cookie
}

// visit sends a request without following redirects.
func visit(method, url string, cookies ...*http.Cookie) visited {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(context.Background(), method, url, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	for _, cookie := range cookies {
		request.AddCookie(cookie)
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	return visited{answer.StatusCode, answer.Header, answer.Cookies()}
}

// isSignedIn reports whether the sign-in page redirects, as it does for a signed-in user.
func isSignedIn(site string, cookies []*http.Cookie) bool {
	return visit(http.MethodGet, site+"/signin", cookies...).StatusCode == http.StatusSeeOther
}

// signIns returns a server's sign-in counters, by method and outcome.
func signIns(of *running) map[string]float64 {
	GinkgoHelper()
	families, err := of.metrics.Gather()
	Expect(err).NotTo(HaveOccurred())
	counted := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "herald_web_sign_ins_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			counted[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return counted
}

var _ = Describe("The web application", Ordered, func() {
	var first, second *running
	var log output

	BeforeAll(func() {
		first, second = start(restricted, withWeb(&log)), start(restricted, withWeb(&log))
		DeferCleanup(func() { first.stop(); second.stop() })
	})

	newLink := func(ctx context.Context) string { return linkIn(ctx, ownNamespace) }

	It("reports the reason while its Secret cannot be read, and the REST API serves", func(ctx SpecContext) {
		answer := visit(http.MethodGet, first.site+"/signin")
		Expect(answer.StatusCode).To(Equal(http.StatusServiceUnavailable))
		Expect(answer.Header.Get("Content-Type")).To(HavePrefix("text/html"))
		Expect(statusOf(first.site + "/api/v1/posts")).To(Equal(http.StatusUnauthorized))
		Expect(statusOf(first.private + "/readyz")).To(Equal(http.StatusOK))
		Eventually(log.String).Should(ContainSubstring("cannot read the Secret herald-web"))
		Expect(metricsOf(first)).To(ContainSubstring("herald_web_ready 0\n"))
	})

	It("fills the Secret after the installation, the same for all replicas, with the installation's permissions only", func(ctx SpecContext) {
		grantWeb(ctx, ownNamespace)
		Expect(admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: webSecret}})).To(Succeed())
		for _, replica := range []*running{first, second} {
			Eventually(func() int { return statusOf(replica.site + "/signin") }).WithTimeout(15 * time.Second).Should(Equal(http.StatusOK))
		}
		cookies := visit(http.MethodPost, first.site+newLink(ctx)).cookies
		Expect(cookies).To(HaveLen(1))
		Expect(metricsOf(first)).To(ContainSubstring("herald_web_ready 1\n"))
		Expect(metricsOf(instance)).NotTo(ContainSubstring("herald_web_ready"), "a series of the disabled web application")
		Expect(signIns(first)).To(Equal(map[string]float64{"link succeeded": 1, "link refused": 0, "link failed": 0}))
		Expect(isSignedIn(first.site, cookies)).To(BeTrue())
		Expect(isSignedIn(second.site, cookies)).To(BeTrue(), "the other replica accepts the session")
	})

	It("accepts a sign-in link once, whichever replica gets it", func(ctx SpecContext) {
		path := newLink(ctx)
		for range 3 {
			Expect(visit(http.MethodGet, second.site+path).StatusCode).To(Equal(http.StatusOK))
		}
		answers := make(chan visited)
		for i := range 8 {
			go func() {
				defer GinkgoRecover()
				answers <- visit(http.MethodPost, []*running{first, second}[i%2].site+path)
			}()
		}
		statuses := map[int]int{}
		for range 8 {
			answer := <-answers
			statuses[answer.StatusCode]++
			if answer.StatusCode == http.StatusGone {
				Expect(answer.cookies).To(BeEmpty(), "a link that is used sets no cookie")
			}
		}
		Expect(statuses).To(Equal(map[int]int{http.StatusSeeOther: 1, http.StatusGone: 7}))
		counted := signIns(second)
		for outcome, n := range signIns(first) {
			counted[outcome] += n
		}
		Expect(counted).To(Equal(map[string]float64{"link succeeded": 2, "link refused": 7, "link failed": 0}))
		Expect(log.String()).NotTo(ContainSubstring(strings.TrimPrefix(path, signin.LinkPath)), "the link is a secret and must not be logged")
		Expect(log.String()).To(ContainSubstring("path=/signin/link/…"))
	})

	It("signs out everywhere, on all replicas within seconds", func(ctx SpecContext) {
		here := visit(http.MethodPost, first.site+newLink(ctx)).cookies
		there := visit(http.MethodPost, second.site+newLink(ctx)).cookies
		Expect(visit(http.MethodPost, first.site+"/signout?everywhere=1", here...).StatusCode).To(Equal(http.StatusSeeOther))
		Eventually(func() bool { return isSignedIn(second.site, there) }).WithTimeout(2 * time.Second).Should(BeFalse())
		Expect(isSignedIn(first.site, there)).To(BeFalse())
	})

	It("does not change responses outside its pages", func(ctx SpecContext) {
		Expect(statusOf(first.site + "/health")).To(Equal(http.StatusOK))
		for _, path := range []string{"/nothing", "//signin", "/signin/../signin", "/signin/oidc"} {
			answer := visit(http.MethodGet, first.site+path)
			Expect(answer.StatusCode).To(Equal(http.StatusNotFound), path)
			Expect(answer.Header.Get("Location")).To(BeEmpty(), path)
		}
		Expect(statusOf(instance.site+"/signin")).To(Equal(http.StatusNotFound), "without the web application, there is no sign-in page")
	})
})
