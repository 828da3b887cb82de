// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// What people are told about their accounts. None of it changes from one call to
// the next.
const (
	msgNoIdentity    = "YouTube did not say whose channel this is"
	msgNoRefresh     = "there is no refresh token, so that the access token cannot be renewed; connect the channel again"
	msgRefreshDead   = "Google no longer accepts the refresh token: access was withdrawn, or it was not used for six months; connect the channel again"
	msgClientRefused = "Google does not accept Herald's client id or client secret; the administrator has to correct them in Herald's configuration"
	msgNoToken       = "Google said that it renewed the access token, but gave none"
)

// Identify asks YouTube whose token this is: one token is for one channel.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.config.APIURL+"/youtube/v3/channels?part=snippet&mine=true", http.NoBody)
	if err != nil {
		return platforms.Identity{}, badAddress(err)
	}
	req.Header.Set("Authorization", "Bearer "+token.Access)
	resp, err := p.client.Do(ctx, transport.Call{Platform: "youtube", Action: "identify", Timeout: readTimeout}, req)
	if err != nil {
		return platforms.Identity{}, unanswered(err)
	}
	if resp.Status != http.StatusOK {
		return platforms.Identity{}, p.accountRefused(resp)
	}
	doc, ok := jsondoc.Parse(resp.Body)
	items, listed := doc.List("items")
	switch {
	case !ok, !listed && doc.Text("kind") == "":
		return platforms.Identity{}, platforms.Errorf(platforms.ClassUnknown, msgNoIdentity)
	case len(items) == 0:
		// YouTube leaves the list out if it is empty.
		return platforms.Identity{}, platforms.Errorf(platforms.ClassReconnect, msgNoChannel)
	}
	snippet := items[0].Object("snippet")
	identity := platforms.Identity{
		AccountID:   items[0].Text("id"),
		DisplayName: snippet.Text("title"),
		Username:    strings.TrimPrefix(snippet.Text("customUrl"), "@"),
		IconURL:     snippet.Object("thumbnails").Object("default").Text("url"),
	}
	if identity.AccountID == "" {
		return platforms.Identity{}, platforms.Errorf(platforms.ClassUnknown, msgNoIdentity)
	}
	return identity, nil
}

// Refresh renews the access token. Google leaves the refresh token as it is.
func (p *Platform) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	if token.Refresh == "" {
		return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, msgNoRefresh)
	}
	form := url.Values{
		"client_id": {p.config.ClientID}, "client_secret": {p.config.ClientSecret},
		"grant_type": {"refresh_token"}, "refresh_token": {token.Refresh},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.tokenURL+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		return platforms.Token{}, badAddress(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := p.client.Do(ctx, transport.Call{Platform: "youtube", Action: "refresh_token", Timeout: readTimeout}, req)
	if err != nil {
		return platforms.Token{}, unanswered(err)
	}
	if resp.Status != http.StatusOK {
		return platforms.Token{}, p.refreshRefused(resp)
	}
	doc, _ := jsondoc.Parse(resp.Body)
	renewed := platforms.Token{Access: doc.Text("access_token"), Refresh: doc.Text("refresh_token"), Scopes: doc.Text("scope")}
	if renewed.Access == "" {
		return platforms.Token{}, platforms.Errorf(platforms.ClassUnknown, msgNoToken)
	}
	// What is left out stays as it was (RFC 6749, section 6).
	if renewed.Refresh == "" {
		renewed.Refresh, renewed.RefreshExpiresAt = token.Refresh, token.RefreshExpiresAt
	}
	if renewed.Scopes == "" {
		renewed.Scopes = token.Scopes
	}
	if life := doc.Seconds("expires_in"); life > 0 {
		renewed.ExpiresAt = p.config.Clock.Now().Add(life).UTC()
	}
	// Told where a person granted access for a limited time.
	if life := doc.Seconds("refresh_token_expires_in"); life > 0 {
		renewed.RefreshExpiresAt = p.config.Clock.Now().Add(life).UTC()
	}
	return renewed, nil
}

// accountRefused reads an error of a call about an account. What the
// administrator has to mend passes, as far as the account is concerned: a person
// who connects the channel again could not help.
func (p *Platform) accountRefused(resp *transport.Response) *platforms.Error {
	failure, reason := p.refused(resp)
	if reason == reasonNotEnabled {
		failure.Class = platforms.ClassTransient
	}
	return failure
}

// refreshRefused reads an error of the token endpoint, which speaks OAuth's
// language (RFC 6749, section 5.2).
func (p *Platform) refreshRefused(resp *transport.Response) *platforms.Error {
	failure := p.accountRefused(resp)
	if resp.Status != http.StatusBadRequest && resp.Status != http.StatusUnauthorized {
		return failure
	}
	doc, _ := jsondoc.Parse(resp.Body)
	code := doc.Text("error")
	failure.Class, failure.Problem = platforms.ClassUnknown, fmt.Sprintf(msgNonsense, resp.Status)
	switch code {
	case "invalid_grant":
		failure.Class, failure.Problem = platforms.ClassReconnect, msgRefreshDead
	case "invalid_client", "unauthorized_client", "invalid_request":
		// A person who connects the channel again could not help.
		failure.Class, failure.Problem = platforms.ClassTransient, msgClientRefused
	}
	failure.Err = fmt.Errorf("HTTP status %d with error %.64q", resp.Status, code)
	return failure
}
