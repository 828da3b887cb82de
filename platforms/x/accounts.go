// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

var (
	noRefresh = platforms.NewError(platforms.ClassReconnect, "",
		"the access token cannot be renewed, since the account was connected without the scope offline.access", "connect it again and allow offline access")
	refreshDead = platforms.NewError(platforms.ClassReconnect, "",
		"X no longer accepts the refresh token: it was revoked, has expired, or was used by another program", "connect the account again")
)

// isDead reports whether an error means that the token is invalid: it is then invalid_request with the description
// "Value passed for the token was invalid." (PLhery/node-twitter-api-v2#496). X uses the same code for errors in the
// request, such as a missing parameter, which connecting the account again would not fix.
func isDead(code, description string) bool {
	return code == "invalid_request" && strings.Contains(strings.ToLower(description), "the token was invalid")
}

// Identify returns the account that a token belongs to.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	resp, failure := p.read(ctx, "identify", "/2/users/me?user.fields=id,name,username,profile_image_url", token)
	if failure != nil {
		return platforms.Identity{}, failure
	}
	doc, _ := jsondoc.Decode[struct {
		Data struct {
			ID       jsondoc.Text `json:"id"`
			Name     jsondoc.Text `json:"name"`
			Username jsondoc.Text `json:"username"`
			Picture  jsondoc.Text `json:"profile_image_url"`
		} `json:"data"`
	}](resp.Body)
	if doc.Data.ID == "" {
		return platforms.Identity{}, silentRefusal(resp, p.API.NoIdentity(nil))
	}
	return platforms.Identity{
		AccountID: doc.Data.ID.String(), DisplayName: doc.Data.Name.String(), Username: doc.Data.Username.String(), IconURL: doc.Data.Picture.String(),
	}, nil
}

func (p *Platform) read(ctx context.Context, action, path string, token platforms.Token) (*transport.Response, *platforms.Error) {
	resp, err := p.API.Do(ctx, client.Call{Action: action, Path: path, Token: token.Access, Timeout: readTimeout})
	if err != nil {
		return nil, p.API.Unanswered(err)
	}
	if resp.Status != http.StatusOK {
		failure, _ := p.classify(resp)
		return nil, failure
	}
	return resp, nil
}

// ofAccess are the classes of errors that are about the account or the app, regardless of the request.
var ofAccess = []platforms.Class{platforms.ClassReconnect, platforms.ClassQuota, platforms.ClassRestricted}

// silentRefusal classifies a successful response that lacks the requested data: X reports some errors in a list next to
// the data.
func silentRefusal(resp *transport.Response, failure *platforms.Error) *platforms.Error {
	if said, explained := parseProblem(resp.Body); explained {
		// The errors in the list are classified as if the response had status 403.
		a := &answer{Response: &transport.Response{Status: http.StatusForbidden, Header: resp.Header}, said: said}
		if r := rowOf(a); r != nil && slices.Contains(ofAccess, r.error.Class) {
			failure = new(r.error)
			failure.Code = cmp.Or(said.code(), r.code())
		}
		failure.Err = fmt.Errorf("HTTP status %d with problem %v, codes %v", resp.Status, said.kinds, said.codes)
	}
	return failure
}
