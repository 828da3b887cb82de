// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
	"github.com/herald-social/herald/test/sandboxtest"
)

// worker does a job and counts its actions: each click, key press, filled field and drag is one.
type worker struct {
	page    *chrome.Page
	actions int
}

func (w *worker) click(e *chrome.Element)  { w.do(e.Click) }
func (w *worker) follow(e *chrome.Element) { w.do(e.Follow) }

func (w *worker) fill(e *chrome.Element, text string) {
	GinkgoHelper()
	w.do(func() error { return e.Fill(text) })
}

func (w *worker) do(act func() error) {
	GinkgoHelper()
	must(act())
	w.actions++
}

// choose selects accounts in the composer.
func (w *worker) choose(accounts ...string) {
	GinkgoHelper()
	for _, account := range accounts {
		w.click(w.page.GetByPartialName("checkbox", account))
	}
}

// docs/composer.md lists these jobs in a table. The limits are the numbers of actions in the best other tool, according
// to its documentation.
var _ = Describe("A task takes no more actions than with other tools:", Ordered, ContinueOnFailure, func() {
	var (
		page *chrome.Page
		site web.Site
	)

	BeforeAll(func() {
		page, site = sharedPage()
	})

	AfterEach(func() {
		if CurrentSpecReport().Failed() {
			saveScreenshot(page)
		}
	})

	says := func(text string) {
		GinkgoHelper()
		Eventually(readable(page), unsure).Should(ContainSubstring(text))
	}
	// measure does a job, starting from the overview or from the page that prepare opens.
	measure := func(limit int, prepare func(), job func(*worker)) {
		GinkgoHelper()
		must(site.Overview())
		prepare()
		by, begun := &worker{page: page}, time.Now()
		job(by)
		GinkgoWriter.Printf("%-55s %2d actions %5.1f s\n", CurrentSpecReport().LeafNodeText, by.actions, time.Since(begun).Seconds())
		Expect(by.actions).To(BeNumerically("<=", limit))
	}
	nothing := func() {}
	compose := func(w *worker) { w.follow(page.Get("link", "New post").Nth(0)) }

	It("text to three accounts now, until it is posted", func() {
		measure(6, nothing, func(w *worker) {
			compose(w)
			w.choose("X, @herald_demo", "Threads, @herald_demo", "Facebook, "+web.DemoHandle("facebook"))
			w.fill(page.Get("textbox", "Text"), "To three accounts at once")
			w.follow(page.Get("button", "Publish now"))
			says("Posted")
		})
	})

	It("image at a time, two accounts", func() {
		day := time.Now().In(site.Zone).AddDate(0, 0, 1)
		measure(7, func() {
			if day.Month() != time.Now().In(site.Zone).Month() {
				Skip("tomorrow is on another page of the calendar")
			}
		}, func(w *worker) {
			w.do(site.Calendar)
			w.follow(page.Get("link", "New post on "+day.Format("2 January")))
			w.do(func() error { return page.Get("heading", "New post").Drop(photo("job.jpg")) })
			w.choose("X, @herald_demo", "Threads, @herald_demo")
			w.fill(page.Get("textbox", "Text"), "A picture for tomorrow")
			must(page.WaitFor("the picture is in the store", `document.querySelector("[data-files] input[type=hidden]") !== null`))
			w.follow(page.Get("button", "Schedule"))
			says("Scheduled")
		})
	})

	It("thread of five, two accounts", func() {
		measure(6, nothing, func(w *worker) {
			compose(w)
			w.choose("X, @herald_demo", "Threads, @herald_demo")
			w.fill(page.Get("textbox", "Text"), strings.Join([]string{"Our year in five parts", "Spring", "Summer", "Autumn", "Winter"}, "\n---\n"))
			w.follow(page.Get("button", "Split into a thread of 5 parts"))
			w.follow(page.Get("button", "Publish now"))
			says("Posted")
		})
	})

	It("move a post to another day", func() {
		day := time.Now().In(site.Zone).AddDate(0, 4, 0)
		day = time.Date(day.Year(), day.Month(), 14, 9, 0, 0, 0, site.Zone)
		measure(2, func() {
			planned([]string{"A post that moves"}, func(int) time.Time { return day })
			must(page.Open(site.URL + "/teams/herald-demo/posts"))
		}, func(w *worker) {
			w.do(func() error {
				return page.Open(site.URL + "/teams/herald-demo/calendar?date=" + day.Format(time.DateOnly))
			})
			w.do(func() error {
				return page.Follow(func() error {
					return page.GetByPartialName("link", "A post that moves").DragTo(page.Get("link", "New post on 21 "+day.Format("January")))
				})
			})
			must(page.GetByPartialName("button", "Undo").Wait())
		})
	})

	It("reconnect an account from the overview", func() {
		sandbox := sandboxtest.Client{URL: herald().Sandbox()}
		measure(2, func() {
			_, err := sandbox.Account(context.Background(), "threads", "9003", map[string]any{"username": "lost_bakery", "display_name": "Lost bakery"})
			must(err)
			must(site.Accounts())
			must(site.Connect("threads", "@lost_bakery"))
			Eventually(page.GetSaying("listitem", "@lost_bakery").Get("heading", "Lost bakery").Count).Should(Equal(1), "its name is known before the platform fails")
			disturb(sandboxtest.Fault{Platform: "threads", Operation: "*", Kind: "token_revoked", Times: 1000, Account: "9003"})
			must(site.Compose(web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "Threads, @lost_bakery"}}, Text: "Waits until it is connected again"}))
			must(site.Publish())
			says("Waiting for an account")
			must(sandbox.ClearFaults(context.Background()))
			must(site.Overview())
			inEveryLook(page, "overview-connect-again")
		}, func(w *worker) {
			w.follow(page.GetByPartialName("button", "Lost bakery on Threads"))
			w.do(func() error { return page.Follow(func() error { return web.Allow(page, "@lost_bakery") }) })
			says("The account is connected again.")
		})
	})

	It("retry a failed account", func() {
		measure(2, func() {
			disturb(sandboxtest.Fault{Platform: "x", Operation: "publish", Kind: "status", Status: http.StatusForbidden, Times: 1})
			must(site.Compose(web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "X, @herald_demo"}, {Account: "Threads, @herald_demo"}}, Text: "Half of it failed"}))
			must(site.Publish())
			says("Partly posted (1 of 2)")
		}, func(w *worker) {
			w.follow(page.Get("link", "Send again to X"))
			w.follow(page.Get("button", "Publish now"))
			says("Posted")
		})
	})

	It("find a scheduled post by a word among 1,000", func() {
		measure(3, func() {
			schedule(1000, "found", "Number")
			DeferCleanup(func(ctx SpecContext) {
				kubernetes, err := cluster.NewClient(herald().Variable("KUBECONFIG"))
				must(err)
				must(kubernetes.DeleteAllOf(ctx, &v1alpha1.Post{}, client.InNamespace(cluster.DemoNamespace), client.MatchingLabels{"crowd": "found"}))
			})
		}, func(w *worker) {
			w.do(site.Posts)
			w.fill(page.Get("searchbox", "Search captions"), "number 637")
			w.do(func() error { return page.Follow(func() error { return page.Press(kb.Enter) }) })
			must(page.WaitText("1 post, newest first."))
		})
	})
})
