// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// appliedRules maps each rule and limit of the REST API's contract to the specs that test it with kubectl apply. A spec
// is identified by the last words of its name. A rule that does not apply here, or is enforced after admission, names
// the place that enforces it. If a spec is renamed or removed, a test reports the rule that would not be tested.
var appliedRules = []struct {
	rule      string
	specs     []string
	elsewhere string
}{
	// The eleven rules of POST /posts.
	{rule: "1: the platforms of each category", specs: []string{
		"text to all platforms that accept it", "text to Instagram", "text to TikTok", "text to YouTube",
		"an image to all platforms that accept it", "an image to YouTube", "a video to all platforms that accept it", "a video to Facebook", "a tree to all platforms that accept it",
	}},
	{rule: "1: of a tree in drafts too", specs: []string{"a tree to Facebook, also as a draft", "a tree to Instagram, also as a draft"}},
	{rule: "2: without a time at once, with a future one then", specs: []string{"a valid post", "a future time"}},
	{rule: "2: a time that is past (the starting deadline of the resources)", specs: []string{"a time that has just passed", "a time long ago"}},
	{rule: "3: a draft has no time", specs: []string{"a draft with a time"}},
	{rule: "4: a caption, which is optional in drafts", specs: []string{"no caption", "a draft without a caption or a title"}},
	{rule: "4: media, which drafts require too", specs: []string{
		"no images, also as a draft", "no block of images, also as a draft", "no video, also as a draft",
	}},
	{rule: "5: captions of at most their platform's maximum length, in drafts too", specs: []string{
		"281 weighted characters on X", "141 CJK characters on X", "too long, also as a draft", "501 characters on Threads",
		"2,201 characters on Instagram", "2,202 UTF-16 units on TikTok", "5,001 bytes on YouTube",
	}},
	{rule: "6: YouTube needs a title", specs: []string{"no title on YouTube", "a draft without a caption or a title"}},
	{rule: "7: a privacy level that the account offers", specs: []string{"a privacy level that the account lacks", "a privacy level that the account has"}},
	{rule: "8: music for images only", specs: []string{"music on images", "music on a video", "rejects music on a video even if it is turned off"}},
	{rule: "8: duets and stitches for videos only", specs: []string{"a duet on an image", "a stitch on an image", "a duet and a stitch on a video"}},
	{rule: "8: an inbox draft has neither music nor a privacy level", specs: []string{
		"an inbox draft", "an inbox draft with music", "an inbox draft with a privacy level",
	}},
	{rule: "9: connections that are not ready", elsewhere: "applied posts wait for them: controllers/post"},
	{rule: "10: X and Threads only", specs: []string{"a tree to all platforms that accept it", "a tree to Facebook, also as a draft", "a tree to Instagram, also as a draft"}},
	{rule: "10: no connection twice", specs: []string{"the same connection twice in a tree", "the same connection twice in a draft of a tree"}},
	{rule: "10: all targets receive the same cards", specs: []string{"a tree with a target's caption", "a tree with a target's options"}},
	{rule: "10: at least two cards, one in a draft", specs: []string{"a tree of one card", "an almost empty draft"}},
	{rule: "10: no cards", specs: []string{"no cards, also as a draft"}},
	{rule: "10: a card has a text or media, unless the tree is a draft", specs: []string{"an empty card", "an almost empty draft", "cards of the maximum length"}},
	{rule: "10: the media of cards are checked in drafts too", specs: []string{
		"a rejected file on a card, also in a draft", "a file on a draft's card that is created later", "a GIF",
	}},
	{rule: "10: lengths, counts and sizes are not checked in drafts", specs: []string{"a draft of a tree that is too long, too large and mixed"}},
	{rule: "11: a card has at most its platforms' smallest maximum length", specs: []string{
		"a card that is too long for X", "a card that is too long for Threads", "a card that is too long for one of two", "cards of the maximum length",
	}},

	// The table of limits.
	{rule: "a video file of 1 GB", specs: []string{"an MP4 of 1 GB", "a QuickTime film of 1 GB", "a video over 1 GB"}},
	{rule: "an image file of 20 MB", specs: []string{"a JPEG of 20 MB", "a PNG of 20 MB", "an image over 20 MB"}},
	{rule: "an upload URL is valid for 15 minutes", elsewhere: "the manager signs it: controllers/media"},
	{rule: "page and limit", elsewhere: "lists of the HTTP API: apiserver"},
	{rule: "at least one target", specs: []string{"no targets"}},
	{rule: "1 to 35 images", specs: []string{"no images, also as a draft", "2,200 characters and 35 images on TikTok", "36 images"}},
	{rule: "4 images on X", specs: []string{"posts at the limits", "5 images on X"}},
	{rule: "10 images on Instagram, the strictest of several", specs: []string{"2,200 characters and 10 images on Instagram", "11 images on Instagram"}},
	{rule: "10 images on Facebook", specs: []string{"10 images on Facebook", "11 images on Facebook"}},
	{rule: "20 images on Threads", specs: []string{"500 characters and 20 images on Threads", "21 images on Threads"}},
	{rule: "cards: 2, or 1 in drafts", specs: []string{"a tree to all platforms that accept it", "a tree of one card", "an almost empty draft"}},
	{rule: "280 weighted characters on X", specs: []string{"posts at the limits", "140 CJK characters on X", "281 weighted characters on X", "141 CJK characters on X"}},
	{rule: "500 characters on Threads", specs: []string{"500 characters and 20 images on Threads", "501 characters on Threads"}},
	{rule: "2,200 characters on TikTok", specs: []string{"2,200 characters and 35 images on TikTok", "2,202 UTF-16 units on TikTok"}},
	{rule: "2,200 characters on Instagram", specs: []string{"2,200 characters and 10 images on Instagram", "2,201 characters on Instagram"}},
	{rule: "30 hashtags and 20 mentions on Instagram", specs: []string{
		"30 hashtags and 20 mentions on Instagram", "31 hashtags on Instagram", "21 mentions on Instagram",
	}},
	{rule: "5,000 bytes on YouTube", specs: []string{"5,000 bytes and a title of 100 characters on YouTube", "5,001 bytes on YouTube"}},
	{rule: "a title on YouTube of 100 characters, without < and >", specs: []string{
		"5,000 bytes and a title of 100 characters on YouTube", "a title of 101 characters", "a title with <", "a title with >",
	}},
	{rule: "no limit on Facebook", specs: []string{"the longest text on Facebook that can be stored"}},
	{rule: "a card on X: 4 items, images of 5 MB, or one video of 512 MB, not mixed", specs: []string{
		"4 images of 5 MB on a card on X", "5 images on a card on X", "6 MB on a card on X", "two videos on a card on X", "a video over 512 MB on a card on X", "a card with images and a video on X",
	}},
	{rule: "a card on Threads: 20 items, images of 8 MB, videos of 1 GB, mixed", specs: []string{
		"20 media on a card on Threads, mixed", "21 media on a card on Threads", "9 MB on a card on Threads",
	}},
	{rule: "no GIF", specs: []string{"a GIF"}},
	{rule: "5 pending drafts on TikTok", elsewhere: "counted when a post is claimed: controllers/post"},
	{rule: "the starter plan's posts and accounts", elsewhere: "counted when a post is claimed: controllers/post"},

	// The tables of fields, and the rules that both APIs share.
	{rule: "a category is one of four", specs: []string{"an unknown category"}},
	{rule: "images among images, a video as a video", specs: []string{"a video among images", "an image as a video"}},
	{rule: "a video to X has 512 MB", specs: []string{"a video that is too large for X"}},
	{rule: "a thumbnail time is within the video", specs: []string{"a thumbnail after the end"}},
	{rule: "files that do not exist", specs: []string{
		"a file that was rejected", "a file that is created later", "a file that is not uploaded yet", "a file that is missing in the store",
	}},
	{rule: "connections that do not exist", specs: []string{"a connection that is created later", "a connection that is being deleted"}},
	{rule: "files of one post", specs: []string{"more files than any platform shows"}},
	{rule: "no NUL characters", specs: []string{"a NUL in a caption, also in a draft", "a NUL on a card, also in a draft"}},
}

var _ = ReportAfterSuite("each rule of the contract is tested through kubectl apply", func(report Report) {
	named := map[string]int{}
	for i := range report.SpecReports {
		named[report.SpecReports[i].LeafNodeText]++
	}
	for _, r := range appliedRules {
		Expect(r.specs == nil).To(Equal(r.elsewhere != ""), "the rule %q has specs here or elsewhere", r.rule)
		for _, words := range r.specs {
			Expect(named[words]).To(Equal(1), "the rule %q names a spec %q, which must exist exactly once", r.rule, words)
		}
	}
})
