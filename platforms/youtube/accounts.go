// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/jsondoc"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// What people are told. None of it changes from one call to the next.
const (
	msgRefresh       = "YouTube does not accept the access token: it has ended or was revoked"
	msgNoChannel     = "this Google account has no YouTube channel; create one, then connect the account again"
	msgScope         = "YouTube refuses Herald's access to this channel, because a permission is missing; connect the channel again and grant all of them"
	msgClosed        = "YouTube has closed or suspended this channel; appeal to YouTube, then connect the channel again"
	msgNotEnabled    = "the YouTube Data API is not enabled for Herald's Google project; the administrator has to enable it in the Google Cloud console"
	msgQuota         = "the quota of Herald's Google project is used up for today; it is renewed at midnight Pacific time"
	msgLimit         = "YouTube limits how often it may be called, and the limit is reached; Herald tries again later"
	msgBusy          = "YouTube has trouble and did not do what it was asked; try again later"
	msgNonsense      = "YouTube gave an answer that Herald does not understand (HTTP status %d)"
	msgNotSent       = "YouTube could not be reached; check the network between Herald and YouTube"
	msgLost          = "the connection to YouTube broke before the answer came"
	msgBadAddress    = "the configured address of YouTube's API is not a URL; the administrator has to correct it in Herald's configuration"
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
		return platforms.Identity{}, p.refused(resp)
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

// refused reads an error of the Data API: the status, and the reason of its
// first entry.
func (p *Platform) refused(resp *transport.Response) *platforms.Error {
	doc, _ := jsondoc.Parse(resp.Body)
	said := doc.Object("error")
	reason := ""
	if entries, ok := said.List("errors"); ok && len(entries) > 0 {
		reason = entries[0].Text("reason")
	}
	class, message := classOf(resp.Status, reason)
	failure := &platforms.Error{Class: class, Message: message, Err: fmt.Errorf("HTTP status %d with reason %.64q", resp.Status, reason)}
	now := p.config.Clock.Now()
	switch class {
	case platforms.ClassQuota:
		// The quota is the Google project's.
		failure.RetryAt, failure.AppWide = quotaRenewed(now), true
	case platforms.ClassRateLimited, platforms.ClassTransient:
		failure.RetryAt = retryAfter(resp.Header, now)
	case platforms.ClassReconnect, platforms.ClassRefresh, platforms.ClassPermanent, platforms.ClassDuplicate, platforms.ClassUnknown:
	}
	return failure
}

// classOf is the table of YouTube's errors.
func classOf(status int, reason string) (platforms.Class, string) {
	switch reason {
	case "youtubeSignupRequired":
		return platforms.ClassReconnect, msgNoChannel
	case "insufficientPermissions":
		return platforms.ClassReconnect, msgScope
	case "authenticatedUserAccountClosed", "authenticatedUserAccountSuspended", "channelClosed", "channelSuspended":
		return platforms.ClassPermanent, msgClosed
	case "accessNotConfigured":
		// A person who connects the channel again could not help.
		return platforms.ClassTransient, msgNotEnabled
	case "quotaExceeded", "dailyLimitExceeded":
		return platforms.ClassQuota, msgQuota
	case "rateLimitExceeded", "userRateLimitExceeded":
		return platforms.ClassRateLimited, msgLimit
	}
	switch {
	case status == http.StatusUnauthorized:
		return platforms.ClassRefresh, msgRefresh
	case status == http.StatusTooManyRequests:
		return platforms.ClassRateLimited, msgLimit
	case status >= http.StatusInternalServerError:
		return platforms.ClassTransient, msgBusy
	default:
		return platforms.ClassUnknown, fmt.Sprintf(msgNonsense, status)
	}
}

// refreshRefused reads an error of the token endpoint, which speaks OAuth's
// language (RFC 6749, section 5.2).
func (p *Platform) refreshRefused(resp *transport.Response) *platforms.Error {
	failure := p.refused(resp)
	if resp.Status != http.StatusBadRequest && resp.Status != http.StatusUnauthorized {
		return failure
	}
	doc, _ := jsondoc.Parse(resp.Body)
	code := doc.Text("error")
	failure.Class, failure.Message = platforms.ClassUnknown, fmt.Sprintf(msgNonsense, resp.Status)
	switch code {
	case "invalid_grant":
		failure.Class, failure.Message = platforms.ClassReconnect, msgRefreshDead
	case "invalid_client", "unauthorized_client", "invalid_request":
		// A person who connects the channel again could not help.
		failure.Class, failure.Message = platforms.ClassTransient, msgClientRefused
	}
	failure.Err = fmt.Errorf("HTTP status %d with error %.64q", resp.Status, code)
	return failure
}

// quotaHour is when quotas are renewed in UTC: midnight Pacific standard time,
// which is an hour late in summer and never early.
const quotaHour = 8

// quotaRenewed is when the quota that is used up at now is renewed.
func quotaRenewed(now time.Time) time.Time {
	now = now.UTC()
	at := time.Date(now.Year(), now.Month(), now.Day(), quotaHour, 0, 0, 0, time.UTC)
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}

// maxWait bounds how far ahead a time to try again is believed.
const maxWait = 24 * time.Hour

// retryAfter reads when to try again, where Google says so.
func retryAfter(h http.Header, now time.Time) time.Time {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds <= 0 || seconds > int(maxWait/time.Second) {
		return time.Time{}
	}
	return now.Add(time.Duration(seconds) * time.Second)
}

// unanswered says what the absence of an answer means for a call that may be
// repeated.
func unanswered(err error) *platforms.Error {
	message := msgLost
	if failure, ok := errors.AsType[*transport.Error](err); ok && !failure.Sent {
		message = msgNotSent
	}
	return &platforms.Error{Class: platforms.ClassTransient, Message: message, Err: err}
}

// badAddress says that the configured address of YouTube is none.
func badAddress(err error) *platforms.Error {
	return &platforms.Error{Class: platforms.ClassTransient, Message: msgBadAddress, Err: err}
}
