// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"context"
	"net/url"
	"strings"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// Confirm reads a post by its id and compares the author's user name with that of the account. A different name does
// not prove a different owner, because user names change.
func (g *Graph) Confirm(ctx context.Context, account platforms.Account, externalID string) (platforms.Ownership, error) {
	if !ValidID(externalID) || account.Username == "" {
		return platforms.OwnershipUnknown, nil
	}
	found, bad := Get[struct {
		ID       jsondoc.Text `json:"id"`
		Username jsondoc.Text `json:"username"`
	}](ctx, g, "confirm", "/"+url.PathEscape(externalID)+"?fields=id,username", account.Token)
	switch {
	case bad != nil:
		return platforms.OwnershipUnknown, bad.Error
	case found.ID.String() == externalID && strings.EqualFold(found.Username.String(), account.Username):
		return platforms.OwnershipConfirmed, nil
	default:
		return platforms.OwnershipUnknown, nil
	}
}
