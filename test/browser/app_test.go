// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
)

var _ = Describe("app.js", func() {
	open := func(body string, options chrome.Options) (*fixture, *chrome.Page) {
		GinkgoHelper()
		f := newFixture(body)
		page := newPage(options)
		must(page.Open(f.URL))
		return f, page
	}

	Describe("the calendar", func() {
		const calendar = `<table><caption>December</caption><tr>
			<td data-day="2199-12-01" aria-label="1 December"><article data-post aria-label="Launch"><a href="/form">
				<time datetime="2199-12-01T09:00:00Z" data-show="time">10:00</time> Launch</a></article></td>
			<td data-day="2199-12-05" aria-label="5 December">5</td><td data-day="2019-12-05" data-past aria-label="Over">5</td></tr></table>
			<form id="drag" method="post" hidden><input type="hidden" name="scheduled_at"><input type="hidden" name="from"></form>`

		drag := func(calendar, day string) []url.Values {
			GinkgoHelper()
			f, page := open(calendar, chrome.Options{})
			must(page.Follow(func() error { return page.Get("article", "Launch").DragTo(page.Get("cell", day)) }))
			return f.forms()
		}

		It("moves a post dragged to another day", func() {
			Expect(drag(calendar, "5 December")).To(Equal([]url.Values{{"from": {"2199-12-01T09:00:00Z"}, "scheduled_at": {"2199-12-05T09:00:00.000Z"}}}))
		})

		It("keeps a dragged post's seconds, and its time of day in summer", func() {
			summer := strings.NewReplacer("12-01T09:00:00Z", "12-01T09:00:34.567Z", "2199-12-05", "2199-07-05").Replace(calendar)
			Expect(drag(summer, "5 December")[0]["scheduled_at"]).To(Equal([]string{"2199-07-05T08:00:34.567Z"}))
		})

		It("does not move a post to a past day", func() {
			f, page := open(calendar, chrome.Options{})
			must(page.Get("article", "Launch").DragTo(page.Get("cell", "Over")))
			must(page.Settle())
			Expect(f.forms()).To(BeEmpty())
		})
	})

	Describe("a list", func() {
		const list = `<form><a href="#all" data-select-all>Select all</a> <output></output>
			<label><input type="checkbox" name="post" value="1">One</label> <label><input type="checkbox" name="post" value="2">Two</label></form>`

		chosen := func(page *chrome.Page) []string {
			GinkgoHelper()
			values, err := chrome.Eval[[]string](page, `[...document.querySelectorAll("input:checked")].map((box) => box.value)`)
			must(err)
			return values
		}

		It("selects all posts or none, by mouse and by keyboard, and shows their number", func() {
			_, page := open(list, chrome.Options{})
			must(page.Get("checkbox", "One").Click())
			must(page.WaitText("1 selected"))
			must(page.Get("link", "Select all").Click())
			must(page.WaitText("2 selected"))
			Expect(chosen(page)).To(Equal([]string{"1", "2"}))
			must(page.TabTo(page.Get("link", "Select all")))
			must(page.Press(kb.Enter))
			must(page.WaitText("0 selected"))
			Expect(chosen(page)).To(BeEmpty())
			must(page.TabTo(page.Get("checkbox", "Two")))
			must(page.Press(" "))
			must(page.WaitText("1 selected"))
			Expect(chosen(page)).To(Equal([]string{"2"}))
		})
	})

	Describe("a confirmation", func() {
		const form = `<form method="post" action="/form" data-confirm="Disconnect <b>@acme</b>?"><input type="hidden" name="id" value="1">
			<button name="what" value="go">Disconnect</button></form>`

		It("precedes an irreversible action", func() {
			f, page := open(form, chrome.Options{})
			must(page.Get("button", "Disconnect").Click())
			dialog := page.Get("dialog", "Disconnect <b>@acme</b>?")
			must(dialog.Wait())
			inEveryLook(page, "fixture-confirm")
			Expect(dialog.Get("button", "Cancel").HasFocus()).To(BeTrue(), "an accidental Enter has no effect")
			must(dialog.Get("button", "Cancel").Click())
			must(dialog.WaitGone())
			Expect(page.Get("button", "Disconnect").HasFocus()).To(BeTrue(), "focus returns to the button")

			must(page.Get("button", "Disconnect").Click())
			must(dialog.Wait())
			must(page.Press(kb.Escape))
			must(dialog.WaitGone())
			Expect(f.forms()).To(BeEmpty())

			must(page.Get("button", "Disconnect").Click())
			must(dialog.Get("button", "Disconnect").Follow())
			Expect(f.forms()).To(Equal([]url.Values{{"id": {"1"}, "what": {"go"}}}), "the form has the pressed button")
		})

		It("sends its form even if an update of the page removes it meanwhile", func() {
			f, page := open(form, chrome.Options{})
			must(page.Get("button", "Disconnect").Click())
			dialog := page.Get("dialog", "Disconnect <b>@acme</b>?")
			must(dialog.Wait())
			must(page.WaitFor("the update", `document.querySelector("form[data-confirm]")?.remove() === undefined`))
			must(dialog.Get("button", "Disconnect").Follow())
			Expect(f.forms()).To(Equal([]url.Values{{"id": {"1"}, "what": {"go"}}}), "the user confirmed the form")
		})

		It("blocks htmx requests meanwhile", func() {
			f, page := open(`<form hx-post="/form" hx-target="#out" data-confirm="Sure?"><button>Go</button></form><div id="out"></div>`, chrome.Options{})
			must(page.Get("button", "Go").Click())
			must(page.Get("dialog", "Sure?").Get("button", "Cancel").Click())
			Expect(f.forms()).To(BeEmpty())
			must(page.Get("button", "Go").Click())
			must(page.Get("dialog", "Sure?").Get("button", "Go").Click())
			must(page.Get("heading", "Sent").Wait())
			Expect(f.forms()).To(HaveLen(1))
		})
	})

	It("opens a dialog, also by keyboard, and restores the focus", func() {
		_, page := open(`<button type="button" data-dialog="d">More</button><dialog id="d" aria-label="Details"><form method="dialog"><button>Close</button></form></dialog>`, chrome.Options{})
		must(page.TabTo(page.Get("button", "More")))
		must(page.Press(kb.Enter))
		must(page.Get("dialog", "Details").Wait())
		must(page.Press(kb.Enter))
		must(page.Get("dialog", "Details").WaitGone())
		Expect(page.Get("button", "More").HasFocus()).To(BeTrue())
	})

	It("copies a key, and confirms it", func() {
		_, page := open(`<code id="key">hrld_1_secret</code> <button type="button" data-copy="#key">Copy</button>`, chrome.Options{})
		must(page.AllowClipboard())
		must(page.Get("button", "Copy").Click())
		Eventually(page.Get("status", "").Text).Should(Equal("Copied"))
		Expect(chrome.Eval[string](page, "navigator.clipboard.readText()")).To(Equal("hrld_1_secret"))
	})

	Describe("server-sent events", func() {
		const area = `<section data-events="/events" aria-label="State"><p>processing</p></section>`

		It("replace content, format its times, and keep the focus", func() {
			f, page := open(area, chrome.Options{})
			f.events <- "data: <p>posted <time data-show=\"both\" datetime=\"2026-12-01T09:00:00Z\">UTC</time></p>\ndata: <button id=\"again\">Again</button>\n\n"
			must(page.WaitText("posted 1 Dec 2026, 10:00"))
			must(page.Get("button", "Again").Focus())
			f.events <- "data: <p>failed</p><button id=\"again\">Again</button>\n\n"
			must(page.WaitText("failed"))
			Expect(page.Get("button", "Again").HasFocus()).To(BeTrue())
			Expect(f.listened()).To(Equal(1), "a replaced element still listens")
		})

		It("leave open what the user has opened", func() {
			f, page := open(`<section data-events="/events" aria-label="State"><details id="move"><summary>Move</summary><p>New time</p></details></section>`, chrome.Options{})
			must(page.Get("DisclosureTriangle", "Move").Click())
			must(page.WaitText("New time"))
			f.events <- "data: <details id=\"move\"><summary>Move</summary><p>Newer time</p></details>\n\n"
			must(page.WaitText("Newer time"))
		})

		It("resume after a server outage", func() {
			f, page := open(area, chrome.Options{})
			Eventually(f.listened).Should(Equal(1))
			f.mu.Lock()
			f.refused = 1
			f.mu.Unlock()
			close(f.events) // ends the first stream
			f.events = make(chan string, 1)
			f.events <- "data: <p>posted</p>\n\n"
			must(page.WaitText("posted"))
			Expect(f.listened()).To(Equal(3))
			Expect(page.Forget()).To(ContainElement(ContainSubstring("503")))
		})

		It("close the connection of a hidden page, and refresh the page when it is visible again", func() {
			hide := func(page *chrome.Page, hidden bool) {
				GinkgoHelper()
				_, err := chrome.Eval[bool](page, fmt.Sprintf(
					`Object.defineProperty(document, "hidden", { value: %t, configurable: true }); document.dispatchEvent(new Event("visibilitychange"))`, hidden))
				must(err)
			}
			f, page := open(area, chrome.Options{})
			Eventually(f.listening).Should(Equal(1))
			hide(page, true)
			Eventually(f.listening).Should(BeZero())
			f.events <- "data: <p>posted</p>\n\n"
			Consistently(f.listened, 1500*time.Millisecond).Should(Equal(1), "not even after the pause for a broken connection")
			hide(page, false)
			must(page.WaitText("posted"))
			Expect(f.listened()).To(Equal(2))
			Expect(f.listening()).To(Equal(1))
			f.events <- "data: <p>gone</p>\n\nevent: stop\ndata: -\n\n"
			must(page.WaitText("gone"))
			hide(page, true)
			hide(page, false)
			Consistently(f.listened, time.Second).Should(Equal(2), "a closed stream is not reopened")
		})

		It("reconnect after the server's retry delay", func() {
			f, page := open(area, chrome.Options{})
			f.events <- "data: <p>one</p>\n\nevent: later\ndata: 1500\n\n"
			must(page.WaitText("one"))
			Eventually(f.listening).Should(BeZero())
			Consistently(f.listened, time.Second).Should(Equal(1))
			Eventually(f.listened, 5*time.Second).Should(Equal(2))
			f.events <- "data: <p>two</p>\n\n"
			must(page.WaitText("two"))
		})

		It("end at the server's request", func() {
			f, page := open(area, chrome.Options{})
			f.events <- "data: <p>posted</p>\n\nevent: stop\ndata: -\n\n"
			must(page.WaitText("posted"))
			close(f.events)
			Consistently(f.listened, 2*time.Second).Should(Equal(1))
		})
	})

	It("prepares content loaded by htmx", func() {
		_, page := open(`<button hx-get="/part" hx-target="#out">Load</button><div id="out"></div>`, chrome.Options{})
		must(page.Get("button", "Load").Click())
		must(page.WaitText("Brought 1 Dec 2026, 10:00"))
	})
})
