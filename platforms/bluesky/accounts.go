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

// confirmed returns a handle if it refers to an account, and "" otherwise. An account's own server may name any handle, such as a
// well-known one, and the configured server finds out whose it is.
func (p *Platform) confirmed(ctx context.Context, handle, did string) string {
	if handle = strings.ToLower(handle); !handlePattern.MatchString(handle) {
		return ""
	}
	if found, failure := p.didOf(ctx, handle); failure != nil || found != did {
		return ""
	}
	return handle
}

// Identify returns the account of a token or an app password. The account's own server cannot pass off another account as the one
// that a token from OAuth was issued for. The profile record has its name; an account without one is known by
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
