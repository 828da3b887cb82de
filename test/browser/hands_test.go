// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net/http"
	"time"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
)

var _ = Describe("A team's members", func() {
	It("are shown to users who may list role bindings", func() {
		page, site := signInAs("Nora")
		must(page.Open(site.URL + "/teams/" + freshTeam + "/team"))
		must(page.Get("link", "Members").Follow())
		must(page.WaitText("Everyone in “newcomers”"))
		must(page.WaitText("Invite someone"))
		inEveryLook(page, "members")
		walk(page, "members")
	})

	It("are shown to the demo team's administrator, who signs in with a link", func() {
		page, site := signedInPage()
		must(site.Team())
		must(page.Get("link", "Members").Follow())
		must(page.WaitText("no sign-in provider"))
		inEveryLook(page, "members-link")
	})

	It("are not shown to others, who do not read about namespaces either", func() {
		page, site := signInAs("Vera")
		must(page.Open(site.URL + "/teams/herald-demo/team"))
		Expect(page.Get("link", "Members").Count()).To(BeZero())
		Expect(readable(page)()).NotTo(Or(ContainSubstring("namespace"), ContainSubstring("Namespace"), ContainSubstring("herald-viewer")))
		inEveryLook(page, "team-viewer")
		Expect(page.OpenAny(site.URL + "/teams/herald-demo/members")).To(Equal(http.StatusForbidden))
		page.Forget()
	})
})

var _ = Describe("Keyboard shortcuts", func() {
	const list = "Keyboard shortcuts"

	It("work outside fields, and are listed", func() {
		page, site := signedInPage()
		must(site.Posts())
		must(page.Press("?"))
		dialog := page.Get("dialog", list)
		must(dialog.Wait())
		inEveryLook(page, "shortcuts")
		must(page.Press("n"))
		Expect(page.URL()).To(HaveSuffix("/posts"), "the page is inert behind a dialog")
		must(page.Press(kb.Escape))
		must(dialog.WaitGone())
		must(page.Follow(func() error { return page.Press("n") }))
		must(page.WaitURL("/posts/new"))
	})

	It("send the form with Ctrl and Enter, like its button", func() {
		page, site := signedInPage()
		must(site.Compose(web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "X, @herald_demo"}}, Text: "No"}))
		must(page.Get("radio", "Keep as a draft").Check(true))
		must(page.Get("textbox", "Text").Focus())
		must(page.Press(kb.End + "n?/"))
		Expect(page.Get("textbox", "Text").Value()).To(Equal("Non?/"), "letters belong to the field")
		must(page.Follow(func() error {
			_, err := chrome.Eval[any](page, `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", ctrlKey: true, bubbles: true, cancelable: true}))`)
			return err
		}))
		must(page.WaitText("The draft is saved."))
	})

	It("can be switched off, in each browser", func() {
		page, site := signedInPage()
		must(site.Posts())
		must(page.Get("button", list).Click())
		dialog := page.Get("dialog", list)
		must(dialog.Wait())
		must(dialog.Get("checkbox", "Use shortcuts in this browser").Check(false))
		must(dialog.Get("button", "Close").Click())
		must(dialog.WaitGone())
		must(page.Press("n?"))
		Expect(page.URL()).To(HaveSuffix("/posts"))
		Expect(dialog.Count()).To(BeZero())
		must(site.Calendar())
		must(page.Get("button", list).Click())
		must(dialog.Wait())
		Expect(chrome.Eval[bool](page, `document.getElementById("shortcuts-on").checked`)).To(BeFalse(), "the setting stays off")
		must(dialog.Get("checkbox", "Use shortcuts in this browser").Check(true))
		must(page.Press(kb.Escape))
		must(dialog.WaitGone())
		must(page.Follow(func() error { return page.Press("n") }))
	})
})

var _ = Describe("A time", func() {
	onX := []web.Target{{Account: "X, @herald_demo"}}

	It("is in the zone of a new browser from the first page on, with its name", func() {
		_, site := signedInPage()
		must(site.Compose(web.Draft{Kind: web.Text, Targets: onX, Text: "Times have zones"}))
		at := time.Date(2027, 1, 15, 9, 0, 0, 0, site.Zone)
		must(site.Schedule(at))
		must(site.Page.WaitText("15 Jan 2027, 09:00 Berlin"))
		inEveryLook(site.Page, "post-zone")
		must(site.Posts())
		must(site.Page.WaitText("15 Jan 2027, 09:00 Berlin"))
		inEveryLook(site.Page, "posts-zone")
		must(site.Page.GetByPartialName("link", "Times have zones").Follow())
		address, err := site.Page.URL()
		must(err)

		traveller := newPage(chrome.Options{Zone: "America/Los_Angeles", Locale: "en-US"})
		signIn(traveller)
		must(traveller.Open(address))
		must(traveller.WaitText("Jan 15, 2027, 12:00 AM Los Angeles"))

		By("showing a calendar in the browser's language, with the week of its country")
		must(traveller.Open(site.URL + "/teams/herald-demo/calendar?view=week&date=2027-01-15"))
		must(traveller.Get("heading", "January 10 to January 16, 2027").Wait())
		Expect(traveller.Get("columnheader", "Sun").Nth(0).Text()).To(Equal("Sun"))
		inEveryLook(traveller, "calendar-week-us")

		bare := newPage(chrome.Options{NoScript: true})
		signIn(bare)
		must(bare.Open(address))
		must(bare.WaitText("15 Jan 2027, 08:00 UTC"))
		must(bare.WaitText("JavaScript is off."))
		inEveryBareLook(bare, "post-noscript")
	})

	It("is in the team's zone, next to the viewer's own", func() {
		page, site := signInAs("Nora")
		must(page.Open(site.URL + "/teams/" + freshTeam + "/posts/new"))
		must(page.Get("radio", "At a time").Check(true))
		field := page.GetByPartialName("DateTime", "Day and time (Asia/Tokyo)")
		must(field.Fill("2027-01-15T09:00"))
		must(page.WaitText("09:00 Tokyo is 01:00 for you (Berlin)."))
		inEveryLook(page, "compose-team-zone")
		must(page.Open(site.URL + "/teams/" + freshTeam + "/team"))
		must(page.WaitText("Asia/Tokyo"))
	})

	It("that occurs twice needs a choice, by keyboard and by mouse", func() {
		page, site := signedInPage()
		must(site.Compose(web.Draft{Kind: web.Text, Targets: onX, Text: "In the hour that comes twice"}))
		must(page.Get("radio", "At a time").Check(true))
		must(page.GetByPartialName("DateTime", "Day and time").Fill("2027-10-31T02:30"))
		must(page.WaitText("02:30 comes twice in Berlin that day"))
		inEveryLook(page, "compose-twice")
		first := page.GetByPartialName("radio", "The first (UTC+02:00)")
		must(first.Wait())
		person := keys{page}
		person.press(first, kb.ArrowDown)
		must(page.WaitFor("the choice is kept", `document.getElementById("fold-second")?.checked && !document.querySelector(".htmx-request")`))
		Expect(chrome.Eval[string](page, "document.activeElement.id")).To(Equal("fold-second"), "the preview must not change the focus")
		must(page.Get("button", "Schedule").Follow())
		must(page.WaitText("The post is scheduled."))
		Expect(chrome.Eval[bool](page, `document.querySelector('time[datetime="2027-10-31T01:30:00Z"]') !== null`)).To(BeTrue())

		must(site.Edit())
		Expect(chrome.Eval[bool](page, `document.getElementById("fold-second").checked`)).To(BeTrue())
		must(page.GetByPartialName("radio", "The first (UTC+02:00)").Click())
		must(page.Get("button", "Schedule").Follow())
		Expect(chrome.Eval[bool](page, `document.querySelector('time[datetime="2027-10-31T00:30:00Z"]') !== null`)).To(BeTrue())
	})

	It("that does not exist is explained and not moved", func() {
		page, site := signedInPage()
		must(page.SetLook(chrome.Phone))
		must(site.Compose(web.Draft{Kind: web.Text, Targets: onX, Text: "In the hour that is skipped"}))
		must(page.Get("radio", "At a time").Check(true))
		must(page.GetByPartialName("DateTime", "Day and time").Fill("2027-03-28T02:30"))
		must(page.WaitText("There is no 02:30 in Berlin on 28 March 2027"))
		inEveryLook(page, "compose-skipped")
		must(page.Get("button", "Schedule").Follow())
		must(page.WaitText("Nothing was sent."))
		must(page.GetByPartialName("DateTime", "Day and time").Fill("2027-03-28T03:30"))
		must(page.Get("button", "Schedule").Follow())
		must(page.WaitText("28 Mar 2027, 03:30 Berlin"))
		page.Forget() // the refusal's status
	})
})

// inEveryBareLook makes the checks of inEveryLook on a page without scripts, on which axe cannot run.
func inEveryBareLook(page *chrome.Page, name string) {
	GinkgoHelper()
	for _, look := range chrome.Looks {
		must(page.SetLook(look))
		expectFit(page, name, look)
	}
	must(page.SetLook(chrome.Light))
}

var _ = Describe("A browser without scripts", func() {
	It("schedules a text, and reads about its limits", func() {
		page := newPage(chrome.Options{NoScript: true})
		signIn(page)
		must(page.Get("link", "New post").Nth(0).Follow())
		must(page.WaitText("but not upload files"))
		inEveryBareLook(page, "compose-noscript")
		must(page.GetByPartialName("checkbox", "X, @herald_demo").Check(true))
		must(page.Get("textbox", "Text").Fill("Without a script"))
		must(page.Get("radio", "At a time").Check(true))
		must(page.GetByPartialName("DateTime", "Day and time (UTC)").Fill("2027-01-15T09:00"))
		must(page.Get("button", "Schedule").Follow())
		must(page.WaitText("15 Jan 2027, 09:00 UTC"))
		Expect(page.Get("button", "Keyboard shortcuts").Count()).To(BeZero(), "shortcuts need scripts")
	})
})
