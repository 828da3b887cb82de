// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/bluesky"
	"github.com/herald-social/herald/platforms/facebook"
	"github.com/herald-social/herald/platforms/instagram"
	"github.com/herald-social/herald/platforms/mastodon"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/platforms/tiktok"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/platforms/youtube"
)

// loadPlatforms returns the registry of the configured platforms. An apiserver without the web application does not
// need app secrets and passes nil. now is the clock for the expiry of tokens and limits.
func loadPlatforms(config *configv1alpha1.Platforms, client *transport.Client, secrets *secrets, now clock.Clock) (platforms.Registry, error) {
	registry := platforms.Registry{}
	access := func(platform v1alpha1.Platform, c *configv1alpha1.Platform) platforms.Config {
		at := sandboxed(&config.Sandbox, platform)
		return platforms.Config{
			APIURL: at.api, WebURL: at.web, AuthorizeURL: at.web, ListingLag: c.ListingLag.Duration,
			ClientID: c.ClientID, ClientSecret: secrets.open(string(platform), c), Clock: now,
		}
	}
	if c := config.X; c != nil {
		registry[v1alpha1.PlatformX] = x.New(access(v1alpha1.PlatformX, c), client)
	}
	if c := config.Threads; c != nil {
		registry[v1alpha1.PlatformThreads] = threads.New(threads.Config{Config: access(v1alpha1.PlatformThreads, c), Version: c.Version}, client)
	}
	if c := config.Instagram; c != nil {
		at := sandboxed(&config.Sandbox, v1alpha1.PlatformInstagram)
		shared := access(v1alpha1.PlatformInstagram, c)
		shared.AuthorizeURL = at.instagramConsent(c.Login)
		registry[v1alpha1.PlatformInstagram] = instagram.New(instagram.Config{
			Config: shared, FacebookURL: at.facebook, UploadURL: at.upload, Version: c.Version,
			Login: instagram.Login(c.Login), LoginConfigID: c.LoginConfigID,
		}, client)
	}
	if c := config.Facebook; c != nil {
		registry[v1alpha1.PlatformFacebook] = facebook.New(facebook.Config{
			Config: access(v1alpha1.PlatformFacebook, c), Version: c.Version, LoginConfigID: c.LoginConfigID, TwoSteps: c.TwoSteps,
		}, client)
	}
	if c := config.TikTok; c != nil {
		registry[v1alpha1.PlatformTikTok] = tiktok.New(access(v1alpha1.PlatformTikTok, c), client)
	}
	if c := config.YouTube; c != nil {
		registry[v1alpha1.PlatformYouTube] = youtube.New(access(v1alpha1.PlatformYouTube, c), client)
	}
	if c := config.Bluesky; c != nil {
		shared := access(v1alpha1.PlatformBluesky, c)
		shared.APIURL = cmp.Or(c.Server, shared.APIURL)
		if config.Sandbox.URL == "" {
			secrets.check(string(v1alpha1.PlatformBluesky), c, bluesky.CheckClientKey)
		}
		registry[v1alpha1.PlatformBluesky] = bluesky.New(bluesky.Config{Config: shared, DirectoryURL: c.Directory, Pages: fetch.New(fetch.Options{})}, client)
	}
	if c := config.Mastodon; c != nil {
		registry[v1alpha1.PlatformMastodon] = mastodon.New(access(v1alpha1.PlatformMastodon, c), client)
	}
	if secrets != nil && secrets.err != nil {
		return nil, secrets.err
	}
	return registry, nil
}

// addresses are the URLs of a simulated platform. They are empty without the sandbox.
type addresses struct{ api, web, facebook, upload string }

// sandboxed returns a platform's URLs in the sandbox, which serves each platform under its name, and Facebook's hosts
// below Instagram's path.
func sandboxed(sandbox *configv1alpha1.Sandbox, platform v1alpha1.Platform) addresses {
	if sandbox.URL == "" {
		return addresses{}
	}
	at := func(base string) string { return strings.TrimRight(base, "/") + "/" + string(platform) }
	api := at(sandbox.URL)
	return addresses{
		api: api, web: at(cmp.Or(sandbox.PublicURL, sandbox.URL)),
		facebook: api + facebookGraph, upload: api + "/rupload.facebook.com",
	}
}

// facebookGraph is the path of Facebook's graph below the sandbox's Instagram.
const facebookGraph = "/graph.facebook.com"

func (a addresses) instagramConsent(login string) string {
	if a.web != "" && instagram.Login(login) == instagram.FacebookLogin {
		return a.web + facebookGraph
	}
	return a.web
}

// appsOf returns the installation's own apps, which identify the tokens issued to them.
func appsOf(config *configv1alpha1.Platforms, secrets *secrets) credentials.Apps {
	apps := credentials.Apps{}
	for platform, c := range map[v1alpha1.Platform]*configv1alpha1.Platform{
		v1alpha1.PlatformX: config.X, v1alpha1.PlatformThreads: config.Threads, v1alpha1.PlatformInstagram: config.Instagram,
		v1alpha1.PlatformFacebook: config.Facebook, v1alpha1.PlatformTikTok: config.TikTok, v1alpha1.PlatformYouTube: config.YouTube,
	} {
		if c != nil && c.ClientID != "" {
			apps[platform] = credentials.App{ID: c.ClientID, Secret: secrets.open(string(platform), c)}
		}
	}
	return apps
}

// secrets opens the secrets of the platforms' apps. If nil, none are opened.
type secrets struct {
	log *slog.Logger
	// optional is true if an unreadable secret does not prevent startup.
	optional bool
	// err lists the secrets that could not be read at startup.
	err error
	// opened caches the functions that read opened secrets, by platform.
	opened map[string]func() string
}

func newSecrets(log *slog.Logger) *secrets { return &secrets{log: log} }

// open returns a function that reads the secret of a platform's app, or "" if there is none. It reads the file at each
// call, so that a replaced secret takes effect with the next renewal; tokens are renewed at most every few minutes.
func (s *secrets) open(name string, c *configv1alpha1.Platform) func() string {
	if s == nil || c.ClientSecretFile == "" {
		return func() string { return "" }
	}
	if opened := s.opened[name]; opened != nil {
		return opened
	}
	read, err := config.SecretReader(secretFile(name), c.ClientSecretFile, s.log)
	s.report(err)
	if s.opened == nil {
		s.opened = map[string]func() string{}
	}
	s.opened[name] = read
	return read
}

// check reports an unusable secret of a platform's app. A missing or unreadable one is not checked.
func (s *secrets) check(name string, c *configv1alpha1.Platform, valid func(secret string) error) {
	if s == nil {
		return
	}
	if secret := s.open(name, c)(); secret != "" {
		if err := valid(secret); err != nil {
			s.report(fmt.Errorf("%s: %w", secretFile(name), err))
		}
	}
}

// report makes an error prevent startup, unless the secrets are optional.
func (s *secrets) report(err error) {
	if err != nil && s.optional {
		s.log.Warn("The secret of a platform's app cannot be used; accounts cannot be connected there", "error", err)
		return
	}
	s.err = errors.Join(s.err, err)
}

func secretFile(platform string) string { return "platforms." + platform + ".clientSecretFile" }
