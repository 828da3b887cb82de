// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
)

// verified creates a verified media file of any size.
func (t *team) verified(ctx context.Context, name string, mimeType v1alpha1.MimeType, size int64) *v1alpha1.Media {
	GinkgoHelper()
	m := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name},
		Spec:       v1alpha1.MediaSpec{FileName: name, MimeType: mimeType, SizeBytes: size},
	}
	Expect(admin.Create(ctx, m)).To(Succeed())
	m.Status = v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, ETag: "e", SizeBytes: size, Width: 64, Height: 48}
	if strings.HasPrefix(string(mimeType), "video/") {
		// Every platform accepts a video with these properties, even if it is a gigabyte in size.
		m.Status.Width, m.Status.Height, m.Status.DurationMillis = 720, 1280, 120_000
	}
	Expect(admin.Status().Update(ctx, m)).To(Succeed())
	return m
}

const mib = 1 << 20

// studio creates a team with an account on every platform and a file of every kind.
func studio(ctx context.Context) *team {
	GinkgoHelper()
	t := newTeam(ctx)
	for _, p := range []v1alpha1.Platform{"x", "threads", "instagram", "facebook", "tiktok", "youtube"} {
		t.connect(ctx, string(p), p)
	}
	for name, mimeType := range map[string]v1alpha1.MimeType{"jpeg": "image/jpeg", "png": "image/png", "webp": "image/webp", "mp4": "video/mp4", "mov": "video/quicktime"} {
		t.verified(ctx, name, mimeType, mib)
	}
	return t
}

// aimed returns a post's targets, each with a caption and a YouTube title.
func aimed(connections ...string) string {
	out := make([]string, len(connections))
	for i, c := range connections {
		title := ""
		if strings.HasPrefix(c, "youtube") {
			title = `,"youtube_title":"Title"`
		}
		out[i] = fmt.Sprintf(`{"connection_id":%q,"caption":"look"%s}`, c, title)
	}
	return `"targets":[` + strings.Join(out, ",") + `]`
}

// images returns an image post with count copies of the same file.
func images(count int, targets string, more ...string) string {
	ids := strings.Repeat(`"jpeg",`, count)
	return fmt.Sprintf(`{"category":"image","media_ids":[%s],%s%s}`, strings.TrimSuffix(ids, ","), targets, strings.Join(more, ""))
}

func film(id, targets string, more ...string) string {
	return fmt.Sprintf(`{"category":"video","media_id":%q,%s%s}`, id, targets, strings.Join(more, ""))
}

func cards(list, targets string, more ...string) string {
	return fmt.Sprintf(`{"category":"tree","tree_cards":[%s,{"caption":"end"}],"targets":[%s]%s}`, list, targets, strings.Join(more, ""))
}

const (
	toX       = `{"connection_id":"x"}`
	toThreads = `{"connection_id":"threads"}`
)

func showing(ids ...string) string {
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = fmt.Sprintf("%q", id)
	}
	return fmt.Sprintf(`{"caption":"a","media_ids":[%s]}`, strings.Join(quoted, ","))
}

func times(id string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = id
	}
	return out
}

// The contract's rows about media, each verified on the real server.
var _ = Describe("posts with media", Ordered, func() {
	var t *team
	BeforeAll(func(ctx context.Context) {
		t = studio(ctx)
		t.verified(ctx, "png-5mb", v1alpha1.MimePNG, 5*mib)
		t.verified(ctx, "png-over-5mb", v1alpha1.MimePNG, 5*mib+1)
		t.verified(ctx, "png-8mb", v1alpha1.MimePNG, 8*mib)
		t.verified(ctx, "png-over-8mb", v1alpha1.MimePNG, 8*mib+1)
		t.verified(ctx, "mp4-512mb", v1alpha1.MimeMP4, 512*mib)
		t.verified(ctx, "mp4-over-512mb", v1alpha1.MimeMP4, 512*mib+1)
		t.verified(ctx, "mp4-1gb", v1alpha1.MimeMP4, 1024*mib)
		long := t.verified(ctx, "long", v1alpha1.MimeMP4, mib)
		long.Status.DurationMillis = 1_000_000
		Expect(admin.Status().Update(ctx, long)).To(Succeed())
		lost := t.verified(ctx, "lost", v1alpha1.MimePNG, mib)
		conditions.Apply(&lost.Status.Conditions, conditions.Summary{Reason: v1alpha1.ReasonFileMissing, Progress: conditions.Stuck}, 1, time.Now())
		Expect(admin.Status().Update(ctx, lost)).To(Succeed())
		foreign := newTeam(ctx)
		foreign.verified(ctx, "theirs", v1alpha1.MimePNG, mib)
	})

	DescribeTable("accepts",
		func(ctx context.Context, body string) {
			r := t.call(ctx, "POST", "/posts", body)
			Expect(r.status).To(Equal(http.StatusCreated), r.body)
		},
		Entry("4 images to X", images(4, aimed("x"))),
		Entry("10 images to Instagram", images(10, aimed("instagram"))),
		Entry("10 images to Facebook", images(10, aimed("facebook"))),
		Entry("20 images to Threads", images(20, aimed("threads"))),
		Entry("35 images to TikTok", images(35, aimed("tiktok"))),
		Entry("images of all types", `{"category":"image","media_ids":["jpeg","png","webp"],`+aimed("x")+`}`),
		Entry("a video of 1 GB to YouTube", film("mp4-1gb", aimed("youtube"))),
		Entry("a thumbnail within the video", film("mp4", aimed("youtube"), `,"thumbnail_time":1.5`)),
		Entry("a draft to YouTube without a title", film("mp4", `"targets":[{"connection_id":"youtube"}]`, draft)),
		Entry("YouTube's description of 5,000 bytes", film("mp4", `"targets":[{"connection_id":"youtube","youtube_title":"T","caption":"`+strings.Repeat("é", 2500)+`"}]`)),
		Entry("TikTok's 2,200 characters", film("mp4", `"targets":[{"connection_id":"tiktok","caption":"`+strings.Repeat("a", 2200)+`"}]`)),
		Entry("Instagram's 2,200 characters", images(1, `"targets":[{"connection_id":"instagram","caption":"`+strings.Repeat("é", 2200)+`"}]`)),
		Entry("a tree card with 4 images on X", cards(showing(times("png-5mb", 4)...), toX)),
		Entry("a tree card with a video on X", cards(showing("mp4-512mb"), toX)),
		Entry("a tree card with media only", cards(`{"media_ids":["png"]}`, toX)),
		Entry("a tree card with 20 media on Threads, mixed", cards(showing(append(times("png-8mb", 10), times("mp4-1gb", 10)...)...), toThreads)),
		Entry("a draft of a tree with too many media", cards(showing(times("png", 21)...), toX, draft)),
		Entry("a draft of a tree whose image is too large", cards(showing("png-over-8mb"), toX+","+toThreads, draft)),
		Entry("a draft of a tree with mixed media on X", cards(showing("png", "mp4"), toX, draft)),
	)

	DescribeTable("refuses",
		func(ctx context.Context, body, words string) {
			t.call(ctx, "POST", "/posts", body).mustFail(400, "VALIDATION_ERROR", words)
		},
		Entry("a video that is too long", film("long", aimed("youtube", "threads")), `media_id: the video "long" plays for 16 min 40 s; threads accepts at most 5 min`),
		Entry("no images", images(0, aimed("x")), "media_ids: must have at least 1 item"),
		Entry("36 images", images(36, aimed("tiktok")), "media_ids: must have at most 35 items"),
		Entry("5 images to X", images(5, aimed("x")), "media_ids: x accepts at most 4 images"),
		Entry("11 images to Instagram", images(11, aimed("instagram")), "media_ids: instagram accepts at most 10 images"),
		Entry("11 images to Facebook", images(11, aimed("facebook")), "media_ids: facebook accepts at most 10 images"),
		Entry("21 images to Threads", images(21, aimed("threads")), "media_ids: threads accepts at most 20 images"),
		Entry("images beyond the strictest of several", images(11, aimed("tiktok", "threads", "instagram")), "media_ids: instagram accepts at most 10 images"),
		Entry("too many images in a draft", images(5, aimed("x"), draft), "media_ids: x accepts at most 4 images"),
		Entry("a draft without media_ids", `{"category":"image","draft":true,`+aimed("x")+`}`, "media_ids: is missing"),
		Entry("a draft without media_id", `{"category":"video","draft":true,`+aimed("x")+`}`, "media_id: is missing"),
		Entry("a video among the images", `{"category":"image","media_ids":["png","mp4"],`+aimed("x")+`}`, "media_ids[1]: is of type video/mp4; an image post can contain only images"),
		Entry("an image as a video", film("png", aimed("x")), "media_id: is of type image/png"),
		Entry("an image that is missing in the store", `{"category":"image","media_ids":["lost"],`+aimed("x")+`}`,
			`media_ids[0]: the store no longer has the file, upload it again as another one: media file "lost"`),
		Entry("an image of another team", `{"category":"image","media_ids":["theirs"],`+aimed("x")+`}`, `media_ids[0]: no such media file "theirs" in this team`),
		Entry("a thumbnail time after the end", film("mp4", aimed("youtube"), `,"thumbnail_time":121`), "thumbnail_time: is after the end of the video"),
		Entry("no title on YouTube", film("mp4", `"targets":[{"connection_id":"youtube","caption":"a"}]`), "targets[0].youtube_title: a post to youtube needs a title"),
		Entry("an empty title", film("mp4", `"targets":[{"connection_id":"youtube","caption":"a","youtube_title":""}]`), "targets[0].youtube_title: must not be empty"),
		Entry("a title of 101 characters", film("mp4", `"targets":[{"connection_id":"youtube","caption":"a","youtube_title":"`+strings.Repeat("t", 101)+`"}]`), "targets[0].youtube_title: 101 characters are too many"),
		Entry("a title with brackets", film("mp4", `"targets":[{"connection_id":"youtube","caption":"a","youtube_title":"a <b>"}]`), "targets[0].youtube_title: contains < or >"),
		Entry("a description of 5,001 bytes", film("mp4", `"targets":[{"connection_id":"youtube","youtube_title":"T","caption":"`+strings.Repeat("é", 2500)+`a"}]`), "targets[0].caption: 5001 bytes are too many for youtube"),
		Entry("2,201 characters on TikTok", film("mp4", `"targets":[{"connection_id":"tiktok","caption":"`+strings.Repeat("a", 2201)+`"}]`), "targets[0].caption: 2201"),
		Entry("2,201 characters on Instagram", images(1, `"targets":[{"connection_id":"instagram","caption":"`+strings.Repeat("a", 2201)+`"}]`), "targets[0].caption: 2201"),
		Entry("31 hashtags on Instagram", images(1, `"targets":[{"connection_id":"instagram","caption":"`+strings.Repeat("#a ", 31)+`"}]`), "targets[0].caption: has 31 hashtags"),
		Entry("21 mentions on Instagram", images(1, `"targets":[{"connection_id":"instagram","caption":"`+strings.Repeat("@a ", 21)+`"}]`), "targets[0].caption: mentions 21 accounts"),
		Entry("a card with 5 images on X", cards(showing(times("png", 5)...), toX), "tree_cards[0].media_ids: x accepts at most 4 media on a card"),
		Entry("a card with two videos on X", cards(showing("mp4", "mp4"), toX), "tree_cards[0].media_ids: x accepts at most 1 video on a card"),
		Entry("a card with mixed media on X", cards(showing("png", "mp4"), toX), "tree_cards[0].media_ids: x accepts images or a video on a card, not both"),
		Entry("an image over 5 MB on X", cards(showing("png-over-5mb"), toX), "tree_cards[0].media_ids[0]: has 5242881 bytes; x accepts at most 5242880"),
		Entry("a video over 512 MB on X", cards(showing("mp4-over-512mb"), toX), "tree_cards[0].media_ids[0]: has 536870913 bytes"),
		Entry("21 media on Threads", cards(showing(times("png", 21)...), toThreads), "tree_cards[0].media_ids: threads accepts at most 20 media on a card"),
		Entry("an image over 8 MB on Threads", cards(showing("png-over-8mb"), toThreads), "tree_cards[0].media_ids[0]: has 8388609 bytes; threads accepts at most 8388608"),
		Entry("the limit of any selected target", cards(showing(times("png", 5)...), toX+","+toThreads), "x accepts at most 4 media on a card"),
		Entry("another team's file on a card, also of a draft", cards(showing("theirs"), toX, draft), `tree_cards[0].media_ids[0]: no such media file "theirs" in this team`),
	)

	Context("on TikTok", func() {
		tiktok := func(options string) string {
			return `"targets":[{"connection_id":"tiktok","caption":"a",` + options + `}]`
		}

		DescribeTable("accepts",
			func(ctx context.Context, body string) {
				r := t.call(ctx, "POST", "/posts", body)
				Expect(r.status).To(Equal(http.StatusCreated), r.body)
			},
			Entry("music on images", images(1, tiktok(`"tiktok_auto_add_music":true`))),
			Entry("a duet and a stitch on a video", film("mp4", tiktok(`"tiktok_allow_duet":false,"tiktok_allow_stitch":true`))),
			Entry("an inbox draft of a video", film("mp4", tiktok(`"tiktok_draft":true`))),
			Entry("an inbox draft of images", images(1, tiktok(`"tiktok_draft":true,"tiktok_auto_add_music":false`))),
			Entry("a privacy level", film("mp4", tiktok(`"tiktok_privacy_level":"SELF_ONLY"`))),
			Entry("a label and no comments", film("mp4", tiktok(`"is_ai_generated":true,"tiktok_allow_comment":false`))),
		)

		DescribeTable("refuses",
			func(ctx context.Context, body, words string) {
				t.call(ctx, "POST", "/posts", body).mustFail(400, "VALIDATION_ERROR", words)
			},
			Entry("music on a video", film("mp4", tiktok(`"tiktok_auto_add_music":true`)), "targets[0].tiktok_auto_add_music: only a post of category image may have it"),
			Entry("a duet on images", images(1, tiktok(`"tiktok_allow_duet":true`)), "targets[0].tiktok_allow_duet: only a post of category video may have it"),
			Entry("a stitch on images", images(1, tiktok(`"tiktok_allow_stitch":false`)), "targets[0].tiktok_allow_stitch: "),
			Entry("an inbox draft with music", images(1, tiktok(`"tiktok_draft":true,"tiktok_auto_add_music":true`)), "targets[0].tiktok_auto_add_music: cannot be combined with tiktok_draft"),
			Entry("an inbox draft with a privacy level", film("mp4", tiktok(`"tiktok_draft":true,"tiktok_privacy_level":"SELF_ONLY"`)), "targets[0].tiktok_privacy_level: cannot be combined with tiktok_draft"),
		)

		It("lists the levels that a private account offers, and does not post", func(ctx SpecContext) {
			private := t.connect(ctx, "tiktok-private", v1alpha1.PlatformTikTok)
			Eventually(func() error {
				if err := admin.Get(ctx, client.ObjectKeyFromObject(private), private); err != nil {
					return err
				}
				private.Status.TikTok = &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{"FOLLOWER_OF_CREATOR", "SELF_ONLY"}}
				return admin.Status().Update(ctx, private)
			}).Should(Succeed())
			before := as[listBody](t.call(ctx, "GET", "/posts", "")).Pagination.Total
			to := func(options string) string {
				return `"targets":[{"connection_id":"tiktok-private","caption":"a"` + options + `}]`
			}
			for _, options := range []string{"", `,"tiktok_privacy_level":"PUBLIC_TO_EVERYONE"`} {
				for _, more := range []string{"", draft, inAnHour()} {
					if options == "" && more == draft {
						continue // it may still be chosen
					}
					t.call(ctx, "POST", "/posts", film("mp4", to(options), more)).
						mustFail(400, "TIKTOK_PRIVACY_LEVEL_UNAVAILABLE", "it can choose SELF_ONLY")
				}
			}
			Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Pagination.Total).To(Equal(before))
			t.create(ctx, film("mp4", to(`,"tiktok_privacy_level":"SELF_ONLY"`)))
			t.create(ctx, film("mp4", to(`,"tiktok_draft":true`)))
		})
	})
})
