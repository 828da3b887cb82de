// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/posting"
)

// Version 2 adds fields to the responses of version 1, after the existing ones.

// AppendPostPageV2 appends the response to listPosts of version 2.
func AppendPostPageV2(b []byte, page *bridge.PostPage) []byte {
	b = append(b, `{"data":`...)
	b = appendList(b, page.Posts, func(b []byte, s *postindex.Summary) []byte {
		b = strconv.AppendBool(append(appendSummary(b, s), `,"archived":`...), s.Archived)
		return append(b, '}')
	})
	b = appendStringOrNull(append(appendPagination(b, page), `,"next_cursor":`...), formatCursor(page.Next))
	b = appendStringOrNull(append(b, `,"previous_cursor":`...), formatCursor(page.Previous))
	b = strconv.AppendBool(append(b, `,"covers_archive":`...), page.CoversArchive)
	return append(b, `}}`...)
}

// AppendPostV2 appends the response to the operations of version 2 that return a post.
func AppendPostV2(b []byte, p *bridge.PostDetail) []byte {
	media := posting.OwnMedia(p.Content)
	b = appendDetail(append(b, `{"data":`...), p, media, func(b []byte, c *v1alpha1.TreeCard) []byte {
		return append(appendFiles(appendCard(b, c), c.MediaRefs), '}')
	})
	b = append(b, `,"platforms":[`...)
	for i := range p.Platforms {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTarget(appendPlatformDetail(b, &p.Platforms[i]), &p.Content.Targets[i])
		b = appendTimeOrNull(append(b, `,"posted_at":`...), p.PostedAt[i])
		b = append(appendStringOrNull(append(b, `,"retried_by":`...), p.Platforms[i].RetriedBy), '}')
	}
	b = appendTime(append(b, `],"display_at":`...), p.DisplayAt)
	b = appendThumbnailTime(append(b, `,"thumbnail_time":`...), p.Content.Video)
	b = appendFiles(b, media)
	b = appendTime(append(b, `,"created_at":`...), p.CreatedAt)
	b = appendString(append(b, `,"version":`...), p.Version)
	var retryOf string
	if p.Content.RetryOf != nil {
		retryOf = p.Content.RetryOf.Name
	}
	b = appendStringOrNull(append(b, `,"retry_of":`...), retryOf)
	return append(b, `}}`...)
}

// AppendMediaUploadV2 appends the response to createMediaUploadUrl of version 2.
func AppendMediaUploadV2(b []byte, upload *bridge.MediaUpload) []byte {
	b = appendStringOrNull(append(appendUpload(b, upload), `,"alt_text":`...), upload.AltText)
	return append(b, `}}`...)
}

// AppendValidation appends the response to validatePost.
func AppendValidation(b []byte, v *bridge.Validation) []byte {
	b = strconv.AppendBool(append(b, `{"data":{"valid":`...), len(v.Findings) == 0)
	b = append(b, `,"problems":`...)
	b = appendList(b, v.Findings, func(b []byte, f *bridge.Finding) []byte {
		b = appendString(append(b, `{"code":`...), f.Code)
		b = appendStringOrNull(append(b, `,"path":`...), f.Path)
		b = appendString(append(b, `,"message":`...), f.Message)
		return append(b, '}')
	})
	b = strconv.AppendInt(append(b, `,"more":`...), int64(v.More), 10)
	return append(b, `}}`...)
}

// appendTikTok appends a target's TikTok options under the names that requests use for them.
func appendTikTok(b []byte, options *v1alpha1.TikTokOptions) []byte {
	if options == nil {
		options = &v1alpha1.TikTokOptions{}
	}
	b = strconv.AppendBool(append(b, `,"is_ai_generated":`...), options.IsAIGenerated)
	b = strconv.AppendBool(append(b, `,"tiktok_auto_add_music":`...), options.AutoAddMusic)
	b = strconv.AppendBool(append(b, `,"tiktok_draft":`...), options.Draft)
	b = appendStringOrNull(append(b, `,"tiktok_privacy_level":`...), string(options.PrivacyLevel))
	b = appendBoolOrNull(append(b, `,"tiktok_allow_comment":`...), options.AllowComment)
	b = appendBoolOrNull(append(b, `,"tiktok_allow_duet":`...), options.AllowDuet)
	return appendBoolOrNull(append(b, `,"tiktok_allow_stitch":`...), options.AllowStitch)
}

// appendThumbnailTime appends the position of a video's thumbnail, in seconds.
func appendThumbnailTime(b []byte, video *v1alpha1.VideoContent) []byte {
	if video == nil || video.ThumbnailOffsetMillis == nil {
		return append(b, `null`...)
	}
	return strconv.AppendFloat(b, float64(*video.ThumbnailOffsetMillis)/1000, 'f', -1, 64)
}

func appendBoolOrNull(b []byte, value *bool) []byte {
	if value == nil {
		return append(b, `null`...)
	}
	return strconv.AppendBool(b, *value)
}

func appendTimeOrNull(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, `null`...)
	}
	return appendTime(b, t)
}
