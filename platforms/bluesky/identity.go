// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// DefaultDirectoryURL is the address of the directory for DIDs of the method plc (AT Protocol, "DID").
const DefaultDirectoryURL = "https://plc.directory"

// authServer is an account's authorization server, according to its metadata (RFC 8414).
type authServer struct {
	Issuer    string
	PAR       string
	Authorize string
	Token     string
	Revoke    string
}

// identity is an account and the server that stores its repository.
type identity struct {
	DID, Handle, PDS string
}

var (
	didPattern    = regexp.MustCompile(`^did:(plc:[a-z2-7]{24}|web:[a-z0-9.-]+(%3A[0-9]{1,5})?)$`)
	handlePattern = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

func noIdentity(problem string) *platforms.Error {
	return platforms.Errorf(platforms.ClassPermanent, "%s", problem).Advise("check the handle, and write it with its domain, such as name.bsky.social")
}

// resolve returns the identity of a handle or a DID. A handle is accepted only if the account's DID document contains
// it, since anyone can point a handle at any account (AT Protocol, "Handle").
func (p *Platform) resolve(ctx context.Context, name string) (identity, *platforms.Error) {
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@"))
	did := name
	if !strings.HasPrefix(name, "did:") {
		if !handlePattern.MatchString(name) {
			return identity{}, noIdentity("the handle is not complete")
		}
		var failure *platforms.Error
		if did, failure = p.didOf(ctx, name); failure != nil {
			return identity{}, failure
		}
	}
	if !didPattern.MatchString(did) {
		return identity{}, noIdentity("there is no account with this handle")
	}
	found, failure := p.document(ctx, did)
	if failure == nil && did != name && found.Handle != name {
		return identity{}, noIdentity("the account does not confirm this handle")
	}
	return found, failure
}

// didOf resolves a handle through the configured server, which looks it up in DNS and at its domain
// (com.atproto.identity.resolveHandle).
func (p *Platform) didOf(ctx context.Context, handle string) (string, *platforms.Error) {
	doc, failure := fetchJSON[struct {
		DID jsondoc.Text `json:"did"`
	}](ctx, &p.api, "resolve_handle", "/xrpc/com.atproto.identity.resolveHandle?"+url.Values{"handle": {handle}}.Encode(),
		noIdentity("there is no account with this handle"))
	return doc.DID.String(), failure
}

// document reads the server and the handle from a DID's document.
func (p *Platform) document(ctx context.Context, did string) (identity, *platforms.Error) {
	api, path := client.Client{Platform: p.api.Platform, Name: "the directory of accounts", BaseURL: p.directory, Transport: p.api.Transport}, "/"+did
	if host, ok := strings.CutPrefix(did, "did:web:"); ok {
		api.BaseURL, api.Public, path = "https://"+strings.Replace(host, "%3A", ":", 1), true, "/.well-known/did.json"
	}
	doc, failure := fetchJSON[struct {
		ID       string   `json:"id"`
		Handles  []string `json:"alsoKnownAs"`
		Services []struct {
			ID       string `json:"id"`
			Type     string `json:"type"`
			Endpoint string `json:"serviceEndpoint"`
		} `json:"service"`
	}](ctx, &api, "resolve_did", path, noIdentity("the account no longer exists"))
	if failure != nil {
		return identity{}, failure
	}
	found := identity{DID: did}
	for _, name := range doc.Handles {
		if handle, ok := strings.CutPrefix(name, "at://"); ok && found.Handle == "" {
			found.Handle = strings.ToLower(handle)
		}
	}
	for _, s := range doc.Services {
		if strings.HasSuffix(s.ID, "#atproto_pds") && s.Type == "AtprotoPersonalDataServer" && found.PDS == "" {
			found.PDS = s.Endpoint
		}
	}
	if doc.ID != did || p.reach(found.PDS) == nil {
		return identity{}, noIdentity("the account has no server that Herald can call")
	}
	return found, nil
}

// reach returns the client for a server address from an account or a document, or nil if Herald must not call it: only
// the configured address, and HTTPS origins at public IP addresses, may be called.
func (p *Platform) reach(address string) *client.Client {
	api := p.api
	if address == p.api.BaseURL {
		return &api
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" || address != "https://"+u.Host {
		return nil
	}
	api.BaseURL, api.Public, api.Name = address, true, u.Host
	return &api
}

var unusable = platforms.NewError(platforms.ClassPermanent, "", "the account's server does not support OAuth as Herald needs it", "connect the account with an app password")

// authServerOf returns the authorization server that an account's server refers to (RFC 9728). Each server's document
// must name that server: a server must not speak for another one (AT Protocol, "OAuth").
func (p *Platform) authServerOf(ctx context.Context, pds string) (authServer, *platforms.Error) {
	api := p.reach(pds)
	if api == nil {
		return authServer{}, new(unusable)
	}
	resource, failure := fetchJSON[struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}](ctx, api, "discover", "/.well-known/oauth-protected-resource", new(unusable))
	switch {
	case failure != nil:
		return authServer{}, failure
	case resource.Resource != pds || len(resource.Servers) != 1:
		return authServer{}, new(unusable)
	}
	return p.authServerAt(ctx, resource.Servers[0])
}

// authServerAt returns the authorization server at the address issuer.
func (p *Platform) authServerAt(ctx context.Context, issuer string) (authServer, *platforms.Error) {
	api := p.reach(issuer)
	if api == nil {
		return authServer{}, new(unusable)
	}
	doc, failure := fetchJSON[metadata](ctx, api, "discover", "/.well-known/oauth-authorization-server", new(unusable))
	if failure != nil {
		return authServer{}, failure
	}
	found := authServer{Issuer: issuer, PAR: doc.PAR, Authorize: doc.Authorize, Token: doc.Token, Revoke: doc.Revoke}
	if doc.Issuer != issuer || !doc.suffices() || !found.within() {
		return authServer{}, new(unusable)
	}
	return found, nil
}

// metadata is an authorization server's metadata document.
type metadata struct {
	Issuer     string   `json:"issuer"`
	PAR        string   `json:"pushed_authorization_request_endpoint"`
	Authorize  string   `json:"authorization_endpoint"`
	Token      string   `json:"token_endpoint"`
	Revoke     string   `json:"revocation_endpoint"`
	Scopes     []string `json:"scopes_supported"`
	Challenges []string `json:"code_challenge_methods_supported"`
	DPoP       []string `json:"dpop_signing_alg_values_supported"`
	Auth       []string `json:"token_endpoint_auth_methods_supported"`
	Documents  bool     `json:"client_id_metadata_document_supported"`
	NamesIss   bool     `json:"authorization_response_iss_parameter_supported"`
}

// suffices reports whether the server supports the features that AT Protocol requires and Herald uses.
func (m *metadata) suffices() bool {
	return slices.Contains(m.Scopes, "atproto") && slices.Contains(m.Challenges, "S256") && slices.Contains(m.DPoP, "ES256") &&
		slices.Contains(m.Auth, "private_key_jwt") && m.Documents && m.NamesIss
}

// within reports whether all endpoints are at the issuer's origin. The check of the issuer's address then covers them.
func (a *authServer) within() bool {
	for _, address := range []string{a.PAR, a.Authorize, a.Token, a.Revoke} {
		if !strings.HasPrefix(address, a.Issuer+"/") {
			return false
		}
	}
	return true
}

// fetchJSON reads a public document. It returns missing if the server responds that the document does not exist.
func fetchJSON[T any](ctx context.Context, api *client.Client, action, path string, missing *platforms.Error) (T, *platforms.Error) {
	var none T
	resp, err := api.Do(ctx, client.Call{Action: action, Path: path, Timeout: readTimeout})
	switch {
	case err != nil:
		return none, api.Unanswered(err)
	case resp.Status >= http.StatusInternalServerError, resp.Status == http.StatusTooManyRequests:
		return none, api.Busy(nil)
	case resp.Status == http.StatusBadRequest, resp.Status == http.StatusNotFound, resp.Status == http.StatusGone:
		return none, missing
	}
	doc, ok := jsondoc.Decode[T](resp.Body)
	if resp.Status != http.StatusOK || !ok {
		return none, api.Nonsense(resp.Status, nil)
	}
	return doc, nil
}
