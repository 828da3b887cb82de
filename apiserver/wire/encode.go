// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
)

// Every function here appends to b and returns the result, like append.

// AppendError appends an error response.
func AppendError(b []byte, code bridge.Code, message string) []byte {
	b = appendString(append(b, `{"error":{"code":`...), code)
	b = appendString(append(b, `,"message":`...), message)
	return append(b, `}}`...)
}

// AppendText appends text as a JSON string, such as JSON within JSON.
func AppendText(b, text []byte) []byte { return appendString(b, string(text)) }

// AppendConnections appends the response to listConnections.
func AppendConnections(b []byte, connections []bridge.Connection) []byte {
	b = append(b, `{"data":`...)
	b = appendList(b, connections, func(b []byte, c *bridge.Connection) []byte {
		b = appendString(append(b, `{"id":`...), c.ID)
		b = appendString(append(b, `,"platform":`...), c.Platform)
		b = appendStringOrNull(append(b, `,"account_name":`...), c.AccountName)
		b = appendStringOrNull(append(b, `,"icon_url":`...), c.IconURL)
		b = appendTime(append(b, `,"connected_at":`...), c.ConnectedAt)
		return append(b, '}')
	})
	return append(b, '}')
}

// AppendMediaUpload appends the response to createMediaUploadUrl.
func AppendMediaUpload(b []byte, upload *bridge.MediaUpload) []byte {
	return append(appendUpload(b, upload), `}}`...)
}

// appendUpload appends an upload without its closing braces.
func appendUpload(b []byte, upload *bridge.MediaUpload) []byte {
	b = appendString(append(b, `{"data":{"media_id":`...), upload.ID)
	b = appendString(append(b, `,"upload_url":`...), upload.UploadURL)
	return appendString(append(b, `,"name":`...), upload.Name)
}

// AppendPostPage appends the response to listPosts.
func AppendPostPage(b []byte, page *bridge.PostPage) []byte {
	b = append(b, `{"data":`...)
	b = appendList(b, page.Posts, func(b []byte, s *postindex.Summary) []byte { return append(appendSummary(b, s), '}') })
	return append(appendPagination(b, page), `}}`...)
}

// appendSummary appends a summary without its closing brace, and appendPagination the pagination without its own.
func appendSummary(b []byte, s *postindex.Summary) []byte {
	b = appendString(append(b, `{"id":`...), s.ID)
	b = appendString(append(b, `,"title":`...), s.Title)
	b = appendString(append(b, `,"status":`...), s.Status)
	b = appendString(append(b, `,"category":`...), s.Category)
	b = append(b, `,"platforms":`...)
	b = appendList(b, s.Platforms, func(b []byte, p *postindex.PlatformStatus) []byte {
		b = appendString(append(b, `{"platform":`...), p.Platform)
		b = appendString(append(b, `,"status":`...), p.Status)
		return append(b, '}')
	})
	return appendTime(append(b, `,"display_at":`...), s.DisplayAt)
}

func appendPagination(b []byte, page *bridge.PostPage) []byte {
	b = strconv.AppendInt(append(b, `,"pagination":{"total":`...), int64(page.Total), 10)
	b = strconv.AppendInt(append(b, `,"page":`...), int64(page.Page), 10)
	b = strconv.AppendInt(append(b, `,"limit":`...), int64(page.Limit), 10)
	return strconv.AppendBool(append(b, `,"has_next":`...), page.HasNext)
}

// AppendPost appends the response to createPost and getPost.
func AppendPost(b []byte, p *bridge.PostDetail) []byte {
	b = appendDetail(append(b, `{"data":`...), p, p.Media, func(b []byte, c *v1alpha1.TreeCard) []byte { return append(appendCard(b, c), '}') })
	b = append(b, `,"platforms":`...)
	b = appendList(b, p.Platforms, func(b []byte, p *bridge.PlatformDetail) []byte { return append(appendPlatformDetail(b, p), '}') })
	b = appendTime(append(b, `,"display_at":`...), p.DisplayAt)
	return append(b, `}}`...)
}

// appendDetail appends a post's own fields, without its closing brace. card appends a card.
func appendDetail(b []byte, p *bridge.PostDetail, media []v1alpha1.MediaReference, card func([]byte, *v1alpha1.TreeCard) []byte) []byte {
	b = appendString(append(b, `{"id":`...), p.ID)
	b = appendString(append(b, `,"status":`...), p.Status)
	b = appendString(append(b, `,"category":`...), p.Category)
	b = appendReferences(append(b, `,"media_ids":`...), media)
	b = append(b, `,"tree_cards":`...)
	b = appendList(b, p.Cards, card)
	b = append(b, `,"scheduled_at":`...)
	if p.ScheduledAt == nil {
		b = append(b, `null`...)
	} else {
		b = appendTime(b, *p.ScheduledAt)
	}
	return strconv.AppendBool(append(b, `,"can_cancel":`...), p.CanCancel)
}

// appendCard appends a card without its closing brace.
func appendCard(b []byte, c *v1alpha1.TreeCard) []byte {
	b = appendStringOrNull(append(b, `{"caption":`...), c.Caption)
	return appendReferences(append(b, `,"media_ids":`...), c.MediaRefs)
}

// appendPlatformDetail appends a target without its closing brace.
func appendPlatformDetail(b []byte, p *bridge.PlatformDetail) []byte {
	b = appendString(append(b, `{"platform":`...), p.Platform)
	b = appendString(append(b, `,"connection_id":`...), p.ConnectionID)
	b = appendString(append(b, `,"account_name":`...), p.AccountName)
	b = appendString(append(b, `,"status":`...), p.Status)
	b = appendString(append(b, `,"caption":`...), p.Caption)
	b = appendStringOrNull(append(b, `,"youtube_title":`...), p.YouTubeTitle)
	b = appendStringOrNull(append(b, `,"external_url":`...), p.ExternalURL)
	return appendStringOrNull(append(b, `,"error_message":`...), p.ErrorMessage)
}

// AppendCancelled appends the response to cancelPost.
func AppendCancelled(b []byte, id string) []byte {
	b = appendString(append(b, `{"data":{"id":`...), id)
	return append(b, `,"status":"cancelled"}}`...)
}

func appendList[T any](b []byte, list []T, item func([]byte, *T) []byte) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = item(b, &list[i])
	}
	return append(b, ']')
}

func appendReferences(b []byte, list []v1alpha1.MediaReference) []byte {
	return appendList(b, list, func(b []byte, of *v1alpha1.MediaReference) []byte { return appendString(b, of.Name) })
}

// appendTime appends a time in UTC with milliseconds.
func appendTime(b []byte, t time.Time) []byte {
	// Package time has a fast path for RFC 3339, without milliseconds.
	b = t.UTC().AppendFormat(append(b, '"'), time.RFC3339)
	const digits = "0123456789"
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-len("Z")], '.', digits[ms/100], digits[ms/10%10], digits[ms%10], 'Z', '"')
}

func appendStringOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, `null`...)
	}
	return appendString(b, s)
}

// appendString appends a string with as few escapes as possible. Bytes that are not UTF-8, which an id in a path may
// contain, become U+FFFD.
func appendString[S ~string](b []byte, of S) []byte {
	s := string(of)
	for i := range len(s) {
		if special[s[i]] {
			return appendEscaped(b, strings.ToValidUTF8(s, string(utf8.RuneError)))
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// special contains the bytes that may need an escape, or be invalid: most strings have none.
var special = func() (special [256]bool) {
	for c := range special {
		special[c] = needsEscape(byte(c)) || c >= utf8.RuneSelf
	}
	return special
}()

// needsEscape reports whether a byte of a JSON string must be escaped (RFC 8259, section 7).
func needsEscape(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

func appendEscaped(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if !needsEscape(c) {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}
