// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"
	"net/url"
	"strings"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// Confirm reads a post by its id. The id of a Page's post starts with the Page's id ("{page-id}_{post-id}"), so another
// Page's post is detected without a call. Ids in any other form are OwnershipUnknown.
func (p *Platform) Confirm(ctx context.Context, account platforms.Account, externalID string) (platforms.Ownership, error) {
	page, _, ofPage := strings.Cut(externalID, "_")
	switch {
	case !meta.ValidID(externalID) || !ofPage:
		return platforms.OwnershipUnknown, nil
	case page != account.ID:
		return platforms.OwnershipForeign, nil
	}
	found, bad := meta.Get[struct {
		ID jsondoc.Text `json:"id"`
	}](ctx, &p.graph, "confirm", "/"+url.PathEscape(externalID)+"?fields=id", account.Token)
	switch {
	case bad != nil:
		return platforms.OwnershipUnknown, bad.Error
	case found.ID.String() == externalID:
		return platforms.OwnershipConfirmed, nil
	default:
		return platforms.OwnershipUnknown, nil
	}
}
