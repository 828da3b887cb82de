// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
)

var _ = Describe("times.js", func() {
	open := func(body string, options chrome.Options) (*fixture, *chrome.Page) {
		GinkgoHelper()
		f := newFixture(body)
		page := newPage(options)
		must(page.Open(f.URL))
		return f, page
	}

	DescribeTable("are shown in the user's time zone and language",
		func(options chrome.Options, markup, want, lang string) {
			_, page := open(markup, options)
			Expect(page.Get("time", "").Text()).To(Equal(want))
			Expect(page.Get("time", "").Attribute("lang")).To(Equal(lang))
		},
		Entry("winter", chrome.Options{}, `<time data-show="both" datetime="2026-12-01T09:00:00Z">UTC</time>`, "1 Dec 2026, 10:00 Berlin", "en-GB"),
		Entry("summer", chrome.Options{}, `<time data-show="both" datetime="2026-07-01T09:00:00Z">UTC</time>`, "1 Jul 2026, 11:00 Berlin", "en-GB"),
		Entry("another language", chrome.Options{Locale: "de-DE"}, `<time data-show="both" datetime="2026-12-01T09:00:00Z">UTC</time>`, "01.12.2026, 10:00 Berlin", "de-DE"),
		Entry("another zone", chrome.Options{Zone: "Pacific/Kiritimati"}, `<time data-show="both" datetime="2026-12-01T12:00:00Z">UTC</time>`, "2 Dec 2026, 02:00 Kiritimati", "en-GB"),
		Entry("the clock of another country", chrome.Options{Zone: "America/New_York", Locale: "en-US"}, `<time data-show="both" datetime="2026-12-01T22:00:00Z">UTC</time>`, "Dec 1, 2026, 5:00 PM New York", "en-US"),
		Entry("the date", chrome.Options{}, `<time data-show="date" datetime="2026-12-01T23:30:00Z">UTC</time>`, "2 Dec 2026", "en-GB"),
		Entry("the time", chrome.Options{}, `<time data-show="time" datetime="2026-12-01T23:30:00Z">UTC</time>`, "00:30", "en-GB"),
		Entry("a date is the same in every zone", chrome.Options{Zone: "America/Los_Angeles", Locale: "en-US"}, `<time data-show="long" datetime="2026-12-01">1 December 2026</time>`, "December 1, 2026", "en-US"),
		Entry("a month", chrome.Options{Locale: "de-DE"}, `<time data-show="month" datetime="2026-03-01">March 2026</time>`, "März 2026", "de-DE"),
		Entry("a weekday", chrome.Options{Zone: "Pacific/Kiritimati", Locale: "de-DE"}, `<time data-show="weekday" datetime="2026-12-01">Tue</time>`, "Di", "de-DE"),
		Entry("an invalid time does not change", chrome.Options{}, `<time data-show="both" datetime="soon">soon</time>`, "soon", ""),
		Entry("a text from the server does not change", chrome.Options{}, `<time datetime="2026-12-01T09:00:00Z">5 minutes ago</time>`, "5 minutes ago", ""),
		Entry("without JavaScript", chrome.Options{NoScript: true}, `<time data-show="both" datetime="2026-12-01T09:00:00Z">1 Dec 2026, 09:00 UTC</time>`, "1 Dec 2026, 09:00 UTC", ""),
	)

	// In HTML, a second body tag adds its attributes to the first.
	const inLosAngeles = `<body data-team-zone="America/Los_Angeles">`

	DescribeTable("are in the team's zone, next to the user's own",
		func(options chrome.Options, markup, want string) {
			_, page := open(inLosAngeles+markup, options)
			Expect(page.Get("time", "").Text()).To(Equal(want))
		},
		Entry("another clock", chrome.Options{}, `<time data-show="both" datetime="2026-12-01T20:00:00Z">UTC</time>`, "1 Dec 2026, 12:00 Los Angeles (21:00 for you)"),
		Entry("another day", chrome.Options{Zone: "Asia/Tokyo"}, `<time data-show="both" datetime="2026-12-01T20:00:00Z">UTC</time>`, "1 Dec 2026, 12:00 Los Angeles (2 Dec, 05:00 for you)"),
		Entry("the same clock under another name", chrome.Options{Zone: "America/Vancouver"}, `<time data-show="both" datetime="2026-01-01T20:00:00Z">UTC</time>`, "1 Jan 2026, 12:00 Los Angeles"),
		Entry("the time alone", chrome.Options{}, `<time data-show="time" datetime="2026-12-01T20:00:00Z">UTC</time>`, "12:00"),
	)

	const form = `<form method="post" action="/form">
		<label for="at">Date and time</label> <input id="at" type="datetime-local" name="local" data-utc="scheduled_at">
		<span data-zone>UTC</span> <button>Send</button></form>`

	DescribeTable("are sent in UTC",
		func(options chrome.Options, entered, want string) {
			f, page := open(form, options)
			must(page.Get("DateTime", "Date and time").Fill(entered))
			must(page.Get("button", "Send").Follow())
			Expect(f.forms()).To(HaveLen(1))
			Expect(f.forms()[0].Get("scheduled_at")).To(Equal(want))
			Expect(f.forms()[0].Get("local")).To(Equal(entered), "the server gets the entered text to display it again")
		},
		Entry("winter", chrome.Options{}, "2026-12-01T10:00", "2026-12-01T09:00:00.000Z"),
		Entry("summer", chrome.Options{}, "2026-07-01T10:00", "2026-07-01T08:00:00.000Z"),
		Entry("a zone with half an hour", chrome.Options{Zone: "Asia/Kolkata"}, "2026-07-01T10:00", "2026-07-01T04:30:00.000Z"),
		Entry("an hour that clocks repeat is the first of the two", chrome.Options{}, "2027-10-31T02:30", "2027-10-31T00:30:00.000Z"),
		Entry("the server explains an hour that clocks skip", chrome.Options{}, "2027-03-28T02:30", ""),
		Entry("clocks that change by half an hour", chrome.Options{Zone: "Australia/Lord_Howe"}, "2027-04-04T01:15", "2027-04-03T14:15:00.000Z"),
		Entry("a zone that skipped a day", chrome.Options{Zone: "Pacific/Apia"}, "2011-12-31T00:30", "2011-12-30T10:30:00.000Z"),
		Entry("no options", chrome.Options{}, "", ""),
		Entry("without JavaScript the server has to read the input's own name", chrome.Options{NoScript: true}, "2026-12-01T10:00", ""),
	)

	It("are entered in the team's zone, with the zone that the server receives", func() {
		f, page := open(inLosAngeles+`<form method="post" action="/form"><input type="hidden" name="zone" value="UTC"><input type="hidden" name="scheduled_at" value="2026-12-01T20:00:00Z">
			<label>Date and time <input type="datetime-local" name="local" data-utc="scheduled_at"></label> <button>Send</button></form>`, chrome.Options{})
		Expect(page.Get("DateTime", "Date and time").Value()).To(Equal("2026-12-01T12:00"))
		must(page.Get("DateTime", "Date and time").Fill("2026-12-02T09:00"))
		must(page.Get("button", "Send").Follow())
		Expect(f.forms()).To(Equal([]url.Values{{"zone": {"America/Los_Angeles"}, "scheduled_at": {"2026-12-02T17:00:00.000Z"}, "local": {"2026-12-02T09:00"}}}))
	})

	It("are the second of two where a user chooses it", func() {
		f, page := open(`<form method="post" action="/form"><label>Date and time <input type="datetime-local" data-utc="scheduled_at"></label>
			<label><input type="radio" name="fold" value="first">First</label> <label><input type="radio" name="fold" value="second">Second</label> <button>Send</button></form>`, chrome.Options{})
		must(page.Get("DateTime", "Date and time").Fill("2027-10-31T02:30"))
		must(page.Get("radio", "Second").Click())
		must(page.Get("button", "Send").Follow())
		Expect(f.forms()[0].Get("scheduled_at")).To(Equal("2027-10-31T01:30:00.000Z"))
	})

	It("are right before the page's other scripts arrive", func() {
		_, page := open(`<time data-show="both" datetime="2026-12-01T09:00:00Z">1 Dec 2026, 09:00 UTC</time>
			<p id="seen"></p><script src="/seen.js"></script>`, chrome.Options{})
		Expect(page.Get("paragraph", "").Text()).To(Equal("1 Dec 2026, 10:00 Berlin"))
	})

	It("are filled in for editing with the zone's name, and keep seconds hidden by the input", func() {
		f, page := open(`<form method="post" action="/form"><input type="hidden" name="scheduled_at" value="2026-12-01T09:00:34.567Z">
			<label>Date and time <input type="datetime-local" data-utc="scheduled_at"></label> <p>Zone: <span data-zone>UTC</span></p><button>Send</button></form>`, chrome.Options{})
		Expect(page.Get("DateTime", "Date and time").Value()).To(Equal("2026-12-01T10:00"))
		must(page.WaitText("Zone: Europe/Berlin"))
		must(page.Get("button", "Send").Follow())
		Expect(f.forms()[0]["scheduled_at"]).To(Equal([]string{"2026-12-01T09:00:34.567Z"}))
	})

	It("send the zone to the server, and reload a page rendered in another zone once", func() {
		_, page := open(`<section data-in-zone="UTC">Calendar</section>`, chrome.Options{})
		cookies, err := page.Cookies()
		must(err)
		Expect(cookies).To(HaveKey("zone"))
		Expect(url.PathUnescape(cookies["zone"].Value)).To(Equal("Europe/Berlin"))
		asked := func() int {
			times := 0
			for _, load := range page.Loads() {
				if load.Type == "Document" {
					times++
				}
			}
			return times
		}
		Eventually(asked).Should(Equal(2))
		must(page.Settle())
		Consistently(asked, 500*time.Millisecond).Should(Equal(2), "an unknown time zone must not cause a request loop")
	})
})
