// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/dpop"
)

// tokenExpired is the error for a token that the account's server no longer accepts, and damagedToken for a text that
// cannot be a token.
var tokenExpired = platforms.NewError(platforms.ClassRefresh, platforms.SubjectAccount, "the account's access token has expired", "")

var damagedToken = platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount, "the account's access token is damaged", "connect the account again")

// caller makes calls for one account.
type caller struct {
	p     *Platform
	token string
	// of is what an OAuth token is bound to. It is nil for the session of an app password, whose calls go to the
	// configured server.
	of *bound
}

func (p *Platform) bearer(s *session) *caller { return &caller{p: p, token: s.Access.String()} }

// server returns the client for the account's server, or nil if Herald must not call it.
func (c *caller) server() *client.Client {
	if c.of == nil {
		return &c.p.api
	}
	return c.p.reach(c.of.PDS)
}

// authorize adds the token to a call (RFC 9449, section 7.1). The proof does not cover the call's body.
func (c *caller) authorize(api *client.Client, call *client.Call, method string) error {
	if c.of == nil {
		call.Token = c.token
		return nil
	}
	at, err := url.Parse(api.BaseURL + call.Path)
	if err != nil {
		return err
	}
	proof, err := c.of.Key.Proof(&dpop.Request{Method: method, Address: at.String(), Token: c.token, Nonce: c.p.nonces.Of(at), At: c.p.config.Clock.Now()})
	call.Header = http.Header{"Authorization": {"DPoP " + c.token}, "Dpop": {proof}}
	return err
}

func (c *caller) do(ctx context.Context, call client.Call) (*transport.Response, error) {
	method := cmp.Or(call.Method, http.MethodGet)
	if call.Body.Content != nil {
		method = cmp.Or(call.Method, http.MethodPost)
	}
	api := c.server()
	if err := c.authorize(api, &call, method); err != nil {
		return nil, &transport.Error{Err: err}
	}
	return api.Do(ctx, call)
}

func (c *caller) upload(ctx context.Context, u client.Upload) (*transport.Response, *platforms.Error) {
	api := c.server()
	if err := c.authorize(api, &u.Call, http.MethodPost); err != nil {
		return nil, api.BadApp(err)
	}
	resp, _, failure := api.Upload(ctx, u)
	return resp, failure
}

// clientOf returns the client for the server that accepts the token. Error messages contain the client's name.
func (p *Platform) clientOf(token platforms.Token) *client.Client {
	if of, _, ok := parseBound(token.Access); ok {
		if api := p.reach(of.PDS); api != nil {
			return api
		}
	}
	return &p.api
}

// proven makes a call with an OAuth token. If the response demands a nonce, the call is repeated once. A failure means
// that the call had no effect: the server checks the proof and the token first.
func (p *Platform) proven(c *caller, send func(c *caller) (*transport.Response, error)) (resp *transport.Response, failure *platforms.Error, err error) {
	api := c.server()
	if api == nil {
		return nil, new(sessionEnded), nil
	}
	at, err := url.Parse(api.BaseURL)
	if err != nil {
		return nil, new(sessionEnded), nil
	}
	if resp, err = p.withNonce(at, http.StatusUnauthorized, func() (*transport.Response, error) { return send(c) }); err != nil {
		return nil, nil, err
	}
	if failure := unproven(api, resp); failure != nil {
		return nil, failure, nil
	}
	return resp, nil, nil
}

// withNonce makes a call to a server. It repeats the call once if the server demands a nonce, using the status demands:
// such a response means that the call had no effect.
func (p *Platform) withNonce(at *url.URL, demands int, send func() (*transport.Response, error)) (resp *transport.Response, err error) {
	for range 2 {
		if resp, err = send(); err != nil {
			return nil, err
		}
		p.nonces.Update(at, resp.Header)
		if resp.Status != demands || oauthError(resp) != useNonce {
			break
		}
	}
	return resp, nil
}

// unproven returns the error for a response that rejects a call's proof or token (RFC 9449, section 7.1), and nil for
// any other response. Servers also respond with status 401 if the account is suspended, so the status is not enough.
func unproven(api *client.Client, resp *transport.Response) *platforms.Error {
	if resp.Status != http.StatusUnauthorized {
		return nil
	}
	switch code := oauthError(resp); code {
	case "invalid_token", expiredToken, invalidToken, "AuthMissing", "AuthenticationRequired":
		return new(tokenExpired).Because(fmt.Errorf("HTTP status %d with error %.64q", resp.Status, code))
	case useNonce:
		return platforms.Errorf(platforms.ClassTransient, "%s demands another nonce for each call", api.Name)
	case "invalid_dpop_proof":
		return platforms.Errorf(platforms.ClassTransient, "%s does not accept Herald's proof of the token's key", api.Name).Advise("check the clock of Herald's machine")
	default:
		return nil
	}
}
