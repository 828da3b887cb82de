// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
)

var _ = Describe("The team's files", Ordered, func() {
	const inForm = `[...document.querySelectorAll("[name=image][type=hidden]")].length`

	var (
		page *chrome.Page
		site web.Site
	)
	open := func(path string) {
		GinkgoHelper()
		must(page.Open(site.URL + "/teams/herald-demo/" + path))
	}
	listed := func(name string) func() (int, error) {
		return func() (int, error) {
			open("files?q=" + name)
			return page.GetByPartialName("checkbox", name).Count()
		}
	}

	BeforeEach(func() { page, site = signedInPage() })

	It("accepts pictures dropped on the text, as tiles that are sorted by mouse and by keyboard", func() {
		open("posts/new")
		must(page.Get("textbox", "Text").Drop(photo("library-a.jpg"), photo("library-b.jpg"), photo("library-c.jpg")))
		must(page.WaitFor("all are uploaded", inForm+" === 3"))
		Expect(chrome.Eval[bool](page, `document.getElementById("category-image").checked`)).To(BeTrue())
		names := func() ([]string, error) {
			return chrome.Eval[[]string](page, `[...document.querySelectorAll("[data-file]")].map((name) => name.textContent).filter(Boolean)`)
		}
		must(page.TabTo(page.Get("button", "Move earlier library-c.jpg")))
		must(page.Press(kb.Home))
		Eventually(names).Should(Equal([]string{"library-c.jpg", "library-a.jpg", "library-b.jpg"}))
		must(page.Get("button", "Move later library-a.jpg").Click())
		Eventually(names).Should(Equal([]string{"library-c.jpg", "library-b.jpg", "library-a.jpg"}))
		inEveryLook(page, "compose-tiles")
		By("rejecting files that platforms do not accept, with a message at each file")
		gif := photo("library-d.gif")
		must(save(gif, []byte("GIF89a")))
		must(page.Get("textbox", "Text").Drop(gif))
		must(page.WaitText("GIF files are not supported. Save the picture as JPEG, PNG or WebP."))
		inEveryLook(page, "compose-refused")
		must(page.Get("button", "Remove library-d.gif").Click())
		must(page.Get("group", "Where it goes").GetByPartialName("checkbox", "X, @herald_demo").Click())
		must(page.Get("radio", "Keep as a draft").Click())
		must(page.Get("button", "Save draft").Follow())
		page.Forget() // the refusal
		Eventually(listed("library-a")).Should(Equal(1), "the manager has checked the file")
		Eventually(listed("library-b")).Should(Equal(1))
	})

	It("adds files to a post in a dialog, without a new upload", func() {
		open("posts/new")
		must(page.Get("radio", "Images").Click())
		must(page.TabTo(page.Get("group", "Images").Get("button", "Choose from the team's files")))
		must(page.Press(kb.Enter))
		dialog := page.Get("dialog", "The team's files")
		must(dialog.Get("searchbox", "File name").Fill("library-a"))
		must(page.WaitFor("the search has an answer", `document.querySelectorAll("#library-list input").length === 1`))
		must(page.TabTo(dialog.GetByPartialName("checkbox", "library-a.jpg")))
		must(page.Press(" "))
		inEveryLook(page, "compose-library")
		must(dialog.Get("button", "Add to the post").Click())
		must(page.WaitFor("it is in the post", inForm+" === 1"))
		must(page.Get("button", "Remove library-a.jpg").Wait())
		By("cancelling the dialog has no effect")
		must(page.Get("group", "Images").Get("button", "Choose from the team's files").Click())
		must(dialog.GetByPartialName("checkbox", "library-a.jpg").Click())
		must(page.Press(kb.Escape))
		must(dialog.WaitGone())
		Expect(chrome.Eval[int](page, inForm)).To(Equal(1))
	})

	It("starts a post with files", func() {
		open("files?q=library-")
		inEveryLook(page, "files")
		expectLight(page)
		must(page.GetByPartialName("checkbox", "library-a.jpg").Click())
		must(page.GetByPartialName("checkbox", "library-b.jpg").Click())
		must(page.Get("button", "Use in a new post").Follow())
		Expect(chrome.Eval[int](page, inForm)).To(Equal(2))
		Expect(chrome.Eval[bool](page, `document.getElementById("category-image").checked`)).To(BeTrue())
	})

	It("lists files in the form without JavaScript", func() {
		page = newPage(chrome.Options{NoScript: true})
		site = signIn(page)
		open("posts/new")
		must(page.Get("radio", "Images").Click())
		must(page.Get("textbox", "Text").Fill("Written without scripts"))
		must(page.Get("group", "Images").Get("button", "Choose from the team's files").Follow())
		Expect(page.Get("textbox", "Text").Value()).To(Equal("Written without scripts"))
		must(page.GetByPartialName("checkbox", "library-b.jpg").Click())
		Expect(chrome.Eval[[]string](page, `[...document.querySelectorAll(".choices li")].map((li) => getComputedStyle(li, "::before").content)`)).To(
			HaveEach("none"), "only the post's own files have numbers, which would cover the boxes")
		inEveryBareLook(page, "files-no-script")
		must(page.Get("group", "Where it goes").GetByPartialName("checkbox", "X, @herald_demo").Click())
		must(page.Get("radio", "Keep as a draft").Click())
		must(page.Get("button", "Save draft").Follow())
		must(page.WaitText("Written without scripts"))
	})
})
