// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/facebook"
	"github.com/herald-social/herald/platforms/instagram"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/platforms/tiktok"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/platforms/youtube"
)

// platformsConfig is the file that --platforms-config names: YAML with one
// section per platform, `{}` for one that needs nothing said. A platform that
// is left out is not available. Misspelt names are errors.
//
//	x:
//	  clientID: aB3…
//	  clientSecretFile: /etc/herald/x/client-secret
//	facebook: {}
type platformsConfig struct {
	Facebook  *platformConfig `json:"facebook,omitempty"`
	Instagram *platformConfig `json:"instagram,omitempty"`
	Threads   *platformConfig `json:"threads,omitempty"`
	TikTok    *platformConfig `json:"tiktok,omitempty"`
	X         *platformConfig `json:"x,omitempty"`
	YouTube   *platformConfig `json:"youtube,omitempty"`
}

// platformConfig says how to reach one platform, and as which app. All sections have
// the same fields, and all but the app have a default; a platform ignores the fields
// that it does not use.
type platformConfig struct {
	// APIURL is the address of the platform's API, and WebURL that of its web site
	// (Facebook, TikTok, X, YouTube). They default to the platform's own addresses;
	// others are for proxies and simulators.
	APIURL string `json:"apiURL,omitempty"`
	WebURL string `json:"webURL,omitempty"`
	// FacebookURL is the address of the API for accounts of Instagram that were
	// connected through their Facebook Page, and UploadURL that for their videos.
	FacebookURL string `json:"facebookURL,omitempty"`
	UploadURL   string `json:"uploadURL,omitempty"`
	// Login says how accounts of Instagram were connected if their Secret names no
	// scopes: "instagram" by default, or "facebook".
	Login instagram.Login `json:"login,omitempty"`
	// Version is the version of a graph: v25.0 by default for Facebook and
	// Instagram, v1.0 for Threads.
	Version string `json:"version,omitempty"`
	// ClientID identifies the app; TikTok calls it the client key. TikTok, X and
	// YouTube need it to renew tokens.
	ClientID string `json:"clientID,omitempty"`
	// ClientSecretFile holds the app's secret; empty for a public client of X.
	ClientSecretFile string `json:"clientSecretFile,omitempty"`
	// ListingLag is how long a published post may be missing when the platform
	// is asked for it (Facebook, Instagram, Threads, TikTok, X, YouTube).
	ListingLag metav1.Duration `json:"listingLag,omitzero"`
}

// loadPlatforms builds the registry: one entry per platform. It reads secrets only if
// withSecrets is set: the process that faces the internet does not need them.
func loadPlatforms(path string, client *transport.Client, withSecrets bool) (platforms.Registry, error) {
	config, err := readPlatformsConfig(path)
	if err != nil {
		return nil, err
	}
	registry := platforms.Registry{}
	secrets := secretReader{wanted: withSecrets}
	if c := config.X; c != nil {
		registry[v1alpha1.PlatformX] = x.New(x.Config{
			APIURL: c.APIURL, WebURL: c.WebURL, ListingLag: c.ListingLag.Duration,
			ClientID: c.ClientID, ClientSecret: secrets.read("x", c),
		}, client)
	}
	if c := config.Threads; c != nil {
		registry[v1alpha1.PlatformThreads] = threads.New(threads.Config{
			APIURL: c.APIURL, Version: c.Version, ListingLag: c.ListingLag.Duration,
		}, client)
	}
	if c := config.Instagram; c != nil {
		registry[v1alpha1.PlatformInstagram] = instagram.New(instagram.Config{
			APIURL: c.APIURL, FacebookURL: c.FacebookURL, UploadURL: c.UploadURL, Version: c.Version, Login: c.Login,
			ListingLag: c.ListingLag.Duration,
		}, client)
	}
	if c := config.Facebook; c != nil {
		registry[v1alpha1.PlatformFacebook] = facebook.New(facebook.Config{
			APIURL: c.APIURL, WebURL: c.WebURL, Version: c.Version, ListingLag: c.ListingLag.Duration,
		}, client)
	}
	if c := config.TikTok; c != nil {
		registry[v1alpha1.PlatformTikTok] = tiktok.New(tiktok.Config{
			APIURL: c.APIURL, WebURL: c.WebURL, ListingLag: c.ListingLag.Duration,
			ClientKey: c.ClientID, ClientSecret: secrets.read("tiktok", c),
		}, client)
	}
	if c := config.YouTube; c != nil {
		registry[v1alpha1.PlatformYouTube] = youtube.New(youtube.Config{
			APIURL: c.APIURL, WebURL: c.WebURL, ListingLag: c.ListingLag.Duration,
			ClientID: c.ClientID, ClientSecret: secrets.read("youtube", c),
		}, client)
	}
	if secrets.err != nil {
		return nil, fmt.Errorf("%s: %w", path, secrets.err)
	}
	return registry, nil
}

func readPlatformsConfig(path string) (platformsConfig, error) {
	var config platformsConfig
	if path == "" {
		return config, usageError{fmt.Errorf("--platforms-config is required: name a YAML file that says how to reach the platforms")}
	}
	data, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own flag
	if err != nil {
		return config, fmt.Errorf("cannot read the platforms' configuration: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return config, fmt.Errorf("%s: %w", path, err)
	}
	if c := config.Instagram; c != nil && !slices.Contains([]instagram.Login{"", instagram.InstagramLogin, instagram.FacebookLogin}, c.Login) {
		return config, fmt.Errorf("%s: instagram.login is %q; it must be %q or %q", path, c.Login, instagram.InstagramLogin, instagram.FacebookLogin)
	}
	return config, nil
}

// secretReader reads secrets, if they are wanted, until one cannot be read.
type secretReader struct {
	wanted bool
	err    error
}

// read returns the secret of a platform's app, or "" if there is none.
func (r *secretReader) read(name string, c *platformConfig) string {
	if !r.wanted || c.ClientSecretFile == "" || r.err != nil {
		return ""
	}
	data, err := os.ReadFile(c.ClientSecretFile)
	if err != nil {
		r.err = fmt.Errorf("%s.clientSecretFile: %w", name, err)
	}
	return strings.TrimSpace(string(data))
}
