// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// web validates the web application, and the other settings that it depends on.
func (j *validator) web(c *configv1alpha1.APIServerConfiguration) {
	if u, err := url.Parse(c.SiteURL); err == nil && u.Path != "" && u.Path != "/" {
		j.report("siteURL", "it has a path, and the web application is at the root of its host", "remove the path, or set web.enabled: false")
	}
	if len(validation.IsDNS1123Subdomain(c.Web.SignInSecret)) > 0 {
		j.report("web.signInSecret", fmt.Sprintf("%q is not the name of a Secret", c.Web.SignInSecret), "write the name of the installation's Secret, such as herald-web")
	}
	if len(validation.IsDNS1123Subdomain(c.Web.RolePrefix)) > 0 {
		j.report("web.rolePrefix", fmt.Sprintf("no role's name can start with %q", c.Web.RolePrefix), "write the name of the release, such as herald")
	}
	if c.Web.OIDC != nil {
		j.oidc(c.Web.OIDC, c.SiteURL)
	}
}

func (j *validator) oidc(o *configv1alpha1.OIDC, site string) {
	const section = "web.oidc"
	if site == "" {
		j.report(section, "the provider could not send people back: there is no siteURL", "write siteURL, such as https://herald.example.com")
	}
	j.required(section+".clientID", o.ClientID, "write Herald's client id at the provider")
	j.required(section+".usernameClaim", o.UsernameClaim, "write the claim that names a person, such as email or sub")
	j.required(section+".issuerURL", o.IssuerURL, "write the provider's address, such as https://accounts.example.com")
	if o.IssuerURL != "" {
		if u, ok := j.webAddress(section+".issuerURL", o.IssuerURL, "https://accounts.example.com"); ok && u.Scheme == "http" && !isLoopback(u) {
			j.report(section+".issuerURL", "it is not HTTPS, so sign-ins could be forged", "write an address with https://")
		}
	}
	for path, prefix := range map[string]string{section + ".usernamePrefix": o.UsernamePrefix, section + ".groupsPrefix": o.GroupsPrefix} {
		if strings.HasPrefix(prefix, "system:") || strings.HasPrefix(prefix, "herald:") {
			j.report(path, "names with this prefix are reserved for Kubernetes and Herald", "write another one, such as oidc:")
		}
	}
	if slices.Contains(o.Scopes, "") {
		j.report(section+".scopes", "one of them is empty", "remove it")
	}
}

// isLoopback reports whether a URL is on this machine, so that plain HTTP is safe.
func isLoopback(u *url.URL) bool {
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.IsLoopback()
}
