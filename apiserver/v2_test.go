// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
)

// callV2 sends a request to version 2 with the team's API key. header contains names and values.
func (t *team) callV2(ctx context.Context, method, path, body string, header ...string) reply {
	GinkgoHelper()
	all := map[string]string{"Authorization": "Bearer " + t.token}
	for i := 0; i < len(header); i += 2 {
		all[header[i]] = header[i+1]
	}
	return do(ctx, instance, method, baseV2+path, body, all)
}

type postV2 struct {
	post

	Version       string    `json:"version"`
	CreatedAt     string    `json:"created_at"`
	ThumbnailTime *float64  `json:"thumbnail_time"`
	AltTexts      []*string `json:"alt_texts"`
}

type listV2 struct {
	Data       []post `json:"data"`
	Pagination struct {
		Total          int     `json:"total"`
		HasNext        bool    `json:"has_next"`
		NextCursor     *string `json:"next_cursor"`
		PreviousCursor *string `json:"previous_cursor"`
		CoversArchive  bool    `json:"covers_archive"`
	} `json:"pagination"`
}

func (l *listV2) titles() []string {
	out := []string{}
	for i := range l.Data {
		out = append(out, l.Data[i].Title)
	}
	return out
}

// createV2 creates a post and returns it.
func (t *team) createV2(ctx context.Context, body string) postV2 {
	GinkgoHelper()
	r := t.callV2(ctx, "POST", "/posts", body)
	Expect(r.status).To(Equal(201), "%s", r.body)
	created := as[struct{ Data postV2 }](r).Data
	Expect(r.header.Get("ETag")).To(Equal(`"` + created.Version + `"`))
	Expect(r.header.Get("Location")).To(Equal(baseV2 + "/posts/" + created.ID))
	return created
}

// find lists posts and expects success.
func (t *team) find(ctx context.Context, query string) *listV2 {
	GinkgoHelper()
	r := t.callV2(ctx, "GET", "/posts?"+query, "")
	Expect(r.status).To(Equal(200), "%s", r.body)
	found := as[listV2](r)
	return &found
}

var _ = Describe("Version 2 of the API", func() {
	It("reads and cancels posts of version 1, and vice versa", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		old := t.create(ctx, text("acme-x", "Hello", inAnHour()))
		r := t.callV2(ctx, "GET", "/posts/"+old.ID, "")
		Expect(r.status).To(Equal(200))
		got := as[struct{ Data postV2 }](r).Data
		Expect(got.post).To(Equal(as[postBody](t.call(ctx, "GET", "/posts/"+old.ID, "")).Data), "the document contains all of version 1")
		stored := t.stored(ctx, old.ID)
		Expect(got.Version).To(Equal(fmt.Sprintf("%s.%d", stored.UID, stored.Generation)))
		Expect(r.header.Get("ETag")).To(Equal(`"` + got.Version + `"`))

		made := t.createV2(ctx, text("acme-x", "Hello again", draft))
		Expect(t.call(ctx, "DELETE", "/posts/"+made.ID, "").status).To(Equal(200))
		Expect(t.callV2(ctx, "DELETE", "/posts/"+old.ID, "").status).To(Equal(200))
		Expect(t.callV2(ctx, "GET", "/connections", "").body).To(MatchJSON(t.call(ctx, "GET", "/connections", "").body))
	})

	It("has platforms that version 1 lacks, without their accounts and posts there", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "acme-sky", v1alpha1.PlatformBluesky)
		Eventually(func() string { return t.callV2(ctx, "GET", "/connections?platform=bluesky", "").body }).Should(ContainSubstring("acme-sky"))
		beyond := t.createV2(ctx, text("acme-sky", "On Bluesky", inAnHour()))
		both := t.createV2(ctx, `{"category":"text","draft":true,"targets":[{"connection_id":"acme-sky","caption":"a"},{"connection_id":"acme-x","caption":"b"}]}`)
		Expect(t.find(ctx, "").titles()).To(ConsistOf("On Bluesky", "a"))
		Expect(t.find(ctx, "page=1").Pagination.Total).To(Equal(2))
		Expect(t.find(ctx, "platform=bluesky").Data).To(HaveLen(2))

		Expect(t.call(ctx, "GET", "/connections", "").body).NotTo(ContainSubstring("acme-sky"))
		list := t.call(ctx, "GET", "/posts", "")
		Expect(as[struct{ Pagination struct{ Total int } }](list).Pagination.Total).To(Equal(1))
		Expect(list.body).To(ContainSubstring(`"platforms":[{"platform":"x","status":"draft"}]`), "only the targets that the contract has a name for")
		detail := t.call(ctx, "GET", "/posts/"+both.ID, "")
		Expect(detail.body).NotTo(ContainSubstring("sky"))
		Expect(as[postBody](detail).Data.Platforms).To(HaveLen(1))
		for _, method := range []string{"GET", "DELETE"} {
			Expect(t.call(ctx, method, "/posts/"+beyond.ID, "").status).To(Equal(404), method)
		}
		refused := t.call(ctx, "POST", "/posts", text("acme-sky", "Hello", draft))
		Expect(refused.status).To(Equal(400))
		Expect(refused.body).To(Equal(strings.ReplaceAll(t.call(ctx, "POST", "/posts", text("acme-none", "Hello", draft)).body, "acme-none", "acme-sky")),
			"the account is not known")
		Expect(t.call(ctx, "GET", "/posts?platform=bluesky", "").status).To(Equal(400))
	})

	It("has an alt text for a file, and for each use of it", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		announced := strings.TrimSuffix(upload("a.png", "image/png", 1000), "}")
		r := t.callV2(ctx, "POST", "/media/upload-url", announced+`,"alt_text":"A dog"}`)
		Expect(r.status).To(Equal(201), r.body)
		file := as[struct {
			Data struct {
				ID      string `json:"media_id"`
				AltText string `json:"alt_text"`
			}
		}](r).Data
		Expect(file.AltText).To(Equal("A dog"))
		var stored v1alpha1.Media
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: file.ID}, &stored)).To(Succeed())
		Expect(stored.Spec.AltText).To(Equal("A dog"))
		t.callV2(ctx, "POST", "/media/upload-url", announced+`,"alt_text":"a\u0000"}`).mustFail(400, "VALIDATION_ERROR", "alt_text: must not contain the NUL")

		t.verified(ctx, "picture", v1alpha1.MimePNG, 1000)
		post := func(texts string) string {
			return `{"category":"image","draft":true,"media_ids":["picture"],"alt_texts":[` + texts + `],"targets":[{"connection_id":"acme-x","caption":"Hello"}]}`
		}
		made := t.createV2(ctx, post(`"A cat"`))
		Expect(made.AltTexts).To(HaveExactElements(HaveValue(Equal("A cat"))))
		changed := t.patch(ctx, made, `{"alt_texts":[null]}`)
		Expect(as[struct{ Data postV2 }](changed).Data.AltTexts).To(HaveExactElements(BeNil()))
		t.callV2(ctx, "POST", "/posts", post(`"a\u0000"`)).mustFail(400, "VALIDATION_ERROR", "alt_texts[0]: must not contain the NUL")
	})

	It("shares the Idempotency-Keys of version 1", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		body := text("acme-x", "Once", inAnHour())
		key := map[string]string{"Authorization": "Bearer " + t.token, "Idempotency-Key": "launch"}
		first := do(ctx, instance, "POST", base+"/posts", body, key)
		second := t.callV2(ctx, "POST", "/posts", body, "Idempotency-Key", "launch")
		Expect(second.status).To(Equal(201))
		Expect(second.header.Get("Idempotency-Replayed")).To(Equal("true"))
		Expect(as[postBody](second).Data.ID).To(Equal(as[postBody](first).Data.ID))
	})

	It("answers unauthenticated requests, unknown paths and methods like version 1", func(ctx context.Context) {
		t := newTeam(ctx)
		for _, request := range []struct{ method, path, body string }{
			{"GET", "/connections", ""},
			{"GET", "/posts?cursor=x", ""},
			{"POST", "/posts", `[`},
			{"POST", "/posts/validate", text("a", strings.Repeat("a", 2<<20))},
			{"POST", "/media/upload-url", `[`},
			{"GET", "/posts/p1", ""},
			{"PATCH", "/posts/p1", `[`},
			{"DELETE", "/posts/p1", ""},
			{"GET", "", ""},
		} {
			do(ctx, instance, request.method, baseV2+request.path, request.body, nil).mustFail(401, "UNAUTHORIZED", "")
		}
		t.callV2(ctx, "GET", "/nowhere", "").mustFail(404, "NOT_FOUND", "")
		r := t.callV2(ctx, "PUT", "/posts/p1", "")
		r.mustFail(405, "VALIDATION_ERROR", "DELETE, GET, HEAD, PATCH")
		Expect(r.header.Get("Allow")).To(Equal("DELETE, GET, HEAD, PATCH"))
		t.callV2(ctx, "GET", "/posts/validate", "").mustFail(404, "NOT_FOUND", `no post "validate"`)
	})

	Describe("lists", func() {
		var (
			t  *team
			at = time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second)
		)
		day := func(i int) string { return at.AddDate(0, 0, i).Format(time.RFC3339) }
		BeforeEach(func(ctx context.Context) {
			t = newTeam(ctx)
			t.connect(ctx, "acme-x", v1alpha1.PlatformX)
			t.connect(ctx, "acme-threads", v1alpha1.PlatformThreads)
			for i, words := range []string{"one café", "two", "three Cafe", "four", "five"} {
				account := "acme-x"
				if i == 3 {
					account = "acme-threads"
				}
				t.createV2(ctx, text(account, words, fmt.Sprintf(`,"scheduled_at":%q`, day(i))))
			}
		})

		It("continue by cursor, in both directions, while posts are added", func(ctx context.Context) {
			first := t.find(ctx, "limit=2")
			Expect(first.titles()).To(Equal([]string{"five", "four"}))
			Expect(first.Pagination.PreviousCursor).To(BeNil())
			t.createV2(ctx, text("acme-x", "six", fmt.Sprintf(`,"scheduled_at":%q`, day(6))))
			second := t.find(ctx, "limit=2&cursor="+*first.Pagination.NextCursor)
			Expect(second.titles()).To(Equal([]string{"three Cafe", "two"}), "the new post shifts no page")
			third := t.find(ctx, "limit=2&cursor="+*second.Pagination.NextCursor)
			Expect(third.titles()).To(Equal([]string{"one café"}))
			Expect(third.Pagination.NextCursor).To(BeNil())
			Expect(third.Pagination.HasNext).To(BeFalse())
			back := t.find(ctx, "limit=2&cursor="+*third.Pagination.PreviousCursor)
			Expect(back.titles()).To(Equal(second.titles()))
		})

		DescribeTable("find", func(ctx context.Context, query func() string, want ...string) {
			found := t.find(ctx, query())
			Expect(found.titles()).To(Equal(want))
			Expect(found.Pagination.Total).To(Equal(len(want)))
		},
			Entry("words, regardless of case and accents", func() string { return "q=CAFE" }, "three Cafe", "one café"),
			Entry("several words in any order", func() string { return "q=cafe+three" }, "three Cafe"),
			Entry("an account", func() string { return "connection_id=acme-threads" }, "four"),
			Entry("a platform and a status", func() string { return "platform=threads&status=scheduled" }, "four"),
			Entry("a period, whose end is exclusive", func() string { return "from=" + day(1) + "&to=" + day(3) }, "three Cafe", "two"),
			Entry("a period with an offset", func() string {
				return "from=" + url.QueryEscape(strings.Replace(day(4), "Z", "+00:00", 1))
			}, "five"),
			Entry("the oldest first", func() string { return "sort=display_at&to=" + day(2) }, "one café", "two"),
			Entry("a category", func() string { return "category=tree" }),
		)

		It("continue in the other order too", func(ctx context.Context) {
			var all []string
			for query := "sort=display_at&limit=2"; ; {
				page := t.find(ctx, query)
				all = append(all, page.titles()...)
				if page.Pagination.NextCursor == nil {
					break
				}
				query = "sort=display_at&limit=2&cursor=" + *page.Pagination.NextCursor
			}
			Expect(all).To(Equal([]string{"one café", "two", "three Cafe", "four", "five"}))
		})

		It("number pages like version 1, and report how far the archive is searched", func(ctx context.Context) {
			numbered := t.find(ctx, "page=2&limit=2")
			Expect(numbered.titles()).To(Equal([]string{"three Cafe", "two"}))
			Expect(as[listBody](t.call(ctx, "GET", "/posts?page=2&limit=2", "")).ids()).To(HaveLen(2))
			Expect(t.find(ctx, "limit=2&cursor="+*numbered.Pagination.NextCursor).titles()).To(Equal([]string{"one café"}))
			Expect(numbered.Pagination.CoversArchive).To(BeTrue())
			Expect(t.find(ctx, "q=two").Pagination.CoversArchive).To(BeFalse())
		})

		DescribeTable("refuse", func(ctx context.Context, query string, words ...string) {
			r := t.callV2(ctx, "GET", "/posts?"+query, "")
			r.mustFail(400, "VALIDATION_ERROR", "")
			for _, part := range words {
				Expect(r.body).To(ContainSubstring(part))
			}
		},
			Entry("an unknown cursor", "cursor=abc", "cursor: must be"),
			Entry("an empty cursor", "cursor=", "cursor: must be"),
			Entry("a page together with a cursor or a search", "page=2&q=a&cursor=b", "page: cannot be combined with q", "page: cannot be combined with cursor"),
			Entry("several errors, all together", "from=yesterday&sort=title&category=film&connection_id=&limit=x",
				"from: must be a time", "sort: must be one of", "category: must be one of", "connection_id: must not be empty", "limit: must be a whole number"),
			Entry("a search that is too long", "q="+strings.Repeat("a", 257), "q: must have at most 256"),
		)
	})

	It("contains all fields of a post, however it was created", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-tiktok", v1alpha1.PlatformTikTok)
		media := t.verified(ctx, "picture", v1alpha1.MimePNG, 1000).Name
		made := t.createV2(ctx, fmt.Sprintf(`{"category":"image","draft":true,"media_ids":[%q],"targets":[{"connection_id":"acme-tiktok","caption":"a","tiktok_privacy_level":"SELF_ONLY","tiktok_allow_comment":false}]}`, media))
		r := t.callV2(ctx, "GET", "/posts/"+made.ID, "")
		Expect(r.body).To(And(
			ContainSubstring(`"media_ids":["`+media+`"]`), ContainSubstring(`"tiktok_privacy_level":"SELF_ONLY"`), ContainSubstring(`"tiktok_allow_comment":false`),
			ContainSubstring(`"tiktok_allow_duet":null`), ContainSubstring(`"thumbnail_time":null`), ContainSubstring(`"posted_at":null`),
		))
	})

	It("counts the requests of both versions together", func(ctx context.Context) {
		t := newTeam(ctx)
		limited := start(restricted, func(c *apiserver.Config) { c.RequestsPerMinute = 5 })
		DeferCleanup(limited.stop)
		header := map[string]string{"Authorization": "Bearer " + t.token}
		statuses := []int{}
		for i := range 12 {
			prefix := []string{base, baseV2}[i%2]
			statuses = append(statuses, do(ctx, limited, "GET", prefix+"/posts", "", header).status)
		}
		Expect(slices.Index(statuses, 429)).To(BeNumerically("~", 5, 2), "%v", statuses)
	})

	It("escapes ids in paths like version 1", func(ctx context.Context) {
		t := newTeam(ctx)
		t.callV2(ctx, "GET", "/posts/"+url.PathEscape("a/b"), "").mustFail(404, "NOT_FOUND", `a/b`)
	})
})
