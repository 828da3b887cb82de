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

const (
	msgNoIdentity = "Instagram did not say whose account this is"
	msgNotLinked  = "no professional account of Instagram is linked to the Facebook Page of this token; link one on Facebook, and connect the account again"
	msgSeveral    = "this token is good for several accounts of Instagram; connect one of them with the token of its Page"
	msgNoToken    = "Instagram said that it renewed the access token, but gave none"
	msgNotRenewed = "Instagram did not renew the access token; Herald tries again"
	msgNoRefresh  = "the tokens of accounts that were connected through Facebook cannot be renewed; connect the account again"
	msgGoodUntil  = "the tokens of accounts that were connected through Facebook cannot be renewed, but this one has not ended; connect the account again before it does, with the token of its Page, which does not end"
)

// Identify asks Instagram whose token this is.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	h := p.hostOf(token)
	find := h.identifyOwn
	if h.login == FacebookLogin {
		find = h.identifyLinked
	}
	identity, failed := find(ctx, token)
	if failed != nil {
		if failed.said.Kind() == meta.KindOther {
			// The request was refused, not the account.
			failed.Class, failed.Problem = platforms.ClassUnknown, msgNoIdentity
		}
		return platforms.Identity{}, failed.Error
	}
	return identity, nil
}

// identifyOwn reads the account of a token of Instagram's login. Its id is that
// of the professional account, which paths are made with, and not the id that
// Instagram gives the account for this app alone.
func (h *host) identifyOwn(ctx context.Context, token platforms.Token) (platforms.Identity, *failure) {
	doc, failed := h.read(ctx, "identify", "/me?fields=user_id,username,name,profile_picture_url,account_type", token)
	if failed != nil {
		return platforms.Identity{}, failed
	}
	if wrapped, ok := doc.List("data"); ok && len(wrapped) == 1 {
		// Some of Instagram's pages show the account in a list.
		doc = wrapped[0]
	}
	return identityOf(doc, "user_id")
}

// linkedFields are what is asked of a Page.
const linkedFields = "id,name,instagram_business_account{id,username,name,profile_picture_url}"

// identifyLinked reads the account that is linked to a Page. A Page's own token
// is asked for its Page; the token of a person for the Pages that they manage,
// of which one may have an account.
func (h *host) identifyLinked(ctx context.Context, token platforms.Token) (platforms.Identity, *failure) {
	query := url.Values{"fields": {linkedFields}}
	page, failed := h.read(ctx, "identify", "/me?"+query.Encode(), token)
	if failed != nil && failed.said.Kind() != meta.KindOther {
		return platforms.Identity{}, failed
	}
	if account := page.Object("instagram_business_account"); account != nil {
		return identityOf(account, "id")
	}
	query.Set("limit", "100")
	pages, failed := h.read(ctx, "identify", "/me/accounts?"+query.Encode(), token)
	if failed != nil {
		if failed.said.Kind() == meta.KindOther && page != nil {
			// Only a person has Pages, and this is a Page's own token.
			return platforms.Identity{}, because(platforms.ClassReconnect, msgNotLinked)
		}
		return platforms.Identity{}, failed
	}
	entries, ok := pages.List("data")
	if !ok {
		return platforms.Identity{}, because(platforms.ClassUnknown, msgNoIdentity)
	}
	accounts := map[string]jsondoc.Object{}
	for _, entry := range entries {
		if account := entry.Object("instagram_business_account"); account != nil {
			accounts[account.Text("id")] = account
		}
	}
	if len(accounts) > 1 {
		return platforms.Identity{}, because(platforms.ClassReconnect, msgSeveral)
	}
	for _, account := range accounts {
		return identityOf(account, "id")
	}
	return platforms.Identity{}, because(platforms.ClassReconnect, msgNotLinked)
}

// identityOf reads an account whose id stands in a field.
func identityOf(doc jsondoc.Object, id string) (platforms.Identity, *failure) {
	identity := platforms.Identity{
		AccountID:   doc.Text(id),
		DisplayName: doc.Text("name"),
		Username:    doc.Text("username"),
		IconURL:     doc.Text("profile_picture_url"),
	}
	if !meta.ValidID(identity.AccountID) {
		return platforms.Identity{}, because(platforms.ClassUnknown, msgNoIdentity)
	}
	if identity.DisplayName == "" {
		identity.DisplayName = identity.Username
	}
	return identity, nil
}

// Refresh exchanges an access token of Instagram's login that has not ended, and
// is a day old at least, for one that lives 60 days more: there are no refresh
// tokens, an access token renews itself. With Facebook's login an account has
// the token of its Page, which has no end and nothing that renews it.
func (p *Platform) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	h := p.hostOf(token)
	if h.login == FacebookLogin {
		if token.ExpiresAt.After(p.config.Clock.Now()) {
			// It works still; that it is asked for ahead of time must not end that.
			return platforms.Token{}, platforms.Errorf(platforms.ClassTransient, msgGoodUntil)
		}
		return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, msgNoRefresh)
	}
	query := url.Values{"grant_type": {"ig_refresh_token"}, "access_token": {token.Access}}
	doc, failed := h.ask(ctx, meta.Call{Action: "refresh_token", Path: "/refresh_access_token?" + query.Encode(), Timeout: readTimeout}, thePost)
	if failed != nil {
		if kind := failed.said.Kind(); kind == meta.KindOther || kind == meta.KindDuplicate {
			// It says nothing about the token, which may well be too young.
			failed.Class, failed.Problem = platforms.ClassTransient, msgNotRenewed
		}
		return platforms.Token{}, failed.Error
	}
	access := doc.Text("access_token")
	if access == "" {
		return platforms.Token{}, platforms.Errorf(platforms.ClassUnknown, msgNoToken)
	}
	renewed := platforms.Token{Access: access, Refresh: token.Refresh, Scopes: token.Scopes}
	if life := doc.Seconds("expires_in"); life > 0 {
		renewed.ExpiresAt = p.config.Clock.Now().Add(life).UTC()
	}
	return renewed, nil
}
