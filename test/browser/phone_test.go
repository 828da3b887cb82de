// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
)

var _ = Describe("On a phone", func() {
	It("each label of the bar is within its own part, on narrow phones too", func() {
		page, site := signedInPage()
		must(site.Posts())
		for _, width := range []int64{chrome.Phone.Width, 360} {
			look := chrome.Phone
			look.Width = width
			must(page.SetLook(look))
			wider, err := chrome.Eval[[]string](page, `[...document.querySelectorAll(".side nav li")].filter((item) =>
				item.querySelector("a > span").getBoundingClientRect().width > item.getBoundingClientRect().width - 1).map((item) => item.innerText)`)
			must(err)
			Expect(wider).To(BeEmpty(), "%d pixels", width)
		}
	})

	It("the name of a team does not push the button for a new post to a line of its own", func() {
		page, site := signInAs("Nora")
		must(page.SetLook(chrome.Phone))
		must(page.Open(site.URL + "/teams/" + freshTeam + "/"))
		Expect(chrome.Eval[bool](page, `document.querySelector(".side .brand").getBoundingClientRect().bottom > document.querySelector(".side .new").getBoundingClientRect().top`)).To(BeTrue())
	})
})
