// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/person"
)

// errToken says that an ID token is not valid.
var errToken = errors.New("the ID token cannot be trusted")

// claimError says that a token is good, and its claims make no person.
type claimError struct {
	// text is for the person.
	text string
}

func (e *claimError) Error() string { return e.text }

// maxName is how long the name of a person or a group may be; Kubernetes has no limit, and
// every record of what a person did holds the name.
const maxName = 256

// reserved are the beginnings of names that belong to Kubernetes and to Herald: with one of
// them a provider could make itself administrator of the cluster.
var reserved = []string{"system:", "herald:"}

// provider is the OpenID Connect provider. It is asked by watch, and again by each person who
// signs in while it has never answered: it may start later than Herald, and may be away.
type provider struct {
	*OIDC

	// name is what people read.
	name     string
	redirect string
	clock    clock.PassiveClock

	flights singleflight.Group
	found   atomic.Pointer[discovered]
	// trouble is why the provider did not answer when it was asked last.
	trouble atomic.Pointer[error]
}

// discovered is what a provider says about itself.
type discovered struct {
	*provider

	config   oauth2.Config
	verifier *oidc.IDTokenVerifier
}

func newProvider(o *OIDC, redirect string, clk clock.PassiveClock) *provider {
	name := o.IssuerURL
	if address, err := url.Parse(o.IssuerURL); err == nil {
		name = address.Host
	}
	return &provider{OIDC: o, name: name, redirect: redirect, clock: clk}
}

// discover returns what the provider says about itself. Requests that come before the answer
// share one call, which goes on if one of them ends.
func (p *provider) discover(ctx context.Context) (*discovered, error) {
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	return p.refresh(ctx)
}

// refresh asks the provider, whatever is known of it.
func (p *provider) refresh(ctx context.Context) (*discovered, error) {
	shared := p.flights.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangePatience)
		defer cancel()
		err := p.fetchConfig(ctx)
		p.trouble.Store(&err)
		return nil, err
	})
	select {
	case result := <-shared:
		return p.found.Load(), result.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("ask the provider %s about itself: %w", p.IssuerURL, ctx.Err())
	}
}

// answers returns nil if the provider answered when it was asked last.
func (p *provider) answers() error {
	if trouble := p.trouble.Load(); trouble != nil {
		return *trouble
	}
	return fmt.Errorf("the provider %s was not asked yet", p.IssuerURL)
}

// fetchConfig asks the provider.
func (p *provider) fetchConfig(ctx context.Context) error {
	known, err := oidc.NewProvider(oidc.ClientContext(ctx, p.Client), p.IssuerURL)
	if err != nil {
		return fmt.Errorf("cannot ask the provider %s about itself: %w", p.IssuerURL, err)
	}
	var more struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := known.Claims(&more); err != nil {
		return fmt.Errorf("the provider %s describes itself wrongly: %w", p.IssuerURL, err)
	}
	endpoint := known.Endpoint()
	// A code is good once, so the way to show the secret is not found by trying. Basic is the
	// default (OpenID Connect Discovery 1.0, section 3).
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if p.ClientSecret == nil || len(more.Methods) > 0 && !slices.Contains(more.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	p.found.Store(&discovered{
		provider: p,
		config: oauth2.Config{
			ClientID: p.ClientID, Endpoint: endpoint, RedirectURL: p.redirect,
			Scopes: append([]string{oidc.ScopeOpenID}, p.Scopes...),
		},
		verifier: known.Verifier(&oidc.Config{ClientID: p.ClientID, Now: p.clock.Now}),
	})
	return nil
}

// authorize is the address at the provider to send a person to.
func (d *discovered) authorize(a attempt) (string, error) {
	address := d.config.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("the provider %s names no web address to sign in at", d.IssuerURL)
	}
	return address, nil
}

// person exchanges the code of a callback, and reads who it is for.
func (p *provider) person(ctx context.Context, code string, a attempt) (person.Person, error) {
	known, err := p.discover(ctx)
	if err != nil {
		return person.Person{}, err
	}
	config := known.config
	if p.ClientSecret != nil {
		if config.ClientSecret, err = p.ClientSecret(); err != nil {
			return person.Person{}, err
		}
	}
	ctx = oidc.ClientContext(ctx, p.Client)
	tokens, err := config.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return person.Person{}, fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := known.verifier.Verify(ctx, raw)
	if err != nil {
		return person.Person{}, fmt.Errorf("%w: %w", errToken, err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(a.Nonce)) != 1 {
		return person.Person{}, fmt.Errorf("%w: its nonce is not that of this sign-in", errToken)
	}
	var all claims
	if err := token.Claims(&all); err != nil {
		return person.Person{}, fmt.Errorf("%w: %w", errToken, err)
	}
	return p.personOf(all)
}

// claims are the claims of an ID token.
type claims map[string]json.RawMessage

// text returns a claim that is text, or "".
func (c claims) text(name string) string {
	var value string
	if json.Unmarshal(c[name], &value) != nil {
		return ""
	}
	return value
}

// verified reports whether the provider vouches for the email. Some write the word true.
func (c claims) verified() bool {
	var yes bool
	if json.Unmarshal(c["email_verified"], &yes) == nil {
		return yes
	}
	return c.text("email_verified") == "true"
}

// list returns a claim that is a list of texts, or one text.
func (c claims) list(name string) []string {
	var values []string
	if json.Unmarshal(c[name], &values) == nil {
		return values
	}
	if one := c.text(name); one != "" {
		return []string{one}
	}
	return nil
}

// personOf makes a person of claims.
func (p *provider) personOf(c claims) (person.Person, error) {
	name := c.text(p.UsernameClaim)
	switch {
	case name == "":
		return person.Person{}, &claimError{fmt.Sprintf("%s does not tell your %s, by which Herald knows people. An administrator can name another claim in web.oidc.usernameClaim, or ask for more in web.oidc.scopes.", p.name, p.UsernameClaim)}
	case p.UsernameClaim == "email" && !c.verified():
		return person.Person{}, &claimError{fmt.Sprintf("%s does not vouch for your email (email_verified), by which Herald knows people. Verify it there; an administrator can name another claim in web.oidc.usernameClaim.", p.name)}
	}
	full := p.UsernamePrefix + name
	if !usable(full) {
		return person.Person{}, &claimError{"Your name at " + p.name + " cannot be one here: it begins like a name of Kubernetes or Herald, has control characters, or is too long. An administrator can set web.oidc.usernamePrefix."}
	}
	found := person.Person{Name: full, DisplayName: name}
	// The last claim that is present counts.
	for _, claim := range []string{"preferred_username", "email", "name"} {
		if shown := c.text(claim); shown != "" && usable(shown) {
			found.DisplayName = shown
		}
	}
	if p.GroupsClaim != "" {
		for _, group := range c.list(p.GroupsClaim) {
			if full := p.GroupsPrefix + group; group != "" && usable(full) {
				found.Groups = append(found.Groups, full)
			}
		}
		slices.Sort(found.Groups)
		found.Groups = slices.Compact(found.Groups)
	}
	return found, nil
}

// usable reports whether a person or a group may have this name.
func usable(name string) bool {
	if len(name) > maxName || strings.ContainsFunc(name, isControl) {
		return false
	}
	return !slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
