// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
	"github.com/herald-social/herald/test/sandboxtest"
)

var _ = Describe("Alt texts", func() {
	It("are written under each picture, kept after a rejection, and published", func() {
		page, site := signedInPage()
		text := fmt.Sprintf("Described at %d", time.Now().UnixNano())
		must(site.Compose(web.Draft{
			Kind: web.Image, Text: text + strings.Repeat(" too long", 40), Files: []string{photo("rocket.jpg"), photo("sea.jpg")},
			Targets: []web.Target{{Account: "X, @herald_demo"}},
		}))
		reminders := func() (int, error) {
			return chrome.Eval[int](page, `[...document.querySelectorAll("#compose .only-image li .alt .soft")].filter((one) => one.checkVisibility()).length`)
		}
		Expect(reminders()).To(Equal(2))
		must(page.Get("textbox", "Alt text of rocket.jpg").Fill(`A "rocket" & its <trail>`))
		Expect(reminders()).To(Equal(1), "the reminder disappears while the field has text")
		inEveryLook(page, "compose-alt-text")

		By("moving the described picture, and sending a text that is too long")
		must(page.Get("button", "Move later rocket.jpg").Click())
		must(site.Publish())
		must(page.WaitText("Nothing was sent."))
		page.Forget() // the browser logs the refusal
		Expect(page.Get("textbox", "Alt text of rocket.jpg").Value()).To(Equal(`A "rocket" & its <trail>`))

		must(page.Get("textbox", "Text").Fill(text))
		must(site.Publish())
		must(page.WaitText("Posted"))
		must(page.WaitText("Alt text of rocket.jpg"))
		inEveryLook(page, "post-alt-text")

		posts, err := sandboxtest.Client{URL: herald().Sandbox()}.Posts(context.Background(), "x", "")
		must(err)
		var got []string
		for _, post := range posts {
			for i := range post.Media {
				if post.Text == text {
					got = append(got, post.Media[i].AltText)
				}
			}
		}
		Expect(got).To(Equal([]string{"", `A "rocket" & its <trail>`}), "the text follows its picture")
		Expect(page.Problems()).To(BeEmpty())
	})

	It("are saved with the draft, and shown after a reload", func() {
		page, site := signedInPage()
		must(site.Compose(web.Draft{
			Kind: web.Image, Text: "Described and kept", Files: []string{photo("kept.jpg")}, Targets: []web.Target{{Account: "X, @herald_demo"}},
		}))
		must(page.Get("textbox", "Alt text of kept.jpg").Fill("A lighthouse"))
		must(site.WaitSaved())
		must(page.Reload())
		must(page.Get("button", "Remove kept.jpg").Wait())
		Expect(page.Get("textbox", "Alt text of kept.jpg").Value()).To(Equal("A lighthouse"))
		must(page.Get("radio", "Keep as a draft").Click())
		must(page.Get("button", "Save draft").Follow())
		must(page.WaitText("Alt text of kept.jpg"))
		must(page.WaitText("A lighthouse"))
		Expect(page.Problems()).To(BeEmpty())
	})
})
