// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// fresh is how long a grant may be missing from the cache after its token was issued: another replica may just have
// stored it.
const fresh = 30 * time.Second

// Caller returns the caller behind an access token: the user who allowed the agent, limited to the granted scopes and
// the user's current permissions. Each call checks them, so a revoked grant or a withdrawn permission takes effect
// immediately. The error is a *bridge.Error if the token is invalid.
func (s *Server) Caller(ctx context.Context, token string) (bridge.Caller, error) {
	var access accessContent
	if s.Keys.Ready() != nil {
		// A 401 would make the client discard its token.
		return bridge.Caller{}, &bridge.Error{Code: bridge.CodeRateLimited, Message: "this server has no keys to verify access tokens yet; try again in a few seconds"}
	}
	sealed, ok := strings.CutPrefix(token, TokenPrefix)
	if !ok || s.Keys.Open(purposeAccess, sealed, &access) != nil {
		return bridge.Caller{}, unauthorized("this access token is invalid or has expired; refresh it")
	}
	if access.Audience != s.Resource() {
		return bridge.Caller{}, unauthorized("this access token was issued for another address of this server; authorize again")
	}
	grant, err := s.grantOf(ctx, &access)
	if err != nil {
		return bridge.Caller{}, err
	}
	if over := s.endReason(grant); over != "" {
		return bridge.Caller{}, unauthorized("this agent's grant " + over + "; authorize again")
	}
	who := personOf(grant)
	scopes, err := s.within(ctx, who, grant.Namespace, both(access.Scopes, scopesOf(grant)))
	switch {
	case err != nil:
		return bridge.Caller{}, err
	case len(scopes) == 0: // nil would allow everything
		return bridge.Caller{}, unauthorized("the person who allowed this agent no longer has the required rights in this team")
	}
	s.Used(grant)
	return bridge.Caller{Namespace: grant.Namespace, Key: grant.Name, Author: who.Name, Agent: shownName(grant), Scopes: scopes}, nil
}

func unauthorized(message string) *bridge.Error {
	return &bridge.Error{Code: bridge.CodeUnauthorized, Message: message}
}

// grantOf returns a token's grant from the cache. If the cache may not have it yet, grantOf reads it from the
// Kubernetes API, because clients discard a token after a 401.
func (s *Server) grantOf(ctx context.Context, access *accessContent) (*v1alpha1.OAuthGrant, error) {
	grant := s.Grants.Get(access.Namespace, access.Name)
	if grant == nil && (!s.Grants.HasSynced() || s.Clock.Now().Sub(time.UnixMilli(access.IssuedAt)) < fresh) {
		if wrong := s.admit(ctx, toCall, access.grantRef); wrong != nil {
			return nil, &bridge.Error{Code: bridge.CodeRateLimited, Message: "this server has not loaded this agent's grant yet; try again in a few seconds"}
		}
		var gone *problem
		var err error
		if grant, err = s.live(ctx, access.grantRef); err != nil && !errors.As(err, &gone) {
			return nil, err
		}
	}
	if grant == nil || grant.UID != access.UID {
		return nil, unauthorized("this agent's grant was revoked; authorize again")
	}
	return grant, nil
}

func shownName(grant *v1alpha1.OAuthGrant) string {
	if name := bridge.AgentName(grant.Spec.Client.Name); name != "" {
		return name
	}
	return bridge.AgentName(grant.Spec.Client.RedirectHost)
}
