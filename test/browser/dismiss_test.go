// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net/http"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
	"github.com/herald-social/herald/test/sandboxtest"
)

var _ = Describe("A failed post", func() {
	onX := []web.Target{{Account: "X, @herald_demo"}}

	DescribeTable("counts as needing attention until it is dismissed",
		func(look chrome.Look, press func(page *chrome.Page, button *chrome.Element), onOverview bool) {
			page, site := signedInPage()
			must(page.SetLook(look))
			needing := func() int {
				GinkgoHelper()
				must(site.Overview())
				n, err := chrome.Eval[int](page, `Number(/^\((\d+)\)/.exec(document.title)?.[1] ?? 0)`)
				must(err)
				shown, err := chrome.Eval[int](page, `parseInt(document.querySelector("nav .needing")?.textContent ?? "0")`)
				must(err)
				Expect(shown).To(Equal(n), "the navigation and the title have the same number")
				return n
			}
			before := needing()
			disturb(sandboxtest.Fault{Platform: "x", Operation: "publish", Kind: "status", Status: http.StatusForbidden, Times: 1})
			text := CurrentSpecReport().LeafNodeText // lists show only the start of longer texts
			must(site.Compose(web.Draft{Kind: web.Text, Targets: onX, Text: text}))
			must(site.Publish())
			must(page.WaitText("Failed"))
			address, err := page.URL()
			must(err)
			Eventually(needing).Should(Equal(before + 1))
			must(page.WaitText("Failed in the last 7 days"))
			inEveryLook(page, "overview-failed")
			must(page.SetLook(look))
			button := page.GetByPartialName("button", text)
			if !onOverview {
				must(page.Open(address))
				inEveryLook(page, "post-to-dismiss")
				must(page.SetLook(look))
				button = page.Get("button", "Dismiss")
			}
			press(page, button)
			must(page.WaitText("Dismissed. The post stays among the failed ones"))
			Expect(page.GetByPartialName("button", text).Count()).To(BeZero())
			Expect(needing()).To(Equal(before))
			must(page.Open(address))
			Expect(readable(page)()).To(ContainSubstring("Failed"))
		},
		Entry("on the overview, by mouse", chrome.Light, func(_ *chrome.Page, button *chrome.Element) { must(button.Follow()) }, true),
		Entry("on the overview, by keyboard", chrome.Light, func(page *chrome.Page, button *chrome.Element) { keys{page}.follow(button, kb.Enter) }, true),
		Entry("on its page, on a phone", chrome.Phone, func(_ *chrome.Page, button *chrome.Element) { must(button.Follow()) }, false),
	)
})
