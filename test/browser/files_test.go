// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"path/filepath"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
)

// kindsForm is a form for several kinds of posts. Only text posts have no field for files.
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

	It("accepts pictures dropped on the text, and chooses their kind", func() {
		must(page.Get("textbox", "Caption").Drop(picture("a.png"), picture("b.png")))
		Eventually(ids("image")).Should(HaveLen(2))
		Expect(chosen()).To(Equal("image"))
		Expect(ids("image")()).To(Equal(f.ids("a.png", "b.png")))
	})

	It("accepts a picture pasted into the text", func() {
		must(page.Get("textbox", "Caption").Paste(picture("image.png")))
		Eventually(ids("image")).Should(Equal([]string{"m-1"}))
		Expect(chosen()).To(Equal("image"))
	})

	It("accepts a film dropped on the heading", func() {
		must(page.Get("heading", "Fixture").Drop(clip("film.mp4")))
		Eventually(ids("video")).Should(Equal([]string{"m-1"}))
		Expect(chosen()).To(Equal("video"))
		page.Forget() // a video this short has no preview
	})

	It("keeps a post's kind once it has files", func() {
		must(page.Get("heading", "Fixture").Drop(picture("a.png")))
		Eventually(ids("image")).Should(HaveLen(1))
		must(page.Get("heading", "Fixture").Drop(clip("film.mp4")))
		must(page.WaitText("A video does not fit here"))
		Expect(chosen()).To(Equal("image"))
		Expect(page.Get("button", "Try again film.mp4").Count()).To(BeZero(), "another attempt does not make a film a picture")
		must(page.Get("button", "Remove film.mp4").Click())
		must(page.Get("button", "Send").Follow())
		Expect(f.forms()).To(HaveLen(1))
		page.Forget() // a video this short has no preview
	})

	It("lets users paste text with its own picture, as office programs copy it", func() {
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

	It("shows each file's problem next to it", func() {
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
		Expect(page.Get("button", "Try again a.png").Count()).To(BeZero(), "a permanent rejection cannot be retried")
		must(page.Get("button", "Send").Click())
		Eventually(func() (string, error) { return page.Get("group", "Pictures").Get("status", "").Text() }).Should(Equal("a.png is not uploaded: remove it"))
		Expect(f.forms()).To(BeEmpty())
		inEveryLook(page, "fixture-refused")
		page.Forget() // the two refusals
	})

	It("shows the upload's progress and the remaining time", func() {
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
		page.Forget() // this is not a picture
	})
})

// cropForm is a form with a picture field and the dialog for cropping.
const cropForm = `<form method="post" action="/form"><fieldset data-upload="/media" data-name="image"><legend>Pictures</legend>
	<label>Add pictures <input type="file" multiple accept="image/jpeg,image/png,image/webp"></label><ol data-files></ol><p role="status"></p>
	<template><li><span data-preview></span> <span data-file></span> <progress max="1"></progress> <p data-note></p>
	<button type="button" data-move="up">Move earlier</button> <button type="button" data-crop hidden>Crop</button>
	<button type="button" data-retry hidden>Try again</button> <button type="button" data-remove>Remove</button></li></template></fieldset><button>Send</button></form>
	<dialog id="crop" aria-labelledby="crop-title"><form method="dialog"><h2 id="crop-title">Crop the picture</h2>
	<canvas role="img" aria-label="The picture" data-min="0.8" data-max="1.91"></canvas>
	<label><input type="radio" name="shape" value="0" checked> As Instagram takes it</label> <label><input type="radio" name="shape" value="0.8"> Portrait</label>
	<label><input type="radio" name="shape" value="1"> Square</label>
	<label>Size <input type="range" name="size" min="20" max="100" step="any" value="100"></label>
	<label>Across <input type="range" name="x" min="0" max="100" step="any" value="50"></label> <label>Down <input type="range" name="y" min="0" max="100" step="any" value="50"></label>
	<output></output> <button value="crop">Crop</button> <button value="">Cancel</button></form></dialog>`

var _ = Describe("crop.js", func() {
	var (
		f    *fixture
		page *chrome.Page
	)

	// sized writes a picture whose left half is black and whose right half is white.
	sized := func(wide, high int) string {
		GinkgoHelper()
		canvas := image.NewGray(image.Rect(0, 0, wide, high))
		for x := wide / 2; x < wide; x++ {
			for y := range high {
				canvas.SetGray(x, y, color.Gray{Y: 255})
			}
		}
		var content bytes.Buffer
		must(png.Encode(&content, canvas))
		path := filepath.Join(GinkgoT().TempDir(), "a.png")
		must(save(path, content.Bytes()))
		return path
	}
	begin := func(wide, high int) *chrome.Element {
		GinkgoHelper()
		f, page = newFixture(cropForm), newPage(chrome.Options{})
		must(page.Open(f.URL))
		must(page.Get("button", "Add pictures").Choose(sized(wide, high)))
		must(page.WaitFor("it is uploaded", `document.querySelectorAll("[name=image]").length === 1`))
		must(page.TabTo(page.Get("button", "Crop a.png")))
		must(page.Press(kb.Enter))
		dialog := page.Get("dialog", "Crop the picture")
		must(dialog.Wait())
		return dialog
	}
	finish := func(dialog *chrome.Element) (wide, high int) {
		GinkgoHelper()
		must(page.TabTo(dialog.Get("button", "Crop")))
		must(page.Press(kb.Enter))
		must(page.WaitFor("the result takes its place", `document.querySelector("[name=image]")?.value === "m-2"`))
		Expect(page.Get("button", "Crop a.png").HasFocus()).To(BeTrue())
		size, err := chrome.Eval[[]int](page, `(async () => { const picture = document.querySelector("[data-preview] img"); await picture.decode(); return [picture.naturalWidth, picture.naturalHeight]; })()`)
		must(err)
		return size[0], size[1]
	}

	DescribeTable("crops to Instagram's limits, by keyboard alone",
		func(wide, high int, keys func(dialog *chrome.Element), wantWide, wantHigh int) {
			dialog := begin(wide, high)
			keys(dialog)
			gotWide, gotHigh := finish(dialog)
			Expect([]int{gotWide, gotHigh}).To(Equal([]int{wantWide, wantHigh}))
			must(page.Get("button", "Send").Follow())
			Expect(f.forms()).To(ConsistOf(HaveKeyWithValue("image", []string{"m-2"})))
		},
		Entry("a panorama loses its sides", 300, 100, func(*chrome.Element) {}, 191, 100),
		Entry("a tower loses its ends, and is rounded to the inside of the bounds", 101, 300, func(*chrome.Element) {}, 101, 126),
		Entry("a picture within the bounds stays whole", 120, 100, func(*chrome.Element) {}, 120, 100),
		Entry("a square", 300, 100, func(dialog *chrome.Element) {
			must(page.TabTo(dialog.Get("radio", "As Instagram takes it")))
			must(page.Press(kb.ArrowLeft))
		}, 100, 100),
		Entry("a part", 300, 100, func(dialog *chrome.Element) {
			must(page.TabTo(dialog.Get("slider", "Size")))
			must(page.Press(kb.Home))
		}, 38, 20),
	)

	It("moves the frame with the mouse", func() {
		dialog := begin(300, 100)
		inEveryLook(page, "fixture-crop")
		_, err := chrome.Eval[any](page, `(() => {
			const canvas = document.querySelector("canvas"), { left, top } = canvas.getBoundingClientRect();
			canvas.setPointerCapture = () => {};
			const point = (type, clientX) => canvas.dispatchEvent(new PointerEvent(type, { bubbles: true, clientX, clientY: top + 9, pointerId: 1 }));
			point("pointerdown", left + 150);
			point("pointermove", left + 9999);
			point("pointerup", left + 9999);
		})()`)
		must(err)
		finish(dialog)
		dark, err := chrome.Eval[int](page, `(() => {
			const picture = document.querySelector("[data-preview] img"), context = Object.assign(document.createElement("canvas"), { width: 191, height: 100 }).getContext("2d");
			context.drawImage(picture, 0, 0);
			const { data } = context.getImageData(0, 50, 191, 1);
			return [...Array(191).keys()].filter((x) => data[4 * x] < 128).length;
		})()`)
		must(err)
		Expect(dark).To(Equal(41), "the right end has 41 of the 150 dark columns")
	})

	It("keeps the picture when the user cancels", func() {
		dialog := begin(300, 100)
		must(page.Press(kb.Escape))
		must(dialog.WaitGone())
		Expect(f.announced).To(HaveLen(1))
	})
})
