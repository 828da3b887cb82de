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

var _ = Describe("Without a mouse, an administrator", func() {
	menu := func(page *chrome.Page, name string) *chrome.Element {
		return page.Get("navigation", "Main").Get("link", name)
	}

	DescribeTable("signs in with a link, and out", func(by way) {
		page := newPage(chrome.Options{})
		must(page.SetLook(by.look))
		link, err := herald().SignInLink(context.Background())
		must(err)
		must(page.Open(link))
		by.follow(page, page.Get("button", "Sign in"))
		must(page.Get("heading", "Overview").Wait())
		by.follow(page, page.Get("button", "Sign out"))
		must(page.Get("heading", "Sign in to Herald").Wait())
		Expect(page.Get("navigation", "Main").Count()).To(BeZero())
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))

	DescribeTable("connects an account, reconnects it and disconnects it", func(by way, id string) {
		handle := by.name + "_bakery"
		_, err := sandboxtest.Client{URL: herald().Sandbox()}.Account(context.Background(), "threads", id, map[string]any{"username": handle, "display_name": "Bakery by " + by.name})
		must(err)
		page, _ := by.start()
		card := page.GetSaying("listitem", "@"+handle)
		// consent clicks a button that leads to the platform's consent page, and grants access there.
		consent := func(button *chrome.Element, result string) {
			GinkgoHelper()
			by.press(page, button)
			must(page.WaitURL("redirect_uri=")) // an intermediate page redirects automatically
			must(page.Settle())
			by.follow(page, page.GetByPartialName("link", "@"+handle))
			must(page.WaitText(result))
		}
		by.follow(page, menu(page, "Accounts"))
		consent(page.GetByPartialName("button", "Connect Threads"), "The account is connected.")
		consent(card.Get("button", "Connect again"), "The account is connected again.")

		By("disconnecting it, after a change of mind")
		by.press(page, card.Get("button", "Disconnect"))
		dialog := page.Get("dialog", "")
		by.press(page, dialog.Get("button", "Cancel"))
		must(dialog.WaitGone())
		Expect(card.Get("button", "Disconnect").HasFocus()).To(BeTrue())
		by.confirm(page, card.Get("button", "Disconnect"), "Disconnect")
		must(page.WaitText("The account is disconnected."))
		by.follow(page, page.Get("link", "To the accounts"))
		must(page.Get("heading", "Accounts").Wait())
		Expect(card.Count()).To(BeZero())
	}, Entry("by keyboard", byKeyboard, "9004"), Entry("on a phone", onAPhone, "9005"))

	DescribeTable("makes an API key, rotates and revokes it", func(by way) {
		page, _ := by.start()
		by.follow(page, menu(page, "API keys"))
		by.enter(page, page.Get("textbox", "What is it for?"), "Made by "+by.name)
		by.follow(page, page.Get("button", "Create a key"))
		token := func() string {
			GinkgoHelper()
			token, err := chrome.Eval[string](page, `document.getElementById("token").textContent`)
			must(err)
			return token
		}
		first := token()
		Eventually(answerTo(first)).Should(Equal(http.StatusOK))
		card := page.GetSaying("listitem", "Made by "+by.name)
		by.follow(page, card.Get("button", "Create a second token"))
		second := token()
		by.confirm(page, card.Get("button", "Stop the older token"), "Stop the older token")
		Eventually(answerTo(first)).Should(Equal(http.StatusUnauthorized))
		Eventually(answerTo(second)).Should(Equal(http.StatusOK))
		by.confirm(page, card.Get("button", "Revoke"), "Revoke")
		Eventually(answerTo(second)).Should(Equal(http.StatusUnauthorized))
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))

	DescribeTable("gives an agent access, and revokes it", func(by way) {
		page, _ := by.start()
		name := "Allowed by " + by.name
		redirect, answers := loopback()
		address := consentAddress(name, redirect)
		must(page.Open(address))
		by.choose(page, page.Get("group", "It may"), web.MayRead)
		by.follow(page, page.Get("button", "Allow"))
		must(page.Get("heading", "Back").Wait())
		redeem(address, redirect, (*answers)[0].Get("code"))

		must(page.Open(herald().Site() + "/teams/herald-demo/"))
		by.follow(page, menu(page, "Agents"))
		card := page.GetSaying("listitem", name)
		by.confirm(page, card.Get("button", "Revoke"), "Revoke")
		must(card.Wait())
		Expect(card.Get("button", "Revoke").Count()).To(BeZero())
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))
})
