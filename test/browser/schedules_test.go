// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/browser/chrome"
)

// forgetSchedule deletes a schedule after the spec: other specs read the calendar.
func forgetSchedule(name string) {
	GinkgoHelper()
	kubernetes, err := cluster.NewClient(herald().Variable("KUBECONFIG"))
	must(err)
	DeferCleanup(func(ctx context.Context) error {
		return client.IgnoreNotFound(kubernetes.Delete(ctx, &v1alpha1.PostSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.DemoNamespace, Name: name}}))
	})
}

var _ = Describe("Schedules", func() {
	It("are written, read, suspended and deleted, with their times beforehand", func() {
		name := fmt.Sprintf("spec-%d", time.Now().UnixNano()%1_000_000)
		forgetSchedule(name)
		page, site := signedInPage()
		must(site.Calendar())
		must(page.Get("link", "Recurring posts").Follow())
		must(page.Get("link", "New schedule").Nth(0).Follow())
		must(page.WaitText("The next posts:"))
		inEveryLook(page, "schedule-new")

		must(page.Get("textbox", "Name").Fill(name))
		must(page.GetByPartialName("checkbox", "X, @herald_demo").Check(true))
		must(page.Get("textbox", "Text 1").Fill("Good morning"))
		must(page.WaitText("X rejects a post whose text repeats a recent one"))
		must(page.Get("button", "Add a text").Follow())
		must(page.Get("textbox", "Text 2").Fill("A new week"))
		must(page.GetByPartialName("textbox", "Time zone").Fill("Europe/Berlin"))
		must(page.WaitFor("five times in Berlin", `document.querySelectorAll("#check .upcoming > li").length === 5 && document.querySelector("#check .upcoming").textContent.includes("09:00 Berlin")`))
		must(page.WaitFor("texts that alternate, which X accepts", `!document.getElementById("check").textContent.includes("X rejects")`))

		By("refusing an expression, with the field's name")
		must(page.Get("radio", "Advanced").Check(true))
		must(page.GetByPartialName("textbox", "Cron expression").Fill("at nine"))
		must(page.WaitText("Repeat: Is not a cron expression of five fields"))
		inEveryLook(page, "schedule-advanced")
		must(page.Get("button", "Save the schedule").Follow())
		must(page.WaitText("Nothing was stored."))
		page.Forget() // the browser logs the refusal
		must(page.Get("radio", "Every day").Check(true))
		must(page.Get("button", "Save the schedule").Follow())
		must(page.WaitText("The schedule is stored."))
		must(page.WaitText("Every day at 09:00, Berlin"))
		inEveryLook(page, "schedules")

		By("announcing its posts in the calendar")
		must(site.Calendar())
		must(page.WaitText("Dashed entries are posts of schedules"))
		inEveryLook(page, "calendar-schedules")

		By("suspending and deleting it")
		must(page.Get("link", "Recurring posts").Follow())
		must(page.Get("button", "Suspend "+name).Click())
		must(page.Get("dialog", "").Get("button", "Suspend").Follow())
		must(page.WaitText("The schedule is suspended."))
		must(page.Get("button", "Resume "+name).Follow())
		must(page.WaitText("The schedule is resumed."))
		must(page.GetSaying("listitem", name).Get("link", "Delete…").Follow())
		must(page.WaitText("No further posts are created."))
		inEveryLook(page, "schedule-delete")
		must(page.Get("button", "Delete the schedule").Follow())
		must(page.WaitText("The schedule is deleted."))
	})

	DescribeTable("are written without a mouse", func(by way) {
		name := fmt.Sprintf("%s-%d", by.name, time.Now().UnixNano()%1_000_000)
		forgetSchedule(name)
		page, site := by.start()
		must(site.Calendar())
		by.follow(page, page.Get("link", "Recurring posts"))
		by.follow(page, page.Get("link", "New schedule").Nth(0))
		by.enter(page, page.Get("textbox", "Name"), name)
		by.tick(page, page.GetByPartialName("checkbox", "X, @herald_demo"))
		by.enter(page, page.Get("textbox", "Text 1"), "Good morning")
		by.choose(page, page.Get("group", "Repeat"), "Every month")
		must(page.WaitFor("the day of the month is asked for", `document.getElementById("monthday").checkVisibility()`))
		by.follow(page, page.Get("button", "Save the schedule"))
		must(page.WaitText("The schedule is stored."))
		must(page.WaitText("On day 1 of each month at 09:00"))
		by.confirm(page, page.Get("button", "Suspend "+name), "Suspend")
		must(page.WaitText("The schedule is suspended."))
		by.follow(page, page.GetSaying("listitem", name).Get("link", "Delete…"))
		by.follow(page, page.Get("button", "Delete the schedule"))
		must(page.WaitText("The schedule is deleted."))
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))

	It("are written without scripts, and the times are shown on request", func() {
		name := fmt.Sprintf("plain-%d", time.Now().UnixNano()%1_000_000)
		forgetSchedule(name)
		page := newPage(chrome.Options{NoScript: true})
		signIn(page)
		must(page.Get("link", "Calendar").Follow())
		must(page.Get("link", "Recurring posts").Follow())
		must(page.Get("link", "New schedule").Nth(0).Follow())
		must(page.WaitText("choose Show the next times"))
		must(page.Get("textbox", "Name").Fill(name))
		must(page.GetByPartialName("checkbox", "X, @herald_demo").Check(true))
		must(page.Get("textbox", "Text 1").Fill("Without a script"))
		must(page.Get("button", "Show the next times").Follow())
		must(page.WaitText("The next posts:"))
		inEveryBareLook(page, "schedule-noscript")
		must(page.Get("button", "Save the schedule").Follow())
		must(page.WaitText("The schedule is stored."))
	})
})
