// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/platforms"
)

var _ = Describe("creating a post", func() {
	var t *team
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "acme-threads", v1alpha1.PlatformThreads)
	})

	It("stores a scheduled post as the contract and the manager require", func(ctx context.Context) {
		before := time.Now().Add(-time.Second)
		r := t.call(ctx, "POST", "/posts", `{"category":"text","scheduled_at":"2199-12-01T10:00:00.123456+01:00","targets":[
			{"connection_id":"acme-x","caption":"Hello"},{"connection_id":"acme-threads","caption":"Hello, Threads"}]}`)
		Expect(r.status).To(Equal(http.StatusCreated), "%s", r.body)
		got := as[postBody](r).Data
		Expect(got.ID).To(MatchRegexp(`^p[a-z2-7]{25}$`))
		Expect(got.Status).To(Equal("scheduled"))
		Expect(got.Category).To(Equal("text"))
		Expect(*got.ScheduledAt).To(Equal("2199-12-01T09:00:00.123Z"))
		Expect(got.DisplayAt).To(Equal("2199-12-01T09:00:00.123Z"))
		Expect(got.CanCancel).To(BeTrue())
		Expect(got.Platforms).To(HaveLen(2))
		Expect(got.Platforms[1].Platform).To(Equal("threads"))
		Expect(got.Platforms[1].ConnectionID).To(Equal("acme-threads"))
		Expect(got.Platforms[1].Caption).To(Equal("Hello, Threads"))
		Expect(got.Platforms[1].Status).To(Equal("scheduled"))
		Expect(r.body).To(ContainSubstring(`"media_ids":[],"tree_cards":[]`))
		Expect(r.body).To(ContainSubstring(`"youtube_title":null,"external_url":null,"error_message":null`))

		stored := t.stored(ctx, got.ID)
		Expect(stored.Finalizers).To(ConsistOf(v1alpha1.DeliveryFinalizer))
		Expect(stored.Labels).To(HaveKeyWithValue(v1alpha1.OriginLabel, v1alpha1.OriginAPI))
		born, err := time.Parse(time.RFC3339, stored.Annotations[v1alpha1.BornAnnotation])
		Expect(err).NotTo(HaveOccurred())
		Expect(born).To(BeTemporally(">", before))
		Expect(born).To(BeTemporally("<=", time.Now()))
		Expect(stored.Spec.Targets).To(HaveLen(2))
		Expect(stored.Spec.Targets[0]).To(Equal(v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}, Caption: "Hello"}))
		Expect(stored.Spec.Draft).To(BeFalse())
		Expect(stored.Spec.Cancelled).To(BeFalse())
	})

	It("returns the post as a read does, and lists it immediately", func(ctx context.Context) {
		for i := range 30 {
			more := []string{inAnHour(), draft, ""}[i%3]
			created := t.call(ctx, "POST", "/posts", text("acme-x", fmt.Sprintf("post %d", i), more))
			Expect(created.status).To(Equal(http.StatusCreated), "%s", created.body)
			id := as[postBody](created).Data.ID
			list := as[listBody](t.call(ctx, "GET", "/posts?limit=100", ""))
			Expect(list.ids()).To(ContainElement(id), "post %d must be in the first list after it", i)
			Expect(list.Pagination.Total).To(Equal(i + 1))
			Expect(t.call(ctx, "GET", "/posts/"+id, "").body).To(Equal(created.body))
		}
	})

	It("answers processing for an immediate post", func(ctx context.Context) {
		got := t.create(ctx, text("acme-x", "now"))
		Expect(got.Status).To(Equal("processing"))
		Expect(got.ScheduledAt).To(BeNil())
		Expect(got.CanCancel).To(BeFalse())
		Expect(got.Platforms[0].AccountName).To(Equal("Account of acme-x"), "the preceding check read the name")
		got = t.create(ctx, text("acme-x", "now", `,"scheduled_at":null,"draft":false`))
		Expect(got.Status).To(Equal("processing"), "null is equivalent to omission")
	})

	It("stores a draft without a caption and without requests to platforms", func(ctx context.Context) {
		t.connect(ctx, "expired-x", v1alpha1.PlatformX)
		got := t.create(ctx, `{"category":"text","draft":true,"targets":[{"connection_id":"expired-x"}]}`)
		Expect(got.Status).To(Equal("draft"))
		Expect(got.CanCancel).To(BeTrue())
		Expect(got.Platforms[0].Caption).To(BeEmpty())
		Expect(t.stored(ctx, got.ID).Spec.Draft).To(BeTrue())
	})

	It("accepts other platforms' options, without effect", func(ctx context.Context) {
		t.create(ctx, `{"category":"text","targets":[{"connection_id":"acme-x","caption":"a","youtube_title":"b","is_ai_generated":true,
			"tiktok_draft":true,"tiktok_allow_comment":false}]}`)
		t.create(ctx, `{"category":"text","targets":[{"connection_id":"acme-x","caption":"a","tiktok_privacy_level":"SELF_ONLY","tiktok_draft":false}]}`)
	})

	It("accepts a repeated connection and a connection created just now", func(ctx context.Context) {
		t.connect(ctx, "brand-new", v1alpha1.PlatformX)
		got := t.create(ctx, `{"category":"text","draft":true,"targets":[{"connection_id":"brand-new","caption":"a"},{"connection_id":"brand-new","caption":"b"}]}`)
		Expect(got.Platforms).To(HaveLen(2))
	})

	DescribeTable("rejects errors with their path",
		func(ctx context.Context, body, words string) {
			t.call(ctx, "POST", "/posts", body).mustFail(400, "VALIDATION_ERROR", words)
			Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Pagination.Total).To(BeZero())
		},
		Entry("an unknown category", `{"category":"poem","targets":[{"connection_id":"acme-x"}]}`, "category: must be one of image, text, tree, video"),
		Entry("a video without media_id", `{"category":"video","targets":[{"connection_id":"acme-x"}]}`, "media_id: is missing"),
		Entry("tree_cards that are not a list", `{"category":"tree","tree_cards":{},"targets":[{"connection_id":"acme-x"}]}`, "tree_cards: must be an array"),
		Entry("a tree without cards, even as a draft", `{"category":"tree","draft":true,"tree_cards":[],"targets":[{"connection_id":"acme-x"}]}`, "tree_cards: must have at least 1 item"),
		Entry("no targets", `{"category":"text","targets":[]}`, "targets: must have at least 1 item"),
		Entry("an empty caption", text("acme-x", ""), "targets[0].caption: must not be empty"),
		Entry("a caption of blanks", text("acme-x", " \u00a0"), "targets[0].caption: consists of blanks only"),
		Entry("an unknown connection", text("nobody", "a"), `targets[0].connection_id: no such connection "nobody" in this team`),
		Entry("a past time", text("acme-x", "a", `,"scheduled_at":"2020-01-01T00:00:00Z"`), "scheduled_at: must be in the future"),
		Entry("no time", text("acme-x", "a", `,"scheduled_at":"tomorrow"`), "scheduled_at: must be a time in RFC 3339 form"),
		Entry("music", `{"category":"text","targets":[{"connection_id":"acme-x","caption":"a","tiktok_auto_add_music":false}]}`, "targets[0].tiktok_auto_add_music: "),
		Entry("a duet", `{"category":"text","targets":[{"connection_id":"acme-x","caption":"a","tiktok_allow_duet":true}]}`, "targets[0].tiktok_allow_duet: "),
		Entry("a stitch", `{"category":"text","targets":[{"connection_id":"acme-x","caption":"a","tiktok_allow_stitch":true}]}`, "targets[0].tiktok_allow_stitch: "),
		Entry("several problems", `{"category":"text","targets":[{"connection_id":"nobody"},{"connection_id":"acme-x","caption":"`+strings.Repeat("a", 300)+`"}]}`, "; targets[1].caption: 300 weighted characters"),
	)

	It("rejects a platform that does not accept text or is not configured", func(ctx context.Context) {
		small := start(restricted, func(c *apiserver.Config) {
			c.Capabilities = func(p v1alpha1.Platform) (platforms.Capabilities, bool) {
				l, ok := capabilities(p)
				return l, ok && p != v1alpha1.PlatformYouTube
			}
		})
		defer small.stop()
		t.connect(ctx, "acme-instagram", v1alpha1.PlatformInstagram)
		t.connect(ctx, "acme-youtube", v1alpha1.PlatformYouTube)
		t.call(ctx, "POST", "/posts", text("acme-instagram", "a")).mustFail(400, "VALIDATION_ERROR", "instagram does not accept posts of category text")
		t.create(ctx, text("acme-instagram", "a", draft))
		t.call(ctx, "POST", "/posts", text("acme-youtube", "a")).mustFail(400, "VALIDATION_ERROR", "youtube does not accept posts of category text")
		do(ctx, small, "POST", base+"/posts", text("acme-youtube", "a"), map[string]string{"Authorization": "Bearer " + t.token}).
			mustFail(400, "VALIDATION_ERROR", "cannot publish to youtube")
	})

	It("rejects a key whose namespace has no team", func(ctx context.Context) {
		Expect(admin.Delete(ctx, t.resource)).To(Succeed())
		Eventually(func() int { return t.call(ctx, "POST", "/posts", text("acme-x", "a")).status }).Should(Equal(http.StatusForbidden))
	})

	DescribeTable("does not post to an unusable connection",
		func(ctx context.Context, name, code, words string) {
			t.connect(ctx, name, v1alpha1.PlatformX)
			two := fmt.Sprintf(`{"category":"text","targets":[{"connection_id":"acme-x","caption":"a"},{"connection_id":%q,"caption":"a"}]}`, name)
			r := t.call(ctx, "POST", "/posts", two)
			r.mustFail(409, code, fmt.Sprintf("connection %q (x): %s", name, words))
			after := map[string]string{"POSTING_READINESS_UNAVAILABLE": "30"}[code] // waiting does not help if a person has to act
			Expect(r.header.Get("Retry-After")).To(Equal(after))
			Expect(r.body).NotTo(ContainSubstring("acme-x"), "the other connection is ready")
			Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Pagination.Total).To(BeZero())
			t.call(ctx, "POST", "/posts", text(name, "a", inAnHour())).mustFail(409, code, words)
			t.create(ctx, text(name, "a", draft))
		},
		Entry("expired", "expired-x", "POSTING_READINESS_RECONNECT_REQUIRED", "the token has ended"),
		Entry("revoked", "revoked-x", "POSTING_READINESS_RECONNECT_REQUIRED", "access was withdrawn"),
		Entry("no Secret", "nosecret-x", "POSTING_READINESS_RECONNECT_REQUIRED", "there is no such Secret"),
		Entry("an invalid Secret", "badsecret-x", "POSTING_READINESS_RECONNECT_REQUIRED", "the Secret has no accessToken"),
		Entry("another account", "mismatch-x", "POSTING_READINESS_RECONNECT_REQUIRED", "the token belongs to another account"),
		Entry("platform down", "down-x", "POSTING_READINESS_UNAVAILABLE", "the platform answers 503"),
		Entry("an inaccessible Secret", "unreachable-x", "POSTING_READINESS_UNAVAILABLE", "the Secret cannot be read"),
		Entry("an unknown state", "undecided-x", "POSTING_READINESS_UNAVAILABLE", "not known yet"),
		Entry("no response from the platform", "silent-x", "POSTING_READINESS_UNAVAILABLE", "its platform has not answered yet"),
	)

	It("checks a connection once for many concurrent requests", func(ctx context.Context) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				defer GinkgoRecover()
				t.create(ctx, text("acme-threads", "a", inAnHour()))
			})
		}
		wg.Wait()
		connection := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "acme-threads"}}
		Expect(admin.Get(ctx, clientKey(connection), connection)).To(Succeed())
		token := connection.Annotations[v1alpha1.ProbeAnnotation]
		Expect(token).NotTo(BeEmpty())
		t.create(ctx, text("acme-threads", "a", inAnHour()))
		Expect(admin.Get(ctx, clientKey(connection), connection)).To(Succeed())
		Expect(connection.Annotations[v1alpha1.ProbeAnnotation]).To(Equal(token), "a successful check is reused for a minute")
	})
})

var _ = Describe("reading a post", func() {
	var t *team
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
	})

	DescribeTable("answers 404 for all ids but the team's posts, for reads and cancellations",
		func(ctx context.Context, id string) {
			for _, method := range []string{"GET", "DELETE"} {
				t.call(ctx, method, "/posts/"+id, "").mustFail(404, "NOT_FOUND", "")
			}
		},
		Entry("unknown", "pabcdefghijklmnopqrstuvwxy"),
		Entry("empty", ""),
		Entry("with a slash", "a%2Fb"),
		Entry("capital letters", "ABC"),
		Entry("not UTF-8", "%ff"),
	)
})

var _ = Describe("cancelling a post", func() {
	var t *team
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
	})

	DescribeTable("cancels a post whose delivery has not started, once",
		func(ctx context.Context, more func() string) {
			id := t.create(ctx, text("acme-x", "a", more())).ID
			r := t.call(ctx, "DELETE", "/posts/"+id, "")
			Expect(r.status).To(Equal(http.StatusOK), "%s", r.body)
			Expect(r.body).To(Equal(fmt.Sprintf(`{"data":{"id":%q,"status":"cancelled"}}`, id)))
			Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Data).To(BeEmpty(), "the post disappears from lists immediately")
			got := as[postBody](t.call(ctx, "GET", "/posts/"+id, "")).Data
			Expect(got.Status).To(Equal("cancelled"))
			Expect(got.CanCancel).To(BeFalse())
			Expect(got.Platforms[0].Status).To(Equal("cancelled"))
			t.call(ctx, "DELETE", "/posts/"+id, "").mustFail(409, "CONFLICT", "already cancelled")
			Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Data).To(BeEmpty())
		},
		Entry("a draft", func() string { return draft }),
		Entry("a scheduled post", inAnHour),
	)

	It("rejects an immediate post", func(ctx context.Context) {
		id := t.create(ctx, text("acme-x", "a")).ID
		t.call(ctx, "DELETE", "/posts/"+id, "").mustFail(409, "CONFLICT", "is being delivered")
	})

	It("rejects a scheduled post once its delivery has started, and a finished one", func(ctx context.Context) {
		id := t.create(ctx, text("acme-x", "a", inAnHour())).ID
		target := claimed(0, time.Now())
		Expect(setStatus(ctx, t.stored(ctx, id), func(s *v1alpha1.PostStatus) {
			s.Targets = []v1alpha1.TargetStatus{target}
		})).To(Succeed())
		t.call(ctx, "DELETE", "/posts/"+id, "").mustFail(409, "CONFLICT", "is being delivered")
		Expect(setStatus(ctx, t.stored(ctx, id), func(s *v1alpha1.PostStatus) {
			s.Targets[0].Phase, s.Targets[0].Attempt.Outcome = v1alpha1.PhaseFailed, v1alpha1.OutcomeRefused
		})).To(Succeed())
		t.call(ctx, "DELETE", "/posts/"+id, "").mustFail(409, "CONFLICT", "is failed")
		Expect(t.stored(ctx, id).Spec.Cancelled).To(BeFalse())
	})

	It("lets one of many concurrent cancellations succeed", func(ctx context.Context) {
		id := t.create(ctx, text("acme-x", "a", inAnHour())).ID
		statuses := make(chan int, 10)
		var wg sync.WaitGroup
		for range cap(statuses) {
			wg.Go(func() {
				defer GinkgoRecover()
				statuses <- t.call(ctx, "DELETE", "/posts/"+id, "").status
			})
		}
		wg.Wait()
		close(statuses)
		count := map[int]int{}
		for status := range statuses {
			count[status]++
		}
		Expect(count).To(Equal(map[int]int{200: 1, 409: 9}))
	})

	It("never cancels a post that is claimed concurrently", func(ctx context.Context) {
		outcomes := map[string]int{}
		for range 40 {
			id := t.create(ctx, text("acme-x", "a", inAnHour())).ID
			stored := t.stored(ctx, id)
			var claim error
			var wg sync.WaitGroup
			wg.Go(func() {
				claim = setStatus(ctx, stored, func(s *v1alpha1.PostStatus) { s.Targets = []v1alpha1.TargetStatus{claimed(0, time.Now())} })
			})
			status := t.call(ctx, "DELETE", "/posts/"+id, "").status
			wg.Wait()
			after := t.stored(ctx, id)
			if status == http.StatusOK {
				outcomes["cancelled"]++
				Expect(apierrors.IsConflict(claim)).To(BeTrue(), "%v", claim)
				Expect(after.Spec.Cancelled).To(BeTrue())
				Expect(after.Status.Targets).To(BeEmpty())
			} else {
				outcomes["claimed"]++
				Expect(status).To(Equal(http.StatusConflict))
				Expect(claim).NotTo(HaveOccurred())
				Expect(after.Spec.Cancelled).To(BeFalse())
			}
		}
		AddReportEntry("outcomes", outcomes)
	})

	It("cancels a post despite other concurrent writes", func(ctx context.Context) {
		id := t.create(ctx, text("acme-x", "a", inAnHour())).ID
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			defer GinkgoRecover()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					stored := t.stored(ctx, id)
					_ = setStatus(ctx, stored, func(s *v1alpha1.PostStatus) { s.ObservedGeneration = int64(n) }) // conflicts are intended
				}
			}
		})
		Eventually(func() int { return t.call(ctx, "DELETE", "/posts/"+id, "").status }).Should(Equal(http.StatusOK))
		close(stop)
		wg.Wait()
	})
})

// chain returns the body of a request for a tree to X and Threads.
func chain(cards string, more ...string) string {
	return fmt.Sprintf(`{"category":"tree","tree_cards":%s,"targets":[{"connection_id":"acme-x"},{"connection_id":"acme-threads"}]%s}`,
		cards, strings.Join(more, ""))
}

var _ = Describe("creating a tree", func() {
	var t *team
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "acme-threads", v1alpha1.PlatformThreads)
	})

	const two = `[{"caption":"one"},{"caption":"two"}]`

	DescribeTable("accepts",
		func(ctx context.Context, body, words string) {
			got := t.call(ctx, "POST", "/posts", body)
			Expect(got.status).To(Equal(http.StatusCreated), got.body)
			Expect(got.body).To(ContainSubstring(words))
		},
		Entry("a draft of one card", chain(`[{"caption":"one"}]`, draft), `"status":"draft"`),
		Entry("a draft with an empty card", chain(`[{"caption":""},{"caption":null},{}]`, draft),
			`[{"caption":null,"media_ids":[]},{"caption":null,"media_ids":[]},{"caption":null,"media_ids":[]}]`),
		Entry("a draft with a card that is too long", chain(`[{"caption":"`+strings.Repeat("a", 501)+`"}]`, draft), `"status":"draft"`),
		Entry("options that trees do not have", `{"category":"tree","tree_cards":`+two+`,"media_id":3,"thumbnail_time":"x","targets":[{"connection_id":"acme-x","tiktok_privacy_level":"SELF_ONLY"}]}`,
			`"category":"tree"`),
	)

	DescribeTable("refuses",
		func(ctx context.Context, body, words string) {
			t.call(ctx, "POST", "/posts", body).mustFail(400, "VALIDATION_ERROR", words)
			Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Pagination.Total).To(BeZero())
		},
		Entry("one card", chain(`[{"caption":"one"}]`), "tree_cards: a tree needs at least two cards"),
		Entry("a scheduled tree of one card", chain(`[{"caption":"one"}]`, inAnHour()), "tree_cards: a tree needs at least two cards"),
		Entry("a card without text and media", chain(`[{"caption":"one"},{"caption":""}]`), "tree_cards[1]: a card needs a caption or media"),
		Entry("a caption that is not a string", chain(`[{"caption":1},{"caption":"b"}]`, draft), "tree_cards[0].caption: must be a string"),
		Entry("media_ids that are not a list", chain(`[{"caption":"a","media_ids":"m"}]`, draft), "tree_cards[0].media_ids: must be an array"),
		Entry("a missing media file", chain(`[{"caption":"a","media_ids":["m1"]}]`, draft), `tree_cards[0].media_ids[0]: no such media file "m1" in this team`),
		Entry("the same connection twice", `{"category":"tree","draft":true,"tree_cards":`+two+`,"targets":[{"connection_id":"acme-x"},{"connection_id":"acme-x"}]}`,
			"targets[1].connection_id: "),
	)

	DescribeTable("rejects the fields of other targets",
		func(ctx context.Context, name, value string) {
			body := fmt.Sprintf(`{"category":"tree","tree_cards":%s,"targets":[{"connection_id":"acme-x",%q:%s}]}`, two, name, value)
			t.call(ctx, "POST", "/posts", body).mustFail(400, "VALIDATION_ERROR", "targets[0]."+name)
		},
		Entry(nil, "caption", `"a"`),
		Entry(nil, "youtube_title", `"a"`),
		Entry(nil, "is_ai_generated", `false`),
		Entry(nil, "tiktok_draft", `false`),
		Entry(nil, "tiktok_auto_add_music", `true`),
	)
})
