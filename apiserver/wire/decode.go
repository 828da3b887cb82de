// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire encodes and decodes the JSON of requests and responses, as described in apiserver/openapi. It is
// independent of HTTP.
package wire

import (
	"math"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// Limits from apiserver/openapi.
const (
	maxName    = 253 // characters in an id, the limit of Kubernetes
	maxCaption = 1 << 16
	maxTitle   = 4096
	maxFile    = 1024 // characters in a file name
	maxImages  = 35   // in an image post; the strictest target may allow fewer
	maxItems   = 100  // targets, cards, and media on a card
	// maxSecond is the largest offset in a video, in seconds, whose milliseconds fit in an int32.
	maxSecond = math.MaxInt32 / 1000
)

// CreatePost decodes the body of createPost. The error is a *bridge.Error; everything that could be decoded is returned
// with it.
func CreatePost(body strictjson.Value) (bridge.CreatePost, error) {
	out := createPost(body, card, targetReader)
	return out, refused(body)
}

// createPost decodes a post, with the given functions for a tree's cards and for targets. body.Problems reports what
// cannot be decoded.
func createPost(body strictjson.Value, card func(strictjson.Value) v1alpha1.TreeCard, target targetsOf) bridge.CreatePost {
	var out bridge.CreatePost
	spec := &out.Spec
	spec.Category = strictjson.OneOf(body.Field("category"), categories...)
	spec.Draft = body.Optional("draft").Bool()
	if at := body.Optional("scheduled_at").OrNull(); at.IsSet() {
		spec.ScheduledAt = v1alpha1.NewTimePtr(at.Time())
	}
	spec.Targets = strictjson.List(body.Field("targets"), 1, maxItems, target(spec.Category, &out.Problems))
	switch spec.Category {
	case "":
		accept(body, "media_ids", "media_id", "thumbnail_time", "tree_cards")
	case v1alpha1.CategoryImage:
		spec.Image = &v1alpha1.ImageContent{MediaRefs: strictjson.List(body.Field("media_ids"), 1, maxImages, mediaReference)}
	case v1alpha1.CategoryVideo:
		spec.Video = &v1alpha1.VideoContent{MediaRef: mediaReference(body.Field("media_id"))}
		spec.Video.ThumbnailOffsetMillis = strictjson.Pointer(body.Optional("thumbnail_time"), milliseconds)
	case v1alpha1.CategoryTree:
		spec.Tree = &v1alpha1.TreeContent{Cards: strictjson.List(body.Field("tree_cards"), 1, maxItems, card)}
	case v1alpha1.CategoryText:
	}
	return out
}

// targetsOf returns the function that decodes the targets of a category; see targetReader.
type targetsOf func(category v1alpha1.Category, problems *[]string) func(strictjson.Value) v1alpha1.PostTarget

// targetReader returns the function that decodes the targets of a category, and adds problems that they cannot represent.
func targetReader(category v1alpha1.Category, problems *[]string) func(strictjson.Value) v1alpha1.PostTarget {
	switch category {
	case "":
		return unsortedTarget // the category determines the other fields
	case v1alpha1.CategoryTree:
		return treeTarget
	case v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo:
	}
	return func(v strictjson.Value) v1alpha1.PostTarget {
		target := postTarget(v)
		*problems = append(*problems, combinations(v, category, target.TikTok)...)
		return target
	}
}

func refused(body strictjson.Value) error {
	problems, more := body.Problems()
	if len(problems) == 0 {
		return nil
	}
	return &bridge.Error{Code: bridge.CodeValidation, Message: bridge.JoinFirst(problems, more)}
}

// CreateMediaUpload decodes the body of createMediaUploadUrl. The error is a *bridge.Error; everything that could be
// decoded is returned with it.
func CreateMediaUpload(body strictjson.Value) (bridge.CreateMediaUpload, error) {
	out := bridge.CreateMediaUpload{Spec: v1alpha1.MediaSpec{
		MimeType: strictjson.OneOf(body.Field("mime_type"),
			v1alpha1.MimeMP4, v1alpha1.MimeQuickTime, v1alpha1.MimeJPEG, v1alpha1.MimePNG, v1alpha1.MimeWebP),
		SizeBytes: body.Field("size_bytes").Integer(1),
		FileName:  body.Field("name").Text(1, maxFile),
	}}
	return out, refused(body)
}

func reference(v strictjson.Value) v1alpha1.LocalReference {
	return v1alpha1.LocalReference{Name: v.Text(1, maxName)}
}

// mediaReference reads a media id. The contract has no alt texts, so the Media's applies; version 2 has separate fields for them.
func mediaReference(v strictjson.Value) v1alpha1.MediaReference {
	return v1alpha1.MediaReference{Name: v.Text(1, maxName)}
}

func milliseconds(v strictjson.Value) int32 {
	return int32(math.Round(v.Number(0, maxSecond) * 1000))
}

func card(v strictjson.Value) v1alpha1.TreeCard {
	if !v.Object() {
		return v1alpha1.TreeCard{}
	}
	return v1alpha1.TreeCard{
		Caption:   v.Optional("caption").OrNull().Text(0, maxCaption),
		MediaRefs: strictjson.List(v.Optional("media_ids"), 0, maxItems, mediaReference),
	}
}

// anyTarget decodes the target fields that every category has.
func anyTarget(v strictjson.Value) v1alpha1.PostTarget {
	if !v.Object() {
		return v1alpha1.PostTarget{}
	}
	return v1alpha1.PostTarget{ConnectionRef: reference(v.Field("connection_id"))}
}

// unsortedTarget decodes the target of a post without a valid category.
func unsortedTarget(v strictjson.Value) v1alpha1.PostTarget {
	if !v.Object() {
		return v1alpha1.PostTarget{}
	}
	accept(v, "caption", "youtube_title")
	accept(v, tiktokFields...)
	return anyTarget(v)
}

// accept marks members that some category has, so that they do not count as ignored.
func accept(v strictjson.Value, names ...string) {
	for _, name := range names {
		v.Optional(name)
	}
}

// treeTarget decodes the target of a tree. It rejects five fields of other targets, regardless of their values.
func treeTarget(v strictjson.Value) v1alpha1.PostTarget {
	if !v.Object() {
		return v1alpha1.PostTarget{}
	}
	for _, name := range []string{"caption", "youtube_title", "is_ai_generated", "tiktok_draft", "tiktok_auto_add_music"} {
		if field := v.Optional(name); field.IsSet() {
			field.Refuse("the target of a tree cannot have it; leave it out")
		}
	}
	return anyTarget(v)
}

// postTarget decodes the target of any other post.
func postTarget(v strictjson.Value) v1alpha1.PostTarget {
	if !v.Object() {
		return v1alpha1.PostTarget{}
	}
	target := v1alpha1.PostTarget{
		ConnectionRef: reference(v.Field("connection_id")),
		Caption:       v.Optional("caption").Text(1, maxCaption),
	}
	if title := v.Optional("youtube_title").Text(1, maxTitle); title != "" {
		target.YouTube = &v1alpha1.YouTubeOptions{Title: title}
	}
	for _, name := range tiktokFields {
		if v.Optional(name).IsSet() {
			target.TikTok = tiktokOptions(v)
			break
		}
	}
	return target
}

var tiktokFields = []string{
	"is_ai_generated", "tiktok_auto_add_music", "tiktok_draft", "tiktok_privacy_level",
	"tiktok_allow_comment", "tiktok_allow_duet", "tiktok_allow_stitch",
}

func tiktokOptions(v strictjson.Value) *v1alpha1.TikTokOptions {
	return &v1alpha1.TikTokOptions{
		IsAIGenerated: v.Optional("is_ai_generated").Bool(),
		AutoAddMusic:  v.Optional("tiktok_auto_add_music").Bool(),
		Draft:         v.Optional("tiktok_draft").Bool(),
		PrivacyLevel:  strictjson.OneOf(v.Optional("tiktok_privacy_level"), v1alpha1.TikTokPublicToEveryone, v1alpha1.TikTokSelfOnly),
		AllowComment:  strictjson.Pointer(v.Optional("tiktok_allow_comment"), strictjson.Value.Bool),
		AllowDuet:     strictjson.Pointer(v.Optional("tiktok_allow_duet"), strictjson.Value.Bool),
		AllowStitch:   strictjson.Pointer(v.Optional("tiktok_allow_stitch"), strictjson.Value.Bool),
	}
}

// combinations returns the problems of TikTok options that contradict each other or the category. The contract rejects
// them for every platform, and some of them regardless of their values.
func combinations(v strictjson.Value, category v1alpha1.Category, options *v1alpha1.TikTokOptions) []string {
	if options == nil {
		return nil
	}
	var problems []string
	refuse := func(name, problem string) { problems = append(problems, v.Field(name).Path()+": "+problem) }
	if category != v1alpha1.CategoryImage && v.Optional("tiktok_auto_add_music").IsSet() {
		refuse("tiktok_auto_add_music", "only a post of category image may have it; leave it out")
	}
	if category != v1alpha1.CategoryVideo && options.AllowDuet != nil {
		refuse("tiktok_allow_duet", "only a post of category video may have it; leave it out")
	}
	if category != v1alpha1.CategoryVideo && options.AllowStitch != nil {
		refuse("tiktok_allow_stitch", "only a post of category video may have it; leave it out")
	}
	if options.Draft && options.AutoAddMusic {
		refuse("tiktok_auto_add_music", "cannot be combined with tiktok_draft; omit one of the two")
	}
	if options.Draft && options.PrivacyLevel != "" {
		refuse("tiktok_privacy_level", "cannot be combined with tiktok_draft; omit one of the two")
	}
	return problems
}
