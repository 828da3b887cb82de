// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"net/url"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

var (
	notLinked = platforms.NewError(platforms.ClassReconnect, "",
		"no professional account of Instagram is linked to the Facebook Page of this token", "link one on Facebook, and connect the account again")
	several = platforms.NewError(platforms.ClassReconnect, "",
		"this token is valid for several Instagram accounts", "connect one of them with the token of its Page")
)

var _ platforms.AccountInspector = (*Platform)(nil)

// Identify returns the account that a token belongs to.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	h := p.hostOf(token)
	find := h.identifyOwn
	if h.login == FacebookLogin {
		find = h.identifyLinked
	}
	identity, bad := find(ctx, token)
	if bad != nil {
		return platforms.Identity{}, h.NotIdentified(bad)
	}
	return identity, nil
}

// ownAccount is the account in responses to calls with a token of Instagram's login. UserID is the professional
// account's id, which is used in paths; ID is only valid within this app.
type ownAccount struct {
	meta.Account

	UserID jsondoc.Text `json:"user_id"`
}

func (h *host) identifyOwn(ctx context.Context, token platforms.Token) (platforms.Identity, *meta.Failure) {
	account, bad := meta.Get[struct {
		ownAccount

		// Some of Instagram's documentation wraps the account in a "data" array.
		Data []ownAccount `json:"data"`
	}](ctx, &h.Graph, "identify", "/me?fields=user_id,username,name,profile_picture_url,account_type", token)
	if bad != nil {
		return platforms.Identity{}, bad
	}
	own := account.ownAccount
	if len(account.Data) == 1 {
		own = account.Data[0]
	}
	own.ID = own.UserID
	return h.Identity(own.Account)
}

// linkedPage is a Page with the account linked to it, if any.
type linkedPage struct {
	Account jsondoc.Optional[meta.Account] `json:"instagram_business_account"`
}

const linkedFields = "id,name,instagram_business_account{id,username,name,profile_picture_url}"

// identifyLinked reads the account that is linked to a Page. For a Page token, this is the token's Page. For a user
// token, it reads the Pages that the user manages, and requires exactly one linked account.
func (h *host) identifyLinked(ctx context.Context, token platforms.Token) (platforms.Identity, *meta.Failure) {
	query := url.Values{"fields": {linkedFields}}
	page, bad := meta.Get[*linkedPage](ctx, &h.Graph, "identify", "/me?"+query.Encode(), token)
	if bad != nil && !bad.GraphError.Kind().OfRequest() {
		return platforms.Identity{}, bad
	}
	if page != nil && page.Account.Present {
		return h.Identity(page.Account.Value)
	}
	query.Set("limit", "100")
	pages, bad := meta.Get[struct {
		Data []linkedPage `json:"data"`
	}](ctx, &h.Graph, "identify", "/me/accounts?"+query.Encode(), token)
	switch {
	case bad != nil && bad.GraphError.Kind().OfRequest() && page != nil:
		// Only a user has Pages, so this is a Page token.
		return platforms.Identity{}, meta.NewFailure(new(notLinked))
	case bad != nil:
		return platforms.Identity{}, bad
	case pages.Data == nil:
		return platforms.Identity{}, meta.NewFailure(h.NoIdentity(nil))
	}
	accounts := map[jsondoc.Text]meta.Account{}
	for _, page := range pages.Data {
		if page.Account.Present {
			accounts[page.Account.Value.ID] = page.Account.Value
		}
	}
	if len(accounts) > 1 {
		return platforms.Identity{}, meta.NewFailure(new(several))
	}
	for _, account := range accounts {
		return h.Identity(account)
	}
	return platforms.Identity{}, meta.NewFailure(new(notLinked))
}

const msgNoRefresh = "the tokens of accounts that were connected through Facebook cannot be renewed"

// Refresh renews an access token of Instagram's login, which does not need a refresh token. With Facebook's login, an
// account has its Page's token, which does not expire and cannot be renewed.
func (p *Platform) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	h := p.hostOf(token)
	switch {
	case h.login == InstagramLogin:
		return h.Renew(ctx, token, "ig_refresh_token")
	case token.ExpiresAt.After(p.config.Clock.Now()):
		// The token is still valid. A renewal attempt that comes too early must not disconnect the account.
		return platforms.Token{}, platforms.Errorf(platforms.ClassTransient, msgNoRefresh+", but this one has not expired").
			Advise("connect the account again before it does, with the token of its Page, which does not expire")
	default:
		return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, msgNoRefresh).Advise("connect the account again")
	}
}

// Inspect returns the account's remaining posting quota (GET /{ig-user-id}/content_publishing_limit). Instagram's
// documentation gives three different totals, so Inspect relies only on the API response.
func (p *Platform) Inspect(ctx context.Context, account platforms.Account) (platforms.AccountInfo, error) {
	return p.hostOf(account.Token).Quota(ctx, account, "content_publishing_limit"), nil
}
