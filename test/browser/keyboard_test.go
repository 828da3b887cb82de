// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"

	"github.com/herald-social/herald/test/browser/chrome"
)

// keys is a user without a mouse: the page receives only key events.
type keys struct{ page *chrome.Page }

// press moves the focus to an element with the Tab key and presses keys. The focus must be visible.
func (k keys) press(element *chrome.Element, what string) {
	GinkgoHelper()
	must(k.page.TabTo(element))
	k.seen()
	must(k.page.Press(what))
}

// follow presses an element as press does, and waits for the page that it leads to.
func (k keys) follow(element *chrome.Element, what string) {
	GinkgoHelper()
	must(k.page.TabTo(element))
	k.seen()
	must(k.page.Follow(func() error { return k.page.Press(what) }))
}

// choose moves the focus to a group of radio buttons with the Tab key, then uses the arrow keys to select the first
// button whose name contains the given one.
func (k keys) choose(group *chrome.Element, name string) {
	GinkgoHelper()
	const within = "function() { return this.contains(document.activeElement) && document.activeElement.type === 'radio' }"
	reached := func() bool {
		GinkgoHelper()
		is, err := chrome.Read[bool](group, within)
		must(err)
		return is
	}
	for presses := 0; !reached(); presses++ {
		Expect(presses).To(BeNumerically("<", 200), "the tabulator does not lead to %s", group)
		must(k.page.Press(kb.Tab))
	}
	k.seen()
	radio := group.GetByPartialName("radio", name).Nth(0)
	for presses := 0; ; presses++ {
		has, err := radio.HasFocus()
		must(err)
		if has {
			break
		}
		Expect(presses).To(BeNumerically("<", 20), "the arrows do not lead to %s", radio)
		must(k.page.Press(kb.ArrowDown))
	}
	must(k.page.Press(" ")) // an arrow key selects the button that it moves to; the first button of an empty group is not selected yet
}

// seen fails if the focus is not visible.
func (k keys) seen() {
	GinkgoHelper()
	at, err := k.page.Focused()
	must(err)
	Expect(at).NotTo(BeNil(), "no element has the focus")
	Expect(at.Ring).To(BeTrue(), "no ring shows that %q has the focus", at.Name)
	Expect(at.Covered).To(BeEmpty(), "%q has the focus and is covered", at.Name)
}

// enter types a date and a time in the morning into a datetime field. The browser's language determines the order of
// day and month and the clock, so the day equals the month, and an A for AM follows the time.
func (k keys) enter(at time.Time) {
	GinkgoHelper()
	Expect(at.Day()).To(BeNumerically("==", at.Month()))
	must(k.page.Press(at.Format("0102") + at.Format("2006") + kb.Tab + at.Format("1504") + "A"))
}

// evenDay returns the next date whose day equals its month, at half past nine: 12 December, 1 January.
func evenDay(now time.Time) time.Time {
	for month := now.Month(); ; month++ {
		first := time.Date(now.Year(), month, 1, 9, 30, 0, 0, now.Location())
		if day := first.AddDate(0, 0, int(first.Month())-1); day.After(now.Add(time.Hour)) {
			return day
		}
	}
}

var _ = Describe("A keyboard user", func() {
	It("signs in, composes an image post, schedules it and cancels it", func() {
		link, err := herald().SignInLink(context.Background())
		must(err)
		page := newPage(chrome.Options{})
		person := keys{page}
		must(page.Open(link))
		person.follow(page.Get("button", "Sign in"), kb.Enter)
		must(page.Get("heading", "Overview").Wait())

		person.follow(page.Get("navigation", "Main").Get("link", "Calendar"), kb.Enter)
		person.follow(page.Get("link", "New post").Nth(0), kb.Enter)
		By("choosing a kind with the arrows, as in every group of radio buttons")
		kinds := page.Get("group", "Kind of post")
		person.press(kinds.Get("radio", "Text"), kb.ArrowRight)
		Expect(kinds.Get("radio", "Images").HasFocus()).To(BeTrue())
		person.press(page.Get("group", "Where it goes").GetByPartialName("checkbox", "Instagram, @herald_demo"), " ")
		person.press(page.Get("textbox", "Text"), "Written with keys alone")

		By("choosing a file by its button")
		chooser := page.Get("group", "Images").GetByPartialName("button", "Choose files")
		must(page.TabTo(chooser))
		person.seen()
		must(page.ChooseBy(func() error { return page.Press(kb.Enter) }, photo("keys.jpg")))
		must(page.WaitText("keys.jpg is uploaded"))

		By("scheduling it")
		when := page.Get("group", "When")
		person.press(when.Get("radio", "Now"), kb.ArrowRight)
		Expect(when.Get("radio", "At a time").HasFocus()).To(BeTrue())
		berlin, err := time.LoadLocation("Europe/Berlin")
		must(err)
		at := evenDay(time.Now().In(berlin))
		field := page.GetByPartialName("DateTime", "Day and time")
		must(page.TabTo(field))
		person.seen()
		person.enter(at)
		Expect(field.Value()).To(Equal(at.Format("2006-01-02T15:04")))
		person.follow(page.Get("button", "Schedule"), kb.Enter)
		must(page.WaitText("The post is scheduled."))

		By("cancelling it: a stray Enter in the question does nothing")
		person.press(page.Get("button", "Cancel post"), kb.Enter)
		dialog := page.Get("dialog", "")
		must(dialog.Wait())
		Expect(dialog.Get("button", "Cancel").HasFocus()).To(BeTrue())
		must(page.Press(kb.Enter))
		must(dialog.WaitGone())
		Expect(page.Get("button", "Cancel post").HasFocus()).To(BeTrue())
		must(page.Press(kb.Enter))
		must(dialog.Wait())
		must(page.TabTo(dialog.Get("button", "Cancel post")))
		must(page.Follow(func() error { return page.Press(kb.Enter) }))
		must(page.WaitText("The post is cancelled."))
	})

	DescribeTable("reaches every element in order, with a visible focus",
		func(path string) {
			page, site := signedInPage()
			must(page.Open(site.URL + "/teams/herald-demo/" + path))
			for _, look := range []chrome.Look{chrome.Light, chrome.Phone} {
				must(page.SetLook(look))
				walk(page, fmt.Sprintf("%q, %s", path, look.Name))
			}
		},
		Entry("overview", ""), Entry("posts", "posts"), Entry("composer", "posts/new"), Entry("calendar", "calendar"),
		Entry("accounts", "connections"), Entry("keys", "keys"), Entry("team", "team"),
	)

	DescribeTable("skips the menu",
		func(path string) {
			page, site := signedInPage()
			must(page.Open(site.URL + "/teams/herald-demo/" + path))
			must(page.Press(kb.Tab))
			at, err := page.Focused()
			must(err)
			Expect(at).To(gstruct.PointTo(HaveField("Name", "Skip to the content")))
			keys{page}.seen()
			must(page.Press(kb.Enter))
			must(page.Press(kb.Tab))
			Expect(chrome.Eval[bool](page, `document.getElementById("content").contains(document.activeElement)`)).To(BeTrue())
		},
		Entry("posts", "posts"), Entry("composer", "posts/new"), Entry("calendar", "calendar"), Entry("accounts", "connections"),
	)
})

// walk visits all tab stops of a page once.
func walk(page *chrome.Page, where string) {
	GinkgoHelper()
	stops, err := page.Stops()
	must(err)
	walked, err := page.Walk()
	Expect(err).NotTo(HaveOccurred(), where)
	var places []int
	for _, at := range walked {
		Expect(at.Ring).To(BeTrue(), "%s: no ring shows that %q has the focus", where, at.Name)
		Expect(at.Covered).To(BeEmpty(), "%s: %q has the focus and is covered", where, at.Name)
		places = append(places, at.Place)
	}
	first := slices.Index(places, slices.Min(places))
	around := append(slices.Clone(places[first:]), places[:first]...)
	Expect(slices.IsSorted(around)).To(BeTrue(), "%s: the order differs from the page's: %v", where, around)
	for _, stop := range stops {
		Expect(places).To(ContainElement(stop), "%s: the Tab key does not lead to element %d", where, stop)
	}
}
