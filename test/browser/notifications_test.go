// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
)

// nobody is a URL whose host name is reserved and never resolves (RFC 2606).
const nobody = "https://hooks.herald.invalid/herald"

// forgetNotifier deletes a notifier after the spec.
func forgetNotifier(name string) client.Client {
	GinkgoHelper()
	kubernetes, err := cluster.NewClient(herald().Variable("KUBECONFIG"))
	must(err)
	DeferCleanup(func(ctx context.Context) error {
		return client.IgnoreNotFound(kubernetes.Delete(ctx, &v1alpha1.Notifier{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.DemoNamespace, Name: name}}))
	})
	return kubernetes
}

// toNotifications opens the notifications from the team's page.
func toNotifications(page *chrome.Page, site web.Site) {
	GinkgoHelper()
	must(site.Team())
	must(page.Get("link", "Notifications").Follow())
}

var _ = Describe("Notifications", func() {
	It("are set up with a secret that is shown once, fail, are sent again, suspended and deleted", func(ctx SpecContext) {
		name := fmt.Sprintf("hook-%d", time.Now().UnixNano()%1_000_000)
		kubernetes := forgetNotifier(name)
		page, site := signedInPage()
		toNotifications(page, site)
		must(page.WaitText("No notification yet"))
		inEveryLook(page, "notifications-empty")
		must(page.Get("link", "New notification").Follow())
		inEveryLook(page, "notification-new")
		must(page.Get("radio", "Email").Check(true))
		must(page.WaitText("This installation has no mail server"))
		inEveryLook(page, "notification-new-email")

		By("rejecting an unencrypted address, and keeping the input")
		must(page.Get("radio", "Webhook").Check(true))
		must(page.Get("textbox", "Name").Fill(name))
		must(page.GetByPartialName("textbox", "Address").Fill("http://hooks.herald.invalid/herald"))
		must(page.Get("checkbox", "A post was published").Check(true))
		must(page.Get("button", "Save").Follow())
		must(page.WaitText("Address: Must start with https://."))
		page.Forget() // the browser logs the refusal
		inEveryLook(page, "notification-refused")
		must(page.GetByPartialName("textbox", "Address").Fill(nobody))
		must(page.Get("button", "Save").Follow())
		must(page.WaitText("Copy the signing secret now."))
		secret, err := chrome.Eval[string](page, `document.getElementById("secret").textContent`)
		must(err)
		Expect(secret).To(HavePrefix("whsec_"))
		inEveryLook(page, "notification-secret")
		must(page.Reload())
		must(page.WaitText("Nothing yet"))
		Expect(chrome.Eval[bool](page, fmt.Sprintf(`document.body.textContent.includes(%q)`, secret))).To(BeFalse())

		By("showing why deliveries fail")
		must(site.Compose(web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "X, @herald_demo"}}, Text: "To be reported by " + name}))
		must(site.Publish())
		must(page.WaitText("Posted"))
		waits := func() ([]v1alpha1.NotifierDelivery, error) {
			n := &v1alpha1.Notifier{}
			err := kubernetes.Get(ctx, client.ObjectKey{Namespace: cluster.DemoNamespace, Name: name}, n)
			return n.Status.Deliveries, err
		}
		Eventually(waits).WithTimeout(time.Minute).Should(ContainElement(HaveField("Message", Not(BeEmpty()))))
		toNotifications(page, site)
		must(page.WaitText("Failing"))
		inEveryLook(page, "notifications")
		must(page.Get("link", name).Follow())
		must(page.WaitText("The last attempt failed"))
		must(page.WaitText("To be reported by"))
		inEveryLook(page, "notification-failing")
		must(page.GetByPartialName("button", "Send again: A post was published, To be reported by").Follow())
		must(page.WaitText("It is being sent again."))
		must(page.WaitText("Being sent again"))
		inEveryLook(page, "notification-resent")

		By("replacing the secret")
		must(page.Get("button", "Create a new secret").Click())
		must(page.Get("dialog", "").Get("button", "Create a new secret").Follow())
		Expect(chrome.Eval[string](page, `document.getElementById("secret").textContent`)).To(And(HavePrefix("whsec_"), Not(Equal(secret))))

		By("editing, suspending and deleting it")
		must(page.Get("link", "Edit "+name).Follow())
		inEveryLook(page, "notification-edit")
		must(page.Get("checkbox", "A post was published").Check(false))
		must(page.Get("button", "Save").Follow())
		must(page.WaitText("The notification is stored."))
		must(page.Get("button", "Suspend "+name).Click())
		must(page.Get("dialog", "").Get("button", "Suspend").Follow())
		must(page.WaitText("The notification is suspended."))
		must(page.Get("button", "Resume "+name).Follow())
		must(page.WaitText("The notification is resumed."))
		must(page.Get("link", "Delete "+name+"…").Follow())
		must(page.WaitText("Nothing more is sent"))
		inEveryLook(page, "notification-delete")
		must(page.Get("button", "Delete the notification").Follow())
		must(page.WaitText("The notification is deleted."))
		Eventually(func() error {
			_, err := waits()
			return client.IgnoreNotFound(err)
		}).Should(Succeed())
	}, NodeTimeout(4*time.Minute))

	DescribeTable("are set up without a mouse", func(by way) {
		name := fmt.Sprintf("%s-%d", by.name, time.Now().UnixNano()%1_000_000)
		forgetNotifier(name)
		page, site := by.start()
		must(site.Team())
		by.follow(page, page.Get("link", "Notifications"))
		by.follow(page, page.Get("link", "New notification"))
		by.choose(page, page.Get("group", "Where the notifications go"), "Webhook")
		by.enter(page, page.Get("textbox", "Name"), name)
		by.enter(page, page.GetByPartialName("textbox", "Address"), nobody)
		by.tick(page, page.Get("checkbox", "An account expires soon"))
		by.follow(page, page.Get("button", "Save"))
		must(page.WaitText("Copy the signing secret now."))
		must(page.WaitText("an account expires soon"))
		by.confirm(page, page.Get("button", "Suspend "+name), "Suspend")
		must(page.WaitText("The notification is suspended."))
		by.follow(page, page.Get("button", "Resume "+name))
		by.follow(page, page.Get("link", "Delete "+name+"…"))
		by.follow(page, page.Get("button", "Delete the notification"))
		must(page.WaitText("The notification is deleted."))
	}, Entry("by keyboard", byKeyboard), Entry("on a phone", onAPhone))

	It("are set up without scripts", func() {
		name := fmt.Sprintf("plain-%d", time.Now().UnixNano()%1_000_000)
		forgetNotifier(name)
		page := newPage(chrome.Options{NoScript: true})
		signIn(page)
		must(page.Get("navigation", "Main").GetByPartialName("link", "Team").Follow())
		must(page.Get("link", "Notifications").Follow())
		must(page.Get("link", "New notification").Follow())
		must(page.Get("radio", "Slack").Check(true))
		must(page.Get("textbox", "Name").Fill(name))
		must(page.GetByPartialName("textbox", "Address").Fill("https://hooks.slack.invalid/services/secret"))
		must(page.Get("button", "Save").Follow())
		must(page.WaitText("The notification is stored."))
		must(page.WaitText("Slack to an incoming webhook"))
		inEveryBareLook(page, "notification-noscript")
	})
})
