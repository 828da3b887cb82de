// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"context"
	"strings"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// Identify returns the one channel that a token belongs to.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	doc, failure := get[struct {
		Kind  jsondoc.Text `json:"kind"`
		Items []struct {
			ID      jsondoc.Text `json:"id"`
			Snippet struct {
				Title      jsondoc.Text `json:"title"`
				CustomURL  jsondoc.Text `json:"customUrl"`
				Thumbnails struct {
					Default struct {
						URL jsondoc.Text `json:"url"`
					} `json:"default"`
				} `json:"thumbnails"`
			} `json:"snippet"`
		} `json:"items"`
	}](ctx, p, "identify", "/youtube/v3/channels?part=snippet&mine=true", token, p.classifyAccount)
	switch {
	case failure != nil:
		return platforms.Identity{}, failure
	case doc.Items == nil && doc.Kind == "", len(doc.Items) > 0 && doc.Items[0].ID == "":
		return platforms.Identity{}, p.API.NoIdentity(nil)
	case len(doc.Items) == 0:
		// YouTube omits an empty list.
		missing, _ := lookupError(codeNoChannel)
		return platforms.Identity{}, &missing
	}
	channel := doc.Items[0]
	return platforms.Identity{
		AccountID: channel.ID.String(), DisplayName: channel.Snippet.Title.String(),
		Username: strings.TrimPrefix(channel.Snippet.CustomURL.String(), "@"), IconURL: channel.Snippet.Thumbnails.Default.URL.String(),
	}, nil
}

// classifyAccount classifies the error of a call about the account. An error that the administrator must fix is
// temporary for the account, because connecting the channel again would not help. A closed or suspended channel is
// disconnected until its owner connects it again.
func (p *Platform) classifyAccount(resp *transport.Response) (failure *platforms.Error, reason string) {
	failure, reason = p.classify(resp)
	switch {
	case reason == codeNotEnabled:
		failure.Class = platforms.ClassTransient
	case reason == codeBadRequest:
		failure.Class = platforms.ClassUnknown
	case failure.Class == platforms.ClassRestricted:
		failure.Class = platforms.ClassPermanent
	}
	return failure, reason
}
