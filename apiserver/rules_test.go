// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
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

// postTo returns a valid post of the given category to one of a studio's connections, without the closing brace.
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
var _ = Describe("under the contract", func() {
	Context("a post", Ordered, func() {
		var t *team
		BeforeAll(func(ctx context.Context) { t = studio(ctx) })

		It("can only be sent to its category's platforms; drafts are checked for trees only", func(ctx SpecContext) {
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
							r.mustFail(400, "VALIDATION_ERROR", fmt.Sprintf("targets[0].connection_id: %s does not accept posts of category %s", platform, category))
						}
					}
				}
			}
		})

		DescribeTable("of any category is never both a draft and scheduled",
			func(ctx context.Context, category string) {
				t.call(ctx, "POST", "/posts", postTo(category, "x")+draft+inAnHour()+"}").mustFail(400, "VALIDATION_ERROR", "scheduled_at: ")
				Expect(t.create(ctx, postTo(category, "x")+draft+`,"scheduled_at":null}`).Status).To(Equal("draft"), "null is no time")
			},
			Entry(nil, "text"), Entry(nil, "image"), Entry(nil, "video"), Entry(nil, "tree"),
		)

		DescribeTable("of every category with captions requires one, unless it is a draft",
			func(ctx context.Context, category string) {
				bare := strings.Replace(postTo(category, "x"), `,"caption":"look"`, "", 1)
				for _, more := range []string{"", inAnHour()} {
					t.call(ctx, "POST", "/posts", bare+more+"}").mustFail(400, "VALIDATION_ERROR", "targets[0].caption: ")
				}
				Expect(t.create(ctx, bare+draft+"}").Platforms[0].Caption).To(BeEmpty(), "stored as an empty caption")
			},
			Entry(nil, "text"), Entry(nil, "image"), Entry(nil, "video"),
		)

		DescribeTable("has captions of at most its platform's maximum length",
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
			Entry("140 characters that X counts twice", "x", strings.Repeat("日", 140), strings.Repeat("日", 141)),
			Entry("emojis that X counts as two, whatever their code points", "x", strings.Repeat("👨‍👩‍👧", 140), strings.Repeat("👨‍👩‍👧", 141)),
			Entry("links that X counts as 23", "x", strings.Repeat("a", 256)+" https://example.com/"+strings.Repeat("b", 100), strings.Repeat("a", 257)+" https://example.com/"+strings.Repeat("b", 100)),
			Entry("500 on Threads", "threads", strings.Repeat("é", 500), strings.Repeat("é", 501)),
			Entry("the longest text on Facebook", "facebook", strings.Repeat("é", 60_000), ""),
		)

		DescribeTable("as a tree has cards of at most its platforms' smallest maximum length",
			func(ctx context.Context, targets, fits, tooLong string) {
				tree := func(caption string) string { return cards(fmt.Sprintf(`{"caption":%q}`, caption), targets) }
				t.create(ctx, tree(fits))
				t.call(ctx, "POST", "/posts", tree(tooLong)).mustFail(400, "VALIDATION_ERROR", "tree_cards[0].caption: ")
			},
			Entry("280 on X", toX, strings.Repeat("a", 280), strings.Repeat("a", 281)),
			Entry("140 characters that X counts twice", toX, strings.Repeat("日", 140), strings.Repeat("日", 141)),
			Entry("500 on Threads", toThreads, strings.Repeat("a", 500), strings.Repeat("a", 501)),
			Entry("the smaller of the two", toX+","+toThreads, strings.Repeat("a", 280), strings.Repeat("a", 281)),
		)

		It("as a tree ignores other targets' fields that the contract does not name", func(ctx SpecContext) {
			t.create(ctx, cards(`{"caption":"a"}`, `{"connection_id":"x","tiktok_privacy_level":7,"tiktok_allow_comment":"no","tiktok_allow_duet":{},"tiktok_allow_stitch":null}`))
		})

		It("of any category requires ready connections, after all other rules", func(ctx SpecContext) {
			t.connect(ctx, "expired-x", v1alpha1.PlatformX)
			t.connect(ctx, "down-x", v1alpha1.PlatformX)
			for _, category := range []string{"text", "image", "video", "tree"} {
				t.call(ctx, "POST", "/posts", postTo(category, "expired-x")+"}").mustFail(409, "POSTING_READINESS_RECONNECT_REQUIRED", "expired-x")
				t.call(ctx, "POST", "/posts", postTo(category, "down-x")+inAnHour()+"}").mustFail(409, "POSTING_READINESS_UNAVAILABLE", "down-x")
				t.create(ctx, postTo(category, "expired-x")+draft+"}")
			}
			t.call(ctx, "POST", "/posts", text("expired-x", strings.Repeat("a", 281))).mustFail(400, "VALIDATION_ERROR", "targets[0].caption: ")
		})
	})

	It("lists contain each state under its own name, target by target", func(ctx SpecContext) {
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
				Expect(got.Platforms[0].Status).To(Equal("posted"), "posted targets remain posted")
				Expect(listed.Platforms[0].Status).To(Equal("posted"))
			}
		}
	})

	It("an empty draft has no title and is dated by its creation", func(ctx SpecContext) {
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

	It("a post from elsewhere has no media, and cannot be cancelled after its time", func(ctx SpecContext) {
		t := studio(ctx)
		applied := &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "from-elsewhere"},
			Spec: v1alpha1.PostSpec{
				Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "png"}}},
				ScheduledAt: v1alpha1.NewTimePtr(time.Now().Add(-time.Minute)),
				Targets:     []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "look"}},
			},
		}
		Expect(admin.Create(ctx, applied)).To(Succeed())
		got := as[postBody](t.call(ctx, "GET", "/posts/from-elsewhere", "")).Data
		Expect(got.MediaIDs).To(BeEmpty())
		Expect(got.CanCancel).To(BeFalse())
		Expect(setStatus(ctx, t.stored(ctx, "from-elsewhere"), func(s *v1alpha1.PostStatus) {
			s.Targets = []v1alpha1.TargetStatus{{
				Platform: v1alpha1.PlatformX, Phase: v1alpha1.PhaseProcessing, State: v1alpha1.TargetPending, TryUntil: v1alpha1.NewTimePtr(time.Now().Add(time.Hour)),
			}}
		})).To(Succeed())
		t.call(ctx, "DELETE", "/posts/from-elsewhere", "").mustFail(409, "CONFLICT", "is being delivered")
		Expect(t.stored(ctx, "from-elsewhere").Spec.Cancelled).To(BeFalse())
	})

	It("a team without a subscription can read and cancel, but not create", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "x", v1alpha1.PlatformX)
		id := t.create(ctx, text("x", "a", inAnHour())).ID
		t.resource.Spec.Subscription.State = v1alpha1.SubscriptionPastDue
		Expect(admin.Update(ctx, t.resource)).To(Succeed())
		Eventually(func() int { return t.call(ctx, "POST", "/posts", text("x", "a", draft)).status }).Should(Equal(http.StatusForbidden))
		for path, body := range map[string]string{"/posts": text("x", "a"), "/media/upload-url": upload("a.png", "image/png", 1)} {
			t.call(ctx, "POST", path, body).mustFail(403, "SUBSCRIPTION_REQUIRED", "past due")
			t.call(ctx, "POST", path, "[").mustFail(403, "SUBSCRIPTION_REQUIRED", "past due") // 403 comes before 400
		}
		for _, path := range []string{"/connections", "/posts", "/posts/" + id} {
			Expect(t.call(ctx, "GET", path, "").status).To(Equal(http.StatusOK), path)
		}
		Expect(t.call(ctx, "DELETE", "/posts/"+id, "").status).To(Equal(http.StatusOK))
	})

	It("Herald's own errors are INTERNAL_ERROR, without their cause, and without effects", func(ctx SpecContext) {
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

// The contract's response tables, field by field, with non-zero values.
var _ = Describe("every field of a post", Ordered, func() {
	var t *team
	due := time.Date(2199, 6, 1, 10, 0, 0, 123e6, time.UTC)
	scheduled := fmt.Sprintf(`,"scheduled_at":%q`, due.Format(time.RFC3339Nano))
	BeforeAll(func(ctx context.Context) {
		t = studio(ctx)
		t.connect(ctx, "leaving-x", v1alpha1.PlatformX)
	})

	// reads expects a post's detail and summary. ID and BORN stand for its id and creation time.
	reads := func(ctx context.Context, id, detail, summary string) {
		GinkgoHelper()
		born := t.stored(ctx, id).Annotations[v1alpha1.BornAnnotation]
		fill := strings.NewReplacer("ID", id, "BORN", born)
		Eventually(func() string { return t.call(ctx, "GET", "/posts/"+id, "").body }).Should(MatchJSON(`{"data":` + fill.Replace(detail) + `}`))
		list := func() []string {
			var found []string
			for _, p := range as[struct{ Data []map[string]any }](t.call(ctx, "GET", "/posts?limit=100", "")).Data {
				if p["id"] == id {
					found = append(found, jsonOf(p))
				}
			}
			return found
		}
		if summary == "" {
			Eventually(list).Should(BeEmpty())
			return
		}
		Eventually(list).Should(ConsistOf(MatchJSON(fill.Replace(summary))))
	}

	It("is returned for a video that some platforms published", func(ctx SpecContext) {
		id := t.create(ctx, fmt.Sprintf(`{"category":"video","media_id":"mp4","thumbnail_time":0.5,"targets":[
			{"connection_id":"tiktok","caption":"for TikTok","youtube_title":"of no use","tiktok_privacy_level":"PUBLIC_TO_EVERYONE"},
			{"connection_id":"youtube","caption":"for YouTube","youtube_title":"How we launched"},
			{"connection_id":"leaving-x","caption":"for X"}]%s}`, scheduled)).ID
		posted := time.Date(2026, 12, 1, 9, 0, 0, 456e6, time.UTC)
		Expect(setStatus(ctx, t.stored(ctx, id), func(s *v1alpha1.PostStatus) {
			now := time.Now()
			failed, done, open := claimed(0, now), claimed(1, now), claimed(2, now)
			failed.Platform, failed.Phase, failed.Attempt.Outcome = v1alpha1.PlatformTikTok, v1alpha1.PhaseFailed, v1alpha1.OutcomeRefused
			failed.Reason, failed.Message = v1alpha1.ReasonRefused, "TikTok refused the video"
			done.Platform, done.Phase, done.Attempt.Outcome = v1alpha1.PlatformYouTube, v1alpha1.PhasePosted, v1alpha1.OutcomePosted
			done.ExternalID, done.ExternalURL, done.PostedAt = "abc", "https://www.youtube.com/watch?v=abc", v1alpha1.NewTimePtr(posted)
			s.Targets = []v1alpha1.TargetStatus{failed, done, open}
		})).To(Succeed())
		Expect(admin.Delete(ctx, &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "leaving-x"}})).To(Succeed())
		reads(ctx, id, `{"id":"ID","status":"processing","category":"video","media_ids":["mp4"],"tree_cards":[],
			"scheduled_at":"2199-06-01T10:00:00.123Z","can_cancel":false,"display_at":"2026-12-01T09:00:00.456Z","platforms":[
			{"platform":"tiktok","connection_id":"tiktok","account_name":"Account of tiktok","status":"failed","caption":"for TikTok",
				"youtube_title":null,"external_url":null,"error_message":"TikTok refused the video"},
			{"platform":"youtube","connection_id":"youtube","account_name":"Account of youtube","status":"posted","caption":"for YouTube",
				"youtube_title":"How we launched","external_url":"https://www.youtube.com/watch?v=abc","error_message":null},
			{"platform":"x","connection_id":"","account_name":"","status":"processing","caption":"for X",
				"youtube_title":null,"external_url":null,"error_message":null}]}`,
			`{"id":"ID","title":"How we launched","status":"processing","category":"video","display_at":"2026-12-01T09:00:00.456Z","platforms":[
			{"platform":"tiktok","status":"failed"},{"platform":"youtube","status":"posted"},{"platform":"x","status":"processing"}]}`)
	})

	It("is returned for scheduled images", func(ctx SpecContext) {
		id := t.create(ctx, `{"category":"image","media_ids":["png","jpeg","png"],`+aimed("instagram", "facebook")+scheduled+`}`).ID
		reads(ctx, id, `{"id":"ID","status":"scheduled","category":"image","media_ids":["png","jpeg","png"],"tree_cards":[],
			"scheduled_at":"2199-06-01T10:00:00.123Z","can_cancel":true,"display_at":"2199-06-01T10:00:00.123Z","platforms":[
			{"platform":"instagram","connection_id":"instagram","account_name":"Account of instagram","status":"scheduled","caption":"look",
				"youtube_title":null,"external_url":null,"error_message":null},
			{"platform":"facebook","connection_id":"facebook","account_name":"Account of facebook","status":"scheduled","caption":"look",
				"youtube_title":null,"external_url":null,"error_message":null}]}`,
			`{"id":"ID","title":"look","status":"scheduled","category":"image","display_at":"2199-06-01T10:00:00.123Z","platforms":[
			{"platform":"instagram","status":"scheduled"},{"platform":"facebook","status":"scheduled"}]}`)
	})

	const xAndThreads = `"targets":[` + toX + "," + toThreads + `]`

	It("is returned for a tree that one platform published completely", func(ctx SpecContext) {
		id := t.create(ctx, `{"category":"tree","tree_cards":[{"media_ids":["png","jpeg"]},{"caption":"Here is how we did it, in thirty words","media_ids":[]},{"caption":null,"media_ids":["png"]}],`+
			xAndThreads+`}`).ID
		posted := time.Date(2026, 12, 2, 9, 0, 0, 0, time.UTC)
		Expect(setStatus(ctx, t.stored(ctx, id), func(s *v1alpha1.PostStatus) {
			done, failed := claimed(0, time.Now()), claimed(1, time.Now())
			done.Phase, done.ExternalID, done.ExternalURL = v1alpha1.PhasePosted, "1", "https://x.com/acme/status/1"
			done.PostedAt, done.Attempt.Outcome = v1alpha1.NewTimePtr(posted), v1alpha1.OutcomePosted
			failed.Platform, failed.Phase, failed.Attempt.Outcome = v1alpha1.PlatformThreads, v1alpha1.PhaseFailed, v1alpha1.OutcomeRefused
			failed.Message = "Threads refused card 2"
			s.Targets = []v1alpha1.TargetStatus{done, failed}
		})).To(Succeed())
		reads(ctx, id, `{"id":"ID","status":"failed","category":"tree","media_ids":[],"scheduled_at":null,"can_cancel":false,"display_at":"2026-12-02T09:00:00.000Z",
			"tree_cards":[{"caption":null,"media_ids":["png","jpeg"]},{"caption":"Here is how we did it, in thirty words","media_ids":[]},{"caption":null,"media_ids":["png"]}],
			"platforms":[
			{"platform":"x","connection_id":"x","account_name":"Account of x","status":"posted","caption":"",
				"youtube_title":null,"external_url":"https://x.com/acme/status/1","error_message":null},
			{"platform":"threads","connection_id":"threads","account_name":"Account of threads","status":"failed","caption":"",
				"youtube_title":null,"external_url":null,"error_message":"Threads refused card 2"}]}`,
			`{"id":"ID","title":"Here is how we did it, in thir","status":"failed","category":"tree","display_at":"2026-12-02T09:00:00.000Z","platforms":[
			{"platform":"x","status":"posted"},{"platform":"threads","status":"failed"}]}`)
	})

	It("is returned for a draft of a tree, also after its cancellation", func(ctx SpecContext) {
		id := t.create(ctx, `{"category":"tree","draft":true,"tree_cards":[{"caption":"","media_ids":["mp4"]}],`+xAndThreads+`}`).ID
		tells := func(status string, canCancel bool) string {
			return fmt.Sprintf(`{"id":"ID","status":%q,"category":"tree","media_ids":[],"tree_cards":[{"caption":null,"media_ids":["mp4"]}],
				"scheduled_at":null,"can_cancel":%t,"display_at":"BORN","platforms":[
				{"platform":"x","connection_id":"x","account_name":"Account of x","status":%q,"caption":"","youtube_title":null,"external_url":null,"error_message":null},
				{"platform":"threads","connection_id":"threads","account_name":"Account of threads","status":%q,"caption":"","youtube_title":null,"external_url":null,"error_message":null}]}`,
				status, canCancel, status, status)
		}
		reads(ctx, id, tells("draft", true), `{"id":"ID","title":"","status":"draft","category":"tree","display_at":"BORN","platforms":[
			{"platform":"x","status":"draft"},{"platform":"threads","status":"draft"}]}`)
		Expect(t.call(ctx, "DELETE", "/posts/"+id, "").status).To(Equal(http.StatusOK))
		reads(ctx, id, tells("cancelled", false), "")
	})

	It("is returned for a draft of a video without a title or a caption", func(ctx SpecContext) {
		id := t.create(ctx, `{"category":"video","draft":true,"media_id":"mov","targets":[{"connection_id":"youtube"},{"connection_id":"instagram","caption":"soon"}]}`).ID
		reads(ctx, id, `{"id":"ID","status":"draft","category":"video","media_ids":["mov"],"tree_cards":[],"scheduled_at":null,"can_cancel":true,"display_at":"BORN","platforms":[
			{"platform":"youtube","connection_id":"youtube","account_name":"Account of youtube","status":"draft","caption":"","youtube_title":null,"external_url":null,"error_message":null},
			{"platform":"instagram","connection_id":"instagram","account_name":"Account of instagram","status":"draft","caption":"soon","youtube_title":null,"external_url":null,"error_message":null}]}`,
			`{"id":"ID","title":"soon","status":"draft","category":"video","display_at":"BORN","platforms":[{"platform":"youtube","status":"draft"},{"platform":"instagram","status":"draft"}]}`)
	})
})

func jsonOf(value any) string {
	GinkgoHelper()
	data, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}
