// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net/http"
	"time"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
	"github.com/herald-social/herald/test/sandboxtest"
)

// way is how a user presses buttons and follows links.
type way struct {
	name   string
	look   chrome.Look
	press  func(page *chrome.Page, element *chrome.Element)
	follow func(page *chrome.Page, element *chrome.Element)
}

var (
	byKeyboard = way{"keys", chrome.Light, func(page *chrome.Page, e *chrome.Element) { keys{page}.press(e, kb.Enter) }, func(page *chrome.Page, e *chrome.Element) { keys{page}.follow(e, kb.Enter) }}
	onAPhone   = way{"phone", chrome.Phone, func(_ *chrome.Page, e *chrome.Element) { must(e.Click()) }, func(_ *chrome.Page, e *chrome.Element) { must(e.Follow()) }}
)

// Other specs do the same with a mouse.
var _ = Describe("Without a mouse, a user", func() {
	start := func(by way) (*chrome.Page, web.Site) {
		GinkgoHelper()
		page, site := signedInPage()
		must(page.SetLook(by.look))
		return page, site
	}
	// confirm presses a button, and the button of the same name in the question.
	confirm := func(page *chrome.Page, by way, button *chrome.Element, name string) {
		GinkgoHelper()
		by.press(page, button)
		dialog := page.Get("dialog", "")
		must(dialog.Wait())
		by.follow(page, dialog.Get("button", name))
	}

	DescribeTable("makes an API key, and revokes it", func(by way) {
		page, site := start(by)
		must(site.Keys())
		must(page.Get("textbox", "What is it for?").Fill("Made by " + by.name))
		by.follow(page, page.Get("button", "Create a key"))
		token, err := chrome.Eval[string](page, `document.getElementById("token").textContent`)
		must(err)
		Eventually(answerTo(token)).Should(Equal(http.StatusOK))
		confirm(page, by, page.GetSaying("listitem", "Made by "+by.name).Get("button", "Revoke"), "Revoke")
		Eventually(answerTo(token)).Should(Equal(http.StatusUnauthorized))
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))

	DescribeTable("retries a post's failed account", func(by way) {
		page, site := start(by)
		disturb(sandboxtest.Fault{Platform: "x", Operation: "publish", Kind: "status", Status: http.StatusForbidden, Times: 1})
		must(site.Compose(web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "X, @herald_demo"}, {Account: "Threads, @herald_demo"}}, Text: "Sent again by " + by.name}))
		must(site.Publish())
		Eventually(readable(page), unsure).Should(ContainSubstring("Partly posted (1 of 2)"))
		by.follow(page, page.Get("link", "Send again to X"))
		by.follow(page, page.Get("button", "Publish now"))
		Eventually(readable(page), unsure).Should(ContainSubstring("Posted"))
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))

	DescribeTable("moves posts, and moves them back", func(by way) {
		page, site := start(by)
		day := time.Now().In(site.Zone).AddDate(0, 5, 0)
		day = time.Date(day.Year(), day.Month(), 10, 9, 0, 0, 0, site.Zone)
		planned([]string{"Moved one by " + by.name, "Moved two by " + by.name}, func(i int) time.Time { return day.Add(time.Duration(i) * time.Hour) })
		Eventually(func() (int, error) { // the apiserver learns of the posts through its watch
			if err := page.Open(site.URL + "/teams/herald-demo/posts?status=scheduled&q=moved+by+" + by.name); err != nil {
				return 0, err
			}
			return page.GetPart("checkbox", "by "+by.name).Count()
		}).Should(Equal(2))
		by.press(page, page.Get("link", "Select all on this page"))
		must(page.WaitText("2 selected"))
		by.follow(page, page.Get("button", "Move…"))
		by.follow(page, page.Get("button", "Move 2 posts 1 day later"))
		must(page.Get("heading", "2 posts moved").Wait())
		must(page.WaitText(day.AddDate(0, 0, 1).Format("2 Jan 2006, 15:04")))
		by.follow(page, page.Get("button", "Undo (2)"))
		must(page.Get("heading", "2 posts moved").Wait())

		By("moving one of them on its page")
		by.follow(page, page.GetPart("link", "Moved one by "+by.name))
		by.press(page, page.Get("DisclosureTriangle", "Move"))
		must(page.Get("DateTime", "New time").Fill(day.AddDate(0, 0, 2).Format("2006-01-02T15:04")))
		by.follow(page, page.Get("button", "Move"))
		must(page.WaitText("Post moved."))
		by.follow(page, page.GetPart("button", "Undo (move back to"))
		must(page.WaitText(day.Format("2 Jan 2006, 15:04")))
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))
})
