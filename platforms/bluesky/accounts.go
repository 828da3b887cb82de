// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"context"
	"net/http"
	"net/url"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// Identify returns the account of a token or an app password. The profile record has its name; an account without one is known by
// its handle. The picture has no address of its own on the account's server.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	// A session in memory does not show whether the app password was revoked, and this call does.
	resp, failure := p.read(ctx, "identify", "/xrpc/com.atproto.server.getSession", token)
	if failure != nil {
		return platforms.Identity{}, failure
	}
	if resp.Status != http.StatusOK {
		failure, _ := p.classify(resp)
		return platforms.Identity{}, failure
	}
	s, _ := jsondoc.Decode[session](resp.Body)
	if s.DID == "" {
		return platforms.Identity{}, p.api.NoIdentity(nil)
	}
	found := platforms.Identity{AccountID: s.DID.String(), Username: s.Handle.String(), DisplayName: s.Handle.String()}
	query := url.Values{"repo": {found.AccountID}, "collection": {"app.bsky.actor.profile"}, "rkey": {"self"}}
	if resp, failure := p.read(ctx, "identify", getRecord+query.Encode(), token); failure == nil && resp.Status == http.StatusOK {
		profile, _ := jsondoc.Decode[struct {
			Value struct {
				DisplayName jsondoc.Text `json:"displayName"`
			} `json:"value"`
		}](resp.Body)
		if profile.Value.DisplayName != "" {
			found.DisplayName = profile.Value.DisplayName.String()
		}
	}
	return found, nil
}

// Refresh renews a token that is bound to a key. An app password is valid until its owner revokes it.
func (p *Platform) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	if !isBound(token.Access) {
		return platforms.Token{}, new(passwordRevoked)
	}
	renewed, failure := p.renewed(ctx, token)
	if failure != nil {
		return platforms.Token{}, failure
	}
	return renewed, nil
}
