// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/internal/transport"
)

// providerTimeout is the timeout for a call to an OpenID Connect provider.
const providerTimeout = 10 * time.Second

// webConfig returns the configuration of the web application, or nil if it is disabled. file is the path of the
// configuration file, and namespace the namespace of the installation.
func webConfig(c *configv1alpha1.APIServerConfiguration, file, namespace string) (*apiserver.WebConfig, error) {
	if !c.Web.Enabled {
		return nil, nil //nolint:nilnil // nil serves the REST API alone
	}
	provider, err := oidcProvider(c.Web.OIDC)
	if err != nil {
		return nil, err
	}
	return &apiserver.WebConfig{
		Namespace: namespace, SignInSecret: c.Web.SignInSecret, RolePrefix: c.Web.RolePrefix, SendsEmail: c.Web.EmailNotifications, OIDC: provider, LinkCommand: linkCommand(&c.Web, file, namespace),
		Agents: &apiserver.AgentsConfig{LoopbackClients: c.Web.Agents.LoopbackClients, Proxied: proxied()},
	}, nil
}

// linkCommand returns the command that creates a one-time link, for users to copy.
func linkCommand(c *configv1alpha1.Web, file, namespace string) string {
	if os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		return "herald signin-link --config " + file + " --namespace " + namespace
	}
	// The Secret's name is derived from the release, unless another name is configured.
	release := strings.TrimSuffix(cmp.Or(c.SignInSecret, configv1alpha1.DefaultSignInSecret), "-web")
	return fmt.Sprintf("kubectl exec -n %s deploy/%s-apiserver -- /herald signin-link", namespace, release)
}

// oidcProvider returns the configured provider without connecting to it, or nil if none is configured.
func oidcProvider(c *configv1alpha1.OIDC) (*signin.OIDC, error) {
	if c == nil {
		return nil, nil //nolint:nilnil // without a provider there are one-time links
	}
	roots, err := config.RootCAs("web.oidc.caFile", c.CAFile)
	if err != nil {
		return nil, err
	}
	provider := &signin.OIDC{
		IssuerURL: c.IssuerURL, ClientID: c.ClientID, Scopes: c.Scopes,
		UsernameClaim: c.UsernameClaim, UsernamePrefix: c.UsernamePrefix, GroupsClaim: c.GroupsClaim, GroupsPrefix: c.GroupsPrefix,
		Client: &http.Client{Timeout: providerTimeout, Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		}},
	}
	if file := c.ClientSecretFile; file != "" {
		provider.ClientSecret = func() (string, error) { return config.Secret("web.oidc.clientSecretFile", file) }
	}
	return provider, nil
}

// toPlatforms returns the apiserver's client and app secrets for the platforms. It uses them only if users connect
// accounts in the web application. An unreadable secret is logged and does not prevent startup: the REST API does not
// need one.
func toPlatforms(c *configv1alpha1.Web, registry prometheus.Registerer, log *slog.Logger) (*transport.Client, *secrets) {
	if !c.Enabled {
		return transport.New(transport.Options{}), nil
	}
	out := transport.New(transport.Options{Registerer: registry, Proxy: http.ProxyFromEnvironment})
	return out, &secrets{log: log, optional: true}
}

func proxied() bool {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: "agent.example"}})
	return proxy != nil || err != nil
}
