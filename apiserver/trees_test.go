// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
)

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

	It("keeps its cards in their order, and reads like any other post", func(ctx SpecContext) {
		created := t.call(ctx, "POST", "/posts", chain(two, inAnHour()))
		Expect(created.status).To(Equal(http.StatusCreated), created.body)
		Expect(created.body).To(ContainSubstring(`"media_ids":[],"tree_cards":[{"caption":"one","media_ids":[]},{"caption":"two","media_ids":[]}]`))
		got := as[postBody](created).Data
		Expect(got.Status).To(Equal("scheduled"))
		Expect(got.CanCancel).To(BeTrue())
		Expect(got.Platforms).To(HaveLen(2))
		Expect(got.Platforms[0].Caption).To(BeEmpty(), "the words stand in the cards")
		Expect(t.call(ctx, "GET", "/posts/"+got.ID, "").body).To(Equal(created.body))
		listed := as[listBody](t.call(ctx, "GET", "/posts", "")).Data[0]
		Expect([]string{listed.Title, listed.Status, listed.Category}).To(Equal([]string{"one", "scheduled", "tree"}))
		Expect(t.call(ctx, "DELETE", "/posts/"+got.ID, "").status).To(Equal(http.StatusOK))
		Expect(t.call(ctx, "GET", "/posts/"+got.ID, "").body).To(ContainSubstring(`"cancelled"`))
	})

	DescribeTable("accepts",
		func(ctx context.Context, body, words string) {
			got := t.call(ctx, "POST", "/posts", body)
			Expect(got.status).To(Equal(http.StatusCreated), got.body)
			Expect(got.body).To(ContainSubstring(words))
		},
		Entry("a draft of one card", chain(`[{"caption":"one"}]`, draft), `"status":"draft"`),
		Entry("a draft with a card that says nothing yet", chain(`[{"caption":""},{"caption":null},{}]`, draft),
			`[{"caption":null,"media_ids":[]},{"caption":null,"media_ids":[]},{"caption":null,"media_ids":[]}]`),
		Entry("a draft whose card is too long yet", chain(`[{"caption":"`+strings.Repeat("a", 501)+`"}]`, draft), `"status":"draft"`),
		Entry("a card as long as X takes", chain(`[{"caption":"`+strings.Repeat("a", 280)+`"},{"caption":"b"}]`), `"status":"processing"`),
		Entry("options that trees do not know", `{"category":"tree","tree_cards":`+two+`,"media_id":3,"thumbnail_time":"x","targets":[{"connection_id":"acme-x","tiktok_privacy_level":"SELF_ONLY"}]}`,
			`"category":"tree"`),
	)

	DescribeTable("refuses",
		func(ctx context.Context, body, words string) {
			t.connect(ctx, "acme-facebook", v1alpha1.PlatformFacebook)
			t.call(ctx, "POST", "/posts", body).mustFail(400, "VALIDATION_ERROR", words)
			Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Pagination.Total).To(BeZero())
		},
		Entry("one card", chain(`[{"caption":"one"}]`), "tree_cards: a tree needs at least two cards"),
		Entry("a scheduled tree of one card", chain(`[{"caption":"one"}]`, inAnHour()), "tree_cards: a tree needs at least two cards"),
		Entry("a card with neither text nor media", chain(`[{"caption":"one"},{"caption":""}]`), "tree_cards[1]: a card needs a caption or media"),
		Entry("a card that is too long for X", chain(`[{"caption":"one"},{"caption":"`+strings.Repeat("a", 281)+`"}]`), "tree_cards[1].caption: 281 weighted characters are too many for x"),
		Entry("a caption that is no text", chain(`[{"caption":1},{"caption":"b"}]`, draft), "tree_cards[0].caption: must be a string"),
		Entry("media_ids that are no list", chain(`[{"caption":"a","media_ids":"m"}]`, draft), "tree_cards[0].media_ids: must be an array"),
		Entry("a media file that there is not", chain(`[{"caption":"a","media_ids":["m1"]}]`, draft), `tree_cards[0].media_ids[0]: no such media file "m1" in this team`),
		Entry("the same connection twice", `{"category":"tree","draft":true,"tree_cards":`+two+`,"targets":[{"connection_id":"acme-x"},{"connection_id":"acme-x"}]}`,
			"targets[1].connection_id: "),
		Entry("a platform without trees, also as a draft", `{"category":"tree","draft":true,"tree_cards":`+two+`,"targets":[{"connection_id":"acme-facebook"}]}`,
			"targets[0].connection_id: facebook does not take posts of category tree"),
		Entry("a scheduled draft", chain(two, draft, inAnHour()), "scheduled_at: "),
	)

	DescribeTable("takes none of the fields that other targets have",
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

	It("knows no media file of another team, nor one that is not there", func(ctx SpecContext) {
		for category, content := range map[string]string{"image": `"media_ids":["m1"]`, "video": `"media_id":"m1"`} {
			for _, more := range []string{"", draft} {
				body := fmt.Sprintf(`{"category":%q,%s,"targets":[{"connection_id":"acme-x","caption":"a"}]%s}`, category, content, more)
				t.call(ctx, "POST", "/posts", body).mustFail(400, "VALIDATION_ERROR", `no such media file "m1" in this team`)
			}
		}
	})
})
