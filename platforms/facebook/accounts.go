// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"
	"net/http"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

const (
	msgNoIdentity = "Facebook did not say whose account this is"
	msgNoRefresh  = "Facebook's Page tokens cannot be renewed; connect the Page again"
)

// Identify asks Facebook which Page this token is for.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	resp, failure, said := p.read(ctx, "identify", p.path("/me?fields=id,name,username,picture%7Burl%7D"), token)
	if failure != nil {
		if said.Kind() == meta.KindOther {
			// The request was refused, not the account.
			failure.Class, failure.Problem = platforms.ClassUnknown, msgNoIdentity
		}
		return platforms.Identity{}, failure
	}
	doc, _ := jsondoc.Parse(resp.Body)
	identity := platforms.Identity{
		AccountID:   doc.Text("id"),
		DisplayName: doc.Text("name"),
		Username:    doc.Text("username"),
		IconURL:     doc.Object("picture").Object("data").Text("url"),
	}
	if !meta.ValidID(identity.AccountID) {
		return platforms.Identity{}, platforms.Errorf(platforms.ClassUnknown, msgNoIdentity)
	}
	return identity, nil
}

// Refresh always fails: a Page's token has no end and nothing that renews it.
func (p *Platform) Refresh(context.Context, platforms.Token) (platforms.Token, error) {
	return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, msgNoRefresh)
}

// read makes a GET call and returns the answer if it is a success, else what it
// asks for and what the graph said.
func (p *Platform) read(ctx context.Context, action, path string, token platforms.Token) (*transport.Response, *platforms.Error, *meta.Error) {
	resp, err := p.graph.Do(ctx, meta.Call{Action: action, Path: path, Token: token.Access, Timeout: readTimeout})
	if err != nil {
		return nil, unanswered(err), new(meta.Error)
	}
	if resp.Status != http.StatusOK {
		failure, said := p.classify(resp)
		return nil, failure, said
	}
	return resp, nil, nil
}
