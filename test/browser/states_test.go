// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
	"github.com/herald-social/herald/test/sandboxtest"
)

// unsure is the maximum time until lookups settle a lost call: two lookups after the platform's listing lag.
const unsure = time.Minute

var _ = Describe("Pages for empty teams, missing permissions and expired sessions", func() {
	It("are accessible: sign-in", func() {
		page := newPage(chrome.Options{})
		link, err := herald().SignInLink(context.Background())
		must(err)
		must(page.Open(link))
		inEveryLook(page, "signin-link")
		must(page.Get("button", "Sign in").Follow())
		for name, tc := range map[string]struct {
			path   string
			status int
		}{
			"signin-used":    {strings.TrimPrefix(link, herald().Site()), http.StatusGone},
			"signin-unknown": {"/signin/link/nothing", http.StatusNotFound},
			"wrong-method":   {"/signout", http.StatusMethodNotAllowed},
			"absent":         {"/teams/nobodys/posts", http.StatusNotFound},
		} {
			Expect(page.OpenAny(herald().Site()+tc.path)).To(Equal(tc.status), name)
			inEveryLook(page, name)
			page.Forget()
		}
		must(page.ClearCookies())
		must(page.Open(herald().Site() + "/"))
		inEveryLook(page, "signin")
	})

	It("are accessible: expired session", func() {
		page, site := signedInPage()
		must(site.Compose(web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "X, @herald_demo"}}, Text: "Too late"}))
		must(page.ClearCookies())
		must(page.Get("textbox", "Text").Fill("Too late, and changed"))
		must(page.WaitText("You are signed out."))
		inEveryLook(page, "compose-signed-out")
		must(site.Publish())
		must(page.WaitText("Nothing was done"))
		inEveryLook(page, "signed-out")
		Expect(page.OpenAny(herald().Site() + "/connect/x/callback?code=1&state=2")).To(Equal(http.StatusUnauthorized))
		inEveryLook(page, "connect-signed-out")
		page.Forget()
	})

	It("are accessible: cross-site request", func() {
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			write(w, `<!doctype html><html lang="en"><title>Elsewhere</title><link rel="icon" href="data:,"><form method="post" action="`+herald().Site()+`/signout"><button>Win</button></form>`)
		}))
		DeferCleanup(elsewhere.Close)
		page := newPage(chrome.Options{})
		must(page.Open(strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)))
		must(page.Get("button", "Win").Follow())
		must(page.WaitText("Request from another site"))
		inEveryLook(page, "cross-origin")
		page.Forget()
	})

	It("are accessible: users without a role, and viewers", func() {
		stranger, _ := page403("Tom")
		inEveryLook(stranger, "no-team")
		stranger.Forget()

		viewer, site := signInAs("Vera")
		for _, path := range []string{"", "connections"} {
			must(viewer.Open(site.URL + "/teams/herald-demo/" + path))
			Expect(viewer.Get("link", "New post").Count()).To(BeZero())
			inEveryLook(viewer, "viewer-"+path)
		}
		for _, path := range []string{"posts/new", "keys"} {
			Expect(viewer.OpenAny(site.URL + "/teams/herald-demo/" + path)).To(Equal(http.StatusForbidden))
			inEveryLook(viewer, "forbidden")
		}
		Expect(viewer.OpenAny(site.URL + "/teams/herald-demo/posts/nothing")).To(Equal(http.StatusNotFound))
		inEveryLook(viewer, "post-absent")
		viewer.Forget()
	})

	It("are accessible: consent denied at the provider", func() {
		page := newPage(chrome.Options{})
		must(page.Open(withProvider() + "/signin"))
		must(page.GetByPartialName("link", "Sign in").Follow())
		must(page.Get("link", "Nobody").Follow())
		inEveryLook(page, "signin-refused")
		page.Forget()
	})

	DescribeTable("are accessible: empty team",
		func(path, name string) {
			page, site := signInAs("Nora")
			must(page.Open(site.URL + "/teams/" + freshTeam + "/" + path))
			inEveryLook(page, "empty-"+name)
		},
		Entry("overview", "", "overview"), Entry("posts", "posts", "posts"), Entry("calendar", "calendar", "calendar"),
		Entry("composer", "posts/new", "compose"), Entry("accounts", "connections", "accounts"), Entry("keys", "keys", "keys"),
		Entry("team", "team", "team"), Entry("a filter without results", "posts?status=failed", "posts-filtered"),
	)
})

// page403 signs in as a user who has no access.
func page403(who string) (*chrome.Page, web.Site) {
	GinkgoHelper()
	page := newPage(chrome.Options{})
	site := web.Site{Page: page, URL: withProvider()}
	must(page.Open(site.URL + "/signin"))
	must(page.GetByPartialName("link", "Sign in").Follow())
	must(page.Get("link", who).Follow())
	must(page.WaitText("You do not belong to a team yet"))
	return page, site
}

var _ = Describe("Accounts", func() {
	It("connects the Page selected by the user", func() {
		sandbox := sandboxtest.Client{URL: herald().Sandbox()}
		_, err := sandbox.Account(context.Background(), "facebook", "771", map[string]any{"username": "bakery", "display_name": "The bakery"})
		must(err)
		demo, err := sandbox.Account(context.Background(), "facebook", demoID("facebook"), map[string]any{"pages": []string{"771"}})
		must(err)
		DeferCleanup(func(ctx SpecContext) {
			_, err := sandbox.Account(ctx, "facebook", demo.ID, map[string]any{"pages": []string{}})
			must(err)
		})
		page, site := signedInPage()
		must(site.Accounts())
		must(site.Consent("facebook", web.DemoHandle("facebook")))
		must(page.WaitText("Which account of Facebook?"))
		inEveryLook(page, "connect-choose")
		must(page.GetByPartialName("radio", "The bakery").Click())
		must(page.Get("button", "Connect this account").Follow())
		must(page.WaitText("The account is connected."))
		card := page.GetSaying("listitem", "@bakery")
		Eventually(card.Get("heading", "The bakery").Count).Should(Equal(1), "the page updates itself after the platform's response")

		By("posting to it, and not to the other Page")
		must(site.Compose(web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "Facebook, @bakery"}}, Text: "Fresh bread"}))
		must(site.Publish())
		must(page.WaitText("Posted"))
		posts, err := sandbox.Posts(context.Background(), "facebook", "771")
		must(err)
		Expect(posts).To(HaveLen(1))

		By("disconnecting it")
		must(site.Accounts())
		must(site.Disconnect("@bakery"))
		must(page.WaitText("The account is disconnected."))
		inEveryLook(page, "disconnected")
	})

	It("reports a denied consent on the platform's page", func() {
		page, site := signedInPage()
		must(site.Accounts())
		must(site.ToConsent("x"))
		must(page.Follow(func() error { return web.Deny(page) }))
		must(page.WaitText("The account is not connected"))
		inEveryLook(page, "connect-denied")
		must(page.Get("link", "To the accounts").Follow())
		must(page.Get("heading", "Accounts").Wait())
		page.Forget()
	})
})

// expectQuestion checks that no page listing an undecided post shows it as failed.
func expectQuestion(page *chrome.Page, site web.Site, text, name string) {
	GinkgoHelper()
	text = text[:min(len(text), 30)] // the part that lists show
	must(site.Overview())
	must(page.WaitText("Needs your answer: it is not known whether “" + text))
	Expect(chrome.Eval[bool](page, `[...document.querySelectorAll(".list a")].some((a) => a.textContent.includes("`+text+`"))`)).To(BeFalse(), "only the notice lists it")
	inEveryLook(page, "overview-undecided"+name)
	must(page.GetByPartialName("link", "Answer").Nth(0).Follow())
	must(site.Posts())
	must(page.GetByPartialName("link", "Needs your answer").Nth(0).Follow())
	Expect(page.GetByPartialName("link", text).Nth(0).Get("image", "Facebook: Needs your answer").Count()).To(Equal(1))
	inEveryLook(page, "posts-undecided"+name)
	must(page.GetByPartialName("link", "Failed").Nth(0).Follow())
	Expect(readable(page)()).NotTo(ContainSubstring(text))
	must(site.Calendar())
	must(page.GetByPartialName("link", "Needs your answer").Nth(0).Follow())
	Expect(chrome.Eval[string](page, `[...document.querySelectorAll(".entry")].find((e) => e.textContent.includes("`+text+`")).textContent`)).To(ContainSubstring("Needs your answer"))
	inEveryLook(page, "calendar-undecided"+name)
}

var _ = Describe("A post's problem", func() {
	onX := []web.Target{{Account: "X, @herald_demo"}}

	It("appears in the composer, which keeps its input", func() {
		page, site := signedInPage()
		must(site.Compose(web.Draft{Kind: web.Text, Targets: onX, Text: strings.Repeat("too long ", 40)}))
		must(page.WaitFor("the preview says it", `document.querySelector(".mock-problems") !== null`))
		inEveryLook(page, "compose-preview-problems")
		must(site.Publish())
		must(page.Get("alert", "").Wait())
		must(page.WaitText("Nothing was sent."))
		inEveryLook(page, "compose-problems")
		Expect(page.Get("textbox", "Text").Value()).To(HavePrefix("too long"))
		must(page.Get("textbox", "Text").Fill("Short enough"))
		must(site.SaveDraft())
		must(page.WaitText("The draft is saved."))
		page.Forget()
	})

	It("appears on its page when the platform rejects the post", func() {
		page, site := signedInPage()
		disturb(sandboxtest.Fault{Platform: "x", Operation: "publish", Kind: "status", Status: http.StatusForbidden, Times: 1})
		must(site.Compose(web.Draft{Kind: web.Text, Targets: onX, Text: "Refused by the platform"}))
		must(site.Publish())
		must(page.WaitText("Failed"))
		inEveryLook(page, "post-failed")
	})

	DescribeTable("is an undecided outcome, which its page asks the user to resolve",
		func(fault string, there types.GomegaMatcher, settle func(*chrome.Page, string), want string) {
			sandbox := sandboxtest.Client{URL: herald().Sandbox()}
			page, site := signedInPage()
			// The response is lost, and this platform's listing never proves that a post is absent.
			disturb(
				sandboxtest.Fault{Platform: "facebook", Operation: "publish", Kind: fault, Times: 1},
				sandboxtest.Fault{Platform: "facebook", Operation: "list", Kind: "stale_list", DelayMS: int(time.Hour.Milliseconds()), Times: 100},
			)
			text := want + ", after " + fault // lists show only the start of the text
			must(site.Compose(web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "Facebook, " + web.DemoHandle("facebook")}}, Text: text}))
			must(site.Publish())
			Eventually(readable(page), unsure).Should(ContainSubstring("Needs your answer"))
			// The title changes while the page is open.
			Eventually(func() (string, error) { return chrome.Eval[string](page, "document.title") }).Should(HavePrefix("Needs your answer: " + text[:20]))
			inEveryLook(page, "post-undecided-"+fault)
			at, err := page.URL()
			must(err)
			must(page.Open(at))
			Expect(chrome.Eval[string](page, "document.title")).To(HavePrefix("Needs your answer: " + text[:20]))
			expectQuestion(page, site, text, "-"+fault)
			must(page.Open(at))

			var found string
			posts, err := sandbox.Posts(context.Background(), "facebook", demoID("facebook"))
			must(err)
			for _, post := range posts {
				if post.Text == text {
					found = post.URL
				}
			}
			Expect(found).To(there, "the post on the platform")
			settle(page, found)
			must(page.WaitText("Thank you. Herald continues from there."))
			must(sandbox.ClearFaults(context.Background()))
			Eventually(readable(page), unsure).Should(And(ContainSubstring("Posted"), Not(ContainSubstring("Needs your answer"))))
			inEveryLook(page, "post-settled-"+fault)

			posts, err = sandbox.Posts(context.Background(), "facebook", demoID("facebook"))
			must(err)
			times := 0
			for _, post := range posts {
				if post.Text == text {
					times++
				}
			}
			Expect(times).To(Equal(1), want)
		},
		Entry("the post was published: the user enters its URL, by keyboard", "drop_after", Not(BeEmpty()), func(page *chrome.Page, found string) {
			byKeyboard.enter(page, page.GetByPartialName("textbox", "Its address"), found)
			byKeyboard.follow(page, page.Get("button", "It was published"))
		}, "what was found is not sent again"),
		Entry("the post is listed: the user selects it, on a phone", "drop_after", Not(BeEmpty()), func(page *chrome.Page, _ string) {
			must(sandboxtest.Client{URL: herald().Sandbox()}.ClearFaults(context.Background()))
			must(page.SetLook(chrome.Phone))
			must(page.Get("button", "Look again").Follow())
			Eventually(readable(page), unsure).Should(ContainSubstring("Is it one of these?"))
			inEveryLook(page, "verdict-candidates")
			must(page.SetLook(chrome.Phone))
			must(page.Get("button", "Yes, it is this one").Follow())
		}, "what was chosen is not sent again"),
		Entry("the post does not exist: Herald sends it", "drop_before", BeEmpty(), func(page *chrome.Page, _ string) {
			must(page.Get("button", "It was not published").Click())
			dialog := page.Get("dialog", "")
			must(dialog.Wait())
			inEveryLook(page, "verdict-question")
			must(dialog.Get("button", "It was not published").Follow())
		}, "what was not there is sent once"),
	)

	It("is a missing account, which lists show", func() {
		sandbox := sandboxtest.Client{URL: herald().Sandbox()}
		_, err := sandbox.Account(context.Background(), "threads", "9002", map[string]any{"username": "closed_bakery", "display_name": "Closed bakery"})
		must(err)
		page, site := signedInPage()
		must(site.Accounts())
		must(site.Connect("threads", "@closed_bakery"))
		Eventually(page.GetSaying("listitem", "@closed_bakery").Get("heading", "Closed bakery").Count).Should(Equal(1))
		disturb(sandboxtest.Fault{Platform: "threads", Operation: "*", Kind: "token_revoked", Times: 1000, Account: "9002"})
		text := "Waits for its account"
		must(site.Compose(web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "Threads, @closed_bakery"}}, Text: text}))
		must(site.Publish())
		Eventually(readable(page), unsure).Should(ContainSubstring("Waiting for an account"))
		inEveryLook(page, "post-waiting-for-account")
		must(site.Posts())
		must(page.WaitText("Waiting for an account"))
		Expect(chrome.Eval[string](page, "document.title")).To(MatchRegexp(`^\(\d+\+?\) Posts`), "the tab's title counts posts that need a user")
		Expect(page.Get("navigation", "Main").GetByPartialName("link", "Overview").Text()).To(MatchRegexp(`(?s)\d.*attention`))
		inEveryLook(page, "posts-waiting-for-account")
		must(site.Overview())
		inEveryLook(page, "overview-needs-a-person")
		must(page.Get("link", "New post").Nth(0).Follow())
		must(page.GetByPartialName("checkbox", "Threads, @closed_bakery").Check(true))
		must(page.WaitFor("the tile and the preview say it", `[...document.querySelectorAll(".pick .badge, .mock .badge")].filter((one) => one.textContent === "Reconnect first").length >= 2`))
		inEveryLook(page, "compose-reconnect")
	})

	It("appears in lists next to posts in all other states", func() {
		sandbox := sandboxtest.Client{URL: herald().Sandbox()}
		_, err := sandbox.Account(context.Background(), "threads", "9001", map[string]any{"username": "slow_bakery", "display_name": "Slow bakery"})
		must(err)
		page, site := signedInPage()
		must(site.Accounts())
		must(site.Connect("threads", "@slow_bakery"))
		disturb(
			// A rate limit would block every account of the app.
			sandboxtest.Fault{Platform: "threads", Operation: "create", Kind: "status", Status: http.StatusServiceUnavailable, Times: 100, Account: "9001"},
			sandboxtest.Fault{Platform: "x", Operation: "publish", Kind: "status", Status: http.StatusForbidden, Times: 1},
		)
		draft := web.Draft{Kind: web.Text, Targets: onX}
		for text, send := range map[string]func() error{
			"A failing post":         site.Publish,
			"A draft post":           site.SaveDraft,
			"A scheduled post":       func() error { return site.Schedule(time.Now().Add(26 * time.Hour)) },
			"Kept back, one of many": site.Publish,
		} {
			draft.Text, draft.Targets = text, onX
			if strings.HasPrefix(text, "Kept back") {
				draft.Targets = []web.Target{{Account: "Threads, @slow_bakery"}}
			}
			must(site.Compose(draft))
			must(send())
		}
		must(site.Posts())
		Eventually(func() (string, error) {
			if err := site.Posts(); err != nil {
				return "", err
			}
			return readable(page)()
		}, unsure).Should(And(ContainSubstring("Draft"), ContainSubstring("Scheduled"), ContainSubstring("Being published"), ContainSubstring("Failed")))
		inEveryLook(page, "posts-every-state")
		must(site.Calendar())
		inEveryLook(page, "calendar-every-state")
		must(site.Overview())
		inEveryLook(page, "overview-every-state")
		must(page.GetByPartialName("link", "Kept back, one of many").Nth(0).Follow())
		must(page.WaitText("The next try is"))
		inEveryLook(page, "post-waiting")
	})
})
