// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth2

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// Dialog is a platform's consent page.
type Dialog struct {
	// Name is the platform's name in messages. Setting is its section of the configuration.
	Name, Setting string
	// URL is the page's address without a query.
	URL string
	// AppParam is the name of the parameter for the app's id, and App is the id.
	AppParam, App string
	// Scopes are requested, joined by Separator, a space by default. If empty, another parameter determines the scopes.
	Scopes    []string
	Separator string
	// Challenge hashes the PKCE verifier; nil on a platform without PKCE.
	Challenge func(verifier string) string
	// Extra are additional parameters; may be nil.
	Extra url.Values
}

// ConsentURL returns the address of the consent page.
func (d *Dialog) ConsentURL(consent platforms.Consent) (string, error) {
	if d.App == "" {
		return "", platforms.Errorf(platforms.ClassPermanent, "Herald has no app on %s, so no account can be connected", d.Name).
			Advise(fmt.Sprintf("the administrator must register one and set platforms.%s.clientID", d.Setting))
	}
	query := url.Values{
		"response_type": {"code"}, d.AppParam: {d.App}, "redirect_uri": {consent.RedirectURI}, "state": {consent.State},
	}
	if len(d.Scopes) > 0 {
		query.Set("scope", strings.Join(d.Scopes, cmp.Or(d.Separator, " ")))
	}
	if d.Challenge != nil {
		query.Set("code_challenge", d.Challenge(consent.Verifier))
		query.Set("code_challenge_method", "S256")
	}
	maps.Copy(query, d.Extra)
	return d.URL + "?" + query.Encode(), nil
}

// Requested returns the requested scopes, in the format of Token.Scopes.
func (d *Dialog) Requested() string { return strings.Join(d.Scopes, " ") }

// S256 returns the code challenge of RFC 7636, section 4.2.
func S256(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// S256Hex is TikTok's variant of S256: the hash is in hexadecimal (TikTok, "Login Kit for Desktop").
func S256Hex(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return hex.EncodeToString(sum[:])
}

// Exchange exchanges a code for a token with a refresh token. A response without scopes means that the requested ones
// were granted (RFC 6749, section 5.1). Errors are *platforms.Error.
func (e *Endpoint) Exchange(ctx context.Context, code platforms.Code, requested string, needs RequiredScopes) (platforms.Token, error) {
	resp, answer, err := e.call(ctx, "exchange", url.Values{
		"grant_type": {"authorization_code"}, "code": {code.Value}, "redirect_uri": {code.RedirectURI}, "code_verifier": {code.Verifier},
	})
	switch {
	case err != nil:
		return platforms.Token{}, ExchangeUnanswered(&e.Client, err)
	case e.failed(resp, answer):
		return platforms.Token{}, e.classifyCodeError(resp, answer.Error.String(), answer.Description.String())
	}
	token, err := ParseToken(&e.Client, resp.Body, platforms.Token{Scopes: requested}, e.Clock.Now())
	if err != nil {
		return platforms.Token{}, err
	}
	if missing := needs.Check(e.Name, token.Scopes); missing != nil {
		return platforms.Token{}, missing
	}
	if token.Refresh == "" {
		return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, "%s did not return a refresh token, so the connection would soon expire", e.Name).
			Advise("connect the account again; if this happens again, remove Herald from the apps of your account there first")
	}
	return token, nil
}

// classifyCodeError classifies the endpoint's error for a code. Error codes differ between platforms, so unless the
// error is invalid_grant, the description is searched for a mention of the code or the verifier.
func (e *Endpoint) classifyCodeError(resp *transport.Response, code, description string) *platforms.Error {
	cause := fmt.Errorf("HTTP status %d with error %.64q", resp.Status, code)
	own := resp.Status == http.StatusBadRequest || resp.Status == http.StatusUnauthorized || e.AnyStatus && resp.Status == http.StatusOK
	switch text := strings.ToLower(description); {
	case !own:
		return e.Refused(resp, code)
	case code == "redirect_uri_mismatch", strings.Contains(text, "redirect"):
		return BadRedirect(&e.Client, cause)
	case code == "invalid_grant", strings.Contains(text, "authorization code"), strings.Contains(text, "code verifier"):
		return BadCode(&e.Client, cause)
	default:
		return e.classify(resp, code, description)
	}
}

// ExchangeUnanswered returns the error for a code exchange without a response. If the call was sent, the code may have
// been used.
func ExchangeUnanswered(c *client.Client, err error) *platforms.Error {
	failure := c.Unanswered(err)
	if !client.NotSent(err) {
		failure.Remedy = onceMore
	}
	return failure
}

const onceMore = "reconnect the account"

// BadCode returns the error for a code that the platform does not accept.
func BadCode(c *client.Client, cause error) *platforms.Error {
	return platforms.Errorf(platforms.ClassReconnect, "%s no longer accepts this consent: it took too long, or was used before", c.Name).
		Advise(onceMore).Because(cause)
}

// BadRedirect returns the error for a redirect URI that the platform does not accept.
func BadRedirect(c *client.Client, cause error) *platforms.Error {
	return platforms.Errorf(platforms.ClassPermanent, "%s does not accept Herald's redirect URI", c.Name).
		Advise("the administrator must add it to the app's redirect URIs, exactly as derived from siteURL").Because(cause)
}
