// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"strings"
	"time"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
)

var _ = Describe("Work in progress", func() {
	const threads = "Threads, @herald_demo"

	var (
		page *chrome.Page
		site web.Site
	)

	BeforeEach(func() { page, site = signedInPage() })

	onThreads := func(text string) web.Draft {
		return web.Draft{Kind: web.Text, Targets: []web.Target{{Account: threads}}, Text: text}
	}

	// drafts returns the number of drafts with a text in the list.
	drafts := func(text string) int {
		GinkgoHelper()
		must(page.Open(site.URL + "/teams/herald-demo/posts?status=draft"))
		n, err := page.GetByPartialName("link", text).Count()
		must(err)
		return n
	}

	caption := func(of *chrome.Page) string {
		GinkgoHelper()
		text, err := of.Get("textbox", "Text").Value()
		must(err)
		return text
	}

	asks := func() bool {
		GinkgoHelper()
		asks, err := chrome.Eval[bool](page, `!dispatchEvent(new Event("beforeunload", { cancelable: true }))`)
		must(err)
		return asks
	}

	It("is a draft after the first words, continues after a reload, and is published once", func() {
		must(site.Compose(onThreads("First words")))
		must(site.WaitSaved())
		inEveryLook(page, "compose-saved")
		Expect(asks()).To(BeFalse(), "all changes are saved")
		must(page.Get("textbox", "Text").Fill("First words, and more"))
		Expect(asks()).To(BeTrue(), "the last change is unsaved")
		must(site.WaitSaved())
		must(page.Reload())
		Expect(caption(page)).To(Equal("First words, and more"))
		Expect(chrome.Eval[int](page, `document.querySelectorAll(".picked:checked").length`)).To(Equal(1))
		must(site.Publish())
		must(page.WaitText("Posted"))
		Expect(published("threads", "First words, and more")).To(Equal(1))
		Expect(drafts("First words")).To(BeZero())
	})

	It("is saved for a person with a keyboard and a phone", func() {
		must(page.SetLook(chrome.Phone))
		must(page.Press("n"))
		must(page.WaitURL("/posts/new"))
		must(page.Settle())
		must(page.TabTo(page.Get("group", "Where it goes").GetByPartialName("checkbox", threads)))
		must(page.Press(" "))
		must(page.TabTo(page.Get("textbox", "Text")))
		must(page.Press("By keyboard"))
		must(site.WaitSaved())
		must(page.Follow(func() error {
			_, err := chrome.Eval[any](page, `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true }))`)
			return err
		}))
		must(page.WaitText("Posted"))
		Expect(published("threads", "By keyboard")).To(Equal(1))
	})

	It("of one tab is not touched by another", func() {
		must(site.Compose(onThreads("In the first tab")))
		must(site.WaitSaved())
		tab, err := page.NewTab(site.URL + "/teams/herald-demo/posts/new")
		must(err)
		DeferCleanup(tab.Close)
		Expect(caption(tab)).To(BeEmpty())
		must(web.Site{Page: tab, URL: site.URL, Zone: site.Zone}.Compose(onThreads("In the second tab")))
		must(web.Site{Page: tab}.WaitSaved())
		must(page.Reload())
		Expect(caption(page)).To(Equal("In the first tab"))
		must(tab.Reload())
		Expect(caption(tab)).To(Equal("In the second tab"))
	})

	It("of two tabs on one draft shows both versions, and the person chooses", func() {
		must(site.Compose(onThreads("Where it began")))
		must(site.SaveDraft())
		must(site.Edit())
		address, err := page.URL()
		must(err)
		tab, err := page.NewTab(address)
		must(err)
		DeferCleanup(tab.Close)
		must(page.Get("textbox", "Text").Fill("Of the first tab"))
		must(site.WaitSaved())
		must(tab.Get("textbox", "Text").Fill("Of the second tab"))
		must(tab.WaitText("There are two versions of this post"))
		tab.Forget() // the console reports the 409
		for _, text := range []string{"Of the first tab", "Of the second tab"} {
			Expect(readable(tab)()).To(ContainSubstring(text))
		}
		Expect(tab.Get("textbox", "Text").HasFocus()).To(BeTrue(), "focus stays in the text field")
		inEveryLook(tab, "compose-conflict")

		By("keeping the version that was written last")
		must(tab.TabTo(tab.Get("button", "Keep mine")))
		must(tab.Press(kb.Enter))
		Expect(tab.Get("textbox", "Text").HasFocus()).To(BeTrue())
		must(web.Site{Page: tab}.WaitSaved())

		By("the first tab takes over")
		must(page.Get("textbox", "Text").Fill("Of the first tab again"))
		must(page.WaitText("There are two versions of this post"))
		page.Forget()
		must(page.Get("link", "Use the stored one").Follow())
		Expect(caption(page)).To(Equal("Of the second tab"))
	})

	It("of a conflict without JavaScript is not lost", func() {
		must(site.Compose(onThreads("Before it was changed")))
		must(site.SaveDraft())
		must(site.Edit())
		address, err := page.URL()
		must(err)
		plain := newPage(chrome.Options{NoScript: true})
		signIn(plain)
		must(plain.Open(address))
		must(page.Get("textbox", "Text").Fill("Changed with a script"))
		must(site.WaitSaved())
		must(plain.Get("textbox", "Text").Fill("Changed without one"))
		must(plain.Get("button", "Save draft").Follow())
		plain.Forget() // the console reports the 409
		must(plain.Get("button", "Keep mine").Follow())
		must(plain.WaitText("Changed without one"))
	})

	It("survives an added part and a reload", func() {
		must(site.Compose(web.Draft{Kind: web.Tree, Targets: []web.Target{{Account: "X, @herald_demo"}}, Parts: []string{"Part one", "Part two", "Part three"}}))
		Expect(page.Get("textbox", "Part 3").HasFocus()).To(BeTrue())
		must(site.WaitSaved())
		must(page.Reload())
		for n, want := range map[string]string{"Part 1": "Part one", "Part 2": "Part two", "Part 3": "Part three"} {
			Expect(page.Get("textbox", n).Value()).To(Equal(want))
		}
		must(page.Get("button", "Remove the last part").Click())
		Expect(page.Get("textbox", "Part 3").Count()).To(BeZero())
		Expect(page.Get("button", "Remove the last part").Count()).To(BeZero())
	})

	It("survives a refusal, with the names of its files", func() {
		must(site.Compose(web.Draft{Kind: web.Image, Targets: []web.Target{{Account: "X, @herald_demo"}}, Text: strings.Repeat("too long ", 40), Files: []string{photo("holiday.jpg")}}))
		must(page.WaitText("Not saved:"))
		Expect(asks()).To(BeTrue())
		must(site.Publish())
		must(page.WaitText("Nothing was sent."))
		Expect(page.GetByPartialName("button", "Remove holiday.jpg").Count()).To(Equal(1))
		must(page.Open(site.URL + "/teams/herald-demo/posts/new"))
		Expect(page.UnloadDialogs()).To(Equal(1))
		Expect(caption(page)).To(HavePrefix("too long"))
		Expect(page.GetByPartialName("button", "Remove holiday.jpg").Count()).To(Equal(1))
	})

	It("shows the text of one account that applies", func() {
		draft := onThreads("For all")
		draft.Targets[0].Platform, draft.Targets[0].Text = "threads", "For Threads alone"
		must(site.Compose(draft))
		must(site.WaitSaved())
		must(page.Reload())
		Expect(page.GetByPartialName("textbox", "on Threads").Value()).To(Equal("For Threads alone"), "its field is open")
		Expect(page.GetByPartialName("DisclosureTriangle", "in use").Count()).To(Equal(1))
	})

	It("survives the end of the session", func() {
		must(site.Compose(onThreads("Before the session ends")))
		must(site.WaitSaved())
		must(page.ClearCookies())
		must(page.Get("textbox", "Text").Fill("After it has ended"))
		must(page.WaitText("You are signed out. This browser keeps what you wrote."))
		page.Forget() // the console reports the 401
		link, err := page.Get("link", "Sign in").Attribute("href")
		must(err)
		Expect(link).To(Equal("/signin?return_to=%2Fteams%2Fherald-demo%2Fposts%2Fnew"))
		signIn(page)
		must(page.Open(site.URL + "/teams/herald-demo/posts/new"))
		Expect(caption(page)).To(Equal("After it has ended"))
		must(site.WaitSaved())
		Expect(drafts("After it has ended")).To(Equal(1))
	})

	It("on a scheduled post is not stored automatically, and leaving asks for confirmation", func() {
		must(site.Compose(onThreads("For later, as planned")))
		must(site.Schedule(time.Now().Add(72 * time.Hour)))
		must(site.Edit())
		Expect(asks()).To(BeFalse())
		must(page.Get("textbox", "Text").Fill("For later, with a change"))
		must(page.WaitText("Not saved yet."))
		Expect(asks()).To(BeTrue())
		inEveryLook(page, "edit-unsaved")
		before := page.UnloadDialogs()
		must(page.Reload())
		Expect(page.UnloadDialogs()).To(Equal(before + 1))
		Expect(caption(page)).To(Equal("For later, with a change"))
	})

	It("is dropped when it is discarded", func() {
		must(site.Compose(onThreads("A bad idea")))
		must(site.WaitSaved())
		must(page.Get("link", "Discard").Click())
		dialog := page.Get("dialog", "Discard this draft? What you wrote is not kept.")
		must(dialog.Get("button", "Cancel").Click())
		must(dialog.WaitGone())
		must(page.Get("link", "Discard").Click())
		must(dialog.Get("button", "Discard").Follow())
		Expect(drafts("A bad idea")).To(BeZero())
		must(page.Open(site.URL + "/teams/herald-demo/posts/new"))
		Expect(caption(page)).To(BeEmpty())
	})

	It("on a draft returns to the stored version when it is discarded", func() {
		must(site.Compose(onThreads("A good idea")))
		must(site.SaveDraft())
		must(site.Edit())
		must(page.Get("textbox", "Text").Fill("A worse idea"))
		must(site.WaitSaved())
		must(page.Get("link", "Discard").Follow())
		Expect(drafts("A worse idea")).To(BeZero())
		Expect(drafts("A good idea")).To(Equal(1))
	})

	It("has one draft when its kind changes", func() {
		must(site.Compose(onThreads("A text or a thread")))
		must(site.WaitSaved())
		must(page.Get("group", "Kind of post").Get("radio", web.Tree).Check(true))
		must(page.Get("textbox", "Part 1").Fill("A text or a thread, in parts"))
		must(site.WaitSaved())
		Expect(drafts("A text or a thread")).To(Equal(1))
	})

	It("of a closed tab is offered to another", func() {
		must(page.Open(site.URL + "/teams/herald-demo/posts/new"))
		must(page.Get("textbox", "Text").Fill("Without an account"))
		must(page.WaitText("Not saved:"))
		_, err := chrome.Eval[any](page, `for (const name of Object.keys(localStorage).filter((one) => one.startsWith("herald-writing:")))
			localStorage.setItem(name, JSON.stringify({ ...JSON.parse(localStorage.getItem(name)), at: Date.now() - 60000 }))`)
		must(err)
		tab, err := page.NewTab(site.URL + "/teams/herald-demo/posts/new")
		must(err)
		DeferCleanup(tab.Close)
		must(tab.WaitText("This browser has text that was not saved"))
		inEveryLook(tab, "compose-offer")
		must(tab.Get("button", "Continue with it").Follow())
		Expect(caption(tab)).To(Equal("Without an account"))
	})
})

var _ = Describe("Publish now", Ordered, func() {
	// setUndo changes the demo team's time in which posts can be taken back.
	setUndo := func(seconds int32) {
		GinkgoHelper()
		kubernetes, err := cluster.NewClient(herald().Variable("KUBECONFIG"))
		must(err)
		var teams v1alpha1.TeamList
		must(kubernetes.List(context.Background(), &teams))
		for i := range teams.Items {
			if team := &teams.Items[i]; team.Spec.Namespace == cluster.DemoNamespace {
				team.Spec.Publishing.UndoSeconds = seconds
				must(kubernetes.Update(context.Background(), team))
			}
		}
	}

	BeforeAll(func() {
		DeferCleanup(setUndo, int32(0))
		setUndo(20)
		page, site := signedInPage()
		Eventually(func() (string, error) {
			if err := site.Team(); err != nil {
				return "", err
			}
			return readable(page)()
		}).Should(ContainSubstring("waits 20 seconds, during which the post can be taken back"))
	})

	text := func(caption string) web.Draft {
		return web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "Threads, @herald_demo"}}, Text: caption}
	}

	It("counts down, and is withdrawn by keyboard on a phone", func() {
		page, site := signedInPage()
		must(page.SetLook(chrome.Phone))
		must(site.Compose(text("Taken back in time")))
		must(site.Publish())
		must(page.WaitText("This post goes out in"))
		must(page.TabTo(page.Get("button", "Take back")))
		must(page.Follow(func() error { return page.Press(kb.Enter) }))
		must(page.WaitText("The post is taken back"))
		Expect(page.Get("textbox", "Text").Value()).To(Equal("Taken back in time"))
		inEveryLook(page, "edit-taken-back")
		Expect(published("threads", "Taken back in time")).To(BeZero())
	})

	It("counts down, and is published", func() {
		page, site := signedInPage()
		must(site.Compose(text("Not taken back")))
		must(site.Publish())
		must(page.WaitText("This post goes out in"))
		inEveryLook(page, "post-countdown")
		first, err := page.Get("timer", "").Text()
		must(err)
		Eventually(page.Get("timer", "").Text).ShouldNot(Equal(first))
		Eventually(readable(page), unsure).Should(ContainSubstring("Posted"))
		Expect(readable(page)()).NotTo(ContainSubstring("Take back"))
		Expect(published("threads", "Not taken back")).To(Equal(1))
	})
})
