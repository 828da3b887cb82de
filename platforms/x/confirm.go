// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"context"
	"net/url"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// Confirm reads a post by its id (GET /2/tweets/{id}) and compares its author with the account. A post that X does not
// return may have been deleted, or may not be visible to the account.
func (p *Platform) Confirm(ctx context.Context, account platforms.Account, externalID string) (platforms.Ownership, error) {
	if !validID(externalID) {
		return platforms.OwnershipUnknown, nil
	}
	var failure *platforms.Error
	for _, names := range fieldNames {
		query := url.Values{names.parameter: {"author_id"}}
		resp, refused := p.read(ctx, "confirm", "/2/tweets/"+url.PathEscape(externalID)+"?"+query.Encode(), account.Token)
		if failure = refused; failure == nil {
			doc, _ := jsondoc.Decode[struct {
				Data struct {
					ID     jsondoc.Text `json:"id"`
					Author jsondoc.Text `json:"author_id"`
				} `json:"data"`
			}](resp.Body)
			switch {
			case doc.Data.ID.String() != externalID || doc.Data.Author == "":
				return platforms.OwnershipUnknown, nil
			case doc.Data.Author.String() == account.ID:
				return platforms.OwnershipConfirmed, nil
			}
			return platforms.OwnershipForeign, nil
		}
		if failure.Class != platforms.ClassPermanent {
			break
		}
	}
	return platforms.OwnershipUnknown, failure // never nil here: each success returns above
}
