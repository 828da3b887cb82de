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

	"github.com/herald-social/herald/apiserver/access"
)

// errToken is returned for an invalid ID token.
var errToken = errors.New("the ID token cannot be trusted")

// claimError is returned for a valid token whose claims do not identify a user.
type claimError struct {
	// text is shown to the user.
	text string
}

func (e *claimError) Error() string { return e.text }

// maxName is the maximum length of a user's or group's name, in bytes. Kubernetes has no limit, and every audit
// record about a user contains the name.
const maxName = 256

// reserved are the name prefixes of Kubernetes and Herald, which a provider could use to make itself administrator of
// the cluster.
var reserved = []string{"system:", "herald:"}

// provider is the OpenID Connect provider. Watch fetches its configuration, and so does each sign-in until that first
// succeeds: the provider may start later than Herald, or be unavailable.
type provider struct {
	*OIDC

	name     string
	redirect string
	clock    clock.PassiveClock

	flights singleflight.Group
	found   atomic.Pointer[discovered]
	trouble atomic.Pointer[error]
}

// discovered is the provider's published configuration.
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

// discover returns the provider's configuration. Concurrent requests share one fetch, which outlives any of them.
func (p *provider) discover(ctx context.Context) (*discovered, error) {
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	return p.refresh(ctx)
}

// refresh fetches the configuration, even if it is cached.
func (p *provider) refresh(ctx context.Context) (*discovered, error) {
	shared := p.flights.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeTimeout)
		defer cancel()
		err := p.fetchConfig(ctx)
		p.trouble.Store(&err)
		return nil, err
	})
	select {
	case result := <-shared:
		return p.found.Load(), result.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("fetch the configuration of the provider %s: %w", p.IssuerURL, ctx.Err())
	}
}

// answers returns the last fetch's error, or nil if it succeeded.
func (p *provider) answers() error {
	if trouble := p.trouble.Load(); trouble != nil {
		return *trouble
	}
	return fmt.Errorf("the configuration of the provider %s has not been fetched yet", p.IssuerURL)
}

func (p *provider) fetchConfig(ctx context.Context) error {
	known, err := oidc.NewProvider(oidc.ClientContext(ctx, p.Client), p.IssuerURL)
	if err != nil {
		return fmt.Errorf("cannot fetch the configuration of the provider %s: %w", p.IssuerURL, err)
	}
	var more struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := known.Claims(&more); err != nil {
		return fmt.Errorf("the provider %s has an invalid configuration: %w", p.IssuerURL, err)
	}
	endpoint := known.Endpoint()
	// A code works only once, so the authentication method cannot be found by trial and error. Basic is the default
	// (OpenID Connect Discovery 1.0, section 3).
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

func (d *discovered) authorize(a attempt) (string, error) {
	address := d.config.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("the configuration of the provider %s has no web address for signing in", d.IssuerURL)
	}
	return address, nil
}

// person exchanges a callback's code, and returns the user identified by the ID token.
func (p *provider) person(ctx context.Context, code string, a attempt) (access.Person, error) {
	known, err := p.discover(ctx)
	if err != nil {
		return access.Person{}, err
	}
	config := known.config
	if p.ClientSecret != nil {
		if config.ClientSecret, err = p.ClientSecret(); err != nil {
			return access.Person{}, err
		}
	}
	ctx = oidc.ClientContext(ctx, p.Client)
	tokens, err := config.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return access.Person{}, fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := known.verifier.Verify(ctx, raw)
	if err != nil {
		return access.Person{}, fmt.Errorf("%w: %w", errToken, err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(a.Nonce)) != 1 {
		return access.Person{}, fmt.Errorf("%w: its nonce does not match this sign-in", errToken)
	}
	var all claims
	if err := token.Claims(&all); err != nil {
		return access.Person{}, fmt.Errorf("%w: %w", errToken, err)
	}
	return p.personOf(all)
}

type claims map[string]json.RawMessage

func (c claims) text(name string) string {
	var value string
	if json.Unmarshal(c[name], &value) != nil {
		return ""
	}
	return value
}

// verified reports whether the provider has verified the email. Some providers send the string "true".
func (c claims) verified() bool {
	var yes bool
	if json.Unmarshal(c["email_verified"], &yes) == nil {
		return yes
	}
	return c.text("email_verified") == "true"
}

// list returns a claim that is a list of strings, or one string.
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

// personOf converts claims to a user.
func (p *provider) personOf(c claims) (access.Person, error) {
	name := c.text(p.UsernameClaim)
	switch {
	case name == "":
		return access.Person{}, &claimError{fmt.Sprintf("%s did not return your %s, which Herald uses to identify people. An administrator can set another claim in web.oidc.usernameClaim, or request more in web.oidc.scopes.", p.name, p.UsernameClaim)}
	case p.UsernameClaim == "email" && !c.verified():
		return access.Person{}, &claimError{fmt.Sprintf("%s has not verified your email (email_verified), which Herald uses to identify people. Verify it there; an administrator can set another claim in web.oidc.usernameClaim.", p.name)}
	}
	full := p.UsernamePrefix + name
	if !usable(full) {
		return access.Person{}, &claimError{"Your name at " + p.name + " cannot be used here: it starts with a prefix of Kubernetes or Herald, contains control characters, or is too long. An administrator can set web.oidc.usernamePrefix."}
	}
	found := access.Person{Name: full, DisplayName: name}
	// The last present claim wins.
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

func usable(name string) bool {
	if len(name) > maxName || strings.ContainsFunc(name, isControl) {
		return false
	}
	return !slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
