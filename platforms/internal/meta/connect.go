// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

// Login exchanges an app's authorization codes. Meta's logins do not support PKCE; the app secret authenticates the
// caller.
type Login struct {
	// Tokens is the client for the host that exchanges codes; Instagram has a separate host for this.
	Tokens *client.Client
	// ID and Secret identify the app. Secret is called for each request.
	ID     string
	Secret func() string
}

// LoginForBusiness makes the consent page use a configuration of Facebook Login for Business, if there is one, instead
// of scopes. For an app with this login, the page requires the configuration, which determines the scopes (Facebook
// Login for Business, "Invoke the login dialog").
func LoginForBusiness(d *oauth2.Dialog, configuration string) {
	if configuration != "" {
		d.Scopes, d.Extra = nil, url.Values{"config_id": {configuration}}
	}
}

// Permissions are granted scopes, decoded from a list or a comma-separated string.
type Permissions []string

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (p *Permissions) UnmarshalJSON(value []byte) error {
	*p = nil
	var list []string
	if json.Unmarshal(value, &list) == nil {
		*p = list
		return nil
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		*p = oauth2.Scopes(text)
	}
	return nil
}

// ShortToken is the token that a code is exchanged for. It is valid for an hour.
type ShortToken struct {
	Access      jsondoc.Text `json:"access_token"`
	Permissions Permissions  `json:"permissions"`
}

// ExchangeCode exchanges a code on the hosts of Threads and Instagram, which sometimes wrap the response in a list.
// Errors are *platforms.Error.
func (g *Graph) ExchangeCode(ctx context.Context, l *Login, code platforms.Code) (ShortToken, error) {
	resp, err := l.Tokens.Do(ctx, l.call("/oauth/access_token", l.fields(code)))
	if err != nil {
		return ShortToken{}, oauth2.ExchangeUnanswered(l.Tokens, err)
	}
	if resp.Status != http.StatusOK {
		return ShortToken{}, g.classifyCodeError(resp)
	}
	answer, _ := jsondoc.Decode[struct {
		ShortToken

		Data []ShortToken `json:"data"`
	}](resp.Body)
	token := answer.ShortToken
	if len(answer.Data) == 1 {
		token = answer.Data[0]
	}
	if token.Access == "" {
		return ShortToken{}, l.Tokens.NoToken()
	}
	return token, nil
}

// fields returns the form for a code exchange. The redirect appends "#_", which is not part of the code.
func (l *Login) fields(code platforms.Code) url.Values {
	return url.Values{
		"client_id": {l.ID}, "client_secret": {l.Secret()}, "grant_type": {"authorization_code"},
		"redirect_uri": {code.RedirectURI}, "code": {strings.TrimSuffix(code.Value, "#_")},
	}
}

func (*Login) call(path string, fields url.Values) client.Call {
	return client.Call{Action: "exchange", Path: path, Body: client.Fields(fields), Timeout: ReadTimeout}
}

// ExtendToken exchanges a short-lived Threads or Instagram token for one that is valid for 60 days. grant is the grant
// type.
func (g *Graph) ExtendToken(ctx context.Context, l *Login, short, grant, scopes string) (platforms.Token, error) {
	query := url.Values{"grant_type": {grant}, "client_secret": {l.Secret()}, "access_token": {short}}
	body, bad := g.Call(ctx, client.Call{Action: "exchange", Path: "/access_token?" + query.Encode(), Timeout: ReadTimeout}, ThePost)
	if bad != nil {
		return platforms.Token{}, g.notExchanged(bad)
	}
	return oauth2.ParseToken(&g.Client, body, platforms.Token{Scopes: scopes}, g.Clock.Now())
}

// ExchangeCodeLongLived exchanges a Facebook Login code for a short-lived token, and the short-lived token for one that
// is valid for 60 days. To keep the secret out of URLs, it uses POST, which Graph accepts as well as GET.
func (g *Graph) ExchangeCodeLongLived(ctx context.Context, l *Login, code platforms.Code) (platforms.Token, error) {
	path := g.VersionedPath("/oauth/access_token")
	resp, err := g.Do(ctx, l.call(path, l.fields(code)))
	if err != nil {
		return platforms.Token{}, oauth2.ExchangeUnanswered(&g.Client, err)
	}
	if resp.Status != http.StatusOK {
		return platforms.Token{}, g.classifyCodeError(resp)
	}
	short, err := oauth2.ParseToken(&g.Client, resp.Body, platforms.Token{}, g.Clock.Now())
	if err != nil {
		return platforms.Token{}, err
	}
	resp, err = g.Do(ctx, l.call(path, url.Values{
		"grant_type": {"fb_exchange_token"}, "client_id": {l.ID}, "client_secret": {l.Secret()}, "fb_exchange_token": {short.Access},
	}))
	if err != nil {
		return platforms.Token{}, oauth2.ExchangeUnanswered(&g.Client, err)
	}
	if resp.Status != http.StatusOK {
		return platforms.Token{}, g.notExchanged(g.Classify(resp, ThePost))
	}
	return oauth2.ParseToken(&g.Client, resp.Body, platforms.Token{}, g.Clock.Now())
}

// notExchanged converts a failure of the second exchange. If the graph rejects the request itself, the app is at fault,
// not the user.
func (g *Graph) notExchanged(bad *Failure) *platforms.Error {
	if bad.GraphError.Kind().OfRequest() {
		return g.BadApp(bad.GraphError)
	}
	return bad.Error
}

// classifyCodeError classifies a failed code exchange. The hosts of Threads and Instagram use the format {"error_type",
// "code", "error_message"}. Graph uses its usual format, which has codes for rate limits and outages. For other errors,
// only the text shows whether the code, the redirect URI or the app is wrong.
func (g *Graph) classifyCodeError(resp *transport.Response) *platforms.Error {
	bad := g.Classify(resp, ThePost)
	answer, _ := jsondoc.Decode[struct {
		Message jsondoc.Text `json:"error_message"`
		Error   struct {
			Message jsondoc.Text `json:"message"`
		} `json:"error"`
	}](resp.Body)
	text := strings.ToLower(answer.Message.String() + answer.Error.Message.String())
	switch kind := bad.GraphError.Kind(); {
	case text == "", !kind.OfRequest() && kind != KindToken && kind != KindNonsense:
		return bad.Error
	case strings.Contains(text, "redirect"):
		return oauth2.BadRedirect(&g.Client, bad.GraphError)
	case strings.Contains(text, "code"):
		return oauth2.BadCode(&g.Client, bad.GraphError)
	default:
		return g.BadApp(bad.GraphError)
	}
}

// ExchangeForPerson exchanges a Facebook Login code for a user's token that is valid for 60 days and has the required
// scopes.
func (g *Graph) ExchangeForPerson(ctx context.Context, l *Login, code platforms.Code, required oauth2.RequiredScopes) (platforms.Token, error) {
	token, err := g.ExchangeCodeLongLived(ctx, l, code)
	if err != nil {
		return platforms.Token{}, err
	}
	if token.Scopes, err = g.grantedScopes(ctx, token); err != nil {
		return platforms.Token{}, err
	}
	if missing := required.Check("Facebook", token.Scopes); missing != nil {
		return platforms.Token{}, missing
	}
	return token, nil
}

// grantedScopes returns the scopes granted to a Facebook Login token (Graph API, "/{user-id}/permissions"). Users may
// have declined individual permissions.
func (g *Graph) grantedScopes(ctx context.Context, token platforms.Token) (string, error) {
	doc, bad := Get[struct {
		Data []struct {
			Permission jsondoc.Text `json:"permission"`
			Status     jsondoc.Text `json:"status"`
		} `json:"data"`
	}](ctx, g, "identify", "/me/permissions", token)
	if bad != nil {
		return "", g.NotIdentified(bad)
	}
	var granted []string
	for _, entry := range doc.Data {
		if entry.Status == "granted" {
			granted = append(granted, entry.Permission.String())
		}
	}
	return strings.Join(granted, " "), nil
}
