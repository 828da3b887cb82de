// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/web"
)

var _ = Describe("Mastodon's options", func() {
	It("are saved with the draft and edited, like a picture's focal point, and count towards the text", func() {
		page, site := signedInPage()
		text := fmt.Sprintf("Warned at %d", time.Now().UnixNano())
		must(site.Compose(web.Draft{Kind: web.Image, Text: text, Files: []string{photo("ending.jpg")}, Targets: []web.Target{{Account: "Mastodon, @herald_demo"}}}))
		warning, audience, across := page.Get("textbox", "Content warning on Mastodon"), page.Get("combobox", "Who can see it on Mastodon"), page.Get("spinbutton", "From -100, left, to 100, right of ending.jpg")
		hide := page.Get("checkbox", "Hide its files until they are opened")
		holds := func() {
			GinkgoHelper()
			Expect(warning.Value()).To(Equal("the ending"))
			Expect(audience.Value()).To(Equal("unlisted"))
			Expect(across.Value()).To(Equal("-40"))
		}
		must(warning.Fill("the ending"))
		must(audience.Select("Everyone, but not in public timelines"))
		must(hide.Check(true))
		must(page.Get("DisclosureTriangle", "Focal point on Mastodon").Click())
		must(across.Fill("-40"))
		must(page.WaitText(fmt.Sprintf("%d of 500 characters", len("the ending")+len(text))))
		inEveryLook(page, "compose-mastodon")

		By("loading the page again, which has the saved draft")
		must(site.WaitSaved())
		must(page.Reload())
		must(page.Get("button", "Remove ending.jpg").Wait())
		holds()

		By("opening the stored draft")
		must(site.SaveDraft())
		must(page.Get("link", "Edit").Follow())
		holds()
		must(site.Publish())
		must(page.WaitText("Posted"))
		Expect(page.Problems()).To(BeEmpty())
	})
})
