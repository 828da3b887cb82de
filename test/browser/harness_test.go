// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
)

// Each page has one fault that the harness must find.
var _ = Describe("The harness", func() {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:"

	var page *chrome.Page

	BeforeEach(func() { page = newPage(chrome.Options{}) })

	serve := func(body string) string {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", policy)
			page := `<!doctype html><html lang="en"><title>Page</title><link rel="icon" href="data:,"><main><h1>Page</h1>` + body + `</main>`
			_, err := w.Write([]byte(page))
			Expect(err).NotTo(HaveOccurred())
		})
		mux.HandleFunc("GET /hide.css", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/css")
			write(w, "input { position: absolute; left: 0; top: 0; opacity: 0 }")
		})
		for name, style := range map[string]string{
			"ring": ":focus-visible { outline: 3px solid }", "noring": ":focus-visible { outline: none }",
			"cover": ":focus-visible { outline: 3px solid } p { position: fixed; inset: 0; margin: 0 }",
		} {
			mux.HandleFunc("GET /"+name+".css", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/css")
				write(w, style)
			})
		}
		mux.HandleFunc("GET /trap.js", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			write(w, `document.querySelector("button").onkeydown = (event) => event.preventDefault()`)
		})
		mux.HandleFunc("GET /missing.js", http.NotFound)
		mux.HandleFunc("GET /throws.js", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			_, err := w.Write([]byte(`throw new Error("on purpose")`))
			Expect(err).NotTo(HaveOccurred())
		})
		server := httptest.NewServer(mux)
		DeferCleanup(server.Close)
		return server.URL
	}

	It("reports no problems on a valid page", func() {
		must(page.Open(serve(`<p>Fine.</p>`)))
		inEveryLook(page, "harness-fine")
		expectLight(page)
	})

	DescribeTable("reports accessibility violations",
		func(body, rule string) {
			must(page.Open(serve(body)))
			violations, err := page.Audit(axe)
			must(err)
			Expect(violations).To(HaveLen(1))
			Expect(violations[0].ID).To(Equal(rule))
			Expect(violations[0].String()).To(ContainSubstring(rule))
		},
		Entry("a picture without a text", `<img src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">`, "image-alt"),
		Entry("an input without a label", `<input>`, "label"),
		Entry("a button without a name", `<button></button>`, "button-name"),
		Entry("letters that are hard to see, by the attribute that needs no style", `<p><font color="#bbbbbb">Pale</font></p>`, "color-contrast"),
		Entry("good practice: a skipped heading level", `<h4>Deep</h4>`, "heading-order"),
	)

	DescribeTable("reports console messages and failed loads",
		func(body, want string) {
			must(page.Open(serve(body)))
			Eventually(page.Problems).Should(ContainElement(ContainSubstring(want)))
			page.Forget()
		},
		Entry("an inline script", `<script>document.title = "no"</script>`, "Content Security Policy"),
		Entry("an inline style", `<p style="color: red">Red</p>`, "Content Security Policy"),
		Entry("a picture from elsewhere", `<img alt="" src="http://192.0.2.1/a.png">`, "Content Security Policy"),
		// The inline handler runs immediately, because the browser may check others only on first use.
		Entry("a handler in an attribute", `<svg onload="x()"></svg>`, "Content Security Policy"),
		Entry("a missing file", `<script src="/missing.js"></script>`, "404"),
		Entry("an exception", `<script src="/throws.js"></script>`, "on purpose"),
	)

	It("reports a covered button", func() {
		must(page.Open(serve(`<dialog id="d"><button>Close</button></dialog><button>Under</button>`)))
		_, err := chrome.Eval[any](page, `document.getElementById("d").showModal()`)
		must(err)
		Expect(page.Get("button", "Close").Count()).To(Equal(1))
		Expect(page.Get("button", "Under").Count()).To(BeZero(), "a modal dialog hides the page from screen readers")
	})

	It("clicks a hidden control's label, like a user, and never its cover", func() {
		must(page.Open(serve(`<link rel="stylesheet" href="/hide.css"><input type="radio" id="a" name="r"><label for="a">One</label>
			<input type="radio" id="b" name="r"><label for="b">Two</label>`)))
		must(page.Get("radio", "One").Click())
		Expect(chrome.Eval[string](page, `document.querySelector(":checked").id`)).To(Equal("a"))
	})

	DescribeTable("reports obstacles for keyboard users",
		func(body string, check func(chrome.Focus)) {
			must(page.Open(serve(body + `<button>First</button> <button>Last</button>`)))
			must(page.Press(kb.Tab))
			at, err := page.Focused()
			must(err)
			Expect(at).NotTo(BeNil())
			Expect(at.Name).To(Equal("First"))
			check(*at)
		},
		Entry("a page without an element", `<link rel="stylesheet" href="/ring.css">`, func(at chrome.Focus) {
			Expect(at.Ring).To(BeTrue())
			Expect(at.Covered).To(BeEmpty())
		}),
		Entry("no ring", `<link rel="stylesheet" href="/noring.css">`, func(at chrome.Focus) { Expect(at.Ring).To(BeFalse()) }),
		Entry("a bar in front of it", `<link rel="stylesheet" href="/cover.css"><p>Bar</p>`, func(at chrome.Focus) {
			Expect(at.Covered).To(ContainSubstring("Bar"))
		}),
	)

	It("walks a page with the Tab key, and detects a focus trap", func() {
		must(page.Open(serve(`<button>First</button> <button>Last</button>`)))
		walked, err := page.Walk()
		must(err)
		Expect(walked).To(HaveLen(2))
		stops, err := page.Stops()
		must(err)
		Expect(stops).To(Equal([]int{walked[0].Place, walked[1].Place}))

		must(page.Open(serve(`<button>First</button> <button>Last</button><script src="/trap.js"></script>`)))
		_, err = page.Walk()
		Expect(err).To(MatchError(ContainSubstring("does not lead back")))
	})

	It("counts compressed transfer sizes", func() {
		text := strings.Repeat("<p>The same again.</p>", 10000)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Encoding", "gzip")
			zipped := gzip.NewWriter(w)
			_, err := zipped.Write([]byte(`<!doctype html><link rel="icon" href="data:,">` + text))
			Expect(err).NotTo(HaveOccurred())
			Expect(zipped.Close()).To(Succeed())
		}))
		DeferCleanup(server.Close)
		must(page.Open(server.URL))
		total, byURL := page.Weight("")
		Expect(total).To(BeNumerically("~", 1000, 900), byURL)

		must(page.Open(serve(strings.Repeat("<p>The same again.</p>", 3000))))
		total, byURL = page.Weight("")
		Expect(total).To(BeNumerically(">", pageLimit), byURL)
	})
})
