// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
	"github.com/herald-social/herald/test/mediatest"
)

// shape saves a picture of the given size, with a frame that shows where the picture is cropped.
func shape(name string, width, height int) string {
	GinkgoHelper()
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(color.RGBA{R: 99, G: 102, B: 241, A: 255}), image.Point{}, draw.Src)
	draw.Draw(picture, picture.Bounds().Inset(min(width, height)/10), image.NewUniform(color.RGBA{R: 250, G: 204, B: 21, A: 255}), image.Point{}, draw.Src)
	var content bytes.Buffer
	must(jpeg.Encode(&content, picture, nil))
	path := filepath.Join(GinkgoT().TempDir(), name)
	must(save(path, content.Bytes()))
	return path
}

// onAll are accounts of all platforms that accept images.
var onAll = []web.Target{
	{Account: "X, @herald_demo"},
	{Account: "Threads, @herald_demo"},
	{Account: "Instagram, @herald_demo"},
	{Account: "Facebook, @herald"},
	{Account: "TikTok, @herald_demo"},
}

// ratios returns the aspect ratio (width divided by height) of the element that matches a selector in each platform's
// preview, once each preview has the given number of files.
func ratios(page *chrome.Page, files int, selector string) map[string]float64 {
	GinkgoHelper()
	must(page.WaitFor("the files are in the previews", fmt.Sprintf(`[...document.querySelectorAll(".mock")].every((mock) => mock.querySelectorAll(".thumb").length === %d)`, files)))
	must(page.WaitFor("the pictures are loaded", `[...document.querySelectorAll(".mock img.thumb")].every((one) => (one.loading = "eager", one.complete && one.naturalWidth > 0))`))
	found, err := chrome.Eval[map[string]float64](page, fmt.Sprintf(`Object.fromEntries([...document.querySelectorAll(".mock")].map((mock) => {
		const box = mock.querySelector(%q)?.getBoundingClientRect();
		return [mock.className.match(/on-(\w+)/)[1], box ? box.width / box.height : 0];
	}))`, selector))
	must(err)
	return found
}

var _ = Describe("The previews", func() {
	It("show a picture with its own aspect ratio, within each platform's limits", func() {
		page, site := signedInPage()
		must(site.Compose(web.Draft{Kind: web.Image, Targets: onAll, Text: "One wide picture", Files: []string{shape("wide.jpg", 1600, 500)}}))
		for platform, want := range map[string]float64{"x": 3.2, "threads": 3.2, "instagram": 1.91, "facebook": 3.2, "tiktok": 9.0 / 16} {
			Expect(ratios(page, 1, ".thumb")).To(HaveKeyWithValue(platform, BeNumerically("~", want, 0.05)))
		}
		inEveryLook(page, "preview-wide")
		must(page.SetLook(chrome.Light))
		must(page.Get("group", "Images").GetByPartialName("button", "Remove").Click())
		must(page.Get("group", "Images").GetByPartialName("button", "Choose files").Choose(shape("tall.jpg", 500, 1600)))
		must(page.WaitFor("the other picture is shown", `[...document.querySelectorAll(".mock .thumb")].every((one) => one.alt === "tall.jpg") && document.querySelectorAll(".mock .thumb").length === 5`))
		for platform, want := range map[string]float64{"x": 3.0 / 4, "threads": 500.0 / 1600, "instagram": 4.0 / 5, "facebook": 4.0 / 5, "tiktok": 9.0 / 16} {
			Expect(ratios(page, 1, ".thumb")).To(HaveKeyWithValue(platform, BeNumerically("~", want, 0.02)))
		}
		inEveryLook(page, "preview-tall")
		page.Forget()
	})

	It("arrange several pictures, and turn them by mouse and by keyboard", func() {
		page, site := signedInPage()
		var files []string
		for i := range 4 {
			files = append(files, shape(fmt.Sprintf("%d.jpg", i+1), 800, 600+200*i))
		}
		must(site.Compose(web.Draft{Kind: web.Image, Targets: onAll, Text: "Four pictures", Files: files}))
		found := ratios(page, 4, ".media ul")
		Expect(found).To(HaveKeyWithValue("x", BeNumerically("~", 16.0/9, 0.02)))
		Expect(found).To(HaveKeyWithValue("facebook", BeNumerically("~", 1, 0.02)))
		Expect(found).To(HaveKeyWithValue("instagram", BeNumerically("~", 800.0/600, 0.02)), "the first picture decides")
		inEveryLook(page, "preview-several")

		for _, look := range []chrome.Look{chrome.Light, chrome.Phone} {
			must(page.SetLook(look))
			// While the page is laid out again, a click could reach another account's button.
			must(page.WaitFor("the layout stays", `(() => { const top = document.querySelector(".on-instagram ul").getBoundingClientRect().top + scrollY, stays = window.lastTop === top; window.lastTop = top; return stays; })()`))
			const at = `(() => { const row = document.querySelector(".on-instagram ul"); return Math.round(row.scrollLeft / row.clientWidth); })()`
			instagram := page.GetByPartialName("region", "Instagram")
			must(instagram.Get("button", "Next file").Click())
			must(page.WaitFor("the second picture", at+" === 1"))
			must(page.TabTo(instagram.GetByPartialName("list", "4 files")))
			must(page.Press(kb.ArrowRight))
			must(page.WaitFor("the third picture", at+" === 2"))
			must(page.TabTo(instagram.Get("button", "Previous file")))
			must(page.Press(kb.Enter))
			must(page.WaitFor("the second picture again", at+" === 1"))
			must(page.Get("textbox", "Text").Fill("Four pictures, in " + look.Name))
			must(page.WaitFor("the new preview, at the same picture", `document.querySelector(".on-instagram .mock-text").textContent.includes("`+look.Name+`") && `+at+" === 1"))
			must(instagram.Get("button", "Previous file").Click())
			must(page.WaitFor("the first picture", at+" === 0"))
		}
		page.Forget()
	})

	It("play an upright video as a reel, a Short and with its own aspect ratio", func() {
		page, site := signedInPage()
		content, err := mediatest.Film(checkout)
		must(err)
		film := filepath.Join(GinkgoT().TempDir(), "film.mp4")
		must(save(film, content))
		targets := []web.Target{{Account: "X, @herald_demo"}, {Account: "Threads, @herald_demo"}, {Account: "Instagram, @herald_demo"}, {Account: "TikTok, @herald_demo"}, {Account: "YouTube, @herald_demo"}}
		must(site.Compose(web.Draft{Kind: web.Video, Targets: targets, Title: "A film", Text: "Upright", Files: []string{film}}))
		must(page.WaitFor("the film is verified", `document.querySelector(".on-youtube .upright") !== null`))
		for _, platform := range []string{"x", "threads", "instagram", "tiktok", "youtube"} {
			Expect(ratios(page, 1, ".thumb")).To(HaveKeyWithValue(platform, BeNumerically("~", 9.0/16, 0.02)))
		}
		Expect(chrome.Eval[bool](page, `[...document.querySelectorAll(".mock video")].every((one) => one.controls)`)).To(BeTrue())
		inEveryLook(page, "preview-video")
		page.Forget()
	})

	It("fold a long text, and keep opened ones open while the text changes", func() {
		page, site := signedInPage()
		text := "Read https://www.example.com/a/very/long/address/of/a/page and " + strings.Repeat("a lot of words ", 12) + "#end"
		must(site.Compose(web.Draft{Kind: web.Image, Targets: onAll, Text: text, Files: []string{shape("a.jpg", 800, 800)}}))
		end := `document.querySelector(".on-instagram details").open`
		Expect(chrome.Eval[bool](page, end)).To(BeFalse())
		// The text shows whether the element is really closed: its content may be drawn even without the open
		// attribute.
		shown := func() (string, error) {
			return chrome.Eval[string](page, `document.querySelector(".on-instagram details").innerText`)
		}
		Expect(shown()).To(And(HaveSuffix("… more"), Not(ContainSubstring("#end"))))
		Expect(chrome.Eval[string](page, `document.querySelector(".on-x .tag").textContent`)).To(Equal("example.com/a/very/long/ad…"))
		Expect(chrome.Eval[int](page, `document.querySelectorAll(".on-instagram .tag").length`)).To(Equal(1), "Instagram links no addresses")
		inEveryLook(page, "preview-folded")
		must(page.SetLook(chrome.Light))
		more := page.GetByPartialName("region", "Instagram").GetByPartialName("DisclosureTriangle", "… more")
		must(page.TabTo(more))
		must(page.Press(kb.Enter))
		must(page.WaitFor("the whole text", end))
		Expect(shown()).To(And(HaveSuffix("#end"), Not(ContainSubstring("… more"))))
		must(page.Get("textbox", "Text").Fill(text + " More"))
		must(page.WaitFor("the new preview, open", `document.querySelector(".on-instagram details").textContent.includes("#end More") && `+end))
		page.Forget()
	})

	It("show Arabic from right to left, in the field as well", func() {
		page, site := signedInPage()
		must(site.Compose(web.Draft{Kind: web.Text, Targets: onAll[:2], Text: "مرحبا بالعالم."}))
		for _, selector := range []string{"#caption", ".on-x .mock-text", ".on-threads .mock-text"} {
			Expect(chrome.Eval[string](page, `getComputedStyle(document.querySelector("`+selector+`")).direction`)).To(Equal("rtl"), selector)
		}
		inEveryLook(page, "preview-arabic")
		page.Forget()
	})

	It("load nothing from other sites", func() {
		page, site := signedInPage()
		must(site.Compose(web.Draft{Kind: web.Text, Targets: onAll[:2], Text: "http://192.0.2.1/a.png https://example.com/ ![](http://192.0.2.1/b.png)"}))
		must(page.Settle())
		for _, load := range page.Loads() {
			Expect(load.URL).NotTo(Or(ContainSubstring("192.0.2.1"), ContainSubstring("example.com")))
		}
		page.Forget()
	})
})

var _ = Describe("The accounts in the composer", func() {
	It("cannot be selected for a kind of post that their platform does not accept, with the reason", func() {
		page, site := signedInPage()
		must(site.Compose(web.Draft{Kind: web.Text, Targets: onAll[:1], Text: "Text"}))
		youtube := page.Get("group", "Where it goes").GetByPartialName("checkbox", "YouTube, @herald_demo")
		must(page.WaitText("YouTube does not accept posts without files."))
		must(youtube.Click())
		Expect(chrome.Eval[string](page, `document.getElementById("status").textContent`)).To(Equal("YouTube does not accept posts without files."))
		must(page.TabTo(youtube))
		must(page.Press(" "))
		Expect(chrome.Eval[int](page, `document.querySelectorAll(".picked:checked").length`)).To(Equal(1))
		inEveryLook(page, "compose-refused")
		must(page.SetLook(chrome.Light))

		must(page.Get("radio", "Video").Check(true))
		must(youtube.Check(true))
		must(page.Get("radio", "Text").Check(true))
		Expect(chrome.Eval[int](page, `document.querySelectorAll(".picked:checked").length`)).To(Equal(2), "choosing another kind keeps the choice")
		inEveryLook(page, "compose-refused-chosen")
		must(page.SetLook(chrome.Light))
		must(youtube.Check(false))
		must(youtube.Click())
		Expect(chrome.Eval[int](page, `document.querySelectorAll(".picked:checked").length`)).To(Equal(1))
		page.Forget()
	})
})

var _ = Describe("Content that an account does not accept", func() {
	const reason = "X accepts at most 4 images; leave some out, or post to the other accounts separately."
	checked := func(page *chrome.Page) []string {
		GinkgoHelper()
		names, err := chrome.Eval[[]string](page, `[...document.querySelectorAll(".picked:checked")].map((box) => box.closest("li").querySelector("label .soft").textContent)`)
		must(err)
		return names
	}

	// takes waits until an account's tile no longer shows a reason against the content.
	takes := func(page *chrome.Page, account string) {
		GinkgoHelper()
		must(page.WaitFor(account+" takes the content", `[...document.querySelectorAll(".pick li")].find((li) => li.textContent.includes("`+account+`")).querySelector(".unfit").textContent === ""`))
	}

	DescribeTable("prevents the choice as soon as the files are uploaded, with the reason",
		func(look chrome.Look, choose func(page *chrome.Page, box *chrome.Element), remove func(page *chrome.Page, button *chrome.Element)) {
			page, site := signedInPage()
			must(page.SetLook(look))
			var files []string
			for i := range 5 {
				files = append(files, shape(fmt.Sprintf("%d.jpg", i+1), 400, 400))
			}
			must(site.Compose(web.Draft{Kind: web.Image, Targets: onAll[1:2], Text: "Five pictures", Files: files}))
			must(page.WaitText(reason))
			takes(page, "Threads, @herald_demo")
			x := page.Get("group", "Where it goes").GetByPartialName("checkbox", "X, @herald_demo")
			choose(page, x)
			Expect(chrome.Eval[string](page, `document.getElementById("status").textContent`)).To(Equal(reason))
			Expect(checked(page)).To(Equal([]string{"Threads, @herald_demo"}))
			inEveryLook(page, "compose-unfit-"+look.Name)
			must(page.SetLook(look))
			remove(page, page.Get("group", "Images").Get("button", "Remove 5.jpg"))
			takes(page, "X, @herald_demo")
			choose(page, x)
			Expect(checked(page)).To(ConsistOf("Threads, @herald_demo", "X, @herald_demo"))
			page.Forget()
		},
		Entry("by mouse", chrome.Light, func(_ *chrome.Page, box *chrome.Element) { must(box.Click()) }, func(_ *chrome.Page, button *chrome.Element) { must(button.Click()) }),
		Entry("by keyboard", chrome.Light,
			func(page *chrome.Page, box *chrome.Element) { must(page.TabTo(box)); must(page.Press(" ")) },
			func(page *chrome.Page, button *chrome.Element) { must(page.TabTo(button)); must(page.Press(kb.Enter)) }),
		Entry("on a phone", chrome.Phone, func(_ *chrome.Page, box *chrome.Element) { must(box.Click()) }, func(_ *chrome.Page, button *chrome.Element) { must(button.Click()) }),
	)

	It("keeps an earlier choice, marked, and offers a text for the account", func() {
		page, site := signedInPage()
		var files []string
		for i := range 5 {
			files = append(files, shape(fmt.Sprintf("%d.jpg", i+1), 400, 400))
		}
		must(site.Compose(web.Draft{Kind: web.Image, Targets: onAll[:1], Text: strings.Repeat("Long", 75), Files: files}))
		must(page.WaitText(reason))
		Expect(checked(page)).To(Equal([]string{"X, @herald_demo"}), "the files can be removed")
		inEveryLook(page, "compose-unfit-chosen")
		must(page.SetLook(chrome.Light))
		x := page.Get("group", "Where it goes").GetByPartialName("checkbox", "X, @herald_demo")
		must(x.Check(false))
		must(page.WaitText("The text is too long for X: 300 of 280. Choose it to write a different text."))
		must(x.Click())
		Expect(checked(page)).To(BeEmpty())
		page.Forget()
	})
})

var _ = Describe("A text that is too long for X", func() {
	const address = "https://www.example.com/an/address/that/stays/whole/although/it/is/long"
	text := strings.Repeat("Words that come first. ", 11) + address + " " + strings.Repeat("And words that follow. ", 12)

	DescribeTable("is split into a thread, and undone",
		func(look chrome.Look, press func(page *chrome.Page, name string)) {
			page, site := signedInPage()
			must(page.SetLook(look))
			must(site.Compose(web.Draft{Kind: web.Text, Targets: onAll[:2], Text: text}))
			must(page.WaitText("Split into a thread of 3 parts"))
			inEveryLook(page, "compose-split-offer-"+look.Name)
			must(page.SetLook(look))
			press(page, "Split into a thread of 3 parts")
			must(page.WaitText("The text is now a thread of 3 parts."))
			var parts []string
			for i := range 3 {
				part, err := page.Get("textbox", fmt.Sprint("Part ", i+1)).Value()
				must(err)
				parts = append(parts, part)
			}
			Expect(strings.Join(parts, " ")).To(Equal(strings.TrimSpace(text)))
			Expect(parts).To(ContainElement(ContainSubstring(address)))
			must(page.WaitFor("no part is too long", `document.querySelectorAll(".mock-thread > li").length === 6 && !document.querySelector(".mock-problems, .count.over")`))
			inEveryLook(page, "compose-split-"+look.Name)
			must(page.SetLook(look))
			press(page, "Undo")
			must(page.WaitText("Split into a thread of 3 parts"))
			Expect(page.Get("textbox", "Text").Value()).To(Equal(text))
			page.Forget()
		},
		Entry("by mouse", chrome.Light, func(page *chrome.Page, name string) { must(page.Get("button", name).Follow()) }),
		Entry("by keyboard", chrome.Light, func(page *chrome.Page, name string) {
			must(page.TabTo(page.Get("button", name)))
			must(page.Follow(func() error { return page.Press(kb.Enter) }))
		}),
		Entry("on a phone", chrome.Phone, func(page *chrome.Page, name string) { must(page.Get("button", name).Follow()) }),
	)
})
