// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

var (
	_ platforms.ServerConnector = (*Platform)(nil)
	_ platforms.Connector       = (*onServer)(nil)
	_ platforms.Revoker         = (*Platform)(nil)
)

// scopes are the permissions to identify the account, to publish, and to look up posts (api/oauth-scopes).
var scopes = []string{"read:accounts", "read:statuses", "write:statuses", "write:media"}

// requiredScopes accepts the requested scopes, or the broader scopes that include them. Users cannot decline individual
// scopes.
var requiredScopes = oauth2.RequiredScopes{{"read:accounts", "read"}, {"read:statuses", "read"}, {"write:statuses", "write"}, {"write:media", "write"}}

const (
	// mostHost is the maximum length of a host. spec.accountID can contain 128 characters, of which an id with its
	// "@" takes up to 20.
	mostHost = 108
	// mostClient is the maximum length of a client id or secret, and clientCharacters are the accepted characters:
	// those that need no escaping in JSON or in an address. Mastodon's ids and secrets are 43 characters of
	// base64url (doorkeeper, lib/doorkeeper/oauth/helpers/unique_token.rb).
	mostClient       = 100
	clientCharacters = text.Letters + text.Digits + "-._~"

	connectAgain = "reconnect the account"
)

var hostPattern = regexp.MustCompile(`^([a-z0-9-]+\.)+[a-z0-9-]+(:[1-9][0-9]{0,4})?$`)

// ServerURL returns a server's address, given its name, its address, or the full name of one of its accounts. The
// result is the same for all spellings of an address, because Herald has one app per address.
func (p *Platform) ServerURL(typed string) (string, error) {
	host, address := strings.CutPrefix(strings.ToLower(strings.TrimSpace(typed)), "https://")
	if address {
		host, _, _ = strings.Cut(host, "/")
	} else {
		host = host[strings.LastIndex(host, "@")+1:]
	}
	host = strings.TrimSuffix(host, "/")
	name, port, _ := strings.Cut(host, ":")
	ascii, err := idna.Lookup.ToASCII(name)
	var noPort error
	if port != "" && port != "443" {
		_, noPort = strconv.ParseUint(port, 10, 16)
		ascii += ":" + port
	}
	_, notIP := netip.ParseAddr(name)
	if err != nil || noPort != nil || notIP == nil || len(ascii) > mostHost || !hostPattern.MatchString(ascii) {
		return "", platforms.Errorf(platforms.ClassPermanent, "this is not the name of a server").
			Advise("write it as in the address bar on your server, such as mastodon.social")
	}
	return "https://" + ascii, nil
}

// named is like at, but messages contain the server's name, because they are for the user who has just chosen the
// server.
func (p *Platform) named(server string) (*client.Client, *platforms.Error) {
	api, failure := p.at(platforms.Token{Server: server})
	if failure != nil {
		return nil, failure
	}
	if host := strings.TrimPrefix(server, "https://"); host != "" {
		api.Name = host
	}
	return api, nil
}

// Register returns Herald's app on a server. Servers delete an app after a day without tokens
// (app/lib/vacuum/applications_vacuum.rb), so the known app is checked.
func (p *Platform) Register(ctx context.Context, server string, site platforms.Site, known platforms.ServerApp) (platforms.ServerApp, error) {
	api, failure := p.named(server)
	if failure != nil {
		return platforms.ServerApp{}, failure
	}
	// Once a server has supported PKCE, it is always used. Otherwise, an attacker who can hide the metadata could
	// disable it.
	pkce := known.PKCE
	if !pkce {
		if pkce, failure = p.supportsPKCE(ctx, api); failure != nil {
			return platforms.ServerApp{}, failure
		}
	}
	wanted := platforms.ServerApp{RedirectURI: site.RedirectURI, Scopes: strings.Join(scopes, " "), PKCE: pkce}
	if known.RedirectURI == wanted.RedirectURI && known.Scopes == wanted.Scopes {
		valid, failure := p.accepts(ctx, api, known)
		if failure != nil {
			return platforms.ServerApp{}, failure
		}
		if valid {
			known.PKCE = pkce
			return known, nil
		}
	}
	if failure := p.register(ctx, api, site.URL, &wanted); failure != nil {
		return platforms.ServerApp{}, failure
	}
	return wanted, nil
}

// supportsPKCE reports whether a server's metadata lists S256 (methods/oauth, "Discover OAuth Server Configuration").
// Servers before Mastodon 4.3 do not have this document. Any other failure does not prove that the server does not
// support PKCE.
func (p *Platform) supportsPKCE(ctx context.Context, api *client.Client) (bool, *platforms.Error) {
	resp, err := api.Do(ctx, client.Call{Action: "discover", Path: "/.well-known/oauth-authorization-server", Timeout: readTimeout})
	switch {
	case err != nil:
		return false, api.Unanswered(err)
	case resp.Status == http.StatusNotFound, resp.Status == http.StatusGone:
		return false, nil
	case resp.Status >= http.StatusInternalServerError, resp.Status == http.StatusTooManyRequests:
		return false, p.unavailable(api, resp).Advise("try again in a few minutes")
	case resp.Status != http.StatusOK:
		return false, notMastodon(api, resp)
	}
	doc, _ := jsondoc.Decode[struct {
		Methods []string `json:"code_challenge_methods_supported"`
	}](resp.Body)
	return slices.Contains(doc.Methods, "S256"), nil
}

// notMastodon returns the error for a response that a Mastodon server would not send.
func notMastodon(api *client.Client, resp *transport.Response) *platforms.Error {
	return platforms.Errorf(platforms.ClassPermanent, "%s does not respond like a Mastodon server", api.Name).
		Advise("check the server's name; write it as in the address bar when you are signed in there").Because(statusCause(resp))
}

func statusCause(resp *transport.Response) error { return fmt.Errorf("HTTP status %d", resp.Status) }

// accepts reports whether a server still has an app, by requesting a token for the app itself (methods/oauth, "Obtain a
// token", grant type client_credentials).
func (p *Platform) accepts(ctx context.Context, api *client.Client, app platforms.ServerApp) (bool, *platforms.Error) {
	resp, err := api.Do(ctx, client.Call{Action: "verify_app", Path: "/oauth/token", Header: english(), Timeout: readTimeout, Body: client.Fields(url.Values{
		"grant_type": {"client_credentials"}, "client_id": {app.ClientID}, "client_secret": {app.ClientSecret},
		"redirect_uri": {app.RedirectURI}, "scope": {scopes[0]},
	})})
	switch {
	case err != nil:
		return false, api.Unanswered(err)
	case resp.Status == http.StatusOK:
		return true, nil
	case resp.Status == http.StatusBadRequest, resp.Status == http.StatusUnauthorized, resp.Status == http.StatusForbidden:
		return false, nil
	default:
		return false, p.unavailable(api, resp)
	}
}

// unavailable returns the error for a response that is not about the request, such as an outage.
func (p *Platform) unavailable(api *client.Client, resp *transport.Response) *platforms.Error {
	switch {
	case resp.Status >= http.StatusInternalServerError:
		return api.Busy(statusCause(resp))
	case resp.Status == http.StatusTooManyRequests:
		limited := tooMany
		limited.RetryAt = resetTime(resp.Header, p.config.Clock.Now())
		return limited.Because(statusCause(resp))
	default:
		return api.Nonsense(resp.Status, statusCause(resp))
	}
}

// register creates an app (methods/apps, "Create an application") and adds its id and secret.
func (p *Platform) register(ctx context.Context, api *client.Client, website string, app *platforms.ServerApp) *platforms.Error {
	resp, err := api.Do(ctx, client.Call{Action: "register", Path: "/api/v1/apps", Header: english(), Timeout: readTimeout, Body: client.Fields(url.Values{
		"client_name": {"Herald"}, "redirect_uris": {app.RedirectURI}, "scopes": {app.Scopes}, "website": {website},
	})})
	switch {
	case err != nil:
		return api.Unanswered(err)
	case resp.Status == http.StatusUnprocessableEntity:
		return platforms.Errorf(platforms.ClassPermanent, "%s does not accept Herald as an app", api.Name).
			Advise("the administrator has to check siteURL").Because(statusCause(resp))
	case resp.Status >= http.StatusInternalServerError, resp.Status == http.StatusTooManyRequests:
		return p.unavailable(api, resp)
	}
	made, _ := jsondoc.Decode[struct {
		ID     jsondoc.Text `json:"client_id"`
		Secret jsondoc.Text `json:"client_secret"`
	}](resp.Body)
	app.ClientID, app.ClientSecret = made.ID.String(), made.Secret.String()
	if resp.Status != http.StatusOK || !validClient(app.ClientID) || !validClient(app.ClientSecret) {
		return notMastodon(api, resp)
	}
	return nil
}

func validClient(value string) bool { return text.Consists(value, 1, mostClient, clientCharacters) }

// On returns the Connector for a server.
func (p *Platform) On(server string, app platforms.ServerApp) platforms.Connector {
	return &onServer{Platform: p, server: server, app: app}
}

// onServer connects accounts on one server.
type onServer struct {
	*Platform

	server string
	app    platforms.ServerApp
}

// ConsentURL returns the address of the server's consent page.
func (o *onServer) ConsentURL(consent platforms.Consent) (string, error) {
	page := o.server
	if o.config.APIURL != "" {
		page = client.Address(o.config.AuthorizeURL, o.config.APIURL)
	}
	dialog := oauth2.Dialog{
		Name: o.api.Name, Setting: o.api.Platform, URL: page + "/oauth/authorize", AppParam: "client_id", App: o.app.ClientID, Scopes: scopes,
	}
	if consent.Verifier != "" {
		dialog.Challenge = oauth2.S256
	}
	return dialog.ConsentURL(consent)
}

// Exchange exchanges a code for an access token, which does not expire (methods/oauth, "Obtain a token").
func (o *onServer) Exchange(ctx context.Context, code platforms.Code) (platforms.Token, error) {
	api, failure := o.named(o.server)
	if failure != nil {
		return platforms.Token{}, failure
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code.Value}, "redirect_uri": {code.RedirectURI},
		"client_id": {o.app.ClientID}, "client_secret": {o.app.ClientSecret},
	}
	if code.Verifier != "" {
		form.Set("code_verifier", code.Verifier)
	}
	resp, err := api.Do(ctx, client.Call{Action: "exchange", Path: "/oauth/token", Header: english(), Timeout: readTimeout, Body: client.Fields(form)})
	if err != nil {
		return platforms.Token{}, oauth2.ExchangeUnanswered(api, err)
	}
	if resp.Status != http.StatusOK {
		return platforms.Token{}, o.notExchanged(api, resp)
	}
	token, err := oauth2.ParseToken(api, resp.Body, platforms.Token{Scopes: o.app.Scopes}, o.config.Clock.Now())
	if err != nil {
		return platforms.Token{}, err
	}
	if missing := requiredScopes.Check(api.Name, token.Scopes); missing != nil {
		return platforms.Token{}, missing
	}
	token.Server, token.ClientID, token.ClientSecret = o.server, o.app.ClientID, o.app.ClientSecret
	return token, nil
}

// notExchanged returns the error for a failed code exchange.
func (o *onServer) notExchanged(api *client.Client, resp *transport.Response) *platforms.Error {
	switch errorText(resp) {
	case "invalid_grant":
		return oauth2.BadCode(api, statusCause(resp))
	case "invalid_client":
		return platforms.Errorf(platforms.ClassReconnect, "%s has removed Herald from its apps", api.Name).Advise(connectAgain).Because(statusCause(resp))
	default:
		return o.unavailable(api, resp)
	}
}

// Choices returns the one account that a token belongs to.
func (o *onServer) Choices(ctx context.Context, token platforms.Token) ([]platforms.Choice, error) {
	return platforms.OneChoice(ctx, o.Platform, token)
}

// Revocable reports whether a token belongs to an app that Herald registered. A server has one token per app and
// account, and returns it for each consent (config/initializers/doorkeeper.rb, reuse_access_token).
func (p *Platform) Revocable(token platforms.Token) (ok, shared bool) {
	return token.ClientID != "", true
}

// Revoke invalidates a token (methods/oauth, "Revoke a token"). A server accepts this only from the app that the token
// was issued to.
func (p *Platform) Revoke(ctx context.Context, token platforms.Token) error {
	api, failure := p.named(token.Server)
	if failure != nil {
		return failure
	}
	resp, err := api.Do(ctx, client.Call{Action: "revoke", Path: "/oauth/revoke", Header: english(), Timeout: readTimeout, Body: client.Fields(url.Values{
		"client_id": {token.ClientID}, "client_secret": {token.ClientSecret}, "token": {token.Access},
	})})
	switch {
	case err != nil:
		return api.Unanswered(err)
	case resp.Status == http.StatusOK:
		return nil
	case resp.Status == http.StatusForbidden, resp.Status == http.StatusUnauthorized:
		return platforms.Errorf(platforms.ClassPermanent, "%s does not accept that Herald revokes this token", api.Name).Because(statusCause(resp))
	default:
		return p.unavailable(api, resp)
	}
}
