// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

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

	It("is told of a video that some platforms took", func(ctx SpecContext) {
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

	It("is told of images that are scheduled", func(ctx SpecContext) {
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

	It("is told of a tree of which one platform took all", func(ctx SpecContext) {
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

	It("is told of a draft of a tree, and once it is cancelled", func(ctx SpecContext) {
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

	It("is told of a draft of a video without a title or a caption", func(ctx SpecContext) {
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
