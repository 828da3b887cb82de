// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"context"
	"net/url"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// Confirm reads a video by its id (videos.list) and compares its channel with the account.
func (p *Platform) Confirm(ctx context.Context, account platforms.Account, externalID string) (platforms.Ownership, error) {
	if !validID(externalID) {
		return platforms.OwnershipUnknown, nil
	}
	query := url.Values{"part": {"snippet"}, "id": {externalID}}
	found, failure := get[struct {
		Items []struct {
			ID      jsondoc.Text `json:"id"`
			Snippet struct {
				Channel jsondoc.Text `json:"channelId"`
			} `json:"snippet"`
		} `json:"items"`
	}](ctx, p, "confirm", "/youtube/v3/videos?"+query.Encode(), account.Token, p.classify)
	if failure != nil {
		return platforms.OwnershipUnknown, failure
	}
	for i := range found.Items {
		switch item := &found.Items[i]; {
		case item.ID.String() != externalID || item.Snippet.Channel == "":
		case item.Snippet.Channel.String() == account.ID:
			return platforms.OwnershipConfirmed, nil
		default:
			return platforms.OwnershipForeign, nil
		}
	}
	return platforms.OwnershipUnknown, nil
}
