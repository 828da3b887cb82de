// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
)

func refs(n int) []v1alpha1.MediaReference {
	list := make([]v1alpha1.MediaReference, n)
	for i := range list {
		list[i].Name = fmt.Sprintf("m%d", i)
	}
	return list
}

func asImage(s *v1alpha1.PostSpec) {
	s.Category, s.Image = v1alpha1.CategoryImage, &v1alpha1.ImageContent{MediaRefs: refs(1)}
}

func asVideo(s *v1alpha1.PostSpec) {
	s.Category, s.Video = v1alpha1.CategoryVideo, &v1alpha1.VideoContent{MediaRef: refs(1)[0]}
}

func asTree(s *v1alpha1.PostSpec) {
	s.Category, s.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "one"}, {Caption: "two"}}}
	s.Targets[0].Caption = ""
}

// with returns an edit that first sets a post's category and content, then applies the change.
func with(category, change func(*v1alpha1.PostSpec)) func(*v1alpha1.Post) {
	return edit(func(s *v1alpha1.PostSpec) {
		category(s)
		if change != nil {
			change(s)
		}
	})
}

func asText(*v1alpha1.PostSpec) {}

func tiktok(o v1alpha1.TikTokOptions) func(*v1alpha1.PostSpec) {
	return func(s *v1alpha1.PostSpec) { s.Targets[0].TikTok = &o }
}

func cards(c ...v1alpha1.TreeCard) func(*v1alpha1.PostSpec) {
	return func(s *v1alpha1.PostSpec) { s.Tree.Cards = c }
}

// drafted returns the change with the post turned into a draft.
func drafted(change func(*v1alpha1.PostSpec)) func(*v1alpha1.PostSpec) {
	return func(s *v1alpha1.PostSpec) { change(s); s.Draft = true }
}

var yes, no, offset = true, false, int32(1500)

var _ = DescribeTable("the content of a new Post", creates,
	// A post must have the block for its own category, and no other block.
	Entry("an image post", with(asImage, nil), ""),
	Entry("an image draft", with(asImage, drafted(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "" })), ""),
	Entry("an image post without pictures", with(asImage, func(s *v1alpha1.PostSpec) { s.Image.MediaRefs = nil }), "spec.image.mediaRefs"),
	Entry("an image draft without the block", with(asImage, drafted(func(s *v1alpha1.PostSpec) { s.Image = nil })), "the image block is required"),
	Entry("an image post with a video", with(asImage, func(s *v1alpha1.PostSpec) { asVideo(s); s.Category = v1alpha1.CategoryImage }), "the video block is required"),
	Entry("35 pictures", with(asImage, func(s *v1alpha1.PostSpec) { s.Image.MediaRefs = refs(35) }), ""),
	Entry("36 pictures", with(asImage, func(s *v1alpha1.PostSpec) { s.Image.MediaRefs = refs(36) }), "spec.image.mediaRefs"),
	Entry("36 pictures in a draft", with(asImage, drafted(func(s *v1alpha1.PostSpec) { s.Image.MediaRefs = refs(36) })), "spec.image.mediaRefs"),
	Entry("the same picture twice", with(asImage, func(s *v1alpha1.PostSpec) { s.Image.MediaRefs = append(refs(1), refs(1)...) }), ""),
	Entry("a picture without a name", with(asImage, func(s *v1alpha1.PostSpec) { s.Image.MediaRefs[0].Name = "" }), "spec.image.mediaRefs[0].name"),
	Entry("an alt text of 1,000 characters", with(asImage, func(s *v1alpha1.PostSpec) { s.Image.MediaRefs[0].AltText = strings.Repeat("é", 1000) }), ""),
	Entry("an alt text of 1,001 characters", with(asImage, func(s *v1alpha1.PostSpec) { s.Image.MediaRefs[0].AltText = strings.Repeat("a", 1001) }), "spec.image.mediaRefs[0].altText"),
	Entry("a video's alt text of 1,001 characters", with(asVideo, func(s *v1alpha1.PostSpec) { s.Video.MediaRef.AltText = strings.Repeat("a", 1001) }), "spec.video.mediaRef.altText"),
	Entry("a video post", with(asVideo, nil), ""),
	Entry("a video post with a thumbnail", with(asVideo, func(s *v1alpha1.PostSpec) { s.Video.ThumbnailOffsetMillis = &offset }), ""),
	Entry("a thumbnail from before the beginning", with(asVideo, func(s *v1alpha1.PostSpec) { n := int32(-1); s.Video.ThumbnailOffsetMillis = &n }), "thumbnailOffsetMillis"),
	Entry("a video draft without the block", with(asVideo, drafted(func(s *v1alpha1.PostSpec) { s.Video = nil })), "the video block is required"),
	Entry("a video post without a video", with(asVideo, func(s *v1alpha1.PostSpec) { s.Video.MediaRef.Name = "" }), "spec.video.mediaRef.name"),
	Entry("a video post with pictures", with(asVideo, func(s *v1alpha1.PostSpec) { asImage(s); s.Category = v1alpha1.CategoryVideo }), "the image block is required"),
	Entry("a text post with pictures", with(asImage, func(s *v1alpha1.PostSpec) { s.Category = v1alpha1.CategoryText }), "the image block is required"),
	Entry("a text post with cards", edit(func(s *v1alpha1.PostSpec) { asTree(s); s.Category = v1alpha1.CategoryText; s.Targets[0].Caption = "c" }), "the tree block is required"),
	Entry("a video post without a caption", with(asVideo, func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "" }), "every target needs a caption"),

	// Trees.
	Entry("a tree", with(asTree, nil), ""),
	Entry("a tree without cards", with(asTree, cards()), "spec.tree.cards"),
	Entry("a draft without cards", with(asTree, drafted(cards())), "spec.tree.cards"),
	Entry("a tree of one card", with(asTree, cards(v1alpha1.TreeCard{Caption: "one"})), "at least two cards"),
	Entry("a draft of one card", with(asTree, drafted(cards(v1alpha1.TreeCard{Caption: "one"}))), ""),
	Entry("a card with media only", with(asTree, cards(v1alpha1.TreeCard{Caption: "one"}, v1alpha1.TreeCard{MediaRefs: refs(1)})), ""),
	Entry("an empty card", with(asTree, cards(v1alpha1.TreeCard{Caption: "one"}, v1alpha1.TreeCard{})), "every card needs"),
	Entry("an empty card in a draft", with(asTree, drafted(cards(v1alpha1.TreeCard{}))), ""),
	Entry("20 media on a card", with(asTree, cards(v1alpha1.TreeCard{MediaRefs: refs(20)}, v1alpha1.TreeCard{Caption: "two"})), ""),
	Entry("21 media on a card", with(asTree, cards(v1alpha1.TreeCard{MediaRefs: refs(21)}, v1alpha1.TreeCard{Caption: "two"})), "at most 20 media"),
	Entry("21 media on a card of a draft", with(asTree, drafted(cards(v1alpha1.TreeCard{MediaRefs: refs(21)}))), ""),
	Entry("a scheduled tree of one card", with(asTree, func(s *v1alpha1.PostSpec) { s.ScheduledAt = future; s.Tree.Cards = s.Tree.Cards[:1] }), "at least two cards"),
	Entry("the largest cards and the most targets", with(asTree, largest), ""),
	Entry("a tree without the block", with(asTree, func(s *v1alpha1.PostSpec) { s.Tree = nil }), "the tree block is required"),
	Entry("a tree with a target's caption", with(asTree, func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "c" }), "cannot have a caption or options"),
	Entry("a draft of a tree with a target's caption", with(asTree, drafted(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "c" })), "cannot have a caption or options"),
	Entry("a tree with a title", with(asTree, func(s *v1alpha1.PostSpec) { s.Targets[0].YouTube = &v1alpha1.YouTubeOptions{Title: "t"} }), "cannot have a caption or options"),
	Entry("a tree with TikTok's options", with(asTree, tiktok(v1alpha1.TikTokOptions{})), "cannot have a caption or options"),
	Entry("a tree to two connections", with(asTree, func(s *v1alpha1.PostSpec) {
		s.Targets = append(s.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "y"}})
	}), ""),
	Entry("a tree to one connection twice", with(asTree, func(s *v1alpha1.PostSpec) { s.Targets = append(s.Targets, s.Targets[0]) }), "must name each connection only once"),
	Entry("a draft of a tree to one connection twice", with(asTree, drafted(func(s *v1alpha1.PostSpec) { s.Targets = append(s.Targets, s.Targets[0]) })), "must name each connection only once"),

	// Options of one platform.
	Entry("a language", edit(func(s *v1alpha1.PostSpec) { s.Targets[0].Language = "en" }), ""),
	Entry("a language with a script and a region", with(asTree, func(s *v1alpha1.PostSpec) { s.Targets[0].Language = "zh-Hant-TW" }), ""),
	Entry("a language in words", edit(func(s *v1alpha1.PostSpec) { s.Targets[0].Language = "english" }), "language"),
	Entry("a language whose region is not in capitals", edit(func(s *v1alpha1.PostSpec) { s.Targets[0].Language = "pt-br" }), "language"),
	Entry("a title", with(asVideo, func(s *v1alpha1.PostSpec) { s.Targets[0].YouTube = &v1alpha1.YouTubeOptions{Title: "t"} }), ""),
	Entry("no title, which is optional in drafts", with(asVideo, func(s *v1alpha1.PostSpec) { s.Targets[0].YouTube = &v1alpha1.YouTubeOptions{} }), ""),
	Entry("TikTok's options on a text post, where they have no effect", with(asText, tiktok(v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly, AllowComment: &no, IsAIGenerated: true, Draft: false})), ""),
	Entry("an unknown privacy level", with(asVideo, tiktok(v1alpha1.TikTokOptions{PrivacyLevel: "MUTUAL_FOLLOW_FRIENDS"})), "privacyLevel"),
	Entry("music on pictures", with(asImage, tiktok(v1alpha1.TikTokOptions{AutoAddMusic: true})), ""),
	Entry("music on a video", with(asVideo, tiktok(v1alpha1.TikTokOptions{AutoAddMusic: true})), "autoAddMusic is for category image only"),
	Entry("music on a text", with(asText, tiktok(v1alpha1.TikTokOptions{AutoAddMusic: true})), "autoAddMusic is for category image only"),
	Entry("music on a draft's video", with(asVideo, drafted(tiktok(v1alpha1.TikTokOptions{AutoAddMusic: true}))), "autoAddMusic is for category image only"),
	Entry("duets and stitches of a video", with(asVideo, tiktok(v1alpha1.TikTokOptions{AllowDuet: &yes, AllowStitch: &no})), ""),
	Entry("duets of pictures", with(asImage, tiktok(v1alpha1.TikTokOptions{AllowDuet: &yes})), "for category video only"),
	Entry("duets of pictures, turned off", with(asImage, tiktok(v1alpha1.TikTokOptions{AllowDuet: &no})), "for category video only"),
	Entry("stitches of pictures", with(asImage, tiktok(v1alpha1.TikTokOptions{AllowStitch: &no})), "for category video only"),
	Entry("a TikTok draft", with(asImage, tiktok(v1alpha1.TikTokOptions{Draft: true, AllowComment: &yes})), ""),
	Entry("a TikTok draft with music", with(asImage, tiktok(v1alpha1.TikTokOptions{Draft: true, AutoAddMusic: true})), "music cannot be added"),
	Entry("a TikTok draft with a privacy level", with(asVideo, tiktok(v1alpha1.TikTokOptions{Draft: true, PrivacyLevel: v1alpha1.TikTokPublicToEveryone})), "has no privacyLevel"),
)

// largest fills every list of a tree, which maximizes the cost of the rules.
func largest(s *v1alpha1.PostSpec) {
	s.Targets = nil
	for i := range 100 {
		s.Targets = append(s.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: fmt.Sprintf("%s%03d", strings.Repeat("c", 250), i)}})
	}
	s.Tree.Cards = nil
	for range 100 {
		s.Tree.Cards = append(s.Tree.Cards, v1alpha1.TreeCard{Caption: strings.Repeat("c", 2000), MediaRefs: refs(20)})
	}
}

var _ = DescribeTable("the content of an updated Post", changes,
	Entry("other images", with(asImage, nil), edit(func(s *v1alpha1.PostSpec) { s.Image.MediaRefs = refs(3) }), ""),
	Entry("another alt text", with(asImage, nil), edit(func(s *v1alpha1.PostSpec) { s.Image.MediaRefs[0].AltText = "a rocket" }), ""),
	Entry("another alt text after a claim", func(p *v1alpha1.Post) { asImage(&p.Spec); claimed(p) }, edit(func(s *v1alpha1.PostSpec) { s.Image.MediaRefs[0].AltText = "a rocket" }), "delivery has already begun"),
	Entry("other images after a claim", func(p *v1alpha1.Post) { asImage(&p.Spec); claimed(p) }, edit(func(s *v1alpha1.PostSpec) { s.Image.MediaRefs = refs(3) }), "delivery has already begun"),
	Entry("other options after a claim", func(p *v1alpha1.Post) { asVideo(&p.Spec); claimed(p) }, edit(tiktok(v1alpha1.TikTokOptions{AllowDuet: &no})), "delivery has already begun"),
	Entry("another category", with(asImage, nil), edit(func(s *v1alpha1.PostSpec) { s.Image = nil; asVideo(s) }), "category can be changed only while"),
	Entry("another category for a draft", with(asImage, drafted(func(s *v1alpha1.PostSpec) { s.ScheduledAt = nil })), edit(func(s *v1alpha1.PostSpec) { s.Image = nil; asVideo(s) }), ""),
	Entry("another category for a draft that is published by the same write", with(asImage, drafted(func(s *v1alpha1.PostSpec) { s.ScheduledAt = nil })),
		edit(func(s *v1alpha1.PostSpec) { s.Image, s.Draft = nil, false; asVideo(s) }), ""),
	Entry("another category for a draft, without its content", with(asImage, drafted(func(s *v1alpha1.PostSpec) { s.ScheduledAt = nil })),
		edit(func(s *v1alpha1.PostSpec) { s.Category = v1alpha1.CategoryVideo }), "the image block is required"),
	Entry("a draft of one card, promoted with a second", with(asTree, drafted(func(s *v1alpha1.PostSpec) { s.ScheduledAt = nil; s.Tree.Cards = s.Tree.Cards[:1] })),
		edit(func(s *v1alpha1.PostSpec) {
			s.Draft = false
			s.Tree.Cards = append(s.Tree.Cards, v1alpha1.TreeCard{Caption: "two"})
		}), ""),
	Entry("a draft of one card, promoted as it is", with(asTree, drafted(func(s *v1alpha1.PostSpec) { s.ScheduledAt = nil; s.Tree.Cards = s.Tree.Cards[:1] })),
		edit(func(s *v1alpha1.PostSpec) { s.Draft = false }), "at least two cards"),
	Entry("a draft with an empty card, promoted as it is", with(asTree, drafted(func(s *v1alpha1.PostSpec) { s.ScheduledAt = nil; s.Tree.Cards[1].Caption = "" })),
		edit(func(s *v1alpha1.PostSpec) { s.Draft = false }), "every card needs"),
)

var _ = DescribeTable("a tree status update", statusOf(asTree),
	Entry("the first card recorded and the second claimed in one write", claimed, func(p *v1alpha1.Post) { card(p, 0); claim(p, 1) }, ""),
	Entry("the first card recorded, the second not claimed yet", claimed, func(p *v1alpha1.Post) { card(p, 0); outcome(v1alpha1.OutcomePosted)(p) }, ""),
	Entry("the second card claimed later", recorded(1), func(p *v1alpha1.Post) { claim(p, 1) }, ""),
	Entry("the second card rejected", carded(1), outcome(v1alpha1.OutcomeRefused), ""),
	Entry("the second card tried again", func(p *v1alpha1.Post) { carded(1)(p); outcome(v1alpha1.OutcomeAbsent)(p) }, func(p *v1alpha1.Post) { claim(p, 1) }, ""),
	Entry("the last card recorded", carded(1), func(p *v1alpha1.Post) {
		card(p, 1)
		closed := &p.Status.Targets[0]
		closed.Attempt.Outcome, closed.ExternalID = v1alpha1.OutcomePosted, "card0"
		stands(v1alpha1.TargetPosted)(p)
	}, ""),
	Entry("the second card declared posted by a user", func(p *v1alpha1.Post) { carded(1)(p); outcome(v1alpha1.OutcomeUnknown)(p) },
		func(p *v1alpha1.Post) { card(p, 1); outcome(v1alpha1.OutcomePosted)(p) }, ""),
	Entry("the last card declared posted by a user without an id", func(p *v1alpha1.Post) { carded(1)(p); outcome(v1alpha1.OutcomeUnknown)(p) },
		func(p *v1alpha1.Post) { outcome(v1alpha1.OutcomePosted)(p); stands(v1alpha1.TargetPosted)(p) }, ""),
	Entry("the second card claimed, the first not recorded", claimed, func(p *v1alpha1.Post) { claim(p, 1) }, "first card that is not recorded"),
	Entry("the second card claimed, the first rejected", func(p *v1alpha1.Post) { claimed(p); outcome(v1alpha1.OutcomeRefused)(p) },
		func(p *v1alpha1.Post) { claim(p, 1) }, "first card that is not recorded"),
	Entry("a card skipped", recorded(1), func(p *v1alpha1.Post) { card(p, 1); claim(p, 2) }, "for the next card"),
	Entry("the first card claimed again", recorded(1), func(p *v1alpha1.Post) { claim(p, 0) }, "first card that is not recorded"),
	Entry("an open card claimed again", carded(1), func(p *v1alpha1.Post) { claim(p, 1) }, "needs the previous one closed"),
	Entry("a posted card claimed again", func(p *v1alpha1.Post) { carded(1)(p); outcome(v1alpha1.OutcomePosted)(p) }, func(p *v1alpha1.Post) { claim(p, 1) }, "needs the previous one closed"),
	Entry("an attempt for another card", recorded(2), func(p *v1alpha1.Post) { p.Status.Targets[0].Attempt.Card = 0 }, "keeps its card"),
	Entry("a gap between the cards", claimed, func(p *v1alpha1.Post) { card(p, 1); outcome(v1alpha1.OutcomePosted)(p) }, "without gaps"),
	Entry("a card recorded twice", recorded(1), func(p *v1alpha1.Post) { card(p, 0) }, "Duplicate value"),
	Entry("a card's id is replaced", recorded(1), func(p *v1alpha1.Post) { p.Status.Targets[0].Cards[0].ExternalID = "other" }, "externalID never changes"),
	Entry("a card's id is removed", recorded(1), func(p *v1alpha1.Post) { p.Status.Targets[0].Cards[0].ExternalID = "" }, "externalID"),
	Entry("a card's record is removed", recorded(2), func(p *v1alpha1.Post) { p.Status.Targets[0].Cards = p.Status.Targets[0].Cards[:1] }, "record of a card is never removed"),
	Entry("all records are removed", recorded(1), func(p *v1alpha1.Post) { p.Status.Targets[0].Cards = nil }, "record of a card is never removed"),
)

var _ = DescribeTable("the candidates of an undecided target", statusOf(asText),
	Entry("the maximum number of candidates", claimed, listing(v1alpha1.MostCandidates, func(*v1alpha1.Candidate) {}), ""),
	Entry("one candidate too many", claimed, listing(v1alpha1.MostCandidates+1, func(*v1alpha1.Candidate) {}), "must have at most 10 items"),
	Entry("a longer id", claimed, listing(1, func(c *v1alpha1.Candidate) { c.ExternalID += "1" }), "externalID"),
	Entry("no id", claimed, listing(1, func(c *v1alpha1.Candidate) { c.ExternalID = "" }), "externalID"),
	Entry("a longer address", claimed, listing(1, func(c *v1alpha1.Candidate) { c.ExternalURL += "u" }), "externalURL"),
	Entry("a longer text", claimed, listing(1, func(c *v1alpha1.Candidate) { c.Text += "é" }), "text"),
	Entry("the reason why an answer was rejected", claimed, func(p *v1alpha1.Post) { p.Status.Targets[0].AnswerProblem = strings.Repeat("é", 1024) }, ""),
	Entry("a longer reason", claimed, func(p *v1alpha1.Post) { p.Status.Targets[0].AnswerProblem = strings.Repeat("é", 1025) }, "answerProblem"),
)

// listing adds candidates of the largest size to the target, then applies an edit.
func listing(n int, edit func(*v1alpha1.Candidate)) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		for range n {
			c := candidates()[0]
			edit(&c)
			p.Status.Targets[0].Candidates = append(p.Status.Targets[0].Candidates, c)
		}
	}
}

// card records one more card.
func card(p *v1alpha1.Post, index int32) {
	t := &p.Status.Targets[0]
	t.Cards = append(t.Cards, v1alpha1.CardStatus{Index: index, ExternalID: fmt.Sprintf("card%d", index), PostedAt: future})
}

// claim starts the next attempt for a card.
func claim(p *v1alpha1.Post, index int32) {
	next(p)
	p.Status.Targets[0].Attempt.Card = index
}

// carded makes a tree whose first n cards are recorded and whose next card is claimed.
func carded(n int32) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		claimed(p)
		for i := range n {
			card(p, i)
		}
		p.Status.Targets[0].Attempt.Card, p.Status.Targets[0].Attempt.Number = n, n+1
	}
}

// recorded makes a tree whose first n cards are recorded and whose next card is not claimed.
func recorded(n int32) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		carded(n)(p)
		a := p.Status.Targets[0].Attempt
		a.Card, a.Number, a.Outcome = n-1, n, v1alpha1.OutcomePosted
	}
}

var _ = Describe("the order of a tree's first card", func() {
	It("cannot be claimed by a later card", func(ctx SpecContext) {
		p := validPost()
		asTree(&p.Spec)
		Expect(k8s.Create(ctx, p)).To(Succeed())
		claimed(p)
		p.Status.Targets[0].Attempt.Card = 1
		refused(k8s.Status().Update(ctx, p), "first card that is not recorded")
	})
})

// referring sets a reference to a Connection.
func referring(name string) func(*v1alpha1.PostSpec) {
	return func(s *v1alpha1.PostSpec) { s.Targets[0].ConnectionRef.Name = name }
}

var _ = DescribeTable("The object references of a Post", creates,
	Entry("a valid name", with(asText, referring("acme-x.example")), ""),
	Entry("a path into another namespace", with(asText, referring("../../team-b/connections/x")), "should match"),
	Entry("an escaped path", with(asText, referring("x%2f..")), "should match"),
	Entry("a line break, which would continue in logs", with(asText, referring("x\n")), "should match"),
	Entry("NUL", with(asText, referring("x\x00")), "should match"),
)
