// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// postTo returns a valid post of the given category to one of a studio's connections, without the last brace.
func postTo(category, connection string) string {
	target := fmt.Sprintf(`"targets":[{"connection_id":%q,"caption":"look","youtube_title":"T"}]`, connection)
	switch category {
	case "image":
		return `{"category":"image","media_ids":["png"],` + target
	case "video":
		return `{"category":"video","media_id":"mp4",` + target
	case "tree":
		return fmt.Sprintf(`{"category":"tree","tree_cards":[{"caption":"a"},{"caption":"b"}],"targets":[{"connection_id":%q}]`, connection)
	default:
		return `{"category":"text",` + target
	}
}

// The contract's rows that are not about one kind of media, each verified on the real server.
var _ = Describe("by the contract", func() {
	Context("a post", Ordered, func() {
		var t *team
		BeforeAll(func(ctx context.Context) { t = studio(ctx) })

		It("goes to the platforms of its category and to no other; of drafts, that is held against trees alone", func(ctx SpecContext) {
			for category, takers := range map[string][]string{
				"text":  {"x", "threads", "facebook"},
				"image": {"x", "instagram", "threads", "tiktok", "facebook"},
				"video": {"x", "instagram", "threads", "tiktok", "youtube"},
				"tree":  {"x", "threads"},
			} {
				for _, platform := range []string{"x", "threads", "instagram", "facebook", "tiktok", "youtube"} {
					for _, more := range []string{"", draft, inAnHour()} {
						r := t.call(ctx, "POST", "/posts", postTo(category, platform)+more+"}")
						if slices.Contains(takers, platform) || more == draft && category != "tree" {
							Expect(r.status).To(Equal(http.StatusCreated), "%s to %s: %s", category, platform, r.body)
							Expect(as[postBody](r).Data.Category).To(Equal(category))
						} else {
							r.mustFail(400, "VALIDATION_ERROR", fmt.Sprintf("targets[0].connection_id: %s does not take posts of category %s", platform, category))
						}
					}
				}
			}
		})

		DescribeTable("of every category is never both a draft and scheduled",
			func(ctx context.Context, category string) {
				t.call(ctx, "POST", "/posts", postTo(category, "x")+draft+inAnHour()+"}").mustFail(400, "VALIDATION_ERROR", "scheduled_at: ")
				Expect(t.create(ctx, postTo(category, "x")+draft+`,"scheduled_at":null}`).Status).To(Equal("draft"), "null is no time")
			},
			Entry(nil, "text"), Entry(nil, "image"), Entry(nil, "video"), Entry(nil, "tree"),
		)

		DescribeTable("of every category with captions needs one, unless it is a draft",
			func(ctx context.Context, category string) {
				bare := strings.Replace(postTo(category, "x"), `,"caption":"look"`, "", 1)
				for _, more := range []string{"", inAnHour()} {
					t.call(ctx, "POST", "/posts", bare+more+"}").mustFail(400, "VALIDATION_ERROR", "targets[0].caption: ")
				}
				Expect(t.create(ctx, bare+draft+"}").Platforms[0].Caption).To(BeEmpty(), "kept as an empty caption")
			},
			Entry(nil, "text"), Entry(nil, "image"), Entry(nil, "video"),
		)

		DescribeTable("has as much text as its platform takes",
			func(ctx context.Context, connection, fits, tooLong string) {
				Expect(t.create(ctx, text(connection, fits)).Platforms[0].Caption).To(Equal(fits))
				if tooLong == "" {
					return
				}
				for _, more := range []string{"", draft, inAnHour()} {
					t.call(ctx, "POST", "/posts", text(connection, tooLong, more)).mustFail(400, "VALIDATION_ERROR", "targets[0].caption: ")
				}
			},
			Entry("280 on X", "x", strings.Repeat("a", 280), strings.Repeat("a", 281)),
			Entry("140 of those that X counts twice", "x", strings.Repeat("日", 140), strings.Repeat("日", 141)),
			Entry("emoji that X counts as two, however many code points they have", "x", strings.Repeat("👨‍👩‍👧", 140), strings.Repeat("👨‍👩‍👧", 141)),
			Entry("links that X counts as 23", "x", strings.Repeat("a", 256)+" https://example.com/"+strings.Repeat("b", 100), strings.Repeat("a", 257)+" https://example.com/"+strings.Repeat("b", 100)),
			Entry("500 on Threads", "threads", strings.Repeat("é", 500), strings.Repeat("é", 501)),
			Entry("as much as anybody writes on Facebook", "facebook", strings.Repeat("é", 60_000), ""),
		)

		DescribeTable("as a tree has as much text on a card as every chosen platform takes",
			func(ctx context.Context, targets, fits, tooLong string) {
				tree := func(caption string) string { return cards(fmt.Sprintf(`{"caption":%q}`, caption), targets) }
				t.create(ctx, tree(fits))
				t.call(ctx, "POST", "/posts", tree(tooLong)).mustFail(400, "VALIDATION_ERROR", "tree_cards[0].caption: ")
			},
			Entry("280 on X", toX, strings.Repeat("a", 280), strings.Repeat("a", 281)),
			Entry("140 of those that X counts twice", toX, strings.Repeat("日", 140), strings.Repeat("日", 141)),
			Entry("500 on Threads", toThreads, strings.Repeat("a", 500), strings.Repeat("a", 501)),
			Entry("the less of the two", toX+","+toThreads, strings.Repeat("a", 280), strings.Repeat("a", 281)),
		)

		It("as a tree ignores fields of other targets that the contract does not name", func(ctx SpecContext) {
			t.create(ctx, cards(`{"caption":"a"}`, `{"connection_id":"x","tiktok_privacy_level":7,"tiktok_allow_comment":"no","tiktok_allow_duet":{},"tiktok_allow_stitch":null}`))
		})

		It("of any category waits for every connection to be ready, and is wrong before it is early", func(ctx SpecContext) {
			t.connect(ctx, "expired-x", v1alpha1.PlatformX)
			t.connect(ctx, "down-x", v1alpha1.PlatformX)
			for _, category := range []string{"text", "image", "video", "tree"} {
				t.call(ctx, "POST", "/posts", postTo(category, "expired-x")+"}").mustFail(409, "POSTING_READINESS_RECONNECT_REQUIRED", "expired-x")
				t.call(ctx, "POST", "/posts", postTo(category, "down-x")+inAnHour()+"}").mustFail(409, "POSTING_READINESS_UNAVAILABLE", "down-x")
				t.create(ctx, postTo(category, "expired-x")+draft+"}")
			}
			t.call(ctx, "POST", "/posts", text("expired-x", strings.Repeat("a", 281))).mustFail(400, "VALIDATION_ERROR", "targets[0].caption: ")
			t.connect(ctx, "private-tiktok", v1alpha1.PlatformTikTok)
			t.connect(ctx, "expired-tiktok", v1alpha1.PlatformTikTok)
			for _, connection := range []string{"private-tiktok", "expired-tiktok"} {
				t.tells(ctx, connection, "SELF_ONLY")
				for _, more := range []string{"", inAnHour()} {
					t.call(ctx, "POST", "/posts", film("mp4", aimed("expired-x", connection), more)).
						mustFail(400, "TIKTOK_PRIVACY_LEVEL_UNAVAILABLE", "targets[1].tiktok_privacy_level: the account cannot choose PUBLIC_TO_EVERYONE; it can choose SELF_ONLY")
				}
			}
		})
	})

	It("lists show each state under its own name, target by target", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "x", v1alpha1.PlatformX)
		t.connect(ctx, "threads", v1alpha1.PlatformThreads)
		two := func(more string) string {
			return `{"category":"text","targets":[{"connection_id":"x","caption":"a"},{"connection_id":"threads","caption":"b"}]` + more + `}`
		}
		ids := map[string]string{
			"draft":      t.create(ctx, two(draft)).ID,
			"scheduled":  t.create(ctx, two(inAnHour())).ID,
			"processing": t.create(ctx, two("")).ID,
			"posted":     t.create(ctx, two("")).ID,
			"failed":     t.create(ctx, two("")).ID,
		}
		settle := func(id string, second v1alpha1.PostPhase, outcome v1alpha1.AttemptOutcome) {
			Expect(setStatus(ctx, t.stored(ctx, id), func(s *v1alpha1.PostStatus) {
				first, other := claimed(0, time.Now()), claimed(1, time.Now())
				first.Phase, first.ExternalID, first.Attempt.Outcome = v1alpha1.PhasePosted, "1", v1alpha1.OutcomePosted
				first.PostedAt = v1alpha1.NewTimePtr(time.Now())
				other.Platform, other.Phase, other.Attempt.Outcome = v1alpha1.PlatformThreads, second, outcome
				if second == v1alpha1.PhasePosted {
					other.ExternalID, other.PostedAt = "2", first.PostedAt
				}
				s.Targets = []v1alpha1.TargetStatus{first, other}
			})).To(Succeed())
		}
		settle(ids["posted"], v1alpha1.PhasePosted, v1alpha1.OutcomePosted)
		settle(ids["failed"], v1alpha1.PhaseFailed, v1alpha1.OutcomeRefused)
		for status, id := range ids {
			Eventually(func() []string { return as[listBody](t.call(ctx, "GET", "/posts?status="+status, "")).ids() }).Should(Equal([]string{id}), status)
			listed := as[listBody](t.call(ctx, "GET", "/posts?status="+status+"&platform=threads", "")).Data[0]
			Expect(listed.Platforms).To(HaveLen(2), "one entry for each target")
			Expect(listed.Platforms[1].Status).To(Equal(status))
			got := as[postBody](t.call(ctx, "GET", "/posts/"+id, "")).Data
			Expect(got.Status).To(Equal(status))
			Expect(got.CanCancel).To(Equal(status == "draft" || status == "scheduled"), status)
			Expect(got.Platforms[1].Status).To(Equal(status))
			if status == "failed" {
				Expect(got.Platforms[0].Status).To(Equal("posted"), "what was posted stays posted")
				Expect(listed.Platforms[0].Status).To(Equal("posted"))
			}
		}
	})

	It("a draft that says nothing yet has no title and is shown by its birth", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "x", v1alpha1.PlatformX)
		before := time.Now().Add(-time.Second)
		t.create(ctx, `{"category":"text","draft":true,"targets":[{"connection_id":"x"}]}`)
		listed := as[listBody](t.call(ctx, "GET", "/posts", "")).Data[0]
		Expect(listed.Title).To(BeEmpty())
		at, err := time.Parse("2006-01-02T15:04:05.000Z", listed.DisplayAt)
		Expect(err).NotTo(HaveOccurred())
		Expect(at).To(And(BeTemporally(">", before), BeTemporally("<", time.Now().Add(time.Second))))
	})

	It("a post that came another way shows no media, and cannot be cancelled once its time has come", func(ctx SpecContext) {
		t := studio(ctx)
		applied := &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "from-elsewhere"},
			Spec: v1alpha1.PostSpec{
				Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: []v1alpha1.LocalReference{{Name: "png"}}},
				ScheduledAt: v1alpha1.NewTimePtr(time.Now().Add(-time.Minute)),
				Targets:     []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "look"}},
			},
		}
		Expect(admin.Create(ctx, applied)).To(Succeed())
		got := as[postBody](t.call(ctx, "GET", "/posts/from-elsewhere", "")).Data
		Expect(got.MediaIDs).To(BeEmpty())
		Expect(got.CanCancel).To(BeFalse())
	})

	It("posts and connections are made and changed elsewhere", func(ctx SpecContext) {
		t := newTeam(ctx)
		for _, request := range []struct{ method, path string }{
			{"PUT", "/posts/p1"}, {"PATCH", "/posts/p1"}, {"POST", "/connections"}, {"DELETE", "/connections"}, {"GET", "/media/upload-url"}, {"PUT", "/media/upload-url"},
		} {
			t.call(ctx, request.method, request.path, "").mustFail(405, "VALIDATION_ERROR", "does not take "+request.method)
		}
		t.call(ctx, "DELETE", "/connections/x", "").mustFail(404, "NOT_FOUND", "")
	})

	It("a team without a subscription reads and cancels, and makes nothing", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "x", v1alpha1.PlatformX)
		id := t.create(ctx, text("x", "a", inAnHour())).ID
		t.resource.Spec.Subscription.State = v1alpha1.SubscriptionPastDue
		Expect(admin.Update(ctx, t.resource)).To(Succeed())
		Eventually(func() int { return t.call(ctx, "POST", "/posts", text("x", "a", draft)).status }).Should(Equal(http.StatusForbidden))
		t.call(ctx, "POST", "/posts", text("x", "a")).mustFail(403, "SUBSCRIPTION_REQUIRED", "past due")
		t.call(ctx, "POST", "/media/upload-url", upload("a.png", "image/png", 1)).mustFail(403, "SUBSCRIPTION_REQUIRED", "past due")
		for _, path := range []string{"/connections", "/posts", "/posts/" + id} {
			Expect(t.call(ctx, "GET", path, "").status).To(Equal(http.StatusOK), path)
		}
		Expect(t.call(ctx, "DELETE", "/posts/"+id, "").status).To(Equal(http.StatusOK))
	})

	It("trouble on this side is INTERNAL_ERROR, says nothing of its cause, and makes nothing", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "x", v1alpha1.PlatformX)
		var broken atomic.Bool
		ill := rest.CopyConfig(restricted)
		ill.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if broken.Load() && strings.Contains(r.URL.Path, "/posts") && r.URL.Query().Get("watch") == "" {
					return nil, errors.New("the disk of etcd-7 is full")
				}
				return next.RoundTrip(r)
			})
		})
		own := start(ill)
		defer own.stop()
		key := map[string]string{"Authorization": "Bearer " + t.token, "X-Request-Id": "ask-17"}
		Eventually(func() int { return do(ctx, own, "GET", base+"/connections", "", key).status }).Should(Equal(http.StatusOK))
		broken.Store(true)
		for _, request := range []struct{ method, path, body string }{
			{"GET", "/posts/p1", ""}, {"DELETE", "/posts/p1", ""}, {"POST", "/posts", text("x", "a", draft)},
		} {
			r := do(ctx, own, request.method, base+request.path, request.body, key)
			r.mustFail(500, "INTERNAL_ERROR", "ask-17")
			Expect(r.body).NotTo(ContainSubstring("etcd"))
		}
		posts := &v1alpha1.PostList{}
		Expect(admin.List(ctx, posts, client.InNamespace(t.namespace))).To(Succeed())
		Expect(posts.Items).To(BeEmpty())
	})
})

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
