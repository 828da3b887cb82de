// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oauth2 exchanges authorization codes for access tokens and renews them with refresh tokens (RFC 6749,
// sections 4.1.3 and 6).
package oauth2

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// Endpoint is a platform's token endpoint.
type Endpoint struct {
	// Client makes calls to the endpoint. In messages, its Name identifies the token issuer.
	client.Client
	Path string
	// App returns Herald's app. It is called for each request, because the secret may have been replaced.
	App     func() App
	Timeout time.Duration
	// Clock determines the expiry of new tokens.
	Clock clock.PassiveClock
	// Dead is the error for an invalid refresh token, and NoRefresh the error for a missing one. NoRefresh defaults
	// to a generic error with Dead's remedy.
	Dead, NoRefresh platforms.Error
	// IsDead reports whether a platform-specific error, given by its code and description, means Dead. It is nil on a
	// platform that uses invalid_grant.
	IsDead func(code, description string) bool
	// AnyStatus reports whether the endpoint returns errors with any HTTP status, including 200, rather than only with
	// 400 and 401.
	AnyStatus bool
	// Refused classifies a response that is not an OAuth error from the endpoint.
	Refused func(resp *transport.Response, code string) *platforms.Error
}

// App identifies an app: by form fields or, if Secret is set, by ID and Secret in the Authorization header.
type App struct {
	Form       url.Values
	ID, Secret string
}

type answer struct {
	Error        jsondoc.Text `json:"error"`
	Description  jsondoc.Text `json:"error_description"`
	AccessToken  jsondoc.Text `json:"access_token"`
	RefreshToken jsondoc.Text `json:"refresh_token"`
	Scope        jsondoc.Text `json:"scope"`
	ExpiresIn    jsondoc.Text `json:"expires_in"`
	// TikTok and Google use different names for the refresh token's lifetime.
	RefreshExpiresIn      jsondoc.Text `json:"refresh_expires_in"`
	RefreshTokenExpiresIn jsondoc.Text `json:"refresh_token_expires_in"`
}

// Refresh renews a token. Errors are *platforms.Error.
func (e *Endpoint) Refresh(ctx context.Context, old platforms.Token) (platforms.Token, error) {
	if old.Refresh == "" {
		if e.NoRefresh.Problem != "" {
			return platforms.Token{}, new(e.NoRefresh)
		}
		return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, "there is no refresh token, so the access token cannot be renewed").Advise(e.Dead.Remedy)
	}
	resp, said, err := e.call(ctx, "refresh_token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.Refresh}})
	switch {
	case err != nil:
		return platforms.Token{}, e.Unanswered(err)
	case e.failed(resp, said):
		return platforms.Token{}, e.classify(resp, said.Error.String(), said.Description.String())
	default:
		return ParseToken(&e.Client, resp.Body, old, e.Clock.Now())
	}
}

// call sends a form with the app's credentials to the endpoint, once. Errors are *transport.Error.
func (e *Endpoint) call(ctx context.Context, action string, form url.Values) (*transport.Response, answer, error) {
	call := client.Call{Action: action, Path: e.Path, Timeout: e.Timeout}
	app := e.App()
	if app.Secret != "" {
		r := http.Request{Header: http.Header{}}
		r.SetBasicAuth(app.ID, app.Secret)
		call.Header = r.Header
	}
	maps.Copy(form, app.Form)
	call.Body = client.Fields(form)
	resp, err := e.Do(ctx, call)
	if err != nil {
		return nil, answer{}, err
	}
	said, _ := jsondoc.Decode[answer](resp.Body)
	return resp, said, nil
}

func (e *Endpoint) failed(resp *transport.Response, said answer) bool {
	return resp.Status != http.StatusOK || e.AnyStatus && said.Error != ""
}

// ParseToken parses a successful response that arrived at now. A missing refresh token or scope keeps its value from
// old. Errors are *platforms.Error.
func ParseToken(c *client.Client, body []byte, old platforms.Token, now time.Time) (platforms.Token, error) {
	said, _ := jsondoc.Decode[answer](body)
	if said.AccessToken == "" {
		return platforms.Token{}, c.NoToken()
	}
	token := platforms.Token{
		Access: said.AccessToken.String(), Refresh: said.RefreshToken.String(),
		Scopes: cmp.Or(strings.Join(Scopes(said.Scope.String()), " "), old.Scopes),
	}
	if token.Refresh == "" {
		token.Refresh, token.RefreshExpiresAt = old.Refresh, old.RefreshExpiresAt
	}
	if life := said.ExpiresIn.Seconds(); life > 0 {
		token.ExpiresAt = now.Add(life).UTC()
	}
	if life := cmp.Or(said.RefreshExpiresIn, said.RefreshTokenExpiresIn).Seconds(); life > 0 {
		token.RefreshExpiresAt = now.Add(life).UTC()
	}
	return token, nil
}

// classify classifies an error from the endpoint (RFC 6749, section 5.2).
func (e *Endpoint) classify(resp *transport.Response, code, description string) *platforms.Error {
	own := resp.Status == http.StatusBadRequest || resp.Status == http.StatusUnauthorized
	cause := fmt.Errorf("HTTP status %d with error %.64q", resp.Status, code)
	switch {
	case !own && !e.AnyStatus:
		return e.Refused(resp, code)
	case code == "invalid_grant", e.IsDead != nil && e.IsDead(code, description):
		return new(e.Dead).Because(cause)
	case code == "invalid_client", code == "invalid_request", code == "unauthorized_client":
		// Connecting the account again would not help.
		return e.BadApp(cause)
	case e.AnyStatus:
		return e.Refused(resp, code)
	default:
		return e.Nonsense(resp.Status, cause)
	}
}
