// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/keytest"
	"github.com/herald-social/herald/test/must"
)

// TestEgressTable compares the documented table of hosts that a firewall must allow with the hosts that the platforms
// declare.
func TestEgressTable(t *testing.T) {
	registry, err := loadPlatforms(everyPlatform(""), transport.New(transport.Options{}), nil, clock.RealClock{})
	must.Succeed(t, err)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "network.md"))
	must.Succeed(t, err)
	const head = "| platform | calls | hosts of upload URLs in its responses |\n| --- | --- | --- |\n"
	_, rows, ok := strings.Cut(string(page), head)
	if !ok {
		t.Fatalf("docs/network.md lacks a table that starts with\n%s", head)
	}
	rows, _, _ = strings.Cut(rows, "\n\n")
	code := func(hosts []string) string {
		if len(hosts) == 0 {
			return "none"
		}
		return "`" + strings.Join(hosts, "`, `") + "`"
	}
	var want []string
	for _, name := range slices.Sorted(maps.Keys(registry)) {
		hosts := registry[name].Capabilities().Hosts
		called := code(hosts.Called)
		if hosts.Chosen && len(hosts.Called) == 0 {
			called = "the accounts' servers"
		} else if hosts.Chosen {
			called += ", the accounts' servers"
		}
		want = append(want, "| "+name.Title()+" | "+called+" | "+code(hosts.Named)+" |")
	}
	if diff := cmp.Diff(want, strings.Split(rows, "\n")); diff != "" {
		t.Errorf("the table in docs/network.md (-want +got):\n%s", diff)
	}
}

// TestHostsAreNotShared checks that no platform lets Herald call another platform's hosts.
func TestHostsAreNotShared(t *testing.T) {
	registry, err := loadPlatforms(everyPlatform(""), transport.New(transport.Options{}), nil, clock.RealClock{})
	must.Succeed(t, err)
	patterns := map[string]v1alpha1.Platform{}
	for name, p := range registry {
		for _, pattern := range p.Capabilities().Hosts.Named {
			if other, taken := patterns[pattern]; taken {
				t.Errorf("%s and %s return upload URLs at %s", name, other, pattern)
			}
			patterns[pattern] = name
		}
	}
}

func everyPlatform(secret string) *configv1alpha1.Platforms {
	config := &configv1alpha1.Platforms{}
	for _, section := range config.Sections() {
		*section = &configv1alpha1.Platform{ClientID: "id", ClientSecretFile: secret}
	}
	return config
}

func TestLoadPlatforms(t *testing.T) {
	all := slices.Sorted(slices.Values(v1alpha1.Platforms()))
	secret := filepath.Join(t.TempDir(), "secret")
	must.Succeed(t, os.WriteFile(secret, []byte("s3cr3t\n"), 0o600))
	withKey := everyPlatform(secret)
	withKey.Bluesky.ClientSecretFile = filepath.Join(t.TempDir(), "key.pem")
	must.Succeed(t, os.WriteFile(withKey.Bluesky.ClientSecretFile, []byte(keytest.P256(t)), 0o600))
	reads := newSecrets
	for name, tc := range map[string]struct {
		reason  string
		config  *configv1alpha1.Platforms
		secrets *secrets
		want    []v1alpha1.Platform
		err     string
	}{
		"everything":      {"every platform can be configured", withKey, reads(slog.Default()), all, ""},
		"no key":          {"Bluesky's secret has another form", everyPlatform(secret), reads(slog.Default()), nil, "platforms.bluesky.clientSecretFile: it is not a private key"},
		"no key at web":   {"the apiserver serves the other platforms", everyPlatform(secret), &secrets{log: slog.Default(), optional: true}, all, ""},
		"no platform":     {"platforms are disabled by default", &configv1alpha1.Platforms{}, reads(slog.Default()), nil, ""},
		"no secret":       {"the file that is missing is named", everyPlatform("/nowhere/secret"), reads(slog.Default()), nil, "platforms.tiktok.clientSecretFile"},
		"secret unwanted": {"a process without secrets does not read any", everyPlatform("/nowhere/secret"), nil, all, ""},
	} {
		t.Run(name, func(t *testing.T) {
			registry, err := loadPlatforms(tc.config, transport.New(transport.Options{}), tc.secrets, clock.RealClock{})
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s: got error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(registry))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSandbox checks the URLs that are derived from the sandbox's.
func TestSandbox(t *testing.T) {
	const inside, outside = "http://sandbox.demo.svc:9100", "https://sandbox.example.com"
	for name, tc := range map[string]struct {
		reason   string
		sandbox  configv1alpha1.Sandbox
		platform v1alpha1.Platform
		want     addresses
	}{
		"none": {"real platforms have separate addresses", configv1alpha1.Sandbox{}, v1alpha1.PlatformX, addresses{}},
		"one address": {
			"a browser finds the page where Herald does",
			configv1alpha1.Sandbox{URL: inside + "/"},
			v1alpha1.PlatformTikTok,
			addresses{api: inside + "/tiktok", web: inside + "/tiktok", facebook: inside + "/tiktok/graph.facebook.com", upload: inside + "/tiktok/rupload.facebook.com"},
		},
		"another one for browsers": {
			"calls stay in the cluster",
			configv1alpha1.Sandbox{URL: inside, PublicURL: outside + "/"},
			v1alpha1.PlatformInstagram,
			addresses{
				api: inside + "/instagram", web: outside + "/instagram",
				facebook: inside + "/instagram/graph.facebook.com", upload: inside + "/instagram/rupload.facebook.com",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sandboxed(&tc.sandbox, tc.platform); got != tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestConsentInTheSandbox checks that people are sent to the sandbox's consent pages, and never to a real one.
func TestConsentInTheSandbox(t *testing.T) {
	const outside = "https://sandbox.example.com"
	config := everyPlatform("")
	config.Sandbox = configv1alpha1.Sandbox{URL: "http://sandbox.demo.svc:9100", PublicURL: outside}
	consent := func(platform v1alpha1.Platform) string {
		t.Helper()
		registry, err := loadPlatforms(config, transport.New(transport.Options{}), newSecrets(slog.Default()), clock.RealClock{})
		must.Succeed(t, err)
		connector, ok := registry[platform].(platforms.Connector)
		if !ok {
			t.Fatalf("accounts of %s cannot be connected", platform)
		}
		address, err := connector.ConsentURL(platforms.Consent{RedirectURI: "http://127.0.0.1:8080/connect", State: "a", Verifier: strings.Repeat("v", 43)})
		must.Succeed(t, err)
		return address
	}
	for name := range config.Sections() {
		if name == string(v1alpha1.PlatformBluesky) || name == string(v1alpha1.PlatformMastodon) {
			continue // consents are requested from the account's server
		}
		if got, want := consent(v1alpha1.Platform(name)), outside+"/"+name+"/"; !strings.HasPrefix(got, want) {
			t.Errorf("users are sent to %s, want %s", got, want)
		}
	}
	config.Instagram.Login = "facebook"
	if got, want := consent(v1alpha1.PlatformInstagram), outside+"/instagram/graph.facebook.com/"; !strings.HasPrefix(got, want) {
		t.Errorf("with Facebook's login, users are sent to %s, want %s", got, want)
	}
}

// TestServer checks that Bluesky accounts are called on the configured server, even next to a sandbox.
func TestServer(t *testing.T) {
	called := ""
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { called = r.URL.Path }))
	defer server.Close()
	config := everyPlatform("")
	config.Sandbox.URL, config.Bluesky.Server = "http://127.0.0.1:1", server.URL
	registry, err := loadPlatforms(config, transport.New(transport.Options{}), nil, clock.RealClock{})
	must.Succeed(t, err)
	_, err = registry[v1alpha1.PlatformBluesky].Identify(t.Context(), platforms.Token{Access: "a.example:password"})
	if want := "/xrpc/com.atproto.server.createSession"; called != want || err == nil {
		t.Errorf("the server was called at %q, want %q (%v)", called, want, err)
	}
}

// TestPlatformsUseTheClock checks that tokens expire according to the given clock, which follows the Kubernetes API.
func TestPlatformsUseTheClock(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"a","refresh_token":"r","token_type":"bearer","expires_in":3600}`)
	}))
	defer server.Close()
	config := everyPlatform("")
	config.Sandbox.URL = server.URL
	now := clocktesting.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	registry, err := loadPlatforms(config, transport.New(transport.Options{}), nil, now)
	must.Succeed(t, err)
	for _, name := range []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformTikTok} {
		refresher, ok := registry[name].(platforms.Accounts)
		if !ok {
			t.Fatalf("%s renews no tokens", name)
		}
		token, err := refresher.Refresh(t.Context(), platforms.Token{Access: "a", Refresh: "r"})
		if want := now.Now().Add(time.Hour); err != nil || !token.ExpiresAt.Equal(want) {
			t.Errorf("the token of %s ends at %s (%v), want %s", name, token.ExpiresAt, err, want)
		}
	}
}

// TestShutdownWaitsForCalls compares the manager's shutdown timeout with the longest time that a shutdown may take.
func TestShutdownWaitsForCalls(t *testing.T) {
	registry, err := loadPlatforms(everyPlatform(""), transport.New(transport.Options{}), nil, clock.RealClock{})
	if err != nil || len(registry) != len(v1alpha1.Platforms()) {
		t.Fatalf("got %d platforms, %v", len(registry), err)
	}
	c := configv1alpha1.DefaultManager()
	for name, platform := range registry {
		call := platform.Capabilities().CallTimeout
		if call > time.Minute {
			t.Errorf("a call to %s takes up to %v; the configuration check assumes a minute", name, call)
		}
		if record := c.Delivery.RecordFor.Duration; call+record >= c.ShutdownTimeout.Duration {
			t.Errorf("a call to %s takes up to %v and its record up to %v, but the shutdown timeout is %v", name, call, record, c.ShutdownTimeout)
		}
	}
}
