// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

var otherAccount = platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
	"the account's server reports another account than the one that was connected", "connect the account again")

// confirmed returns the handle if it resolves to the account with this DID, and "" otherwise. An account's own server
// could claim any handle, even a well-known one, so the configured server resolves it.
func (p *Platform) confirmed(ctx context.Context, handle, did string) string {
	if handle = strings.ToLower(handle); !handlePattern.MatchString(handle) {
		return ""
	}
	if found, failure := p.didOf(ctx, handle); failure != nil || found != did {
		return ""
	}
	return handle
}

// Identify returns the account that a token or an app password belongs to. For an OAuth token, the account's own server
// cannot substitute another account. The display name comes from the profile record and defaults to the handle. There
// is no picture, because the account's server has no address for it.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	// A session in memory does not show whether the app password has been revoked; this call does.
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
	found := platforms.Identity{AccountID: s.DID.String(), Username: s.Handle.String()}
	if of, _, ok := parseBound(token.Access); ok {
		if found.AccountID != of.DID {
			return platforms.Identity{}, new(otherAccount)
		}
		found.Username = p.confirmed(ctx, found.Username, of.DID)
	}
	found.DisplayName = cmp.Or(found.Username, found.AccountID)
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

// Refresh renews an OAuth token. An app password does not need renewal: it is valid until its owner revokes it.
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
