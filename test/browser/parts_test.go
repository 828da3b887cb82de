// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/chromedp/cdproto/network"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/sandboxtest"
)

var _ = Describe("A large file", func() {
	var (
		f    *fixture
		page *chrome.Page
		film string
	)

	BeforeEach(func() {
		f, page = newFixture(kindsForm), newPage(chrome.Options{})
		f.partBytes = 1 << 20
		must(page.Open(f.URL))
		must(page.Get("radio", "Video").Click())
		film = filepath.Join(GinkgoT().TempDir(), "film.mp4")
		must(save(film, append([]byte("\x00\x00\x00\x18ftypisom"), make([]byte, 3<<20)...)))
	})
	finished := func() {
		GinkgoHelper()
		Eventually(func() (string, error) {
			return chrome.Eval[string](page, `document.querySelector("[name=video]")?.value ?? ""`)
		}).Should(Equal("m-1"))
		sizes := 0
		for _, part := range []string{"m-1-0", "m-1-1", "m-1-2", "m-1-3"} {
			sizes += f.inStore(part).size
		}
		Expect(sizes).To(Equal(3<<20 + 12))
		page.Forget() // cut connections, and a video without a preview
	}

	It("sends only the missing parts after a cut", func() {
		f.skip, f.cut = 1, 2
		must(page.Get("button", "Add a film").Choose(film))
		must(page.WaitText("The connection was lost. Trying again"))
		finished()
		Expect(f.puts).To(Equal([]string{"m-1-0", "m-1-1", "m-1-1", "m-1-1", "m-1-2", "m-1-3"}))
	})

	It("continues when the page was loaded again and the file is chosen again", func() {
		f.skip, f.cut = 2, 99
		must(page.Get("button", "Add a film").Choose(film))
		must(page.WaitText("The connection was lost. Trying again"))
		must(page.Reload())
		f.mend()
		must(page.Get("radio", "Video").Click())
		must(page.Get("button", "Add a film").Choose(film))
		finished()
		Expect(slices.Compact(f.puts)).To(Equal([]string{"m-1-0", "m-1-1", "m-1-2", "m-1-3"}), "stored parts are not sent again")
		Expect(f.announced).To(HaveLen(1))
	})

	It("is removed from the store when it is cancelled, and starts again", func() {
		f.skip, f.cut = 2, 99
		must(page.Get("button", "Add a film").Choose(film))
		must(page.WaitText("The connection was lost. Trying again"))
		must(page.Get("button", "Cancel film.mp4").Click())
		Eventually(f.abortedUploads).Should(Equal([]string{"m-1"}))
		f.mend()
		must(page.Get("button", "Add a film").Choose(film))
		must(page.WaitFor("the second upload is finished", `document.querySelector("[name=video]")?.value === "m-2"`))
		Expect(f.announced).To(HaveLen(2))
		page.Forget() // cut connections, and a video without a preview
	})

	It("asks for fresh addresses before the first ones expire", func() {
		f.hold = make(chan struct{})
		must(page.Get("button", "Add a film").Choose(film))
		Eventually(f.begunPuts).Should(Equal(1))
		_, err := chrome.Eval[any](page, `{ const now = Date.now; Date.now = () => now() + 11 * 60_000 }`)
		must(err)
		close(f.hold)
		finished()
		Expect(f.resumed).To(Equal(2), "one request for addresses, and one to finish")
	})

	It("cannot continue when the file has changed", func() {
		f.skip, f.cut = 1, 99
		must(page.Get("button", "Add a film").Choose(film))
		must(page.WaitText("The connection was lost. Trying again"))
		must(save(film, []byte("another film")))
		must(page.WaitText("The file has changed since it was selected"))
		Expect(page.Get("button", "Try again film.mp4").Count()).To(BeZero(), "another attempt does not help")
		page.Forget() // cut connections, and a video without a preview
	})

	It("starts again when its upload has expired", func() {
		_, err := chrome.Eval[any](page, `document.addEventListener("transfer", ({ detail: { to, file } }) => {
			localStorage.setItem("herald-uploads", JSON.stringify({ [[to, file.name, file.size, file.lastModified].join(" ")]: { id: "m-9", upload: "over" } }));
		}, { capture: true, once: true })`)
		must(err)
		must(page.Get("button", "Add a film").Choose(film))
		finished()
	})
})

var _ = Describe("A film of 40 MiB", func() {
	It("survives a cut and a reload, and is published unchanged", func() {
		content, err := mediatest.Film(checkout)
		must(err)
		rest := make([]byte, 40<<20-len(content)) // a box that players skip
		binary.BigEndian.PutUint32(rest, uint32(len(rest)))
		copy(rest[4:], "free")
		content = append(content, rest...)
		path := filepath.Join(GinkgoT().TempDir(), "forty.mp4")
		must(save(path, content))

		page, site := signedInPage()
		must(site.Compose(web.Draft{Kind: web.Video, Targets: []web.Target{{Account: "YouTube, @herald_demo"}}, Title: "Forty", Text: "Forty MiB"}))
		choose := func() {
			GinkgoHelper()
			must(page.Throttle(4 << 20))
			must(page.Get("group", "Video").GetByPartialName("button", "Choose a file").Choose(path))
		}
		says := func(pattern string) {
			GinkgoHelper()
			must(page.WaitFor("the upload shows "+pattern, `/^`+pattern+`$/.test(document.querySelector("[data-files] [data-note]")?.textContent)`))
		}
		choose()
		says(`(4[5-9]|[567]\d) %, \d+ s left`) // the second of three parts
		must(page.Offline(true))
		says("The connection was lost. Trying again")
		must(page.Offline(false))
		must(page.Throttle(4 << 20))
		says(`(8[1-9]|9\d) %, \d+ s left`)
		before := sentParts(page)
		Expect(slices.IsSorted(before)).To(BeTrue(), "parts before the interrupted one are not sent again")
		Expect(before).To(HaveLen(1+len(slices.Compact(slices.Clone(before)))), "the interrupted part is sent again")
		must(page.Reload())
		Expect(page.UnloadDialogs()).To(Equal(1), "leaving the page needs confirmation")
		page.Forget()

		choose()
		must(page.WaitFor("the film is in the store", `document.querySelector("[data-files] input[type=hidden]") !== null`))
		Expect(sentParts(page)[len(before):]).To(Or(BeEmpty(), Equal([]string{"3"})), "two parts are in the store already")
		must(page.Throttle(0))
		must(site.Publish())
		must(page.WaitText("Posted"))
		posts, err := sandboxtest.Client{URL: herald().Sandbox()}.Posts(context.Background(), "youtube", "")
		must(err)
		last := posts[len(posts)-1]
		Expect(last.Title).To(Equal("Forty"))
		Expect(last.Media).To(HaveLen(1))
		Expect(last.Media[0].SHA256).To(Equal(fmt.Sprintf("%x", sha256.Sum256(content))))
	})
})

// sentParts returns the numbers of the parts that a page has sent, in order.
func sentParts(page *chrome.Page) (numbers []string) {
	for _, load := range page.Loads() {
		address, err := url.Parse(load.URL)
		must(err)
		if number := address.Query().Get("partNumber"); number != "" && load.Type != network.ResourceTypePreflight {
			numbers = append(numbers, number)
		}
	}
	return numbers
}
