// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
)

// A new user's first fifteen minutes with Herald, as one flow: `make run` prints a URL, and everything after that
// happens on the pages. The steps do not use the helpers in package web, so each step is one that the user sees.
var _ = Describe("A new user without documentation", func() {
	It("connects an account, publishes an image post, cancels another post, and creates and revokes a key", func() {
		address, err := printedLink() // starts Herald
		must(err)
		page := newPage(chrome.Options{})
		begun := time.Now()
		var report strings.Builder
		step := func(what string, do func()) {
			GinkgoHelper()
			By(what)
			from := time.Now()
			do()
			fmt.Fprintf(&report, "%5.1f s  %s\n", time.Since(from).Seconds(), what)
		}
		button := func(name string) *chrome.Element { return page.Get("button", name) }
		link := func(name string) *chrome.Element { return page.Get("link", name) }
		menu := func(name string) *chrome.Element { return page.Get("navigation", "Main").Get("link", name) }

		step("sign in with the address that make run prints", func() {
			must(page.Open(address))
			must(button("Sign in").Follow())
			must(page.Get("heading", "Overview").Wait())
		})
		step("connect an account", func() {
			must(menu("Accounts").Follow())
			must(button("Instagram Connect Instagram").Click())
			must(page.WaitText("Allow it for"))
			must(page.Settle())
			must(page.Follow(page.GetByPartialName("link", "@herald_demo").Click))
			must(page.WaitText("The account is connected"))
		})
		text := fmt.Sprintf("Our first picture, %d", begun.UnixNano())
		step("write a post with an image, and publish it", func() {
			must(link("New post").Nth(0).Follow())
			must(page.Get("radio", "Images").Click())
			must(page.GetByPartialName("checkbox", "Instagram, @herald_demo").Click())
			must(page.Get("textbox", "Text").Fill(text))
			must(page.Get("group", "Images").GetByPartialName("button", "Choose files").Choose(photo("first.jpg")))
			must(page.WaitText("first.jpg is uploaded"))
			must(button("Publish now").Follow())
			must(page.WaitText("Posted"))
		})
		step("see it on the platform", func() {
			platform, err := page.FollowTab(link("Open on Instagram (opens in a new tab)").Click)
			must(err)
			defer platform.Close()
			must(platform.WaitText(text))
			must(platform.WaitFor("the picture is there", `[...document.querySelectorAll(".media img")].some((image) => image.naturalWidth > 0)`))
		})
		step("schedule another one", func() {
			must(link("New post").Nth(0).Follow())
			must(page.GetByPartialName("checkbox", "X, @herald_demo").Click())
			must(page.Get("textbox", "Text").Fill("For tomorrow"))
			must(page.Get("radio", "At a time").Click())
			must(page.GetByPartialName("DateTime", "Day and time").Fill(time.Now().AddDate(0, 0, 2).Format("2006-01-02T15:04")))
			must(button("Schedule").Follow())
			must(page.WaitText("The post is scheduled."))
		})
		step("cancel it", func() {
			must(button("Cancel post").Click())
			must(page.Get("dialog", "").Get("button", "Cancel post").Follow())
			must(page.WaitText("The post is cancelled."))
		})
		step("make an API key", func() {
			must(menu("API keys").Follow())
			must(page.Get("textbox", "What is it for?").Fill("The till"))
			must(button("Create a key").Follow())
			must(page.WaitText("It is not shown again."))
		})
		step("revoke it", func() {
			key := page.GetSaying("listitem", "The till")
			must(key.Get("button", "Revoke").Click())
			must(page.Get("dialog", "").Get("button", "Revoke").Follow())
			must(page.WaitText("The key is revoked."))
		})
		fmt.Fprintf(&report, "%5.1f s  in all, of a browser that presses at once", time.Since(begun).Seconds())
		// The duration depends on the machine, so it is printed, not asserted.
		AddReportEntry("The first minutes with Herald", report.String(), ReportEntryVisibilityAlways)
		Expect(page.Problems()).To(BeEmpty())
	})
})

var _ = Describe("API keys", func() {
	It("are rotated without downtime: a second token works before the first is revoked", func() {
		page, site := signedInPage()
		must(site.Keys())
		first, err := site.MakeKey("The shop")
		must(err)
		card := page.GetSaying("listitem", "The shop")
		must(card.Get("button", "Create a second token").Follow())
		second, err := chrome.Eval[string](page, `document.getElementById("token").textContent`)
		must(err)
		Expect(second).NotTo(Equal(first))
		inEveryLook(page, "key-rolled")
		Eventually(answerTo(second)).Should(Equal(http.StatusOK))
		Expect(answerTo(first)()).To(Equal(http.StatusOK), "requests with the first token still succeed")
		Expect(card.Get("button", "Create a second token").Count()).To(BeZero(), "a key has two tokens at most")

		must(card.Get("button", "Stop the older token").Click())
		must(page.Get("dialog", "").Get("button", "Stop the older token").Follow())
		must(page.WaitText("The old token no longer works."))
		inEveryLook(page, "key-rolled-over")
		Eventually(answerTo(first)).Should(Equal(http.StatusUnauthorized))
		Expect(answerTo(second)()).To(Equal(http.StatusOK))
		Expect(card.Get("button", "Create a second token").Count()).To(Equal(1), "the token can be rotated again")

		must(site.RevokeKey("The shop"))
		Eventually(answerTo(second)).Should(Equal(http.StatusUnauthorized))
	})
})
