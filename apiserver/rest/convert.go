// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/rest/oas"
	"github.com/herald-social/herald/internal/postindex"
)

// createPost reads a request. Its category is text: the decoder lets no other
// pass.
func createPost(req *oas.CreatePostRequest) bridge.CreatePost {
	text := &req.CreateTextPost
	out := bridge.CreatePost{
		Category: v1alpha1.CategoryText,
		Draft:    text.Draft.Or(false),
		Targets:  make([]bridge.CreateTarget, len(text.Targets)),
	}
	if at, ok := text.ScheduledAt.Get(); ok {
		out.ScheduledAt = &at
	}
	for i := range text.Targets {
		target := &text.Targets[i]
		out.Targets[i] = bridge.CreateTarget{
			ConnectionID: target.ConnectionID,
			Caption:      target.Caption.Or(""),
			TikTok: bridge.TikTokOptions{
				AutoAddMusic: pointer(target.TiktokAutoAddMusic.Get()),
				Draft:        pointer(target.TiktokDraft.Get()),
				AllowDuet:    pointer(target.TiktokAllowDuet.Get()),
				AllowStitch:  pointer(target.TiktokAllowStitch.Get()),
			},
		}
		if level, ok := target.TiktokPrivacyLevel.Get(); ok {
			out.Targets[i].TikTok.PrivacyLevel = new(string(level))
		}
	}
	return out
}

// pointer turns an optional value into one that is nil when it was left out.
func pointer[T any](value T, ok bool) *T {
	if !ok {
		return nil
	}
	return &value
}

func wireConnection(c *bridge.Connection) oas.Connection {
	return oas.Connection{
		ID:          c.ID,
		Platform:    oas.Platform(c.Platform),
		AccountName: orNull(c.AccountName),
		IconURL:     orNull(c.IconURL),
		ConnectedAt: oas.Timestamp(c.ConnectedAt.UTC()),
	}
}

func wireSummary(s *postindex.Summary) oas.PostSummary {
	out := oas.PostSummary{
		ID:        s.ID,
		Title:     s.Title,
		Status:    oas.PostListStatus(s.Status),
		Category:  oas.PostCategory(s.Category),
		Platforms: make([]oas.PlatformSummary, len(s.Platforms)),
		DisplayAt: oas.Timestamp(s.DisplayAt.UTC()),
	}
	for i, p := range s.Platforms {
		out.Platforms[i] = oas.PlatformSummary{Platform: oas.Platform(p.Platform), Status: oas.PostListStatus(p.Status)}
	}
	return out
}

func wireDetail(p *bridge.PostDetail) oas.PostDetail {
	out := oas.PostDetail{
		ID:          p.ID,
		Status:      oas.PostDetailStatus(p.Status),
		Category:    oas.PostCategory(p.Category),
		MediaIds:    []string{},
		TreeCards:   []oas.TreeCard{},
		ScheduledAt: timeOrNull(p.ScheduledAt),
		CanCancel:   p.CanCancel,
		Platforms:   make([]oas.PlatformPostDetail, len(p.Platforms)),
		DisplayAt:   oas.Timestamp(p.DisplayAt.UTC()),
	}
	for i := range p.Platforms {
		target := &p.Platforms[i]
		out.Platforms[i] = oas.PlatformPostDetail{
			Platform:     oas.Platform(target.Platform),
			ConnectionID: target.ConnectionID,
			AccountName:  target.AccountName,
			Status:       oas.PostDetailStatus(target.Status),
			Caption:      target.Caption,
			YoutubeTitle: orNull(""),
			ExternalURL:  orNull(target.ExternalURL),
			ErrorMessage: orNull(target.ErrorMessage),
		}
	}
	return out
}

// orNull writes null for what there is not.
func orNull(s string) oas.NilString { return oas.NilString{Value: s, Null: s == ""} }

func timeOrNull(t *time.Time) oas.NilDateTime {
	if t == nil {
		return oas.NilDateTime{Null: true}
	}
	return oas.NewNilDateTime(t.UTC())
}
