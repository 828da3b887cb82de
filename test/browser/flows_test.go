// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/sandboxtest"
)

var _ = Describe("The web application", Ordered, ContinueOnFailure, func() {
	var (
		page *chrome.Page
		site web.Site
	)

	BeforeAll(func() {
		page, site = sharedPage()
	})

	BeforeEach(func() { page.Forget() })

	AfterEach(func() {
		if CurrentSpecReport().Failed() {
			saveScreenshot(page)
		}
	})

	DescribeTable("has accessible pages",
		func(path, name string) {
			must(page.OpenCold(herald().Site() + "/teams/herald-demo/" + path))
			Expect(page.Problems()).To(BeEmpty())
			expectLight(page)
			inEveryLook(page, name)
		},
		Entry("overview", "", "overview"),
		Entry("posts", "posts", "posts"),
		Entry("composer", "posts/new", "compose"),
		Entry("calendar", "calendar", "calendar"),
		Entry("accounts", "connections", "accounts"),
		Entry("keys", "keys", "keys"),
		Entry("team", "team", "team"),
		Entry("notifications", "notifications", "notifications-empty"),
		Entry("notification", "notifications/new", "notification-new"),
	)

	DescribeTable("connects accounts through the platforms' consent pages",
		func(platform string) {
			must(site.Accounts())
			before, err := page.Get("button", "Disconnect").Count()
			must(err)
			must(site.Connect(platform, web.DemoHandle(platform)))
			must(site.Accounts())
			Expect(page.Get("button", "Disconnect").Count()).To(Equal(before), "an account that is connected already stays the same connection")
			must(site.Disconnect("demo-" + platform))
			must(site.Accounts())
			Expect(page.Get("button", "Disconnect").Count()).To(Equal(before - 1))
			must(site.Connect(platform, web.DemoHandle(platform)))
			must(site.Accounts())
			Expect(page.Get("button", "Disconnect").Count()).To(Equal(before))
			Expect(page.Problems()).To(BeEmpty())
		},
		Entry("X", "x"), Entry("Threads", "threads"), Entry("Instagram", "instagram"), Entry("Facebook", "facebook"),
		Entry("TikTok", "tiktok"), Entry("YouTube", "youtube"),
	)

	film := func() string {
		GinkgoHelper()
		content, err := mediatest.Film(checkout)
		must(err)
		path := filepath.Join(GinkgoT().TempDir(), "film.mp4")
		must(save(path, content))
		return path
	}

	DescribeTable("publishes every kind of post",
		func(draft func() web.Draft, platform string) {
			must(site.Compose(draft()))
			inEveryLook(page, "compose-filled-"+platform)
			must(site.Publish())
			must(page.WaitText("Posted"))
			inEveryLook(page, "post-"+platform)
			posts, err := sandboxtest.Client{URL: herald().Sandbox()}.Posts(context.Background(), platform, "")
			must(err)
			Expect(posts).NotTo(BeEmpty())
			Expect(page.Problems()).To(BeEmpty())
		},
		Entry("text", func() web.Draft {
			return web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "X, @herald_demo"}}, Text: "Hello from a browser"}
		}, "x"),
		Entry("images", func() web.Draft {
			return web.Draft{Kind: web.Image, Targets: []web.Target{{Account: "Threads, @herald_demo"}}, Text: "Two pictures", Files: []string{photo("a.jpg"), photo("b.jpg")}}
		}, "threads"),
		Entry("video", func() web.Draft {
			return web.Draft{Kind: web.Video, Targets: []web.Target{{Account: "YouTube, @herald_demo"}}, Title: "A film", Text: "Of ten seconds", Files: []string{film()}}
		}, "youtube"),
		Entry("thread", func() web.Draft {
			return web.Draft{Kind: web.Tree, Targets: []web.Target{{Account: "X, @herald_demo"}}, Parts: []string{"First", "Second", "Third"}}
		}, "x"),
	)

	text := web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "X, @herald_demo"}}, Text: "For later"}

	It("schedules a post, and cancels it", func() {
		must(site.Compose(text))
		must(site.Schedule(time.Now().Add(48 * time.Hour)))
		must(page.WaitText("Scheduled"))
		inEveryLook(page, "post-scheduled")
		must(site.Cancel())
		Expect(page.Problems()).To(BeEmpty())
	})

	It("saves a draft, and promotes it", func() {
		draft := text
		draft.Text = "A draft first"
		must(site.Compose(draft))
		must(site.SaveDraft())
		must(page.WaitText("Draft"))
		must(site.Edit())
		inEveryLook(page, "edit")
		must(site.Publish())
		must(page.WaitText("Posted"))
		Expect(page.Problems()).To(BeEmpty())
	})

	It("moves a post to another calendar day, and starts one on a day", func() {
		draft := text
		draft.Text = "To be moved"
		at := time.Now().In(site.Zone).AddDate(0, 1, 0)
		at = time.Date(at.Year(), at.Month(), 14, 9, 30, 0, 0, site.Zone)
		must(site.Compose(draft))
		must(site.Schedule(at))
		must(page.WaitText("Scheduled"))
		month := herald().Site() + "/teams/herald-demo/calendar?month=" + at.Format("2006-01")
		must(page.Open(month))
		entry := page.GetByPartialName("link", "To be moved")
		must(page.Follow(func() error {
			return entry.DragTo(page.Get("link", "New post on 21 "+at.Format("January")))
		}))
		must(page.WaitText("To be moved"))
		day, err := chrome.Eval[string](page, `[...document.querySelectorAll("[data-post]")].find((e) => e.textContent.includes("To be moved")).closest("[data-day]").dataset.day`)
		must(err)
		Expect(day).To(Equal(at.Format("2006-01") + "-21"))
		must(page.Get("link", "New post on 23 "+at.Format("January")).Follow())
		Expect(page.GetByPartialName("DateTime", "Day and time").Value()).To(Equal(at.Format("2006-01") + "-23T10:00"))
		Expect(page.Problems()).To(BeEmpty())
	})

	It("composes a post on an empty calendar day on a phone", func() {
		day := time.Now().In(site.Zone).AddDate(0, 2, 0)
		day = time.Date(day.Year(), day.Month(), 17, 0, 0, 0, 0, site.Zone)
		must(page.SetLook(chrome.Phone))
		DeferCleanup(func() { must(page.SetLook(chrome.Light)) })
		must(page.Open(herald().Site() + "/teams/herald-demo/calendar?month=" + day.Format("2006-01")))
		inEveryLook(page, "calendar-without-posts")
		must(page.SetLook(chrome.Phone))
		must(page.Get("link", "New post on "+day.Format("2 January")).Follow())
		Expect(page.GetByPartialName("DateTime", "Day and time").Value()).To(Equal(day.Format("2006-01-02") + "T10:00"))
		Expect(page.Problems()).To(BeEmpty())
	})

	It("creates a working key, and revokes it", func() {
		must(site.Keys())
		token, err := site.MakeKey("The newsletter")
		must(err)
		inEveryLook(page, "key-made")
		Eventually(answerTo(token)).Should(Equal(http.StatusOK))
		must(site.Keys())
		must(site.RevokeKey("The newsletter"))
		Eventually(answerTo(token)).Should(Equal(http.StatusUnauthorized))
		Expect(page.Problems()).To(BeEmpty())
	})

	It("signs a user in through a provider, and out", func() {
		other := newPage(chrome.Options{})
		ada := web.Site{Page: other, URL: withProvider(), Zone: site.Zone}
		must(other.Open(ada.URL + "/signin"))
		inEveryLook(other, "signin-oidc")
		must(ada.SignInWithProvider("Ada"))
		must(other.WaitText("Overview"))
		must(ada.Posts())
		must(ada.SignOut())
		status, err := other.OpenAny(ada.URL + "/teams/herald-demo/posts")
		must(err)
		Expect(status).NotTo(Equal(http.StatusNotFound))
		Expect(other.Get("navigation", "Main").Count()).To(BeZero(), "signed-out users see no team")
		other.Forget()
	})
})

// pages are the paths of a team's pages, by name.
var pages = map[string]string{
	"overview": "", "posts": "posts", "composer": "posts/new", "calendar": "calendar", "accounts": "connections", "keys": "keys", "agents": "agents",
	"team": "team", "notifications": "notifications", "notification": "notifications/new", "scheduled": "posts?status=scheduled", "search": "posts?q=post+99", "week": "calendar?view=week", "agenda": "calendar?view=agenda",
}

// signedIn is the Cookie header of a user signed in by a link.
var signedIn = sync.OnceValue(func() string {
	page, err := browser.NewPage(chrome.Options{})
	must(err)
	defer page.Close()
	signIn(page)
	header, err := page.CookieHeader()
	must(err)
	return header
})

var _ = Describe("Lighthouse, signed in,", Label("lighthouse"), func() {
	BeforeEach(func() { manyPosts() })

	for name, path := range pages {
		It("gives the page a high score: "+name, func() {
			expectGood(name, herald().Site()+"/teams/herald-demo/"+path, signedIn())
		})
	}
})

// manyPosts stores 10,000 scheduled posts, once.
var manyPosts = sync.OnceFunc(func() { schedule(10000, "many", "Post") })

// schedule stores scheduled posts to X, five minutes apart, with names and captions that begin with the given words.
func schedule(posts int, name, caption string) {
	GinkgoHelper()
	const atOnce = 32
	kubernetes, err := cluster.NewClient(herald().Variable("KUBECONFIG"))
	must(err)
	account := accountOnX()
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(atOnce)
	for i := range posts {
		group.Go(func() error {
			return kubernetes.Create(ctx, &v1alpha1.Post{
				ObjectMeta: metav1.ObjectMeta{Namespace: cluster.DemoNamespace, Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{"crowd": name}},
				Spec: v1alpha1.PostSpec{
					Category: v1alpha1.CategoryText, ScheduledAt: v1alpha1.NewTimePtr(time.Now().Add(time.Duration(i+1000) * 5 * time.Minute)),
					Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: account}, Caption: fmt.Sprintf("%s %d", caption, i)}},
				},
			})
		})
	}
	must(group.Wait())
}

// Response times with many posts are printed, not asserted, because they depend on the machine.
var _ = Describe("Page response times", Label("times"), func() {
	const rounds = 50

	It("are measured with 10,000 posts", func() {
		manyPosts()
		for name, path := range pages {
			var took []time.Duration
			for range rounds {
				request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, herald().Site()+"/teams/herald-demo/"+path, http.NoBody)
				must(err)
				request.Header.Set("Cookie", signedIn())
				begun := time.Now()
				response, err := http.DefaultClient.Do(request)
				must(err)
				_, err = io.Copy(io.Discard, response.Body)
				must(errors.Join(err, response.Body.Close()))
				took = append(took, time.Since(begun))
				Expect(response.StatusCode).To(Equal(http.StatusOK))
			}
			slices.Sort(took)
			GinkgoWriter.Printf("%-10s median %6.1f ms, slowest of %d %6.1f ms\n", name, took[rounds/2].Seconds()*1000, rounds, took[rounds-1].Seconds()*1000)
		}
	})
})

// photo writes an image that every platform accepts, and returns its path.
func photo(name string) string {
	GinkgoHelper()
	content, err := mediatest.Picture(color.RGBA{R: 99, G: 102, B: 241, A: 255})
	must(err)
	path := filepath.Join(GinkgoT().TempDir(), name)
	must(save(path, content))
	return path
}
