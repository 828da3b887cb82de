// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"context"
	"net/http"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

var _ platforms.AccountInspector = (*Platform)(nil)

// english returns headers that make a server report errors in English, so that Herald can recognize some of them.
// Servers translate errors for clients that accept other languages (app/controllers/concerns/localized.rb).
func english() http.Header { return http.Header{"Accept-Language": {"en"}} }

// read makes a read-only call. A response other than 200 is an error.
func (p *Platform) read(ctx context.Context, action, path string, token platforms.Token) (*transport.Response, *platforms.Error) {
	api, failure := p.at(token)
	if failure != nil {
		return nil, failure
	}
	resp, err := api.Do(ctx, client.Call{Action: action, Path: path, Token: token.Access, Header: english(), Timeout: readTimeout})
	if err != nil {
		return nil, api.Unanswered(err)
	}
	if resp.Status != http.StatusOK {
		failure, _ := p.classify(resp)
		return nil, failure
	}
	return resp, nil
}

// Identify returns the account that a token belongs to (GET /api/v1/accounts/verify_credentials).
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	resp, failure := p.read(ctx, "identify", "/api/v1/accounts/verify_credentials", token)
	if failure != nil {
		return platforms.Identity{}, failure
	}
	doc, _ := jsondoc.Decode[struct {
		ID       jsondoc.Text `json:"id"`
		Username jsondoc.Text `json:"username"`
		Name     jsondoc.Text `json:"display_name"`
		Avatar   jsondoc.Text `json:"avatar"`
	}](resp.Body)
	if !validID(doc.ID.String()) {
		return platforms.Identity{}, p.api.NoIdentity(nil)
	}
	found := platforms.Identity{
		AccountID: accountID(doc.ID.String(), token.Server), Username: accountID(doc.Username.String(), token.Server),
		DisplayName: doc.Name.String(), IconURL: doc.Avatar.Web(),
	}
	if found.DisplayName == "" {
		found.DisplayName = doc.Username.String()
	}
	return found, nil
}

// Refresh always returns an error: an access token is valid until its owner revokes it and cannot be renewed.
func (p *Platform) Refresh(context.Context, platforms.Token) (platforms.Token, error) {
	failure := tokenRevoked
	return platforms.Token{}, &failure
}

// Inspect returns the limits of the account's server. They are the same for all of its accounts.
func (p *Platform) Inspect(ctx context.Context, account platforms.Account) (platforms.AccountInfo, error) {
	found := p.limits(ctx, account.Token)
	if found == nil {
		return platforms.AccountInfo{}, nil
	}
	return platforms.AccountInfo{Mastodon: found}, nil
}
