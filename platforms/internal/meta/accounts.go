// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"cmp"
	"context"
	"net/url"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

// Account is an account as the graph returns it.
type Account struct {
	ID       jsondoc.Text `json:"id"`
	Name     jsondoc.Text `json:"name"`
	Username jsondoc.Text `json:"username"`
	// Each graph has its own field name for the picture.
	InstagramPicture jsondoc.Text `json:"profile_picture_url"`
	ThreadsPicture   jsondoc.Text `json:"threads_profile_picture_url"`
	FacebookPicture  struct {
		Data struct {
			URL jsondoc.Text `json:"url"`
		} `json:"data"`
	} `json:"picture"`
}

// Identify returns the account that a token belongs to.
func (g *Graph) Identify(ctx context.Context, path string, token platforms.Token) (platforms.Identity, error) {
	account, bad := Get[Account](ctx, g, "identify", path, token)
	var identity platforms.Identity
	if bad == nil {
		identity, bad = g.Identity(account)
	}
	if bad != nil {
		return platforms.Identity{}, g.NotIdentified(bad)
	}
	return identity, nil
}

// Identity converts an account. The display name defaults to the handle.
func (g *Graph) Identity(a Account) (platforms.Identity, *Failure) {
	if !ValidID(a.ID.String()) {
		return platforms.Identity{}, NewFailure(g.NoIdentity(nil))
	}
	return platforms.Identity{
		AccountID: a.ID.String(), DisplayName: cmp.Or(a.Name, a.Username).String(), Username: a.Username.String(),
		IconURL: cmp.Or(a.InstagramPicture, a.ThreadsPicture, a.FacebookPicture.Data.URL).String(),
	}, nil
}

// NotIdentified converts a failure of Identify. If the graph rejects the request itself, the account is not at fault.
func (g *Graph) NotIdentified(bad *Failure) *platforms.Error {
	if bad.GraphError.Kind().OfRequest() {
		return g.NoIdentity(bad.GraphError)
	}
	return bad.Error
}

// Renew exchanges a valid access token that is at least a day old for one that is valid for 60 days. There are no
// refresh tokens: the access token itself is exchanged. grant is the grant type.
func (g *Graph) Renew(ctx context.Context, token platforms.Token, grant string) (platforms.Token, error) {
	query := url.Values{"grant_type": {grant}, "access_token": {token.Access}}
	body, bad := g.Call(ctx, client.Call{Action: "refresh_token", Path: "/refresh_access_token?" + query.Encode(), Timeout: ReadTimeout}, ThePost)
	if bad != nil {
		if kind := bad.GraphError.Kind(); kind.OfRequest() || kind == KindDuplicate {
			// The token is not at fault: it may be too new to be renewed.
			return platforms.Token{}, platforms.Errorf(platforms.ClassTransient, "%s did not renew the access token", g.Name).Because(bad.GraphError)
		}
		return platforms.Token{}, bad.Error
	}
	return oauth2.ParseToken(&g.Client, body, token, g.Clock.Now())
}

// quotaPause is how long an account pauses when its posting quota is exhausted. The quota covers a sliding window of 24
// hours, and Meta does not report when the oldest post leaves it.
const quotaPause = 30 * time.Minute

// Quota returns the account's remaining posting quota. limit is the last segment of the path. An unreadable quota is
// not an error.
func (g *Graph) Quota(ctx context.Context, account platforms.Account, limit string) platforms.AccountInfo {
	doc, bad := Get[struct {
		Data []struct {
			Usage  jsondoc.Text `json:"quota_usage"`
			Config struct {
				Total jsondoc.Text `json:"quota_total"`
			} `json:"config"`
		} `json:"data"`
	}](ctx, g, "survey", "/"+url.PathEscape(account.ID)+"/"+limit+"?fields=quota_usage,config", account.Token)
	if bad != nil || len(doc.Data) == 0 {
		return platforms.AccountInfo{}
	}
	quota := doc.Data[0]
	return platforms.AccountInfo{RateLimits: quotaLimit(quota.Config.Total.String(), quota.Usage.String(), g.Clock.Now().Add(quotaPause))}
}
