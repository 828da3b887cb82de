// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net/http"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
)

// kindsForm is a form for several kinds of posts, of which the text has no field for files.
const kindsForm = `<form method="post" action="/form">
	<label><input type="radio" name="category" value="text" checked> Text</label>
	<label><input type="radio" name="category" value="image" id="category-image"> Images</label>
	<label><input type="radio" name="category" value="video" id="category-video"> Video</label>
	<label>Caption <textarea name="caption"></textarea></label>
	<div class="only-image"><fieldset data-upload="/media" data-name="image" data-kind="category-image"><legend>Pictures</legend>
		<label>Add pictures <input type="file" multiple accept="image/jpeg,image/png,image/webp"></label><ol data-files></ol><p role="status"></p>` + itemTemplate + `</fieldset></div>
	<div class="only-video"><fieldset data-upload="/media" data-name="video" data-kind="category-video"><legend>Film</legend>
		<label>Add a film <input type="file" accept="video/mp4,video/quicktime"></label><ol data-files></ol><p role="status"></p>` + itemTemplate + `</fieldset></div>
	<button>Send</button></form>`

const itemTemplate = `<template><li><span data-preview></span> <span data-file></span> <progress max="1"></progress> <p data-note></p>
	<button type="button" data-move="up">Move earlier</button> <button type="button" data-move="down">Move later</button>
	<button type="button" data-retry hidden>Try again</button> <button type="button" data-remove>Remove</button></li></template>`

var _ = Describe("Files from anywhere", func() {
	var (
		f    *fixture
		page *chrome.Page
	)

	BeforeEach(func() {
		f, page = newFixture(kindsForm), newPage(chrome.Options{})
		must(page.Open(f.URL))
	})

	clip := func(name string) string {
		GinkgoHelper()
		path := filepath.Join(GinkgoT().TempDir(), name)
		must(save(path, []byte("\x00\x00\x00\x18ftypisom")))
		return path
	}
	ids := func(field string) func() ([]string, error) {
		return func() ([]string, error) {
			return chrome.Eval[[]string](page, `[...document.querySelectorAll("[name=`+field+`][type=hidden]")].map((field) => field.value)`)
		}
	}
	chosen := func() (string, error) { return chrome.Eval[string](page, `document.querySelector(":checked").value`) }

	It("takes pictures that are dropped on the text, and chooses their kind", func() {
		must(page.Get("textbox", "Caption").Drop(picture("a.png"), picture("b.png")))
		Eventually(ids("image")).Should(HaveLen(2))
		Expect(chosen()).To(Equal("image"))
		Expect(ids("image")()).To(Equal(f.ids("a.png", "b.png")))
	})

	It("takes a picture that is pasted into the text", func() {
		must(page.Get("textbox", "Caption").Paste(picture("image.png")))
		Eventually(ids("image")).Should(Equal([]string{"m-1"}))
		Expect(chosen()).To(Equal("image"))
	})

	It("takes a film that is dropped on the heading", func() {
		must(page.Get("heading", "Fixture").Drop(clip("film.mp4")))
		Eventually(ids("video")).Should(Equal([]string{"m-1"}))
		Expect(chosen()).To(Equal("video"))
		page.Forget() // a film this short has no preview
	})

	It("leaves a post its kind once it has files", func() {
		must(page.Get("heading", "Fixture").Drop(picture("a.png")))
		Eventually(ids("image")).Should(HaveLen(1))
		must(page.Get("heading", "Fixture").Drop(clip("film.mp4")))
		must(page.WaitText("A video does not fit here"))
		Expect(chosen()).To(Equal("image"))
		Expect(page.Get("button", "Try again film.mp4").Count()).To(BeZero(), "no other try makes a film a picture")
		must(page.Get("button", "Remove film.mp4").Click())
		must(page.Get("button", "Send").Follow())
		Expect(f.forms()).To(HaveLen(1))
		page.Forget() // a film this short has no preview
	})

	It("lets text be pasted that has a picture of itself, as office programs copy it", func() {
		taken, err := chrome.Eval[bool](page, `(() => {
			const clipboardData = new DataTransfer();
			clipboardData.setData("text/plain", "1\t2");
			clipboardData.items.add(new File([new Uint8Array(4)], "image.png", { type: "image/png" }));
			return !document.querySelector("textarea").dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData }));
		})()`)
		must(err)
		Expect(taken).To(BeFalse())
		Expect(f.announced).To(BeEmpty())
	})

	It("says at each file what is wrong with it", func() {
		f.refuse = []int{http.StatusBadRequest, http.StatusOK, http.StatusBadRequest}
		must(page.Get("textbox", "Caption").Drop(picture("a.png")))
		must(page.WaitText("at most 512 MB"))
		must(page.Get("textbox", "Caption").Drop(picture("b.png")))
		Eventually(ids("image")).Should(HaveLen(1))
		must(page.Get("textbox", "Caption").Drop(picture("c.png")))
		notes := func() ([]string, error) {
			return chrome.Eval[[]string](page, `[...document.querySelectorAll("[data-note]")].map((note) => note.textContent)`)
		}
		Eventually(notes).Should(Equal([]string{"<b>too large</b>: at most 512 MB", "", "<b>too large</b>: at most 512 MB"}))
		Expect(page.Get("button", "Try again a.png").Count()).To(BeZero(), "what the server refuses, it refuses again")
		must(page.Get("button", "Send").Click())
		Eventually(func() (string, error) { return page.Get("group", "Pictures").Get("status", "").Text() }).Should(Equal("a.png is not uploaded: remove it"))
		Expect(f.forms()).To(BeEmpty())
		inEveryLook(page, "fixture-refused")
		page.Forget() // the two refusals
	})

	It("shows how much is uploaded and how long the rest takes", func() {
		f.hold = make(chan struct{})
		big := filepath.Join(GinkgoT().TempDir(), "big.png")
		must(save(big, append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 24<<20)...)))
		must(page.Throttle(2 << 20))
		must(page.Get("radio", "Images").Click())
		must(page.Get("button", "Add pictures").Choose(big))
		must(page.WaitFor("it shows percent and time left", `/^\d+ %, \d+ s left$/.test(document.querySelector("[data-note]").textContent)`))
		must(page.Throttle(0))
		close(f.hold)
		Eventually(ids("image")).Should(HaveLen(1))
		page.Forget() // this is no picture
	})
})
