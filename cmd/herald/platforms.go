// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/x"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// platformsConfig is the file that --platforms-config names. A platform that
// is left out is not available.
type platformsConfig struct {
	X *xConfig `json:"x,omitempty"`
}

// xConfig is how to reach X. Addresses default to X's own.
type xConfig struct {
	APIURL   string `json:"apiURL,omitempty"`
	WebURL   string `json:"webURL,omitempty"`
	ClientID string `json:"clientID,omitempty"`
	// ClientSecretFile holds the app's secret; empty for a public client.
	ClientSecretFile string `json:"clientSecretFile,omitempty"`
	// ListingLag is how long a post may be missing from a timeline.
	ListingLag metav1.Duration `json:"listingLag,omitzero"`
}

// loadPlatforms builds the registry: one line per platform. Secrets are read
// only where withSecrets says so: the process that faces the internet has no
// use for them.
func loadPlatforms(path string, client *transport.Client, withSecrets bool) (platforms.Registry, error) {
	var config platformsConfig
	if path == "" {
		return nil, usageError{fmt.Errorf("--platforms-config is required: name a YAML file that says how to reach the platforms")}
	}
	data, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own flag
	if err != nil {
		return nil, fmt.Errorf("cannot read the platforms' configuration: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	registry := platforms.Registry{}
	if c := config.X; c != nil {
		secret := ""
		if withSecrets && c.ClientSecretFile != "" {
			if secret, err = readSecret(c.ClientSecretFile); err != nil {
				return nil, fmt.Errorf("%s: x.clientSecretFile: %w", path, err)
			}
		}
		registry[v1alpha1.PlatformX] = x.New(x.Config{
			APIURL: c.APIURL, WebURL: c.WebURL, ClientID: c.ClientID, ClientSecret: secret, ListingLag: c.ListingLag.Duration,
		}, client)
	}
	return registry, nil
}

func readSecret(path string) (string, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own configuration
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}
