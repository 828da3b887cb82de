// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
)

func onStarter(t *v1alpha1.Team) { t.Spec.Subscription.Plan = v1alpha1.PlanStarter }

// inMarch is the JSON that schedules a post for a month in which no other request of a test counts; inApril does the
// same for the following month.
const (
	inMarch = `,"scheduled_at":"2199-03-10T00:00:00Z"`
	inApril = `,"scheduled_at":"2199-04-01T00:00:00Z"`
)

// treeOf returns a tree with the given number of cards.
func treeOf(cards int, more string, connections ...string) string {
	var targets, texts []string
	for _, c := range connections {
		targets = append(targets, fmt.Sprintf(`{"connection_id":%q}`, c))
	}
	for i := range cards {
		texts = append(texts, fmt.Sprintf(`{"caption":"card %d"}`, i))
	}
	return fmt.Sprintf(`{"category":"tree","targets":[%s],"tree_cards":[%s]%s}`, strings.Join(targets, ","), strings.Join(texts, ","), more)
}

// usages returns the team's Usages.
func (t *team) usages(ctx context.Context) []v1alpha1.Usage {
	GinkgoHelper()
	var found v1alpha1.UsageList
	Expect(admin.List(ctx, &found, client.InNamespace(t.namespace))).To(Succeed())
	return found.Items
}

var _ = Describe("The starter plan's 30 posts to X a month", func() {
	var t *team
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx, onStarter)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "beta-x", v1alpha1.PlatformX)
		t.connect(ctx, "acme-threads", v1alpha1.PlatformThreads)
	})

	// fill uses up n of March's posts.
	fill := func(ctx context.Context, n int) {
		GinkgoHelper()
		t.create(ctx, treeOf(n, inMarch, "acme-x"))
	}
	refuse := func(ctx context.Context, body, words string) {
		GinkgoHelper()
		t.call(ctx, "POST", "/posts", body).mustFail(403, "SUBSCRIPTION_REQUIRED", words)
	}

	It("hold under races between two replicas", func(ctx context.Context) {
		other := start(restricted)
		DeferCleanup(other.stop)
		replicas := []*running{instance, other}
		header := map[string]string{"Authorization": "Bearer " + t.token}
		for _, r := range replicas {
			Eventually(func() int { return do(ctx, r, "GET", base+"/posts", "", header).status }).Should(Equal(http.StatusOK))
		}
		var accepted, refused atomic.Int32
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				defer GinkgoRecover()
				r := do(ctx, replicas[i%2], "POST", base+"/posts", text("acme-x", fmt.Sprint("post ", i), inMarch), header)
				switch r.status {
				case http.StatusCreated:
					accepted.Add(1)
				case http.StatusForbidden:
					r.mustFail(403, "SUBSCRIPTION_REQUIRED", "30 posts to X in a calendar month")
					refused.Add(1)
				default:
					Fail(fmt.Sprint(r.status, r.body))
				}
			})
		}
		wg.Wait()
		Expect(accepted.Load()).To(BeEquivalentTo(30))
		Expect(refused.Load()).To(BeEquivalentTo(30))
		Expect(as[listBody](t.call(ctx, "GET", "/posts?platform=x", "")).Pagination.Total).To(Equal(30))

		refuse(ctx, text("acme-x", "the 31st", inMarch), "30 of March 2199 are used and this post needs 1")
		t.create(ctx, text("acme-x", "another month", inApril))
		t.create(ctx, text("acme-x", "a draft is free", draft))
		t.create(ctx, text("acme-threads", "other platforms are not counted", inMarch))
	})

	It("are released by a cancellation", func(ctx context.Context) {
		fill(ctx, 29)
		last := t.create(ctx, text("acme-x", "the 30th", inMarch))
		refuse(ctx, text("acme-x", "the 31st", inMarch), "30 posts to X")
		Expect(t.call(ctx, "DELETE", "/posts/"+last.ID, "").status).To(Equal(http.StatusOK))
		t.create(ctx, text("acme-x", "the 30th after all", inMarch))
		refuse(ctx, text("acme-x", "the 31st", inMarch), "30 posts to X")
		kept := t.create(ctx, text("acme-x", "a draft", draft))
		Expect(t.call(ctx, "DELETE", "/posts/"+kept.ID, "").status).To(Equal(http.StatusOK))
		refuse(ctx, text("acme-x", "a draft took nothing and gives nothing back", inMarch), "30 posts to X")
	})

	It("count a tree's cards, for each account", func(ctx context.Context) {
		fill(ctx, 26)
		refuse(ctx, treeOf(5, inMarch, "acme-x"), "26 of March 2199 are used and this post needs 5")
		refuse(ctx, treeOf(3, inMarch, "acme-x", "beta-x"), "this post needs 6")
		t.create(ctx, treeOf(3, inMarch, "acme-x", "acme-threads"))
		two := `{"category":"text","targets":[{"connection_id":"acme-x","caption":"a"},{"connection_id":"beta-x","caption":"a"}]` + inMarch + `}`
		refuse(ctx, two, "29 of March 2199 are used and this post needs 2")
		t.create(ctx, text("acme-x", "one more", inMarch))
	})

	It("restart with each month in UTC", func(ctx context.Context) {
		clock := clocktesting.NewFakeClock(time.Date(2199, 1, 31, 23, 59, 59, 999e6, time.UTC))
		own := start(restricted, func(c *apiserver.Config) { c.Clock = clock })
		DeferCleanup(own.stop)
		header := map[string]string{"Authorization": "Bearer " + t.token}
		now := func(body string) reply {
			GinkgoHelper()
			return do(ctx, own, "POST", base+"/posts", body, header)
		}
		Expect(now(treeOf(30, "", "acme-x")).status).To(Equal(http.StatusCreated))
		now(text("acme-x", "the 31st")).mustFail(403, "SUBSCRIPTION_REQUIRED", "30 of January 2199")
		clock.Step(time.Millisecond)
		Expect(now(text("acme-x", "the first of February")).status).To(Equal(http.StatusCreated))
	})

	It("do not apply to the unlimited plan, which does not count", func(ctx context.Context) {
		free := newTeam(ctx)
		free.connect(ctx, "acme-x", v1alpha1.PlatformX)
		free.create(ctx, treeOf(31, inMarch, "acme-x"))
		free.create(ctx, text("acme-x", "a", inMarch))
		Expect(free.usages(ctx)).To(BeEmpty())
		t.create(ctx, text("acme-x", "a", inMarch))
		counts := t.usages(ctx)
		Expect(counts).To(HaveLen(1))
		Expect(counts[0].Spec).To(Equal(v1alpha1.UsageSpec{Resource: v1alpha1.ResourceXPosts, Period: "2199-03"}))
		Expect([]int32{counts[0].Status.Used, counts[0].Status.Limit}).To(Equal([]int32{1, 30}))
	})
})

var _ = Describe("The starter plan's 10 accounts", func() {
	It("are the oldest ones; posts to others are rejected, and others are not listed", func(ctx context.Context) {
		t := newTeam(ctx, onStarter)
		var first *v1alpha1.Connection
		for i := range 11 {
			c := t.connect(ctx, fmt.Sprintf("threads-%02d", i), v1alpha1.PlatformThreads)
			if first == nil {
				first = c
			}
		}
		listed := func() []string { return as[listBody](t.call(ctx, "GET", "/connections", "")).ids() }
		Eventually(listed).Should(HaveLen(10))
		Expect(listed()).To(And(ContainElement("threads-09"), Not(ContainElement("threads-10"))))
		for _, body := range []string{text("threads-10", "a"), text("threads-10", "a", inMarch), text("threads-10", "a", draft)} {
			t.call(ctx, "POST", "/posts", body).mustFail(403, "SUBSCRIPTION_REQUIRED", `the starter plan allows 10 connected accounts, and connection "threads-10" exceeds that`)
		}
		t.create(ctx, text("threads-09", "a", inMarch))

		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"disabled":true}}`))
		Expect(admin.Patch(ctx, first, patch)).To(Succeed())
		Eventually(listed).Should(And(HaveLen(10), ContainElement("threads-10"), Not(ContainElement("threads-00"))))
		t.create(ctx, text("threads-10", "a", inMarch))
	})
})

var _ = Describe("TikTok's five pending drafts a day", func() {
	It("hold for each account, whatever the plan, and under races", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "tik", v1alpha1.PlatformTikTok)
		t.connect(ctx, "tok", v1alpha1.PlatformTikTok)
		t.verified(ctx, "pic", v1alpha1.MimeJPEG, 1000)
		inboxBody := func(connection string, times int, more string) string {
			one := fmt.Sprintf(`{"connection_id":%q,"caption":"a","tiktok_draft":true}`, connection)
			return fmt.Sprintf(`{"category":"image","media_ids":["pic"],"targets":[%s]%s}`, strings.TrimSuffix(strings.Repeat(one+",", times), ","), more)
		}
		inbox := func(connection string, times int, more string) reply {
			GinkgoHelper()
			return t.call(ctx, "POST", "/posts", inboxBody(connection, times, more))
		}
		send := func(connection, more string) reply {
			GinkgoHelper()
			return inbox(connection, 1, more)
		}
		at := func(day, hour int) string {
			return fmt.Sprintf(`,"scheduled_at":"2199-03-%02dT%02d:00:00Z"`, day, hour)
		}

		var accepted atomic.Int32
		ids := make(chan string, 24)
		var wg sync.WaitGroup
		other := start(restricted)
		DeferCleanup(other.stop)
		header := map[string]string{"Authorization": "Bearer " + t.token}
		Eventually(func() int { return do(ctx, other, "GET", base+"/posts", "", header).status }).Should(Equal(http.StatusOK))
		replicas := []*running{instance, other}
		for i := range 24 {
			wg.Go(func() {
				defer GinkgoRecover()
				if r := do(ctx, replicas[i%2], "POST", base+"/posts", inboxBody("tik", 1, at(10, i)), header); r.status == http.StatusCreated {
					accepted.Add(1)
					ids <- as[postBody](r).Data.ID
				} else {
					r.mustFail(400, "VALIDATION_ERROR", "targets[0].tiktok_draft: TikTok accepts at most 5 pending drafts of an account within 24 hours")
				}
			})
		}
		wg.Wait()
		Expect(accepted.Load()).To(BeEquivalentTo(5))

		Expect(send("tok", at(10, 0)).status).To(Equal(http.StatusCreated), "another account has its own count")
		Expect(send("tik", at(11, 12)).status).To(Equal(http.StatusCreated), "another day has its own count")
		Expect(send("tik", at(9, 0)).status).To(Equal(http.StatusCreated))
		Expect(send("tik", draft).status).To(Equal(http.StatusCreated), "unpublished posts do not count")
		plain := fmt.Sprintf(`{"category":"image","media_ids":["pic"],"targets":[{"connection_id":"tik","caption":"a"}]%s}`, at(10, 5))
		Expect(t.call(ctx, "POST", "/posts", plain).status).To(Equal(http.StatusCreated), "published drafts no longer count")

		Expect(t.call(ctx, "DELETE", "/posts/"+<-ids, "").status).To(Equal(http.StatusOK))
		Expect(send("tik", at(10, 6)).status).To(Equal(http.StatusCreated), "a cancellation releases its reservation")
		send("tik", at(10, 7)).mustFail(400, "VALIDATION_ERROR", "5 pending drafts")
		inbox("tok", 6, at(20, 0)).mustFail(400, "VALIDATION_ERROR", "targets[5].tiktok_draft")
	})
})

var _ = Describe("An expiry", func() {
	It("is exact, for a trial and for a key", func(ctx context.Context) {
		trialEnds := time.Date(2199, 1, 31, 12, 0, 0, 0, time.UTC)
		keyExpires := trialEnds.Add(time.Hour)
		t := newTeam(ctx, func(t *v1alpha1.Team) {
			t.Spec.Subscription.State = v1alpha1.SubscriptionTrialing
			t.Spec.Subscription.TrialEndsAt = v1alpha1.NewTimePtr(trialEnds)
		})
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		_, token := t.newKey(ctx, "ends", func(k *v1alpha1.APIKey) { k.Spec.ExpiresAt = v1alpha1.NewTimePtr(keyExpires) })
		clock := clocktesting.NewFakeClock(trialEnds.Add(-time.Millisecond))
		own := start(restricted, func(c *apiserver.Config) { c.Clock = clock })
		DeferCleanup(own.stop)
		try := func(method, body string) reply {
			GinkgoHelper()
			return do(ctx, own, method, base+"/posts", body, map[string]string{"Authorization": "Bearer " + token})
		}
		Expect(try("POST", text("acme-x", "a", draft)).status).To(Equal(http.StatusCreated))
		clock.Step(time.Millisecond)
		try("POST", text("acme-x", "a", draft)).mustFail(403, "SUBSCRIPTION_REQUIRED", "the team's trial has ended")
		clock.SetTime(keyExpires.Add(-time.Millisecond))
		Expect(try("GET", "").status).To(Equal(http.StatusOK), "reading needs no subscription")
		clock.Step(time.Millisecond)
		try("GET", "").mustFail(401, "UNAUTHORIZED", "expired")
		try("POST", text("acme-x", "a", draft)).mustFail(401, "UNAUTHORIZED", "expired")
	})
})

var _ = Describe("A rate limit", func() {
	It("applies to each API key, and returns Retry-After", func(ctx SpecContext) {
		limited := start(restricted, func(c *apiserver.Config) {
			c.RequestsPerMinute, c.Clock = 3, clocktesting.NewFakeClock(time.Now())
		})
		defer limited.stop()
		t, other := newTeam(ctx), newTeam(ctx)
		ask := func(token, method, path, body string) reply {
			return do(ctx, limited, method, base+path, body, map[string]string{"Authorization": "Bearer " + token})
		}
		list := func(token string) reply { return ask(token, "GET", "/posts", "") }
		Eventually(func() int { return list(other.token).status }).Should(Equal(http.StatusOK), "the replica has loaded the keys")
		says := func(r reply, limit, remaining, reset, retryAfter string) {
			GinkgoHelper()
			var got []string
			for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After"} {
				got = append(got, r.header.Get(name))
			}
			Expect(got).To(Equal([]string{limit, remaining, reset, retryAfter}), "%d %s", r.status, r.body)
		}
		got := list(t.token)
		Expect(got.status).To(Equal(http.StatusOK), got.body)
		says(got, "3", "2", "20", "")
		got = ask(t.token, "GET", "/media/nobody", "")
		got.mustFail(404, "NOT_FOUND", "nobody")
		says(got, "3", "1", "40", "")
		got = ask(t.token, "GET", "/posts?limit=x", "")
		got.mustFail(400, "VALIDATION_ERROR", "limit")
		says(got, "3", "0", "60", "")
		got = list(t.token)
		got.mustFail(429, "RATE_LIMITED", "try again in 20 seconds")
		says(got, "3", "0", "60", "20")
		got = list("hrld_nobody")
		Expect(got.status).To(Equal(http.StatusUnauthorized))
		says(got, "", "", "", "")
		Expect(list(other.token).status).To(Equal(http.StatusOK), "keys do not share a limit")
		Expect(t.call(ctx, "GET", "/posts", "").header.Get("RateLimit-Limit")).To(BeEmpty(), "without a limit, there is no header")
	})
})
