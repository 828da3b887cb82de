// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/url"
	"path/filepath"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
)

// uploadForm returns the markup documented in the scripts' README. more are attributes of the input.
func uploadForm(more, items string) string {
	return `<form method="post" action="/form"><fieldset data-upload="/media" data-name="media"><legend>Files</legend>
		<label>Add files <input type="file" ` + more + `></label>
		<ol data-files>` + items + `</ol><p role="status"></p>
		<template><li><span data-preview></span> <span data-file></span> <progress max="1"></progress> <p data-note></p>
			<button type="button" data-move="up">Move up</button> <button type="button" data-move="down">Move down</button>
			<button type="button" data-retry hidden>Try again</button> <button type="button" data-remove>Remove</button></li></template>
		</fieldset><button>Send</button></form>`
}

// picture writes a small picture and returns its path.
func picture(name string) string {
	GinkgoHelper()
	var content bytes.Buffer
	must(png.Encode(&content, image.NewGray(image.Rect(0, 0, 4, 4))))
	path := filepath.Join(GinkgoT().TempDir(), name)
	must(save(path, content.Bytes()))
	return path
}

var _ = Describe("upload.js", func() {
	var (
		f    *fixture
		page *chrome.Page
	)

	open := func(body string) {
		GinkgoHelper()
		f, page = newFixture(body), newPage(chrome.Options{})
		must(page.Open(f.URL))
	}
	chooser := func() *chrome.Element { return page.Get("button", "Add files") }
	status := func() (string, error) { return page.Get("group", "Files").Get("status", "").Text() }
	send := func() []string {
		GinkgoHelper()
		must(page.Get("button", "Send").Follow())
		forms := f.forms()
		return forms[len(forms)-1]["media"]
	}

	It("uploads files directly to the store, in order", func() {
		open(uploadForm("multiple", ""))
		must(chooser().Choose(picture("a.png"), picture("b.png")))
		Eventually(status).Should(ContainSubstring("is uploaded"))
		must(page.WaitFor("both are in the store", `document.querySelectorAll("[name=media]").length === 2`))
		must(page.Settle())
		Expect(f.inStore("a.png").contentType).To(Equal("image/png"))
		Expect(f.inStore("b.png").size).To(BeNumerically(">", 50))
		Expect(f.announced[0].Size).To(BeNumerically("==", f.inStore(f.announced[0].Name).size))
		loaded, err := chrome.Eval[int](page, "[...document.images].filter((image) => image.naturalWidth === 4).length")
		must(err)
		Expect(loaded).To(Equal(2), "previews of both")
		inEveryLook(page, "fixture-upload")
		Expect(send()).To(Equal(f.ids("a.png", "b.png")))
	})

	It("accepts dropped files", func() {
		open(uploadForm("multiple", ""))
		must(page.Get("group", "Files").Drop(picture("a.png"), picture("b.png")))
		Eventually(status).Should(ContainSubstring("is uploaded"))
		must(page.WaitFor("both are in the store", `document.querySelectorAll("[name=media]").length === 2`))
		Expect(f.inStore("a.png").contentType).To(Equal("image/png"))
		Expect(send()).To(Equal(f.ids("a.png", "b.png")))
	})

	DescribeTable("declares a file's type regardless of its name",
		func(name, content, want string) {
			open(uploadForm("multiple", ""))
			path := filepath.Join(GinkgoT().TempDir(), name)
			must(save(path, []byte(content)))
			must(chooser().Choose(path))
			Eventually(status).Should(Equal(name + " is uploaded"))
			Expect(f.inStore(name).contentType).To(Equal(want))
			page.Forget() // a file this short has no preview
		},
		Entry("a JPEG", "a.png", "\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"),
		Entry("a PNG", "a.jpg", "\x89PNG\r\n\x1a\n", "image/png"),
		Entry("a WebP", "a.jpg", "RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp"),
		Entry("a video with its own brand", "a.jpg", "\x00\x00\x00\x18ftypisom", "video/mp4"),
		Entry("a film of QuickTime's", "a.jpg", "\x00\x00\x00\x14ftypqt  ", "video/quicktime"),
		Entry("a film of either type", "a.mov", "\x00\x00\x00\x18ftypisom", "video/quicktime"),
		Entry("a film without a brand", "a.mp4", "\x00\x00\x00\x08wide\x00\x00\x00\x00mdat", "video/mp4"),
		Entry("a HEIC picture, which the server names", "a.jpg", "\x00\x00\x00\x18ftypheic", "image/jpeg"),
		Entry("another file", "a.png", "hello", "image/png"),
	)

	It("warns about a white image on a transparent background", func() {
		open(uploadForm("multiple", ""))
		logo := image.NewNRGBA(image.Rect(0, 0, 100, 100))
		for x := range 50 {
			logo.Set(x, 50, color.White)
		}
		attach := func(name string) {
			GinkgoHelper()
			var content bytes.Buffer
			must(png.Encode(&content, logo))
			path := filepath.Join(GinkgoT().TempDir(), name)
			must(save(path, content.Bytes()))
			must(chooser().Choose(path))
		}
		attach("white.png")
		Eventually(status).Should(ContainSubstring("white.png is uploaded. It is white on a transparent background"))
		for x := range 50 {
			logo.Set(x, 60, color.Black)
		}
		attach("black.png")
		Eventually(status).Should(Equal("black.png is uploaded"))
	})

	It("shows its progress, and blocks submitting until it is done", func() {
		open(uploadForm("multiple", ""))
		f.hold = make(chan struct{})
		must(chooser().Choose(picture("a.png")))
		must(page.Get("progressbar", "Upload of a.png").Wait())
		must(page.Get("button", "Send").Click())
		Eventually(status).Should(Equal("a.png is still being uploaded"))
		Expect(f.forms()).To(BeEmpty())
		asks, err := chrome.Eval[bool](page, `!dispatchEvent(new Event("beforeunload", { cancelable: true }))`)
		must(err)
		Expect(asks).To(BeTrue(), "leaving the page needs confirmation")
		close(f.hold)
		Eventually(status).Should(Equal("a.png is uploaded"))
		asks, err = chrome.Eval[bool](page, `!dispatchEvent(new Event("beforeunload", { cancelable: true }))`)
		must(err)
		Expect(asks).To(BeFalse())
		Expect(send()).To(Equal([]string{"m-1"}))
	})

	DescribeTable("reports a failure, and retries",
		func(fail func(), want, complaint string) {
			open(uploadForm("multiple", ""))
			fail()
			must(chooser().Choose(picture("a.png")))
			Eventually(status).Should(HavePrefix("a.png was not uploaded: " + want))
			must(page.Get("button", "Send").Click())
			Eventually(status).Should(Equal("a.png is not uploaded: try again, or remove it"))
			Expect(f.forms()).To(BeEmpty(), "a post must not be published without its picture")
			must(page.TabTo(page.Get("button", "Try again a.png")))
			must(page.Press(kb.Enter))
			Eventually(status).Should(Equal("a.png is uploaded"))
			Expect(page.Get("button", "Remove a.png").HasFocus()).To(BeTrue(), "the focus must not get lost")
			Expect(send()).To(HaveLen(1))
			Expect(page.Forget()).To(ConsistOf(ContainSubstring(complaint)))
		},
		Entry("the server fails", func() { f.refuse = []int{http.StatusServiceUnavailable} }, "<b>too large</b>: at most 512 MB", "503"),
		Entry("the store fails", func() { f.breakOff = []int{http.StatusBadGateway} }, "The store answered 502", "502"),
		Entry("the store rejects the file", func() { f.breakOff = []int{http.StatusForbidden} }, "The store accepts only the declared file (403): ", "403"),
	)

	It("reorders files by keyboard and by dragging", func() {
		open(uploadForm("multiple", ""))
		must(chooser().Choose(picture("a.png"), picture("b.png"), picture("c.png")))
		must(page.WaitFor("all are in the store", `document.querySelectorAll("[name=media]").length === 3`))
		must(page.TabTo(page.Get("button", "Move up c.png")))
		must(page.Press(kb.Enter))
		Eventually(status).Should(Equal("Now number 2 of 3"))
		Expect(page.Get("button", "Move up c.png").HasFocus()).To(BeTrue())
		must(page.Press(kb.Enter))
		Eventually(status).Should(Equal("Now number 1 of 3"))
		must(page.Get("button", "Move down a.png").Click())
		must(page.Press(kb.End))
		Eventually(status).Should(Equal("Now number 3 of 3"))
		must(page.Press(kb.ArrowLeft))
		Eventually(status).Should(Equal("Now number 2 of 3"))
		must(page.Press(kb.ArrowDown))
		Eventually(status).Should(Equal("Now number 3 of 3"))
		Expect(page.Get("button", "Move down a.png").HasFocus()).To(BeTrue())
		ids := func() ([]string, error) {
			return chrome.Eval[[]string](page, `[...document.querySelectorAll("[name=media]")].map((field) => field.value)`)
		}
		Expect(ids()).To(Equal(f.ids("c.png", "b.png", "a.png")))
		must(page.Get("listitem", "").Nth(0).DragTo(page.Get("listitem", "").Nth(2)))
		Eventually(ids).Should(Equal(f.ids("b.png", "a.png", "c.png")))
		Expect(send()).To(Equal(f.ids("b.png", "a.png", "c.png")))
	})

	It("cancels an upload", func() {
		open(uploadForm("multiple", ""))
		must(chooser().Choose(picture("a.png")))
		Eventually(status).Should(Equal("a.png is uploaded"))
		f.hold = make(chan struct{})
		must(chooser().Choose(picture("b.png")))
		must(page.Get("progressbar", "Upload of b.png").Wait())
		must(page.Get("button", "Cancel b.png").Click())
		Eventually(status).Should(Equal("Cancelled"))
		Expect(chooser().HasFocus()).To(BeTrue())
		close(f.hold)
		Expect(send()).To(Equal([]string{"m-1"}))
	})

	It("replaces the file if only one is accepted", func() {
		open(uploadForm("", ""))
		must(chooser().Choose(picture("a.png")))
		Eventually(status).Should(Equal("a.png is uploaded"))
		must(chooser().Choose(picture("b.png")))
		Eventually(status).Should(Equal("b.png is uploaded"))
		Expect(send()).To(Equal([]string{"m-2"}))
	})

	It("moves and removes files rendered by the server", func() {
		item := func(name, id string) string {
			return `<li><span data-preview></span> <span data-file>` + name + `</span> <input type="hidden" name="media" value="` + id + `">
				<button type="button" data-move="up" aria-label="Move up ` + name + `">Move up</button> <button type="button" data-remove aria-label="Remove ` + name + `">Remove</button></li>`
		}
		open(uploadForm("multiple", item("old.png", "old-1")+item("older.png", "old-2")+item("oldest.png", "old-3")))
		must(page.Get("button", "Move up oldest.png").Click())
		must(page.Get("button", "Remove old.png").Click())
		Expect(send()).To(Equal([]string{"old-3", "old-2"}))
	})

	It("treats a file name as text", func() {
		open(uploadForm("multiple", ""))
		name := `<img src=x onerror=alert(1)>.png`
		must(chooser().Choose(picture(name)))
		Eventually(status).Should(Equal(name + " is uploaded"))
		Expect(page.Get("button", "Remove "+name).Count()).To(Equal(1))
		Expect(f.inStore(name).contentType).To(Equal("image/png"))
	})

	It("notifies the form only when files change", func() {
		open(uploadForm("multiple", "") + `<p id="count">0</p>`)
		_, err := chrome.Eval[any](page, `document.querySelector("form").addEventListener("change", () => (document.getElementById("count").textContent++))`)
		must(err)
		must(chooser().Choose(picture("a.png")))
		Eventually(status).Should(Equal("a.png is uploaded"))
		Expect(chrome.Eval[string](page, `document.getElementById("count").textContent`)).To(Equal("1"))
	})

	It("allows submitting a form without files", func() {
		open(uploadForm("multiple", ""))
		must(page.Get("button", "Send").Follow())
		Expect(f.forms()).To(Equal([]url.Values{{}}))
	})
})
