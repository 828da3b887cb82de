// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"net/http"
	"net/url"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

const (
	msgNoIdentity = "Threads did not say whose account this is"
	msgNoToken    = "Threads said that it renewed the access token, but gave none"
	msgNotRenewed = "Threads did not renew the access token; Herald tries again"
)

// Identify asks Threads whose token this is.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	resp, failure := p.read(ctx, "identify", p.path("/me?fields=id,username,name,threads_profile_picture_url"), token)
	if failure != nil {
		if failure.said.Kind() == meta.KindOther {
			// The request was refused, not the account.
			failure.Class, failure.Problem = platforms.ClassUnknown, msgNoIdentity
		}
		return platforms.Identity{}, failure.Error
	}
	doc, _ := jsondoc.Parse(resp.Body)
	identity := platforms.Identity{
		AccountID:   doc.Text("id"),
		DisplayName: doc.Text("name"),
		Username:    doc.Text("username"),
		IconURL:     doc.Text("threads_profile_picture_url"),
	}
	if !meta.ValidID(identity.AccountID) {
		return platforms.Identity{}, platforms.Errorf(platforms.ClassUnknown, msgNoIdentity)
	}
	if identity.DisplayName == "" {
		identity.DisplayName = identity.Username
	}
	return identity, nil
}

// Refresh exchanges an access token that has not ended, and is a day old at
// least, for one that lives 60 days more. Threads has no refresh token: an
// access token renews itself.
func (p *Platform) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	query := url.Values{"grant_type": {"th_refresh_token"}, "access_token": {token.Access}}
	resp, err := p.graph.Do(ctx, meta.Call{Action: "refresh_token", Path: "/refresh_access_token?" + query.Encode(), Timeout: readTimeout})
	if err != nil {
		return platforms.Token{}, unanswered(err)
	}
	if resp.Status != http.StatusOK {
		failure, said := p.classify(resp)
		if said.Kind() == meta.KindOther || said.Kind() == meta.KindDuplicate {
			// It says nothing about the token, which may well be too young.
			failure.Class, failure.Problem = platforms.ClassTransient, msgNotRenewed
		}
		return platforms.Token{}, failure
	}
	return p.renewed(resp, token)
}

func (p *Platform) renewed(resp *transport.Response, old platforms.Token) (platforms.Token, error) {
	doc, _ := jsondoc.Parse(resp.Body)
	access := doc.Text("access_token")
	if access == "" {
		return platforms.Token{}, platforms.Errorf(platforms.ClassUnknown, msgNoToken)
	}
	token := platforms.Token{Access: access, Refresh: old.Refresh, Scopes: old.Scopes}
	if life := doc.Seconds("expires_in"); life > 0 {
		token.ExpiresAt = p.config.Clock.Now().Add(life).UTC()
	}
	return token, nil
}

// failure is an error together with what Threads said.
type failure struct {
	*platforms.Error

	said *meta.Error
}

// read makes a GET call and returns the answer if it is a success.
func (p *Platform) read(ctx context.Context, action, path string, token platforms.Token) (*transport.Response, *failure) {
	return p.ask(ctx, meta.Call{Action: action, Path: path, Token: token.Access, Timeout: readTimeout})
}

// ask makes a call that may be repeated and returns the answer if it is a
// success.
func (p *Platform) ask(ctx context.Context, call meta.Call) (*transport.Response, *failure) {
	resp, err := p.graph.Do(ctx, call)
	if err != nil {
		return nil, &failure{Error: unanswered(err), said: new(meta.Error)}
	}
	if resp.Status != http.StatusOK {
		problem, said := p.classify(resp)
		return nil, &failure{Error: problem, said: said}
	}
	return resp, nil
}
