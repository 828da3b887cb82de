// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/dpop"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

// useNonce is the error code for a request without the server's current nonce (RFC 9449, section 8). Such a request had
// no effect.
const useNonce = "use_dpop_nonce"

const connectAgain = "reconnect the account"

const (
	// lookupTimeout bounds the lookup of an account's server before a renewal. The manager allows 15 seconds for
	// the whole renewal.
	lookupTimeout = 5 * time.Second
	// minTime is the minimum time that must remain for a request to an authorization server.
	minTime = 5 * time.Second
)

var (
	_ platforms.HandleConnector = (*Platform)(nil)
	_ platforms.Revoker         = (*Platform)(nil)
)

var sessionEnded = platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
	"the account's server has ended Herald's access", "connect the account again")

// post sends a form to an authorization server, with proofs of Herald's identity and of the session's key. It repeats
// the request once if the server demands a nonce. It sends nothing if the response might arrive too late: codes and
// refresh tokens can be used only once, and the tokens that the server issues for them would be lost.
func (p *Platform) post(ctx context.Context, as *authServer, action, address string, key dpop.ProofKey, form url.Values) (*transport.Response, *platforms.Error) {
	api := p.reach(as.Issuer)
	if api == nil {
		return nil, noIdentity("the account has no server that Herald can call")
	}
	at, err := url.Parse(address)
	if err != nil {
		return nil, api.Nonsense(0, nil)
	}
	var failure *platforms.Error
	resp, err := p.withNonce(at, http.StatusBadRequest, func() (*transport.Response, error) {
		if ends, ok := ctx.Deadline(); ok && time.Until(ends) < minTime { //nolint:forbidigo // the deadline of a context is real time
			failure = platforms.Errorf(platforms.ClassTransient, "%s responds too slowly", api.Name)
			return nil, failure
		}
		proof, err := key.Proof(&dpop.Request{Method: http.MethodPost, Address: address, Nonce: p.nonces.Of(at), At: p.config.Clock.Now()})
		if err != nil {
			failure = api.BadApp(err)
			return nil, failure
		}
		failure = p.identify(api, as.Issuer, form)
		if failure != nil {
			return nil, failure
		}
		return api.Do(ctx, client.Call{
			Action: action, Path: strings.TrimPrefix(address, as.Issuer), Header: http.Header{"DPoP": {proof}}, Timeout: readTimeout, Body: client.Fields(form),
		})
	})
	switch {
	case failure != nil:
		return nil, failure
	case err != nil:
		return nil, api.Unanswered(err)
	}
	return resp, nil
}

// identify adds Herald's identity to a form.
func (p *Platform) identify(api *client.Client, issuer string, form url.Values) *platforms.Error {
	form.Set("client_id", p.config.ClientID)
	key, err := parseClientKey(p.config.Secret())
	if err != nil {
		return api.BadApp(err)
	}
	assertion, err := key.assertion(p.config.ClientID, issuer, p.config.Clock.Now())
	if err != nil {
		return api.BadApp(err)
	}
	form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	form.Set("client_assertion", assertion)
	return nil
}

func oauthError(resp *transport.Response) string {
	said, _ := jsondoc.Decode[struct {
		Error jsondoc.Text `json:"error"`
	}](resp.Body)
	return said.Error.String()
}

// begun is a requested consent.
type begun struct {
	DID    string `json:"did"`
	Issuer string `json:"iss"`
	// Key is the session's key as text.
	Key string `json:"key"`
}

// ClientDocument returns the metadata document that identifies Herald to servers.
func (p *Platform) ClientDocument(site platforms.Site) ([]byte, error) {
	key, err := parseClientKey(p.config.Secret())
	if err != nil || p.config.ClientID == "" {
		return nil, errClientKey
	}
	return key.clientMetadata(p.config.ClientID, site.URL, []string{site.RedirectURI})
}

// Begin requests a consent.
func (p *Platform) Begin(ctx context.Context, handle string, consent platforms.Consent) (address, text string, err error) {
	address, of, failure := p.begin(ctx, handle, consent)
	if failure != nil {
		return "", "", failure
	}
	encoded, err := json.Marshal(of)
	return address, string(encoded), err
}

// Finish exchanges a code.
func (p *Platform) Finish(ctx context.Context, text string, code platforms.Code, issuer string) (platforms.Choice, error) {
	var of begun
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		return platforms.Choice{}, platforms.Errorf(platforms.ClassReconnect, "the consent is not complete").Advise(connectAgain)
	}
	token, failure := p.finish(ctx, of, code, issuer)
	if failure != nil {
		return platforms.Choice{}, failure
	}
	identity, err := p.Identify(ctx, token)
	return platforms.Choice{Identity: identity, Token: token}, err
}

// begin requests consent from the account's authorization server (RFC 9126) and returns the address of the consent
// page.
func (p *Platform) begin(ctx context.Context, handle string, consent platforms.Consent) (string, begun, *platforms.Error) {
	account, failure := p.resolve(ctx, handle)
	if failure != nil {
		return "", begun{}, failure
	}
	as, failure := p.authServerOf(ctx, account.PDS)
	if failure != nil {
		return "", begun{}, failure
	}
	key, err := dpop.NewProofKey()
	if err != nil {
		return "", begun{}, p.api.BadApp(err)
	}
	text, err := key.Text()
	if err != nil {
		return "", begun{}, p.api.BadApp(err)
	}
	resp, failure := p.post(ctx, &as, "request_consent", as.PAR, key, url.Values{
		"response_type": {"code"}, "code_challenge": {oauth2.S256(consent.Verifier)}, "code_challenge_method": {"S256"}, "state": {consent.State},
		"redirect_uri": {consent.RedirectURI}, "scope": {Scopes}, "login_hint": {cmp.Or(account.Handle, account.DID)},
	})
	if failure != nil {
		return "", begun{}, failure
	}
	made, _ := jsondoc.Decode[struct {
		URI jsondoc.Text `json:"request_uri"`
	}](resp.Body)
	if resp.Status != http.StatusCreated && resp.Status != http.StatusOK || made.URI == "" {
		return "", begun{}, p.refused(&as, resp)
	}
	page := as.Authorize + "?" + url.Values{"client_id": {p.config.ClientID}, "request_uri": {made.URI.String()}}.Encode()
	return page, begun{DID: account.DID, Issuer: as.Issuer, Key: text}, nil
}

// refused returns the error for an unexpected response from an authorization server.
func (p *Platform) refused(as *authServer, resp *transport.Response) *platforms.Error {
	api := cmp.Or(p.reach(as.Issuer), &p.api)
	cause := fmt.Errorf("HTTP status %d with error %.64q", resp.Status, oauthError(resp))
	switch code := oauthError(resp); {
	case resp.Status >= http.StatusInternalServerError:
		return api.Busy(cause)
	case code == "invalid_grant":
		return new(sessionEnded).Because(cause)
	case code == "invalid_client", code == "invalid_client_metadata", code == "unauthorized_client":
		return platforms.Errorf(platforms.ClassTransient, "the account's server does not accept Herald as an app").
			Advise("the administrator has to check that the server can read the document at platforms.bluesky.clientID").Because(cause)
	default:
		return api.Nonsense(resp.Status, cause)
	}
}

// finish exchanges an authorization code. issuer is the "iss" parameter of the authorization response (RFC 9207).
func (p *Platform) finish(ctx context.Context, of begun, code platforms.Code, issuer string) (platforms.Token, *platforms.Error) {
	key, err := dpop.ParseProofKey(of.Key)
	if err != nil || issuer != of.Issuer {
		return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, "the response came from another server than the account's").Advise(connectAgain)
	}
	as, pds, failure := p.issuerOf(ctx, of.DID, of.Issuer)
	if failure != nil {
		return platforms.Token{}, failure
	}
	resp, failure := p.post(ctx, &as, "exchange", as.Token, key, url.Values{
		"grant_type": {"authorization_code"}, "code": {code.Value}, "redirect_uri": {code.RedirectURI}, "code_verifier": {code.Verifier},
	})
	if failure != nil {
		return platforms.Token{}, failure
	}
	if oauthError(resp) == "invalid_grant" {
		return platforms.Token{}, oauth2.BadCode(&p.api, fmt.Errorf("HTTP status %d", resp.Status))
	}
	return p.tokenIn(&as, resp, bound{Key: key, DID: of.DID, PDS: pds, Issuer: of.Issuer})
}

// granted reports whether a token permits creating posts and uploading files. A server may return a scope in a
// different form from the requested one.
func granted(scopes []string) bool {
	has := func(prefix string) bool {
		return slices.ContainsFunc(scopes, func(scope string) bool { return strings.HasPrefix(scope, prefix) })
	}
	return slices.Contains(scopes, "atproto") && (has("repo:") && has("blob") || slices.Contains(scopes, "transition:generic"))
}

// issuerOf returns the account's current server and its authorization server, which must still be the given one. A
// failure is permanent only if the account has moved; any other may be caused by a faulty document or a proxy.
func (p *Platform) issuerOf(ctx context.Context, did, issuer string) (as authServer, pds string, failure *platforms.Error) {
	account, failure := p.document(ctx, did)
	if failure == nil {
		as, failure = p.authServerOf(ctx, account.PDS)
	}
	if failure != nil {
		return authServer{}, "", platforms.Errorf(platforms.ClassTransient, "the account's server cannot be looked up").Because(failure)
	}
	if as.Issuer != issuer {
		return authServer{}, "", new(platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
			"the account has moved to another server", "connect the account again"))
	}
	return as, account.PDS, nil
}

// renewed exchanges a refresh token, which can be used only once.
func (p *Platform) renewed(ctx context.Context, token platforms.Token) (platforms.Token, *platforms.Error) {
	of, refresh, ok := parseBound(token.Refresh)
	if !ok {
		return platforms.Token{}, new(sessionEnded)
	}
	lookup, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	as, pds, failure := p.issuerOf(lookup, of.DID, of.Issuer)
	if failure != nil {
		return platforms.Token{}, failure
	}
	of.PDS = pds
	resp, failure := p.post(ctx, &as, "refresh_token", as.Token, of.Key, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}})
	if failure != nil {
		return platforms.Token{}, failure
	}
	return p.tokenIn(&as, resp, of)
}

// tokenIn returns the token from a response. The response must name the account for which consent was requested.
func (p *Platform) tokenIn(as *authServer, resp *transport.Response, of bound) (platforms.Token, *platforms.Error) {
	if resp.Status != http.StatusOK {
		return platforms.Token{}, p.refused(as, resp)
	}
	said, _ := jsondoc.Decode[struct {
		Subject jsondoc.Text `json:"sub"`
		Type    jsondoc.Text `json:"token_type"`
	}](resp.Body)
	token, err := oauth2.ParseToken(&p.api, resp.Body, platforms.Token{}, p.config.Clock.Now())
	switch {
	case err != nil || token.Refresh == "" || !strings.EqualFold(said.Type.String(), "DPoP"):
		return platforms.Token{}, p.api.NoToken()
	case said.Subject.String() != of.DID:
		return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, "access was allowed to another account than the one that was requested").Advise(connectAgain)
	case !granted(oauth2.Scopes(token.Scopes)):
		return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, "the account's server did not grant the permissions that Herald needs").Advise(connectAgain)
	}
	for _, text := range []*string{&token.Access, &token.Refresh} {
		if *text, err = of.text(*text); err != nil {
			return platforms.Token{}, p.api.BadApp(err)
		}
	}
	return token, nil
}

// Revocable reports that Herald can revoke OAuth tokens, and that each consent has its own. An app password can be
// revoked only by its owner.
func (p *Platform) Revocable(token platforms.Token) (ok, shared bool) {
	_, _, ok = parseBound(token.Refresh)
	return ok, false
}

// Revoke ends a token's session (RFC 7009). It revokes the refresh token, which outlives the access token; the access
// token is revoked with it.
func (p *Platform) Revoke(ctx context.Context, token platforms.Token) error {
	of, refresh, ok := parseBound(token.Refresh)
	if !ok {
		return new(damagedToken)
	}
	as, failure := p.authServerAt(ctx, of.Issuer) // also if the account has moved
	if failure != nil {
		return failure
	}
	resp, failure := p.post(ctx, &as, "revoke", as.Revoke, of.Key, url.Values{"token": {refresh}, "token_type_hint": {"refresh_token"}})
	if failure != nil {
		return failure
	}
	if resp.Status != http.StatusOK {
		return p.refused(&as, resp)
	}
	return nil
}
