// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/transport"
)

func TestLoadPlatforms(t *testing.T) {
	full := `
x: {apiURL: http://s/x, webURL: http://s/x, clientID: id, clientSecretFile: SECRET, listingLag: 5s}
threads: {apiURL: http://s/threads, version: v1.0, listingLag: 5s}
instagram: {apiURL: http://s/instagram, facebookURL: http://s/f, uploadURL: http://s/u, login: facebook, version: v26.0, listingLag: 5s}
facebook: {apiURL: http://s/facebook, webURL: http://s/facebook, version: v26.0, listingLag: 5s}
tiktok: {apiURL: http://s/tiktok, webURL: http://s/tiktok, clientID: key, clientSecretFile: SECRET, listingLag: 5s}
youtube: {apiURL: http://s/youtube, clientID: id, clientSecretFile: SECRET}
`
	all := []v1alpha1.Platform{"facebook", "instagram", "threads", "tiktok", "x", "youtube"}
	tests := map[string]struct {
		reason, config string
		withSecrets    bool
		want           []v1alpha1.Platform
		err            string
	}{
		"everything":      {"every platform can be configured", full, true, all, ""},
		"defaults":        {"a platform that is named is available, at its own address", "facebook: {}\nthreads: {}", true, []v1alpha1.Platform{"facebook", "threads"}, ""},
		"nothing":         {"none is available unasked", "", true, nil, ""},
		"misspelt field":  {"what is misspelt must not be ignored", "x: {apiAddress: http://s}", true, nil, "apiAddress"},
		"unknown login":   {"nor a way to connect that there is not", "instagram: {login: google}", true, nil, "instagram.login"},
		"unknown section": {"nor a platform that there is not", "myspace: {}", true, nil, "myspace"},
		"no secret":       {"the file that is missing is named", "tiktok: {clientSecretFile: /nowhere/secret}", true, nil, "tiktok.clientSecretFile"},
		"secret unwanted": {"a process that needs no secrets reads none", "tiktok: {clientSecretFile: /nowhere/secret}", false, []v1alpha1.Platform{"tiktok"}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			secret, path := filepath.Join(dir, "secret"), filepath.Join(dir, "platforms.yaml")
			if err := os.WriteFile(secret, []byte("s3cr3t\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(tc.config, "SECRET", secret)), 0o600); err != nil {
				t.Fatal(err)
			}
			registry, err := loadPlatforms(path, transport.New(transport.Options{}), tc.withSecrets)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s: got error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(registry))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestShutdownWaitsForCalls compares the time that the manager has to stop with
// the longest that it may need.
func TestShutdownWaitsForCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "platforms.yaml")
	if err := os.WriteFile(path, []byte("x: {}\nthreads: {}\ninstagram: {}\nfacebook: {}\ntiktok: {}\nyoutube: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	registry, err := loadPlatforms(path, transport.New(transport.Options{}), true)
	if err != nil || len(registry) != 6 {
		t.Fatalf("got %d platforms, %v", len(registry), err)
	}
	for name, platform := range registry {
		if call := platform.Capabilities().CallTimeout; call+post.DefaultRecordFor >= gracefulShutdown {
			t.Errorf("a call to %s takes up to %v and its record up to %v, but the manager has %v to stop", name, call, post.DefaultRecordFor, gracefulShutdown)
		}
	}
}
