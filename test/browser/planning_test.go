// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
)

// planned stores posts to X, and deletes them after the spec: other specs read the first page of lists. A zero time makes
// a draft.
func planned(captions []string, at func(i int) time.Time) {
	GinkgoHelper()
	kubernetes, err := cluster.NewClient(herald().Variable("KUBECONFIG"))
	must(err)
	account := accountOnX()
	for i, caption := range captions {
		post := &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster.DemoNamespace, GenerateName: "planned-"},
			Spec: v1alpha1.PostSpec{
				Category: v1alpha1.CategoryText,
				Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: account}, Caption: caption}},
			},
		}
		if when := at(i); when.IsZero() {
			post.Spec.Draft = true
		} else {
			post.Spec.ScheduledAt = v1alpha1.NewTimePtr(when)
		}
		must(kubernetes.Create(context.Background(), post))
		DeferCleanup(func(ctx context.Context) error { return client.IgnoreNotFound(kubernetes.Delete(ctx, post)) })
	}
}

// accountOnX returns the name of the connection to X, which changes when a spec reconnects the account.
func accountOnX() string {
	GinkgoHelper()
	kubernetes, err := cluster.NewClient(herald().Variable("KUBECONFIG"))
	must(err)
	var all v1alpha1.ConnectionList
	must(kubernetes.List(context.Background(), &all, client.InNamespace(cluster.DemoNamespace)))
	at := slices.IndexFunc(all.Items, func(c v1alpha1.Connection) bool {
		return c.Spec.Platform == v1alpha1.PlatformX && c.DeletionTimestamp.IsZero()
	})
	Expect(at).To(BeNumerically(">=", 0), "the team has no account on X")
	return all.Items[at].Name
}

// numbered returns captions that contain a word.
func numbered(word string, n int) (captions []string) {
	for i := range n {
		captions = append(captions, fmt.Sprintf("%s %02d: what we have learnt this quarter, told in a caption that is longer than the line of any list, and goes on after that", word, i))
	}
	return captions
}

var _ = Describe("A team with many posts", Ordered, func() {
	const perMonth, many = 3, 93

	var (
		page *chrome.Page
		site web.Site
		day  time.Time
	)

	BeforeAll(func() {
		page, site = sharedPage()
		day = time.Now().In(site.Zone).AddDate(0, 3, 0)
		day = time.Date(day.Year(), day.Month(), 14, 9, 0, 0, 0, site.Zone)
		day = day.AddDate(0, 0, -int(day.Weekday())+2) // a Tuesday, so the week also contains later days
		planned(numbered("Planned", many-1), func(i int) time.Time { return day.Add(time.Duration(i) * time.Minute) })
		planned([]string{"Résumé of the quarter"}, func(int) time.Time { return day.Add(10 * time.Hour) })
		planned(numbered("Neighbour", 2), func(i int) time.Time { return day.AddDate(0, 0, i+1) })
	})

	AfterEach(func() {
		if CurrentSpecReport().Failed() {
			saveScreenshot(page)
		}
		Expect(page.Problems()).To(BeEmpty())
	})

	to := func(path string) string { return site.URL + "/teams/herald-demo/" + path }

	It("sees how full a day is, and all of its posts", func() {
		// Other specs schedule posts for later days. Only the posts of this one contain the word.
		must(page.Open(to("calendar?q=quarter&date=" + day.Format(time.DateOnly))))
		more := page.Get("link", fmt.Sprintf("+%d more on %s", many-perMonth, day.Format("2 January")))
		must(more.Wait())
		inEveryLook(page, "calendar-month-full")
		must(more.Follow())
		must(page.Get("heading", "From "+day.Format("2 January 2006")).Wait())
		must(page.WaitText(fmt.Sprintf("Posts 1 to 50 of %d", many+2)))
		inEveryLook(page, "calendar-agenda")
		must(page.Get("link", "Later").Follow())
		must(page.WaitText("Résumé of the quarter"))
		must(page.Get("navigation", "View").Get("link", "Week").Follow())
		must(page.WaitText("Neighbour 00"))
		inEveryLook(page, "calendar-week-full")
		must(page.Get("link", "Next week").Follow())
		must(page.Get("link", "Today").Follow())
	})

	It("opens a day's posts on a phone, and by keyboard", func() {
		must(page.SetLook(chrome.Phone))
		DeferCleanup(func() { must(page.SetLook(chrome.Light)) })
		must(page.Open(to("calendar?date=" + day.Format(time.DateOnly))))
		must(page.Get("link", fmt.Sprintf("%d on %s", many, day.Format("2 January"))).Follow())
		must(page.WaitText("Planned 00"))
		must(page.SetLook(chrome.Light))
		must(page.Open(to("calendar?date=" + day.Format(time.DateOnly))))
		keys{page}.follow(page.Get("link", fmt.Sprintf("+%d more on %s", many-perMonth, day.Format("2 January"))), kb.Enter)
		must(page.WaitText("Planned 00"))
	})

	It("finds a post by a word, ignoring accents", func() {
		must(site.Posts())
		must(page.Get("searchbox", "Search captions").Fill("resume QUARTER"))
		must(page.Get("button", "Search").Follow())
		must(page.WaitText("1 post, newest first."))
		must(page.WaitText("Résumé of the quarter"))
		inEveryLook(page, "posts-search")

		By("applying filters with the keyboard")
		must(page.Open(to("posts?q=planned&status=scheduled&account=" + accountOnX())))
		must(page.WaitText(fmt.Sprintf("of %d, soonest first.", many-1)))
		person := keys{page}
		inEveryLook(page, "posts-filters")
		person.follow(page.Get("button", "Apply"), kb.Enter)
		Expect(page.URL()).To(And(ContainSubstring("account="+accountOnX()), ContainSubstring("q=planned")))
		must(page.WaitText("Planned 00"))
		must(page.Get("link", "Later").Follow())
		must(page.WaitText("Planned 25"))

		By("finding no posts")
		must(page.Open(to("posts?q=absent&platform=x&kind=video&from=2027-01-01")))
		must(page.WaitText("No posts match"))
		inEveryLook(page, "posts-no-match")
		must(page.Get("link", "Clear all filters").Follow())
		Expect(page.URL()).To(HaveSuffix("/posts"))
	})

	It("moves several posts by some days, and back", func() {
		must(page.Open(to("posts?q=neighbour&status=scheduled")))
		must(page.Get("link", "Select all on this page").Click())
		must(page.WaitText("2 selected"))
		inEveryLook(page, "posts-selected")
		must(page.Get("button", "Move…").Follow())
		must(page.Get("heading", "Move 2 posts 1 day later").Wait())
		must(page.GetByPartialName("spinbutton", "Days").Fill("7"))
		must(page.Get("button", "Update").Follow())
		inEveryLook(page, "bulk-move")
		must(page.Get("button", "Move 2 posts 7 days later").Follow())
		must(page.Get("heading", "2 posts moved").Wait())
		must(page.WaitText(day.AddDate(0, 0, 8).Format("2 Jan 2006, 15:04")))
		inEveryLook(page, "bulk-moved")
		must(page.Get("button", "Undo (2)").Follow())
		must(page.Get("heading", "2 posts moved").Wait())
		must(page.WaitText(day.AddDate(0, 0, 1).Format("2 Jan 2006, 15:04")))
		must(page.Get("link", "Back to the list").Follow())
		Expect(page.URL()).To(HaveSuffix("/posts?q=neighbour&status=scheduled"))
	})

	It("cancels several posts by keyboard, and copies them to drafts", func() {
		planned(numbered("Doubtful", 3), func(i int) time.Time { return day.AddDate(0, 1, i) })
		must(page.Open(to("posts?q=doubtful&status=scheduled")))
		person := keys{page}
		person.press(page.GetByPartialName("checkbox", "Select Doubtful 00"), " ")
		person.press(page.GetByPartialName("checkbox", "Select Doubtful 01"), " ")
		person.follow(page.Get("button", "Cancel…"), kb.Enter)
		must(page.WaitText("These posts will not be published"))
		inEveryLook(page, "bulk-cancel")
		person.follow(page.Get("button", "Cancel 2 posts"), kb.Enter)
		must(page.Get("heading", "2 posts cancelled").Wait())
		inEveryLook(page, "bulk-cancelled")
		person.follow(page.Get("button", "Copy to new drafts (2)"), kb.Enter)
		must(page.Get("heading", "2 posts copied to new drafts").Wait())
		must(page.Open(to("posts?q=doubtful")))
		must(page.WaitText("3 posts, newest first."))
	})

	It("publishes several drafts on a phone", func() {
		planned(numbered("Quick", 2), func(int) time.Time { return time.Time{} })
		must(page.SetLook(chrome.Phone))
		DeferCleanup(func() { must(page.SetLook(chrome.Light)) })
		must(page.Open(to("posts?q=quick&status=draft")))
		must(page.GetByPartialName("checkbox", "Select Quick 00").Click())
		must(page.Get("button", "Publish drafts…").Follow())
		must(page.WaitText("1 post will be published now. This cannot be undone."))
		inEveryLook(page, "bulk-publish")
		must(page.SetLook(chrome.Phone))
		must(page.Get("button", "Publish 1 draft").Follow())
		must(page.Get("heading", "1 post being published").Wait())
		inEveryLook(page, "bulk-published")
	})

	It("undoes the move of a single post", func() {
		must(page.Open(to("posts?q=" + url.QueryEscape("résumé"))))
		must(page.GetByPartialName("link", "Résumé of the quarter").Follow())
		must(page.Get("DisclosureTriangle", "Move").Click())
		must(page.Get("DateTime", "New time").Fill(day.AddDate(0, 0, 3).Format("2006-01-02T15:04")))
		inEveryLook(page, "post-move")
		must(page.Get("button", "Move").Follow())
		must(page.WaitText("Post moved."))
		inEveryLook(page, "post-moved")
		must(page.GetByPartialName("button", "Undo (move back to").Follow())
		must(page.WaitText("Post moved."))
		must(page.WaitText(day.Add(10 * time.Hour).Format("2 Jan 2006, 15:04")))
	})

	It("searches, selects and moves without JavaScript", func() {
		plain := newPage(chrome.Options{NoScript: true})
		person := signIn(plain)
		must(person.Posts())
		must(plain.Get("searchbox", "Search captions").Fill("neighbour"))
		must(plain.Get("button", "Search").Follow())
		must(plain.Get("link", "Select all on this page").Follow())
		must(plain.Get("button", "Move…").Follow())
		must(plain.Get("button", "Move 2 posts 1 day later").Follow())
		must(plain.Get("heading", "2 posts moved").Wait())
		must(plain.Get("button", "Undo (2)").Follow())
		must(plain.Get("heading", "2 posts moved").Wait())
		must(plain.Open(to("calendar?view=week&date=" + day.Format(time.DateOnly))))
		must(plain.WaitText("Neighbour 00"))
	})
})
