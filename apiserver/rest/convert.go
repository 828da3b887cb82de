// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-faster/jx"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/rest/oas"
)

// createPost takes over a request. What a tree's target must not have is
// refused here: nothing after it could tell.
func createPost(req *oas.CreatePostRequest) (bridge.CreatePost, error) {
	switch req.Type {
	case oas.CreateVideoPostCreatePostRequest:
		video := &req.CreateVideoPost
		out := common(v1alpha1.CategoryVideo, video.ScheduledAt, video.Draft, video.Targets)
		out.MediaIDs = []string{video.MediaID}
		out.ThumbnailTime = pointer(video.ThumbnailTime.Get())
		return out, nil
	case oas.CreateImagePostCreatePostRequest:
		image := &req.CreateImagePost
		out := common(v1alpha1.CategoryImage, image.ScheduledAt, image.Draft, image.Targets)
		out.MediaIDs = image.MediaIds
		return out, nil
	case oas.CreateTreePostCreatePostRequest:
		return createTree(&req.CreateTreePost)
	case oas.CreateTextPostCreatePostRequest:
		text := &req.CreateTextPost
		return common(v1alpha1.CategoryText, text.ScheduledAt, text.Draft, text.Targets), nil
	default:
		return bridge.CreatePost{}, fmt.Errorf("the decoder let a post of category %q through", req.Type)
	}
}

// common takes over what the shapes with captions have in common.
func common(category v1alpha1.Category, at oas.OptNilDateTime, draft oas.OptBool, targets []oas.PostTarget) bridge.CreatePost {
	out := bridge.CreatePost{
		Category:    category,
		ScheduledAt: pointer(at.Get()),
		Draft:       draft.Or(false),
		Targets:     make([]bridge.CreateTarget, len(targets)),
	}
	for i := range targets {
		target := &targets[i]
		out.Targets[i] = bridge.CreateTarget{
			ConnectionID: target.ConnectionID,
			Caption:      target.Caption.Or(""),
			YouTubeTitle: target.YoutubeTitle.Or(""),
			TikTok: bridge.TikTokOptions{
				AutoAddMusic:  pointer(target.TiktokAutoAddMusic.Get()),
				Draft:         pointer(target.TiktokDraft.Get()),
				AllowComment:  pointer(target.TiktokAllowComment.Get()),
				AllowDuet:     pointer(target.TiktokAllowDuet.Get()),
				AllowStitch:   pointer(target.TiktokAllowStitch.Get()),
				IsAIGenerated: pointer(target.IsAiGenerated.Get()),
			},
		}
		if level, ok := target.TiktokPrivacyLevel.Get(); ok {
			out.Targets[i].TikTok.PrivacyLevel = new(string(level))
		}
	}
	return out
}

func createTree(tree *oas.CreateTreePost) (bridge.CreatePost, error) {
	out := bridge.CreatePost{
		Category:    v1alpha1.CategoryTree,
		ScheduledAt: pointer(tree.ScheduledAt.Get()),
		Draft:       tree.Draft.Or(false),
		Targets:     make([]bridge.CreateTarget, len(tree.Targets)),
		Cards:       make([]bridge.Card, len(tree.TreeCards)),
	}
	var problems []string
	for i := range tree.Targets {
		target := &tree.Targets[i]
		out.Targets[i] = bridge.CreateTarget{ConnectionID: target.ConnectionID}
		for _, field := range []struct {
			name  string
			value jx.Raw
		}{
			{"caption", target.Caption},
			{"youtube_title", target.YoutubeTitle},
			{"is_ai_generated", target.IsAiGenerated},
			{"tiktok_draft", target.TiktokDraft},
			{"tiktok_auto_add_music", target.TiktokAutoAddMusic},
		} {
			if len(field.value) > 0 {
				problems = append(problems, fmt.Sprintf("targets[%d].%s: the target of a tree cannot have it; leave it out", i, field.name))
			}
		}
	}
	if len(problems) > 0 {
		return bridge.CreatePost{}, &bridge.Error{Code: bridge.CodeValidation, Message: bridge.JoinProblems(problems)}
	}
	for i := range tree.TreeCards {
		card := &tree.TreeCards[i]
		out.Cards[i] = bridge.Card{Caption: card.Caption.Or(""), MediaIDs: card.MediaIds}
	}
	return out, nil
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

// wire takes over a page. The platforms of all posts stand in one array.
func (l *listing) wire(page []postindex.Summary) {
	targets := 0
	for i := range page {
		targets += len(page[i].Platforms)
	}
	l.platforms = slices.Grow(l.platforms[:0], targets)
	l.out.Data = slices.Grow(l.out.Data[:0], len(page))
	for i := range page {
		s := &page[i]
		first := len(l.platforms)
		for _, p := range s.Platforms {
			l.platforms = append(l.platforms, oas.PlatformSummary{Platform: oas.Platform(p.Platform), Status: oas.PostListStatus(p.Status)})
		}
		l.out.Data = append(l.out.Data, oas.PostSummary{
			ID:        s.ID,
			Title:     s.Title,
			Status:    oas.PostListStatus(s.Status),
			Category:  oas.PostCategory(s.Category),
			Platforms: l.platforms[first:],
			DisplayAt: oas.Timestamp(s.DisplayAt.UTC()),
		})
	}
}

func wireDetail(p *bridge.PostDetail) oas.PostDetail {
	out := oas.PostDetail{
		ID:          p.ID,
		Status:      oas.PostDetailStatus(p.Status),
		Category:    oas.PostCategory(p.Category),
		MediaIds:    orEmpty(p.MediaIDs),
		TreeCards:   make([]oas.TreeCard, len(p.Cards)),
		ScheduledAt: timeOrNull(p.ScheduledAt),
		CanCancel:   p.CanCancel,
		Platforms:   make([]oas.PlatformPostDetail, len(p.Platforms)),
		DisplayAt:   oas.Timestamp(p.DisplayAt.UTC()),
	}
	for i := range p.Cards {
		out.TreeCards[i] = oas.TreeCard{Caption: orNull(p.Cards[i].Caption), MediaIds: orEmpty(p.Cards[i].MediaIDs)}
	}
	for i := range p.Platforms {
		target := &p.Platforms[i]
		out.Platforms[i] = oas.PlatformPostDetail{
			Platform:     oas.Platform(target.Platform),
			ConnectionID: target.ConnectionID,
			AccountName:  target.AccountName,
			Status:       oas.PostDetailStatus(target.Status),
			Caption:      target.Caption,
			YoutubeTitle: orNull(target.YouTubeTitle),
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

// orEmpty keeps a list from being null on the wire.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
