// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/process"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/sessiontest"
)

func TestLinkFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"none":            {"a pod needs no flags", nil, ""},
		"all":             {"from an administrator's machine", []string{"--config=a", "--kubeconfig=b", "--namespace=c", "--site=http://127.0.0.1:8080/", "--valid=1h"}, ""},
		"never":           {"a link must be valid for some time", []string{"--valid=0"}, "--valid=0s"},
		"for ever":        {"a forgotten link must expire", []string{"--valid=25h"}, "24h0m0s at most"},
		"no address":      {"the link could not be opened", []string{"--site=127.0.0.1:8080"}, "--site=127.0.0.1:8080"},
		"site with path":  {"the application is at the root", []string{"--site=http://a/b"}, "--site=http://a/b"},
		"without dashes":  {"an argument without dashes is rejected", []string{"valid=1h"}, "unexpected argument"},
		"no such flag":    {"unknown flags are rejected", []string{"--for=1h"}, "-for"},
		"another's place": {"a script is not a site", []string{"--site=javascript://a"}, "--site=javascript://a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseLinkFlags(tc.args)
			var usage process.UsageError
			if (err != nil) != (tc.want != "") || err != nil && (!errors.As(err, &usage) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestSiteOfLink(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		edit   func(*configv1alpha1.APIServerConfiguration)
		site   string
		want   string
		err    string
	}{
		"the file's site": {"users open this URL", func(*configv1alpha1.APIServerConfiguration) {}, "", "https://herald.example.com", ""},
		"said":            {"a port-forward has another address", func(*configv1alpha1.APIServerConfiguration) {}, "http://127.0.0.1:8080/", "http://127.0.0.1:8080", ""},
		"unknown":         {"users do not open the listening address", func(c *configv1alpha1.APIServerConfiguration) { c.SiteURL = "" }, "", "", "--site"},
		"no web":          {"the web application is disabled", func(c *configv1alpha1.APIServerConfiguration) { c.Web.Enabled = false }, "", "", "web.enabled is false"},
		"another way in": {"links are not accepted with a provider", func(c *configv1alpha1.APIServerConfiguration) {
			c.Web.OIDC = &configv1alpha1.OIDC{IssuerURL: "https://id"}
		}, "", "", "https://id"},
		"no link from the file": {"a forwarded port needs no siteURL", func(c *configv1alpha1.APIServerConfiguration) { c.SiteURL = "" }, "http://127.0.0.1:1", "http://127.0.0.1:1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := configv1alpha1.DefaultAPIServer()
			c.SiteURL = "https://herald.example.com/"
			tc.edit(c)
			got, err := (&linkFlags{site: tc.site}).siteOf(c)
			if got != tc.want || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
		})
	}
}

func TestPrintLink(t *testing.T) {
	var out strings.Builder
	secrets := sessiontest.New()
	must.Succeed(t, printLink(t.Context(), &out, secrets, sessiontest.Name, sessiontest.Namespace, "https://herald.example.com", time.Minute))
	token, found := strings.CutPrefix(strings.TrimSuffix(out.String(), "\n"), "https://herald.example.com/signin/link/")
	if !found || len(token) != 43 || strings.Contains(string(secrets.Data()["links"]), token) {
		t.Errorf("printed %q, want a link with 256 random bits that is stored as a hash", out.String())
	}
	err := printLink(t.Context(), io.Discard, sessiontest.Missing(), sessiontest.Name, "default", "https://herald.example.com", time.Minute)
	if err == nil || !strings.Contains(err.Error(), "namespace default") || !strings.Contains(err.Error(), "--namespace") {
		t.Errorf("in another namespace: %v", err)
	}
}

func TestLinkCommand(t *testing.T) {
	web := &configv1alpha1.Web{Enabled: true, SignInSecret: "outreach-web"}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	if got := linkCommand(web, "/etc/herald/config/config.yaml", "social"); got != "kubectl exec -n social deploy/outreach-apiserver -- /herald signin-link" {
		t.Errorf("in a pod: %s", got)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if got := linkCommand(web, "apiserver.yaml", "social"); got != "herald signin-link --config apiserver.yaml --namespace social" {
		t.Errorf("elsewhere: %s", got)
	}
}

func TestWebConfig(t *testing.T) {
	c := configv1alpha1.DefaultAPIServer()
	got, err := webConfig(c, "a.yaml", "social")
	if err != nil || got == nil || got.Namespace != "social" || got.SignInSecret != "herald-web" || got.RolePrefix != "herald" || got.OIDC != nil {
		t.Errorf("by default: %+v, %v", got, err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	c.Web.OIDC = &configv1alpha1.OIDC{IssuerURL: "https://id.example.com", ClientID: "herald", ClientSecretFile: secret}
	if got, err = webConfig(c, "a.yaml", "social"); err != nil {
		t.Fatalf("a missing client secret prevented the start: %v", err)
	}
	if _, err := got.OIDC.ClientSecret(); err == nil || !strings.Contains(err.Error(), "web.oidc.clientSecretFile") {
		t.Errorf("a sign-in with a missing secret returned %v", err)
	}
	must.Succeed(t, os.WriteFile(secret, []byte("s3cr3t\n"), 0o600))
	if text, err := got.OIDC.ClientSecret(); text != "s3cr3t" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	c.Web.OIDC.CAFile = filepath.Join(t.TempDir(), "none")
	if _, err := webConfig(c, "a.yaml", "social"); err == nil || !strings.Contains(err.Error(), "web.oidc.caFile") {
		t.Errorf("authorities that cannot be read: %v", err)
	}
	c.Web.Enabled = false
	if got, err := webConfig(c, "a.yaml", "social"); got != nil || err != nil {
		t.Errorf("without it: %+v, %v", got, err)
	}
}

// TestSecretsForConnecting: the REST API needs no app secret and starts without one.
func TestSecretsForConnecting(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	var log strings.Builder
	_, lenient := toPlatforms(&configv1alpha1.Web{Enabled: true}, nil, slog.New(slog.NewTextHandler(&log, nil)))
	secret := lenient.open("x", &configv1alpha1.Platform{ClientSecretFile: file})
	if lenient.err != nil || secret() != "" || !strings.Contains(log.String(), "platforms.x.clientSecretFile") {
		t.Errorf("got %q, %v, and %s", secret(), lenient.err, &log)
	}
	must.Succeed(t, os.WriteFile(file, []byte("s3cr3t"), 0o600))
	if secret() != "s3cr3t" {
		t.Errorf("got %q: the file was created later", secret())
	}
	if _, none := toPlatforms(&configv1alpha1.Web{}, nil, slog.New(slog.DiscardHandler)); none != nil {
		t.Error("without the web application the process reads no secret")
	}
}
