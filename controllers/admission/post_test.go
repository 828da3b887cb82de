// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/ports"
)

var serial atomic.Int64

type edit func(*v1alpha1.PostSpec)

// post returns a text post to X, changed by edits.
func post(edits ...edit) *v1alpha1.Post {
	p := &v1alpha1.Post{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Post"},
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprintf("p-%d", serial.Add(1))},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText,
			Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello"}},
		},
	}
	for _, e := range edits {
		e(&p.Spec)
	}
	return p
}

// sent marks a post as created by the apiserver. The apiserver's account cannot create other posts.
func sent(p *v1alpha1.Post) *v1alpha1.Post {
	p.Name = "p" + strings.ToLower(rand.Text()[:25])
	p.Labels, p.Finalizers = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}, []string{v1alpha1.DeliveryFinalizer}
	return p
}

func to(connections ...string) edit {
	return func(s *v1alpha1.PostSpec) {
		s.Targets = nil
		for _, c := range connections {
			t := v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: c}}
			if s.Category != v1alpha1.CategoryTree {
				t.Caption = "hello"
			}
			s.Targets = append(s.Targets, t)
		}
	}
}

func saying(caption string) edit {
	return func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = caption }
}

func refs(names ...string) []v1alpha1.MediaReference {
	out := make([]v1alpha1.MediaReference, len(names))
	for i, n := range names {
		out[i].Name = n
	}
	return out
}

func imageOf(names ...string) edit {
	return func(s *v1alpha1.PostSpec) {
		s.Category, s.Image = v1alpha1.CategoryImage, &v1alpha1.ImageContent{MediaRefs: refs(names...)}
	}
}

func videoOf(name string) edit {
	return func(s *v1alpha1.PostSpec) {
		s.Category, s.Video = v1alpha1.CategoryVideo, &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: name}}
	}
}

func titled(title string) edit {
	return func(s *v1alpha1.PostSpec) { s.Targets[0].YouTube = &v1alpha1.YouTubeOptions{Title: title} }
}

func onTikTok(options v1alpha1.TikTokOptions) edit {
	return func(s *v1alpha1.PostSpec) { s.Targets[0].TikTok = &options }
}

func treeOf(cards ...v1alpha1.TreeCard) edit {
	return func(s *v1alpha1.PostSpec) {
		s.Category, s.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: append([]v1alpha1.TreeCard{}, cards...)}
		for i := range s.Targets {
			s.Targets[i].Caption = ""
		}
	}
}

func card(caption string, media ...string) v1alpha1.TreeCard {
	return v1alpha1.TreeCard{Caption: caption, MediaRefs: refs(media...)}
}

// crowded returns cards with this number of different files, which do not exist yet.
func crowded(files int) (cards []v1alpha1.TreeCard) {
	for n := range files {
		if n%100 == 0 {
			cards = append(cards, v1alpha1.TreeCard{})
		}
		last := &cards[len(cards)-1]
		last.MediaRefs = append(last.MediaRefs, v1alpha1.MediaReference{Name: fmt.Sprintf("file-%d", n)})
	}
	return cards
}

func draft(s *v1alpha1.PostSpec) { s.Draft = true }

func times(name string, n int) []string { return strings.Fields(strings.Repeat(name+" ", n)) }

// apply does what kubectl apply --server-side does.
func apply(ctx context.Context, c client.Client, typed client.Object, change ...func(object map[string]any)) error {
	GinkgoHelper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	Expect(err).NotTo(HaveOccurred())
	for _, c := range change {
		c(object)
	}
	delete(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: object}), client.FieldOwner("kubectl"))
}

// causes returns the API server's errors by field.
func causes(err error) (found []string) {
	GinkgoHelper()
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	var status apierrors.APIStatus
	Expect(errors.As(err, &status)).To(BeTrue())
	for _, c := range status.Status().Details.Causes {
		found = append(found, c.Field+": "+c.Message)
	}
	return found
}

var _ = Describe("applying a post", func() {
	BeforeEach(func() { warnings.drain() })

	DescribeTable("rejects contradictions to the contract, and names the field and the remedy",
		func(ctx context.Context, field, words string, edits ...edit) {
			p := post(edits...)
			Expect(causes(apply(ctx, user, p))).To(ContainElement(And(HavePrefix(field+": "), ContainSubstring(words))))
			Expect(apierrors.IsNotFound(user.Get(ctx, client.ObjectKeyFromObject(p), p))).To(BeTrue(), "the post is not stored")
		},
		Entry("text to Instagram", "spec.targets[0].connectionRef.name", "instagram does not accept posts of category text", to("instagram")),
		Entry("text to TikTok", "spec.targets[0].connectionRef.name", "tiktok does not accept posts of category text", to("tiktok")),
		Entry("text to YouTube", "spec.targets[1].connectionRef.name", "youtube does not accept posts of category text", to("x", "youtube")),
		Entry("an image to YouTube", "spec.targets[0].connectionRef.name", "youtube does not accept posts of category image", imageOf("png"), to("youtube")),
		Entry("a video with more pixels than X accepts", "spec.video.mediaRef.name", `the video "4k" has 3840 × 2160 pixels; x accepts at most 1920 on each side`, videoOf("4k"), to("youtube", "x"), edit(draft)),
		Entry("a video to Facebook", "spec.targets[0].connectionRef.name", "facebook does not accept posts of category video", videoOf("mp4"), to("facebook")),
		Entry("a tree to Facebook, also as a draft", "spec.targets[0].connectionRef.name", "facebook does not accept posts of category tree", treeOf(card("a")), to("facebook"), edit(draft)),
		Entry("a tree to Instagram, also as a draft", "spec.targets[0].connectionRef.name", "instagram does not accept posts of category tree", treeOf(card("a")), to("instagram"), edit(draft)),
		Entry("an unknown category", "spec.category", "Unsupported value", func(s *v1alpha1.PostSpec) { s.Category = "story" }),
		Entry("no targets", "spec.targets", "at least 1", func(s *v1alpha1.PostSpec) { s.Targets = []v1alpha1.PostTarget{} }),
		Entry("a draft with a time", "spec", "draft", edit(draft), func(s *v1alpha1.PostSpec) { s.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Hour)) }),
		Entry("no caption", "spec.targets", "every target needs a caption", saying("")),
		Entry("a NUL in a caption, also in a draft", "spec.targets[0].caption", "must not contain the NUL character", saying("a\x00"), edit(draft)),
		Entry("281 weighted characters on X", "spec.targets[0].caption", "281 weighted characters are too many for x", saying(strings.Repeat("a", 281))),
		Entry("141 CJK characters on X", "spec.targets[0].caption", "282 weighted characters", saying(strings.Repeat("写", 141))),
		Entry("too long, also as a draft", "spec.targets[0].caption", "281 weighted characters", saying(strings.Repeat("a", 281)), edit(draft)),
		Entry("501 characters on Threads", "spec.targets[0].caption", "501", to("threads"), saying(strings.Repeat("a", 501))),
		Entry("2,201 characters on Instagram", "spec.targets[0].caption", "2201", imageOf("png"), to("instagram"), saying(strings.Repeat("a", 2201))),
		Entry("31 hashtags on Instagram", "spec.targets[0].caption", "hashtags", imageOf("png"), to("instagram"), saying(strings.Repeat("#a ", 31))),
		Entry("21 mentions on Instagram", "spec.targets[0].caption", "mentions 21 accounts", imageOf("png"), to("instagram"), saying(strings.Repeat("@a ", 21))),
		Entry("2,202 UTF-16 units on TikTok", "spec.targets[0].caption", "2202", videoOf("mp4"), to("tiktok"), saying(strings.Repeat("😀", 1101))),
		Entry("5,001 bytes on YouTube", "spec.targets[0].caption", "5001 bytes", videoOf("mp4"), to("youtube"), titled("T"), saying(strings.Repeat("a", 5001))),
		Entry("more than can be stored together with its outcomes", "spec.targets", "shorten the captions", to(slices.Repeat([]string{"facebook"}, 100)...),
			func(s *v1alpha1.PostSpec) {
				for i := range s.Targets {
					s.Targets[i].Caption = strings.Repeat("a", 2_610)
				}
			}),
		Entry("no title on YouTube", "spec.targets[0].youtube.title", "needs a title", videoOf("mp4"), to("youtube")),
		Entry("a title of 101 characters", "spec.targets[0].youtube.title", "101 characters are too many", videoOf("mp4"), to("youtube"), titled(strings.Repeat("t", 101))),
		Entry("a title with <", "spec.targets[0].youtube.title", "contains < or >", videoOf("mp4"), to("youtube"), titled("a < b")),
		Entry("a title with >", "spec.targets[0].youtube.title", "contains < or >", videoOf("mp4"), to("youtube"), titled("a > b"), edit(draft)),
		Entry("no images, also as a draft", "spec.image.mediaRefs", "at least 1", imageOf(), edit(draft)),
		Entry("no block of images, also as a draft", "spec.image", "the image block is required", func(s *v1alpha1.PostSpec) { s.Category = v1alpha1.CategoryImage }, edit(draft)),
		Entry("no video, also as a draft", "spec.video.mediaRef.name", "at least 1", videoOf(""), edit(draft)),
		Entry("5 images on X", "spec.image.mediaRefs", "x accepts at most 4 images", imageOf(times("png", 5)...)),
		Entry("11 images on Instagram", "spec.image.mediaRefs", "instagram accepts at most 10 images", imageOf(times("png", 11)...), to("tiktok", "instagram")),
		Entry("11 images on Facebook", "spec.image.mediaRefs", "facebook accepts at most 10 images", imageOf(times("png", 11)...), to("facebook")),
		Entry("21 images on Threads", "spec.image.mediaRefs", "threads accepts at most 20 images", imageOf(times("png", 21)...), to("threads")),
		Entry("36 images", "spec.image.mediaRefs", "35", imageOf(times("png", 36)...), to("tiktok")),
		Entry("a video among images", "spec.image.mediaRefs[1].name", "can contain only images", imageOf("png", "mp4")),
		Entry("an image as a video", "spec.video.mediaRef.name", "a video post needs a video", videoOf("png")),
		Entry("a video that is too large for X", "spec.video.mediaRef.name", "x accepts at most 536870912", videoOf("mp4-600mb")),
		Entry("a file that was rejected", "spec.image.mediaRefs[0].name", "was rejected", imageOf("rejected")),
		Entry("a thumbnail after the end", "spec.video.thumbnailOffsetMillis", "after the end", videoOf("mp4"), func(s *v1alpha1.PostSpec) { s.Video.ThumbnailOffsetMillis = new(int32(120001)) }),
		Entry("a tree of one card", "spec.tree.cards", "at least two cards", treeOf(card("a"))),
		Entry("no cards, also as a draft", "spec.tree.cards", "at least 1", treeOf(), edit(draft)),
		Entry("a tree with a target's caption", "spec.targets", "cannot have a caption or options", treeOf(card("a"), card("b")), saying("a")),
		Entry("a tree with a target's options", "spec.targets", "cannot have a caption or options", treeOf(card("a"), card("b")), titled("a")),
		Entry("a NUL on a card, also in a draft", "spec.tree.cards[0].caption", "must not contain the NUL character", treeOf(card("a\x00")), edit(draft)),
		Entry("an empty card", "spec.tree.cards", "every card needs a caption or media", treeOf(card("a"), card(""))),
		Entry("a card that is too long for X", "spec.tree.cards[1].caption", "281 weighted characters", treeOf(card("a"), card(strings.Repeat("a", 281)))),
		Entry("a card that is too long for Threads", "spec.tree.cards[1].caption", "501", treeOf(card("a"), card(strings.Repeat("a", 501))), to("threads")),
		Entry("a card that is too long for one of two", "spec.tree.cards[0].caption", "281 weighted characters are too many for x", treeOf(card(strings.Repeat("a", 281)), card("b")), to("threads", "x")),
		Entry("the same connection twice in a tree", "spec.targets", "must name each connection only once", treeOf(card("a"), card("b")), to("x", "x")),
		Entry("the same connection twice in a draft of a tree", "spec.targets", "must name each connection only once", treeOf(card("a")), to("x", "x"), edit(draft)),
		Entry("a rejected file on a card, also in a draft", "spec.tree.cards[0].mediaRefs[0].name", "was rejected", treeOf(card("a", "rejected")), edit(draft)),
		Entry("more files than any platform shows", "spec.tree.cards", "names 2001 different media files", treeOf(crowded(2001)...), edit(draft)),
		Entry("5 images on a card on X", "spec.tree.cards[0].mediaRefs", "x accepts at most 4 media", treeOf(card("a", times("png", 5)...), card("b"))),
		Entry("a card with images and a video on X", "spec.tree.cards[0].mediaRefs", "not both", treeOf(card("a", "png", "mp4"), card("b"))),
		Entry("two videos on a card on X", "spec.tree.cards[0].mediaRefs", "x accepts at most 1 video on a card", treeOf(card("a", "mp4", "mp4"), card("b"))),
		Entry("a video over 512 MB on a card on X", "spec.tree.cards[0].mediaRefs[0].name", "x accepts at most 536870912", treeOf(card("a", "mp4-600mb"), card("b"))),
		Entry("21 media on a card on Threads", "spec.tree.cards", "at most 20 media", treeOf(card("a", times("png", 21)...), card("b")), to("threads")),
		Entry("6 MB on a card on X", "spec.tree.cards[0].mediaRefs[0].name", "x accepts at most 5242880", treeOf(card("a", "png-6mb"), card("b"))),
		Entry("9 MB on a card on Threads", "spec.tree.cards[0].mediaRefs[0].name", "threads accepts at most 8388608", treeOf(card("a", "png-9mb"), card("b")), to("threads")),
		Entry("music on a video", "spec.targets", "autoAddMusic", videoOf("mp4"), to("tiktok"), onTikTok(v1alpha1.TikTokOptions{AutoAddMusic: true})),
		Entry("a stitch on an image", "spec.targets", "allowStitch", imageOf("png"), to("tiktok"), onTikTok(v1alpha1.TikTokOptions{AllowStitch: new(false)})),
		Entry("an inbox draft with music", "spec.targets[0].tiktok", "draft", imageOf("png"), to("tiktok"), onTikTok(v1alpha1.TikTokOptions{Draft: true, AutoAddMusic: true})),
		Entry("a duet on an image", "spec.targets", "allowDuet", imageOf("png"), to("tiktok"), onTikTok(v1alpha1.TikTokOptions{AllowDuet: new(true)})),
		Entry("an inbox draft with a privacy level", "spec.targets[0].tiktok", "draft", videoOf("mp4"), to("tiktok"), onTikTok(v1alpha1.TikTokOptions{Draft: true, PrivacyLevel: "SELF_ONLY"})),
		Entry("a privacy level that the account lacks", "spec.targets[0].tiktok.privacyLevel", "it can choose SELF_ONLY", videoOf("mp4"), to("private")),
	)

	DescribeTable("admits posts that may become valid, and warns about the missing objects",
		func(ctx context.Context, words []string, edits ...edit) {
			Expect(apply(ctx, user, post(edits...))).To(Succeed())
			seen := warnings.drain()
			Expect(seen).To(HaveLen(len(words)))
			for i := range words {
				Expect(seen[i]).To(ContainSubstring(words[i]))
			}
		},
		Entry("a valid post", nil),
		Entry("posts at the limits", nil, imageOf(times("png", 4)...), saying(strings.Repeat("a", 280))),
		Entry("text to all platforms that accept it", nil, to("x", "threads", "facebook")),
		Entry("an image to all platforms that accept it", nil, imageOf("png"), to("x", "instagram", "threads", "tiktok", "facebook")),
		Entry("a video to all platforms that accept it", nil, videoOf("mov"), to("x", "instagram", "threads", "tiktok", "youtube"), edit(draft)),
		Entry("a tree to all platforms that accept it", nil, treeOf(card("a"), card("b")), to("x", "threads")),
		Entry("140 CJK characters on X", nil, saying(strings.Repeat("写", 140))),
		Entry("500 characters and 20 images on Threads", nil, imageOf(times("png", 20)...), to("threads"), saying(strings.Repeat("é", 500))),
		Entry("2,200 characters and 35 images on TikTok", nil, imageOf(times("png", 35)...), to("tiktok"), saying(strings.Repeat("a", 2200))),
		Entry("2,200 characters and 10 images on Instagram", nil, imageOf(times("png", 10)...), to("instagram"), saying(strings.Repeat("é", 2200))),
		Entry("30 hashtags and 20 mentions on Instagram", nil, imageOf("png"), to("instagram"), saying(strings.Repeat("#a ", 30)+strings.Repeat("@a ", 20))),
		Entry("5,000 bytes and a title of 100 characters on YouTube", nil, videoOf("mp4-1024mb"), to("youtube"), titled(strings.Repeat("é", 100)), saying(strings.Repeat("é", 2500))),
		Entry("the longest text on Facebook that can be stored", nil, to("facebook"), saying(strings.Repeat("a", 65536))),
		Entry("10 images on Facebook", nil, imageOf(times("png", 10)...), to("facebook")),
		Entry("4 images of 5 MB on a card on X", nil, treeOf(card("a", times("png-5mb", 4)...), card("b", "mp4-512mb"))),
		Entry("20 media on a card on Threads, mixed", nil, treeOf(card("a", append(times("png-8mb", 10), times("mp4-1024mb", 10)...)...), card("b")), to("threads")),
		Entry("cards of the maximum length", nil, treeOf(card(strings.Repeat("a", 280)), card("", "png")), to("x", "threads")),
		Entry("music on images", nil, imageOf("png"), to("tiktok"), onTikTok(v1alpha1.TikTokOptions{AutoAddMusic: true})),
		Entry("a duet and a stitch on a video", nil, videoOf("mp4"), to("tiktok"), onTikTok(v1alpha1.TikTokOptions{AllowDuet: new(true), AllowStitch: new(false)})),
		Entry("an inbox draft", nil, videoOf("mp4"), to("tiktok"), onTikTok(v1alpha1.TikTokOptions{Draft: true})),
		Entry("a privacy level that the account has", nil, videoOf("mp4"), to("private"), onTikTok(v1alpha1.TikTokOptions{PrivacyLevel: "SELF_ONLY"})),
		Entry("a draft without a caption or a title", nil, videoOf("mp4"), to("youtube"), saying(""), edit(draft)),
		Entry("a draft of a tree that is too long, too large and mixed", nil, treeOf(card(strings.Repeat("a", 501), append(times("png-9mb", 21), "mp4-600mb")...)), to("x", "threads"), edit(draft)),
		Entry("a future time", nil, func(s *v1alpha1.PostSpec) { s.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Hour)) }),
		Entry("an almost empty draft", nil, treeOf(card("")), edit(draft)),
		Entry("a connection that is created later", []string{`spec.targets[0].connectionRef.name: no such connection "later"; the post waits for it`}, to("later")),
		Entry("a connection that is being deleted", []string{`spec.targets[0].connectionRef.name: no such connection "leaving"; the post waits for it`}, to("leaving")),
		Entry("a file that is missing in the store", []string{`spec.image.mediaRefs[0].name: the store no longer has the file, upload it again as another one: media file "missing"; the post waits for it`}, imageOf("missing")),
		Entry("a file on a draft's card that is created later", []string{`spec.tree.cards[0].mediaRefs[0].name: no such media file "later"; the post waits for it`}, treeOf(card("a", "later")), edit(draft)),
		Entry("a file that is created later", []string{`spec.image.mediaRefs[0].name: no such media file "later"; the post waits for it`}, imageOf("later")),
		Entry("a file that is not uploaded yet", []string{`spec.image.mediaRefs[0].name: nothing has been uploaded yet for media file "pending"; the post waits for it`}, imageOf("pending")),
		Entry("a time that has just passed", nil, func(s *v1alpha1.PostSpec) { s.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(-time.Minute)) }),
		Entry("a time long ago", []string{"MissedSchedule"}, func(s *v1alpha1.PostSpec) { s.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(-2 * time.Hour)) }),
	)

	It("rejects music on a video even if it is turned off", func(ctx SpecContext) {
		p := post(videoOf("mp4"), to("tiktok"), onTikTok(v1alpha1.TikTokOptions{AutoAddMusic: true}))
		off := func(object map[string]any) {
			targets, _, err := unstructured.NestedSlice(object, "spec", "targets")
			Expect(err).NotTo(HaveOccurred())
			Expect(unstructured.SetNestedField(targets[0].(map[string]any), false, "tiktok", "autoAddMusic")).To(Succeed())
			Expect(unstructured.SetNestedSlice(object, targets, "spec", "targets")).To(Succeed())
		}
		Expect(causes(apply(ctx, user, p, off))).To(ContainElement(ContainSubstring("autoAddMusic is for category image only")))
	})

	It("rejects contradictions even if other objects are missing", func(ctx SpecContext) {
		err := apply(ctx, user, post(to("later", "instagram")))
		Expect(err).To(MatchError(And(ContainSubstring("instagram does not accept"), Not(ContainSubstring("later")))))
		Expect(warnings.drain()).To(ConsistOf(ContainSubstring(`"later"`)))
	})

	It("warns of a video that a platform may reject from some accounts", func(ctx SpecContext) {
		p := post(videoOf("hevc"), to("x"))
		Expect(apply(ctx, user, p)).To(Succeed())
		Expect(warnings.drain()).To(ContainElement(And(HavePrefix("spec.video.mediaRef.name: "), ContainSubstring("is encoded as hevc; an ordinary account of x accepts h264"))))
	})

	It("warns of content that some of a platform's apps may not post", func(ctx SpecContext) {
		p := post(to("x"))
		p.Spec.Targets[0].Caption = "$ACME and $ABC"
		Expect(apply(ctx, user, p)).To(Succeed())
		Expect(warnings.drain()).To(ConsistOf(And(ContainSubstring("spec.targets[0].caption"), ContainSubstring("cashtags"))))
	})

	It("validates edits, especially the promotion of a draft, but never a cancellation", func(ctx SpecContext) {
		p := post(edit(draft), videoOf("mp4"), to("youtube"))
		Expect(apply(ctx, user, p)).To(Succeed())
		p.Spec.Draft = false
		Expect(apply(ctx, user, p)).To(MatchError(ContainSubstring("spec.targets[0].youtube.title")))
		p.Spec.Draft, p.Spec.Cancelled = true, true
		Expect(apply(ctx, user, p)).To(Succeed())
	})

	It("warns a user who applies a cancelled post again, and mentions the cancellation", func(ctx SpecContext) {
		p := post(to("x"), func(s *v1alpha1.PostSpec) { s.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Hour)) })
		Expect(apply(ctx, user, p)).To(Succeed())
		Expect(user.Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancelled":true}}`)), client.FieldOwner("kubectl-patch"))).To(Succeed())
		warnings.drain()
		Expect(apply(ctx, user, p)).To(Succeed())
		Expect(warnings.drain()).To(ContainElement("this post was cancelled by kubectl-patch and remains cancelled: this change has no effect. "+
			"To publish it, apply it under another name"), "the manager has not recorded it yet")

		stored := &v1alpha1.Post{}
		Expect(user.Get(ctx, client.ObjectKeyFromObject(p), stored)).To(Succeed())
		stored.Status.Phase, stored.Status.Finished, stored.Status.CancelledAt = v1alpha1.PhaseCancelled, true, v1alpha1.NewTimePtr(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
		Expect(user.Status().Update(ctx, stored)).To(Succeed())
		p.Spec.Targets[0].Caption = "what no rule allows: " + strings.Repeat("a", 300)
		Expect(apply(ctx, user, p)).To(Succeed(), "the rejected caption is not published")
		Expect(warnings.drain()).To(ContainElement(HavePrefix("this post was cancelled at 2026-12-01T09:00:00.000Z by kubectl-patch and remains cancelled")))
	})

	It("skips requests that need no validation", func(ctx SpecContext) {
		late := "x-" + fmt.Sprint(serial.Add(1))
		p := post(to(late), func(s *v1alpha1.PostSpec) { s.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Hour)) })
		Expect(apply(ctx, user, p)).To(Succeed())
		connect(ctx, late, v1alpha1.PlatformInstagram)
		Eventually(func() error {
			p.Spec.Targets[0].Caption = fmt.Sprint(serial.Add(1)) // another spec, in case the previous one was admitted
			return apply(ctx, user, p)
		}).Should(MatchError(ContainSubstring("instagram does not accept")), "the spec is new")

		Expect(user.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		p.Labels = map[string]string{"a": "b"}
		p.Finalizers = []string{"example.com/held"}
		Expect(user.Update(ctx, p)).To(Succeed(), "the spec is unchanged")
		p.Status.ObservedGeneration = 1
		Expect(user.Status().Update(ctx, p)).To(Succeed(), "a status is no spec")
		Expect(user.Delete(ctx, p)).To(Succeed())
		Expect(user.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		p.Finalizers, p.Spec.Targets[0].Caption = nil, "the last words"
		Expect(user.Update(ctx, p)).To(Succeed(), "the post is being deleted")

		Expect(apiserver.Create(ctx, sent(post(to("instagram"))))).To(Succeed(), "the apiserver has validated it already")
		Expect(warnings.drain()).NotTo(ContainElement(ContainSubstring("not checked")))
	})

	It("admits everything while the manager is unavailable", func(ctx SpecContext) {
		file := filepath.Join(config, "webhook", "webhook.yaml")
		Expect(cluster.ApplyWebhook(ctx, user, file, "https://"+ports.ForTest(GinkgoT()))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(cluster.ApplyWebhook(ctx, user, file, "https://"+address)).To(Succeed())
			Expect(serving.Check(ctx)).To(Succeed(), "the applied configuration lacks the webhook's path")
			Eventually(func() error { return apply(ctx, user, post(to("instagram"))) }).ShouldNot(Succeed())
		})
		Eventually(func() error { return apply(ctx, user, post(to("instagram"))) }).Should(Succeed())
	})
})
