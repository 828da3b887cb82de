// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth2

import (
	"context"
	"net/url"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// Base is the common part of platforms with a token endpoint.
type Base struct {
	Connector

	API        client.Client
	WebURL     string
	ListingLag time.Duration
	Clock      clock.Clock
}

// Site holds a platform's names and its defaults for platforms.Config. Hosts are the hosts that URLs in responses may
// refer to.
type Site struct {
	Platform, Name, APIURL, WebURL string
	ListingLag                     time.Duration
	Hosts                          []string
}

// NewBase returns a platform without its Connector.
func NewBase(c *platforms.Config, site *Site, way *transport.Client) Base {
	c.SetDefaults(site.ListingLag)
	return Base{
		API: client.Client{
			Platform: site.Platform, Name: site.Name, BaseURL: client.Address(c.APIURL, site.APIURL),
			Addresses: client.AddressPolicy{Hosts: site.Hosts, Configured: []string{c.APIURL}}, Transport: way,
		},
		WebURL: client.Address(c.WebURL, site.WebURL), ListingLag: c.ListingLag, Clock: c.Clock,
	}
}

// Connector connects the accounts of a platform with a token endpoint, and renews their tokens.
type Connector struct {
	Dialog Dialog
	Tokens Endpoint
	// Required are the scopes that an account must grant to be connected.
	Required RequiredScopes
	// Accounts identifies the one account that a token belongs to.
	Accounts platforms.Accounts
}

// ConsentURL returns the address of the consent page.
func (c *Connector) ConsentURL(consent platforms.Consent) (string, error) {
	return c.Dialog.ConsentURL(consent)
}

// Exchange exchanges a code for a token.
func (c *Connector) Exchange(ctx context.Context, code platforms.Code) (platforms.Token, error) {
	return c.Tokens.Exchange(ctx, code, c.Dialog.Requested(), c.Required)
}

// Choices returns the one account that a token belongs to.
func (c *Connector) Choices(ctx context.Context, token platforms.Token) ([]platforms.Choice, error) {
	return platforms.OneChoice(ctx, c.Accounts, token)
}

// Refresh renews the access token. TikTok and X return a new refresh token each time, which invalidates the old one;
// Google keeps it.
func (c *Connector) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	return c.Tokens.Refresh(ctx, token)
}

// FormApp returns a function for Endpoint.App. The app's id, in the parameter idParam, and its secret are sent in the
// form.
func FormApp(c *platforms.Config, idParam string) func() App {
	return func() App {
		form := url.Values{idParam: {c.ClientID}}
		if c.ClientSecret != nil {
			form.Set("client_secret", c.ClientSecret())
		}
		return App{Form: form}
	}
}
