// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
	"github.com/herald-social/herald/test/sandboxtest"
)

// published returns the number of the demo account's posts with the text.
func published(platform, text string) int {
	GinkgoHelper()
	posts, err := sandboxtest.Client{URL: herald().Sandbox()}.Posts(context.Background(), platform, demoID(platform))
	must(err)
	times := 0
	for _, post := range posts {
		if post.Text == text {
			times++
		}
	}
	return times
}

// Threads accepts duplicate text, so only Herald prevents a second post.
var _ = Describe("A post is sent once if a user", func() {
	onThreads := func(text string) web.Draft {
		return web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "Threads, @herald_demo"}}, Text: text}
	}

	// emptyFormAfter expects a notice about the post and an empty form, and submits the form again.
	emptyFormAfter := func(page *chrome.Page, site web.Site, text string) {
		GinkgoHelper()
		must(page.WaitText("You published this a moment ago"))
		must(page.WaitText(text))
		Expect(page.Get("textbox", "Text").Value()).To(BeEmpty())
		must(site.Publish())
		must(page.WaitText("Nothing was sent."))
		page.Forget() // the console reports the 400
		Expect(published("threads", text)).To(Equal(1))
	}

	It("goes back and publishes again", func() {
		page, site := signedInPage()
		must(site.Compose(onThreads("Back and again")))
		must(site.Publish())
		must(page.WaitText("Posted"))
		must(page.Back())
		must(page.WaitText("You published this a moment ago"))
		inEveryLook(page, "compose-sent")
		emptyFormAfter(page, site, "Back and again")

		By("the notice leads to the post, and to another one")
		must(page.Back())
		must(page.WaitText("You published this a moment ago"))
		must(page.Get("link", "Open it").Follow())
		must(page.WaitText("Posted"))
		must(page.Back())
		must(page.Get("link", "Write another").Follow())
		Expect(readable(page)()).NotTo(ContainSubstring("You published this"))
		must(site.Compose(onThreads("Another one")))
		must(site.Publish())
		must(page.WaitText("Posted"))
		Expect(published("threads", "Another one")).To(Equal(1))
	})

	It("goes back without JavaScript to an empty form or the same key", func() {
		page := newPage(chrome.Options{NoScript: true})
		site := signIn(page)
		must(page.Open(herald().Site() + "/teams/herald-demo/posts/new"))
		must(page.GetByPartialName("checkbox", "Threads, @herald_demo").Check(true))
		must(page.Get("textbox", "Text").Fill("Back without a script"))
		must(site.Publish())
		must(page.Back())
		must(site.Publish())
		page.Forget() // the console reports the 400 for an empty form
		Eventually(func() int { return published("threads", "Back without a script") }, unsure).Should(Equal(1))
		must(site.Posts())
		Expect(page.GetByPartialName("link", "Back without a script").Count()).To(Equal(1), "no other post exists")
	})

	It("reloads the resulting page", func() {
		page, site := signedInPage()
		must(site.Compose(onThreads("Loaded again")))
		must(site.Publish())
		must(page.Reload())
		must(page.WaitText("Posted"))
		must(page.Reload())
		Expect(readable(page)()).NotTo(ContainSubstring("on its way"), "the banner disappears with the post's outcome")
		must(page.Back())
		must(page.WaitText("You published this a moment ago"))
		must(page.Reload())
		emptyFormAfter(page, site, "Loaded again")
	})

	It("opens the form in two tabs", func() {
		page, site := signedInPage()
		must(site.Compose(onThreads("In two tabs")))
		other, err := page.NewTab(herald().Site() + "/teams/herald-demo/posts/new")
		must(err)
		DeferCleanup(other.Close)
		Expect(other.Get("textbox", "Text").Value()).To(BeEmpty(), "each tab has its own post")
		must(web.Site{Page: other, URL: site.URL, Zone: site.Zone}.Compose(onThreads("In two tabs")))
		must(site.Publish())
		must(page.WaitText("Posted"))
		emptyFormAfter(other, web.Site{Page: other, URL: site.URL, Zone: site.Zone}, "In two tabs")
	})

	It("clicks twice", func() {
		page, site := signedInPage()
		must(site.Compose(onThreads("Clicked twice")))
		must(page.Follow(func() error {
			_, err := chrome.Eval[any](page, `for (let i = 0; i < 2; i++) [...document.querySelectorAll("#compose button")].find((b) => b.textContent === "Publish now").click()`)
			return err
		}))
		must(page.WaitText("Posted"))
		Expect(published("threads", "Clicked twice")).To(Equal(1))
	})

	It("clicks twice, which submits the form once", func() {
		f := newFixture(`<form method="post" action="/form" data-once="TEAM PERSON"><input type="hidden" name="key" value="k"><label>Text <input name="caption" value="a"></label>
			<p class="send"><button>Publish now</button></p></form>`)
		page := newPage(chrome.Options{})
		must(page.Open(f.URL))
		must(page.Follow(func() error {
			_, err := chrome.Eval[any](page, `for (let i = 0; i < 3; i++) document.querySelector("button").click()`)
			return err
		}))
		Expect(f.forms()).To(HaveLen(1))
	})
})

var _ = Describe("A partly published post", func() {
	It("is retried only for the remaining accounts", func() {
		page, site := signedInPage()
		disturb(sandboxtest.Fault{Platform: "x", Operation: "publish", Kind: "status", Status: http.StatusForbidden, Times: 1})
		text := "Out on one of two"
		must(site.Compose(web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "X, @herald_demo"}, {Account: "Threads, @herald_demo"}}, Text: text}))
		must(site.Publish())
		Eventually(readable(page), unsure).Should(ContainSubstring("Partly posted (1 of 2)"))
		Expect(readable(page)()).NotTo(ContainSubstring("on its way"))
		inEveryLook(page, "post-partly")
		first, err := page.URL()
		must(err)

		By("showing in lists which account failed")
		must(site.Posts())
		must(page.WaitText("Partly posted (1 of 2)"))
		row := page.GetByPartialName("link", text)
		Expect(row.Get("image", "X: Failed").Count()).To(Equal(1))
		Expect(row.Get("image", "Threads: Posted").Count()).To(Equal(1))
		inEveryLook(page, "posts-partly")

		By("duplicating without the published accounts")
		must(page.Open(first))
		must(site.Duplicate())
		must(page.WaitText("Already posted there."))
		Expect(chrome.Eval[[]string](page, `[...document.querySelectorAll(".picked:checked")].map((box) => box.value)`)).To(
			ConsistOf(accountOnX()))
		inEveryLook(page, "compose-duplicate-partly")

		By("the failed account can be retried alone")
		must(page.Open(first))
		must(page.Get("link", "Send again to X").Follow())
		Expect(page.Get("textbox", "Text").Value()).To(Equal(text))
		Expect(chrome.Eval[[]string](page, `[...document.querySelectorAll(".picked:checked")].map((box) => box.value)`)).To(ConsistOf(accountOnX()))
		Expect(page.GetByPartialName("link", text).Count()).To(Equal(1), "the notice leads to the first post")
		inEveryLook(page, "compose-send-again")
		must(site.Publish())
		Eventually(readable(page), unsure).Should(ContainSubstring("Posted"))
		Expect(published("x", text)).To(Equal(1))
		Expect(published("threads", text)).To(Equal(1))
	})
})
