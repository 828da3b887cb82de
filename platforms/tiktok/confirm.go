// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// Confirm queries a post by its id (POST /v2/video/query/), which TikTok returns only to the account that owns it.
// Absence does not prove a different owner: posts that are not public are hidden as well, and the video.list permission
// may be missing.
func (p *Platform) Confirm(ctx context.Context, account platforms.Account, externalID string) (platforms.Ownership, error) {
	if !validPostID(externalID) {
		return platforms.OwnershipUnknown, nil
	}
	body := map[string]any{"filters": map[string]any{"video_ids": []string{externalID}}}
	found, bad := callAPI[struct {
		Videos []struct {
			ID jsondoc.Text `json:"id"`
		} `json:"videos"`
	}](ctx, p, "confirm", "/v2/video/query/?fields=id", account.Token, body)
	if bad != nil {
		return platforms.OwnershipUnknown, bad.Error
	}
	for _, video := range found.Videos {
		if video.ID.String() == externalID {
			return platforms.OwnershipConfirmed, nil
		}
	}
	return platforms.OwnershipUnknown, nil
}
