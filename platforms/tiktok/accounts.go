// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// What people are told. None of it changes from one call to the next.
const (
	msgRefresh       = "TikTok does not accept the access token: it has ended or was revoked"
	msgScope         = "TikTok refuses Herald's access to this account, because a permission is missing; connect the account again and grant all of them"
	msgLimit         = "TikTok limits how often this account may be used, and the limit is reached; Herald tries again in a minute"
	msgBusy          = "TikTok has trouble and did not do what it was asked; try again later"
	msgNonsense      = "TikTok gave an answer that Herald does not understand (HTTP status %d)"
	msgNotSent       = "TikTok could not be reached; check the network between Herald and TikTok"
	msgLost          = "the connection to TikTok broke before the answer came"
	msgBadAddress    = "the configured address of TikTok's API is not a URL; the administrator has to correct it in Herald's configuration"
	msgNoIdentity    = "TikTok did not say whose account this is"
	msgNoRefresh     = "there is no refresh token, so that the access token cannot be renewed; connect the account again"
	msgRefreshDead   = "TikTok no longer accepts the refresh token: access was withdrawn, or it has ended; connect the account again"
	msgClientRefused = "TikTok does not accept Herald's client key or client secret; the administrator has to correct them in Herald's configuration"
	msgNoToken       = "TikTok said that it renewed the access token, but gave none"
)

// scopeProfile allows to read the username.
const scopeProfile = "user.info.profile"

// limitPause is how long TikTok counts calls: a sliding window of a minute. It
// sends no header that would say more.
const limitPause = time.Minute

// Identify asks TikTok whose token this is. The username is known only if the
// scope for it was granted.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	fields := "open_id,avatar_url,display_name"
	if token.Scopes == "" || slices.Contains(strings.FieldsFunc(token.Scopes, isSeparator), scopeProfile) {
		fields += ",username"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.config.APIURL+"/v2/user/info/?fields="+fields, http.NoBody)
	if err != nil {
		return platforms.Identity{}, badAddress(err)
	}
	req.Header.Set("Authorization", "Bearer "+token.Access)
	resp, err := p.client.Do(ctx, transport.Call{Platform: "tiktok", Action: "identify", Timeout: readTimeout}, req)
	if err != nil {
		return platforms.Identity{}, unanswered(err)
	}
	doc, _ := jsondoc.Parse(resp.Body)
	if code := doc.Object("error").Text("code"); resp.Status != http.StatusOK || code != "ok" {
		return platforms.Identity{}, p.refused(resp.Status, code)
	}
	user := doc.Object("data").Object("user")
	identity := platforms.Identity{
		AccountID:   user.Text("open_id"),
		DisplayName: user.Text("display_name"),
		Username:    user.Text("username"),
		IconURL:     user.Text("avatar_url"),
	}
	if identity.AccountID == "" {
		return platforms.Identity{}, platforms.Errorf(platforms.ClassUnknown, msgNoIdentity)
	}
	return identity, nil
}

// isSeparator tells whether r stands between scopes: TikTok writes commas.
func isSeparator(r rune) bool { return r == ',' || r == ' ' }

// refused reads an error of the API. TikTok sends some with status 200.
func (p *Platform) refused(status int, code string) *platforms.Error {
	failure := &platforms.Error{Err: fmt.Errorf("HTTP status %d with error %.64q", status, code)}
	switch {
	case code == "access_token_invalid":
		failure.Class, failure.Problem = platforms.ClassRefresh, msgRefresh
	case code == "scope_not_authorized", code == "scope_permission_missed":
		failure.Class, failure.Problem = platforms.ClassReconnect, msgScope
	case code == "rate_limit_exceeded", status == http.StatusTooManyRequests:
		failure.Class, failure.Problem = platforms.ClassRateLimited, msgLimit
		failure.RetryAt = p.config.Clock.Now().Add(limitPause)
	case code == "internal_error", status >= http.StatusInternalServerError:
		failure.Class, failure.Problem = platforms.ClassTransient, msgBusy
	default:
		failure.Class, failure.Problem = platforms.ClassUnknown, fmt.Sprintf(msgNonsense, status)
	}
	return failure
}

// Refresh renews the access token. TikTok gives a new refresh token each time,
// and the one that was used stops working.
func (p *Platform) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	if token.Refresh == "" {
		return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, msgNoRefresh)
	}
	form := url.Values{
		"client_key": {p.config.ClientKey}, "client_secret": {p.config.ClientSecret},
		"grant_type": {"refresh_token"}, "refresh_token": {token.Refresh},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.config.APIURL+"/v2/oauth/token/", strings.NewReader(form.Encode()))
	if err != nil {
		return platforms.Token{}, badAddress(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := p.client.Do(ctx, transport.Call{Platform: "tiktok", Action: "refresh_token", Timeout: readTimeout}, req)
	if err != nil {
		return platforms.Token{}, unanswered(err)
	}
	doc, _ := jsondoc.Parse(resp.Body)
	if code := doc.Text("error"); resp.Status != http.StatusOK || code != "" {
		return platforms.Token{}, p.refreshRefused(resp.Status, code)
	}
	return p.renewed(doc, token)
}

// renewed reads the token endpoint's answer. What it leaves out stays as it
// was (RFC 6749, section 6).
func (p *Platform) renewed(doc jsondoc.Object, old platforms.Token) (platforms.Token, error) {
	token := platforms.Token{Access: doc.Text("access_token"), Refresh: doc.Text("refresh_token"), Scopes: doc.Text("scope")}
	if token.Access == "" {
		return platforms.Token{}, platforms.Errorf(platforms.ClassUnknown, msgNoToken)
	}
	if token.Refresh == "" {
		token.Refresh, token.RefreshExpiresAt = old.Refresh, old.RefreshExpiresAt
	}
	// TikTok writes scopes with commas.
	token.Scopes = strings.Join(strings.FieldsFunc(token.Scopes, isSeparator), " ")
	if token.Scopes == "" {
		token.Scopes = old.Scopes
	}
	if life := doc.Seconds("expires_in"); life > 0 {
		token.ExpiresAt = p.config.Clock.Now().Add(life).UTC()
	}
	if life := doc.Seconds("refresh_expires_in"); life > 0 {
		token.RefreshExpiresAt = p.config.Clock.Now().Add(life).UTC()
	}
	return token, nil
}

// refreshRefused reads an error of the token endpoint, which speaks OAuth's
// language (RFC 6749, section 5.2).
func (p *Platform) refreshRefused(status int, code string) *platforms.Error {
	failure := p.refused(status, code)
	switch code {
	case "invalid_grant":
		failure.Class, failure.Problem = platforms.ClassReconnect, msgRefreshDead
	case "invalid_client", "invalid_request", "unauthorized_client":
		// A person who connects the account again could not help.
		failure.Class, failure.Problem = platforms.ClassTransient, msgClientRefused
	case "server_error", "temporarily_unavailable":
		failure.Class, failure.Problem = platforms.ClassTransient, msgBusy
	}
	return failure
}

// unanswered says what the absence of an answer means for a call that may be
// repeated.
func unanswered(err error) *platforms.Error {
	message := msgLost
	if !wasSent(err) {
		message = msgNotSent
	}
	return &platforms.Error{Class: platforms.ClassTransient, Problem: message, Err: err}
}

// wasSent tells whether something of a call can have arrived that failed with
// this error.
func wasSent(err error) bool {
	failure, ok := errors.AsType[*transport.Error](err)
	return !ok || failure.Sent
}

// badAddress says that the configured address of TikTok is none.
func badAddress(err error) *platforms.Error {
	return &platforms.Error{Class: platforms.ClassTransient, Problem: msgBadAddress, Err: err}
}
