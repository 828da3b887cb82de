// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/dpop"
)

// tokenExpired is the error for a token that the account's server no longer accepts.
var tokenExpired = platforms.NewError(platforms.ClassRefresh, platforms.SubjectAccount, "the account's access token has expired", "")

// caller makes the calls of one account.
type caller struct {
	p     *Platform
	token string
	// of is the key and the server of a token from OAuth. It is nil for a session of an app password, which is at the
	// configured server.
	of *bound
}

func (p *Platform) bearer(s *session) *caller { return &caller{p: p, token: s.Access.String()} }

// server returns the client for the account's server, or nil if Herald does not call it.
func (c *caller) server() *client.Client {
	if c.of == nil {
		return &c.p.api
	}
	return c.p.reach(c.of.PDS)
}

// authorize adds the token to a call (RFC 9449, section 7.1). The call's body is not part of the proof.
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

// proven makes a call with a token from OAuth. A response that demands a nonce, or that the token has expired, precedes any
// effect: the call is then made once more with the nonce, or was not made.
func (p *Platform) proven(c *caller, send func(c *caller) (*transport.Response, error)) (resp *transport.Response, failure *platforms.Error, err error) {
	api := c.server()
	if api == nil {
		return nil, new(sessionEnded), nil
	}
	at, err := url.Parse(api.BaseURL)
	if err != nil {
		return nil, new(sessionEnded), nil
	}
	for range 2 {
		if resp, err = send(c); err != nil {
			return nil, nil, err
		}
		p.nonces.Update(at, resp.Header)
		if resp.Status != http.StatusUnauthorized || oauthError(resp) != useNonce {
			break
		}
	}
	if resp.Status == http.StatusUnauthorized {
		return nil, new(tokenExpired).Because(nil), nil
	}
	return resp, nil, nil
}
