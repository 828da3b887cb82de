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
	"github.com/herald-social/herald/test/sandboxtest"
)

// way is a way to use the pages without a mouse.
type way struct {
	name string
	look chrome.Look
	keys bool
}

var (
	byKeyboard = way{"keys", chrome.Light, true}
	onAPhone   = way{"phone", chrome.Phone, false}
)

// start opens a tab with a signed-in user.
func (by way) start() (*chrome.Page, web.Site) {
	GinkgoHelper()
	page, site := signedInPage()
	must(page.SetLook(by.look))
	return page, site
}

// press presses a button, or opens a collapsed element.
func (by way) press(page *chrome.Page, element *chrome.Element) {
	GinkgoHelper()
	if by.keys {
		keys{page}.press(element, kb.Enter)
		return
	}
	must(element.Click())
}

// follow presses an element that leads to another page.
func (by way) follow(page *chrome.Page, element *chrome.Element) {
	GinkgoHelper()
	if by.keys {
		keys{page}.follow(element, kb.Enter)
		return
	}
	must(element.Follow())
}

// confirm presses a button, then the button with the same name in the confirmation.
func (by way) confirm(page *chrome.Page, button *chrome.Element, name string) {
	GinkgoHelper()
	by.press(page, button)
	dialog := page.Get("dialog", "")
	must(dialog.Wait())
	by.follow(page, dialog.Get("button", name))
}

// enter types into an empty field.
func (by way) enter(page *chrome.Page, field *chrome.Element, text string) {
	GinkgoHelper()
	if by.keys {
		keys{page}.press(field, text)
		return
	}
	must(field.Fill(text))
}

// tick selects a checkbox that is not selected.
func (by way) tick(page *chrome.Page, box *chrome.Element) {
	GinkgoHelper()
	if by.keys {
		keys{page}.press(box, " ")
		return
	}
	must(box.Check(true))
}

// choose selects the first radio button of a group whose name contains the given one.
func (by way) choose(page *chrome.Page, group *chrome.Element, name string) {
	GinkgoHelper()
	if by.keys {
		keys{page}.choose(group, name)
		return
	}
	must(group.GetByPartialName("radio", name).Nth(0).Check(true))
}

// Other specs do the same with a mouse.
var _ = Describe("Without a mouse, a user", func() {
	DescribeTable("retries a post's failed account", func(by way) {
		page, site := by.start()
		disturb(sandboxtest.Fault{Platform: "x", Operation: "publish", Kind: "status", Status: http.StatusForbidden, Times: 1})
		must(site.Compose(web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "X, @herald_demo"}, {Account: "Threads, @herald_demo"}}, Text: "Sent again by " + by.name}))
		must(site.Publish())
		Eventually(readable(page), unsure).Should(ContainSubstring("Partly posted (1 of 2)"))
		by.follow(page, page.Get("link", "Send again to X"))
		by.follow(page, page.Get("button", "Publish now"))
		Eventually(readable(page), unsure).Should(ContainSubstring("Posted"))
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))

	DescribeTable("moves posts, and moves them back", func(by way) {
		page, site := by.start()
		day := time.Now().In(site.Zone).AddDate(0, 5, 0)
		day = time.Date(day.Year(), day.Month(), 10, 9, 0, 0, 0, site.Zone)
		planned([]string{"Moved one by " + by.name, "Moved two by " + by.name}, func(i int) time.Time { return day.Add(time.Duration(i) * time.Hour) })
		Eventually(func() (int, error) { // the apiserver learns of the posts through its watch
			if err := page.Open(site.URL + "/teams/herald-demo/posts?status=scheduled&q=moved+by+" + by.name); err != nil {
				return 0, err
			}
			return page.GetByPartialName("checkbox", "by "+by.name).Count()
		}).Should(Equal(2))
		by.press(page, page.Get("link", "Select all on this page"))
		must(page.WaitText("2 selected"))
		by.follow(page, page.Get("button", "Move…"))
		by.follow(page, page.Get("button", "Move 2 posts 1 day later"))
		must(page.Get("heading", "2 posts moved").Wait())
		must(page.WaitText(day.AddDate(0, 0, 1).Format("2 Jan 2006, 15:04")))
		by.follow(page, page.Get("button", "Undo (2)"))
		must(page.Get("heading", "2 posts moved").Wait())

		By("moving one of them on its page")
		by.follow(page, page.GetByPartialName("link", "Moved one by "+by.name))
		by.press(page, page.Get("DisclosureTriangle", "Move"))
		must(page.Get("DateTime", "New time").Fill(day.AddDate(0, 0, 2).Format("2006-01-02T15:04")))
		by.follow(page, page.Get("button", "Move"))
		must(page.WaitText("Post moved."))
		by.follow(page, page.GetByPartialName("button", "Undo (move back to"))
		must(page.WaitText(day.Format("2 Jan 2006, 15:04")))
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))

	DescribeTable("writes a draft with a picture, edits it, schedules it and cancels it", func(by way) {
		page, site := by.start()
		must(site.Posts())
		by.follow(page, page.Get("link", "New post").Nth(0))
		by.choose(page, page.Get("group", "Kind of post"), web.Image)
		by.tick(page, page.Get("group", "Where it goes").GetByPartialName("checkbox", "Instagram, @herald_demo"))
		by.enter(page, page.Get("textbox", "Text"), "A draft by "+by.name)
		must(page.ChooseBy(func() error {
			by.press(page, page.Get("group", "Images").GetByPartialName("button", "Choose files"))
			return nil
		}, photo("way.jpg")))
		must(page.WaitText("way.jpg is uploaded"))
		by.enter(page, page.Get("textbox", "Alt text of way.jpg"), "A violet square")
		by.choose(page, page.Get("group", "When"), web.AsDraft)
		by.follow(page, page.Get("button", "Save draft"))
		must(page.WaitText("The draft is saved."))
		must(page.WaitText("A violet square"))

		By("editing and scheduling it")
		by.follow(page, page.Get("link", "Edit"))
		if by.keys {
			must(page.TabTo(page.Get("textbox", "Text")))
			must(page.Press(kb.End + ", changed"))
		} else {
			must(page.Get("textbox", "Text").Fill("A draft by " + by.name + ", changed"))
		}
		by.choose(page, page.Get("group", "When"), web.Later)
		must(page.GetByPartialName("DateTime", "Day and time").Fill(time.Now().In(site.Zone).AddDate(0, 0, 20).Format("2006-01-02T15:04")))
		by.follow(page, page.Get("button", "Schedule"))
		must(page.WaitText("A draft by " + by.name + ", changed"))
		must(page.WaitText("Scheduled"))
		by.confirm(page, page.Get("button", "Cancel post"), "Cancel post")
		must(page.WaitText("The post is cancelled."))
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))

	DescribeTable("publishes and cancels several posts at once", func(by way) {
		page, site := by.start()
		planned([]string{"Several one by " + by.name, "Several two by " + by.name}, func(int) time.Time { return time.Time{} })
		later := time.Now().AddDate(0, 5, 3)
		planned([]string{"Several three by " + by.name, "Several four by " + by.name}, func(int) time.Time { return later })
		for status, action := range map[string][]string{
			"draft":     {"Publish drafts…", "Publish 1 draft", "1 post being published"},
			"scheduled": {"Cancel…", "Cancel 1 post", "1 post cancelled"},
		} {
			box := page.GetByPartialName("checkbox", "by "+by.name)
			Eventually(func() (int, error) { // the apiserver learns of the posts through its watch
				if err := page.Open(site.URL + "/teams/herald-demo/posts?status=" + status + "&q=several+by+" + by.name); err != nil {
					return 0, err
				}
				return box.Count()
			}).Should(Equal(2))
			by.tick(page, box.Nth(0))
			by.follow(page, page.Get("button", action[0]))
			by.follow(page, page.Get("button", action[1]))
			must(page.Get("heading", action[2]).Wait())
			by.follow(page, page.Get("link", "Back to the list"))
		}
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))

	DescribeTable("starts a post with the team's files", func(by way) {
		page, site := by.start()
		must(site.Compose(web.Draft{Kind: web.Image, Targets: []web.Target{{Account: "X, @herald_demo"}}, Text: "With a file for " + by.name, Files: []string{photo("shelf-" + by.name + ".jpg")}}))
		must(site.SaveDraft())
		name := "shelf-" + by.name + ".jpg"
		Eventually(func() (int, error) {
			if err := page.Open(site.URL + "/teams/herald-demo/files?q=shelf-" + by.name); err != nil {
				return 0, err
			}
			return page.GetByPartialName("checkbox", name).Count()
		}).Should(Equal(1), "the manager has checked the file")
		by.tick(page, page.GetByPartialName("checkbox", name))
		by.follow(page, page.Get("button", "Use in a new post"))
		must(page.Get("button", "Remove "+name).Wait())

		By("removing it, and choosing it again in the dialog")
		by.press(page, page.Get("button", "Remove "+name))
		must(page.Get("button", "Remove "+name).WaitGone())
		by.press(page, page.Get("group", "Images").Get("button", "Choose from the team's files"))
		dialog := page.Get("dialog", "The team's files")
		must(dialog.Wait())
		by.enter(page, dialog.Get("searchbox", "File name"), "shelf-"+by.name)
		must(page.WaitFor("the search has an answer", `document.querySelectorAll("#library-list input").length === 1`))
		by.tick(page, dialog.GetByPartialName("checkbox", name))
		by.press(page, dialog.Get("button", "Add to the post"))
		must(page.Get("button", "Remove "+name).Wait())
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))
})
