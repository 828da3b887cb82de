// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
	"github.com/herald-social/herald/test/issuertest"
	"github.com/herald-social/herald/test/sandboxtest"
)

// signIn signs in with a new one-time link, as the demo team's administrator.
func signIn(page *chrome.Page) web.Site {
	GinkgoHelper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(err)
	link, err := herald().SignInLink(context.Background())
	must(err)
	site := web.Site{Page: page, URL: herald().Site(), Zone: berlin}
	must(site.SignIn(link))
	return site
}

// signedInPage returns a tab with a signed-in user. See newPage.
func signedInPage() (*chrome.Page, web.Site) {
	GinkgoHelper()
	page := newPage(chrome.Options{})
	return page, signIn(page)
}

// sharedPage opens a tab with a signed-in user for all specs of a container. Unlike newPage, it does not check the
// page's problems.
func sharedPage() (*chrome.Page, web.Site) {
	GinkgoHelper()
	page, err := browser.NewPage(chrome.Options{})
	must(err)
	DeferCleanup(page.Close)
	return page, signIn(page)
}

// freshTeam is the namespace of a team without posts or connections.
const freshTeam = "herald-fresh"

// withProvider starts an additional apiserver with the test's OpenID provider, once, and returns its site address. Ada is an editor of the
// demo team and Vera a viewer, Nora administers an empty team, and Tom has no role.
var withProvider = sync.OnceValue(func() string {
	people := map[string]map[string]any{}
	for name, group := range map[string]string{"Ada": "editors", "Vera": "viewers", "Nora": "newcomers", "Tom": "visitors"} {
		people[name] = map[string]any{"email": name + "@example.com", "email_verified": true, "name": name + " Lovelace", "groups": []string{group}}
	}
	idp = &issuertest.Issuer{People: people}
	idp.Start()
	all := herald() // sets started
	secret := filepath.Join(started, "secret")
	must(save(secret, []byte(issuertest.ClientSecret)))
	address, err := all.Replica(context.Background(), func(config map[string]any) {
		idp.RedirectURI = config["siteURL"].(string) + "/signin/oidc/callback"
		section, _ := config["web"].(map[string]any)
		section["oidc"] = map[string]any{"issuerURL": idp.URL, "clientID": issuertest.ClientID, "clientSecretFile": secret}
	})
	must(err)
	makeTeam()
	may("editors", "herald-editor", cluster.DemoNamespace)
	may("viewers", "herald-viewer", cluster.DemoNamespace)
	may("newcomers", "herald-admin", freshTeam)
	return address
})

// idp is the provider that withProvider starts, or nil. AfterSuite closes it.
var idp *issuertest.Issuer

// signInAs signs in through the provider, as one of the users of withProvider.
func signInAs(who string) (*chrome.Page, web.Site) {
	GinkgoHelper()
	page := newPage(chrome.Options{})
	site := web.Site{Page: page, URL: withProvider()}
	must(site.SignInWithProvider(who))
	return page, site
}

// makeTeam creates a team with a trial subscription and waits until it is ready.
func makeTeam() {
	GinkgoHelper()
	kubernetes, err := cluster.NewClient(herald().Variable("KUBECONFIG"))
	must(err)
	team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}, Spec: v1alpha1.TeamSpec{
		Namespace: freshTeam, DisplayName: "The new bakery", TimeZone: "Asia/Tokyo",
		Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanStarter, State: v1alpha1.SubscriptionTrialing},
	}}
	must(kubernetes.Create(context.Background(), team))
	Eventually(func(g Gomega) {
		g.Expect(kubernetes.Get(context.Background(), client.ObjectKeyFromObject(team), team)).To(Succeed())
		g.Expect(team.Status.Conditions).To(ContainElement(And(HaveField("Type", v1alpha1.ConditionReady), HaveField("Status", metav1.ConditionTrue))))
	}).Should(Succeed())
}

// may binds a role in a namespace to a group.
func may(group, role, namespace string) {
	GinkgoHelper()
	kubernetes, err := cluster.NewClient(herald().Variable("KUBECONFIG"))
	must(err)
	must(kubernetes.Create(context.Background(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "browser-" + group},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "oidc:" + group}},
	}))
}

// disturb makes platforms fail for a demo account, or for the account named in a fault, until the spec ends.
func disturb(faults ...sandboxtest.Fault) {
	GinkgoHelper()
	platforms := sandboxtest.Client{URL: herald().Sandbox()}
	for _, fault := range faults {
		must(platforms.Fault(context.Background(), fault))
	}
	DeferCleanup(func(ctx SpecContext) { must(platforms.ClearFaults(ctx)) })
}

// readable returns a function that returns a page's visible text, for longer waits than the page's own.
func readable(page *chrome.Page) func() (string, error) {
	return func() (string, error) { return chrome.Eval[string](page, "document.body.innerText") }
}

// demoID returns a demo account's ID on a platform.
func demoID(platform string) string {
	GinkgoHelper()
	for _, account := range sandbox.DemoAccounts() {
		if account.Platform == platform {
			return account.ID
		}
	}
	Fail("no demo account on " + platform)
	return ""
}

// printedLink returns the sign-in URL that the run has printed. If Herald is attached, it returns a new one, because
// earlier specs may have used the first.
func printedLink() (string, error) {
	if *attachTo != "" {
		return herald().SignInLink(context.Background())
	}
	return herald().Variable("HERALD_SIGNIN_URL"), nil
}

// answerTo returns a function that calls the REST API with a token and returns the status.
func answerTo(token string) func() (int, error) {
	return func() (int, error) {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, herald().Site()+"/api/v1/posts", http.NoBody)
		if err != nil {
			return 0, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
}
