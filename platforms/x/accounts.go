// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

const (
	msgNoRefresh     = "the access token cannot be renewed, since the account was connected without the scope offline.access; connect it again and allow offline access"
	msgRefreshDead   = "X no longer accepts the refresh token: it was revoked, has ended, or was used by another program; connect the account again"
	msgClientRefused = "X does not accept Herald's client id or client secret; the administrator has to correct them in Herald's configuration"
	msgNoToken       = "X said that it renewed the access token, but gave none"
	msgNoIdentity    = "X did not say whose account this is"
)

// Identify asks X whose token this is.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	resp, failure := p.read(ctx, "identify", "/2/users/me?user.fields=id,name,username,profile_image_url", token)
	if failure != nil {
		return platforms.Identity{}, failure
	}
	doc, _ := decodeObject(resp.Body)
	data := object(doc["data"])
	identity := platforms.Identity{
		AccountID:   textOf(data["id"]),
		DisplayName: textOf(data["name"]),
		Username:    textOf(data["username"]),
		IconURL:     textOf(data["profile_image_url"]),
	}
	if identity.AccountID == "" {
		return platforms.Identity{}, p.silentRefusal(resp, msgNoIdentity)
	}
	return identity, nil
}

// Refresh renews the access token. X gives a new refresh token each time, and
// the one that was used stops working.
func (p *Platform) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	if token.Refresh == "" {
		return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, msgNoRefresh)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token.Refresh}}
	if p.config.ClientSecret == "" {
		form.Set("client_id", p.config.ClientID)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.config.APIURL+"/2/oauth2/token", strings.NewReader(form.Encode()))
	if err != nil {
		return platforms.Token{}, badAddress(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if p.config.ClientSecret != "" {
		req.SetBasicAuth(p.config.ClientID, p.config.ClientSecret)
	}
	resp, err := p.client.Do(ctx, call("refresh_token", readTimeout), req)
	if err != nil {
		return platforms.Token{}, unanswered(err)
	}
	if resp.Status != http.StatusOK {
		return platforms.Token{}, p.refreshRefused(resp)
	}
	return p.renewed(resp, token)
}

// renewed reads the token endpoint's answer. What it leaves out stays as it
// was (RFC 6749, section 6).
func (p *Platform) renewed(resp *transport.Response, old platforms.Token) (platforms.Token, error) {
	doc, _ := decodeObject(resp.Body)
	token := platforms.Token{Access: textOf(doc["access_token"]), Refresh: textOf(doc["refresh_token"]), Scopes: textOf(doc["scope"])}
	if token.Access == "" {
		return platforms.Token{}, platforms.Errorf(platforms.ClassUnknown, msgNoToken)
	}
	if token.Refresh == "" {
		token.Refresh, token.RefreshExpiresAt = old.Refresh, old.RefreshExpiresAt
	}
	if token.Scopes == "" {
		token.Scopes = old.Scopes
	}
	if seconds, err := strconv.ParseFloat(textOf(doc["expires_in"]), 64); err == nil && seconds > 0 && seconds < maxLifetime.Seconds() {
		token.ExpiresAt = p.config.Clock.Now().Add(time.Duration(seconds) * time.Second).UTC()
	}
	return token, nil
}

// maxLifetime bounds what is believed about how long a token lives.
const maxLifetime = 10 * 365 * 24 * time.Hour

// refreshRefused reads an error of the token endpoint, which speaks OAuth's
// language (RFC 6749, section 5.2).
func (p *Platform) refreshRefused(resp *transport.Response) *platforms.Error {
	failure, _ := classify(resp, p.config.Clock.Now())
	if resp.Status != http.StatusBadRequest && resp.Status != http.StatusUnauthorized {
		return failure
	}
	said, _ := parseProblem(resp.Body)
	class, message := platforms.ClassUnknown, fmt.Sprintf("%s (HTTP status %d)", msgNonsense, resp.Status)
	switch said.oauth {
	case "invalid_grant", "invalid_request":
		class, message = platforms.ClassReconnect, msgRefreshDead
	case "invalid_client", "unauthorized_client":
		// A person who connects the account again could not help.
		class, message = platforms.ClassTransient, msgClientRefused
	}
	return &platforms.Error{Class: class, Problem: message, Err: failure.Err}
}

// read makes a GET call and returns the answer if it is a success.
func (p *Platform) read(ctx context.Context, action, path string, token platforms.Token) (*transport.Response, *platforms.Error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.config.APIURL+path, http.NoBody)
	if err != nil {
		return nil, badAddress(err)
	}
	req.Header.Set("Authorization", "Bearer "+token.Access)
	resp, err := p.client.Do(ctx, call(action, readTimeout), req)
	if err != nil {
		return nil, unanswered(err)
	}
	if resp.Status != http.StatusOK {
		failure, _ := classify(resp, p.config.Clock.Now())
		return nil, failure
	}
	return resp, nil
}

// silentRefusal reads an answer that has the status of a success and not what
// was asked for: X reports some errors so, in a list beside the data.
func (p *Platform) silentRefusal(resp *transport.Response, message string) *platforms.Error {
	failure := platforms.Errorf(platforms.ClassUnknown, "%s", message)
	if said, explained := parseProblem(resp.Body); explained {
		if class, why := classOfForbidden(said); class == platforms.ClassReconnect || class == platforms.ClassQuota {
			failure.Class, failure.Problem = class, why
		}
		failure.Err = fmt.Errorf("HTTP status %d with problem %v, codes %v", resp.Status, said.kinds, said.codes)
	}
	return failure
}

func call(action string, timeout time.Duration) transport.Call {
	return transport.Call{Platform: "x", Action: action, Timeout: timeout}
}

// unanswered says what the absence of an answer means for a call that only
// asks.
func unanswered(err error) *platforms.Error {
	return &platforms.Error{Class: platforms.ClassTransient, Problem: msgLostOrNotSent(err), Err: err}
}

// badAddress says that the configured address of X is none.
func badAddress(err error) *platforms.Error {
	return &platforms.Error{
		Class:   platforms.ClassTransient,
		Problem: "the configured address of X's API is not a URL; the administrator has to correct it in Herald's configuration",
		Err:     err,
	}
}
