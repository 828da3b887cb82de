// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
)

// maxRedirect is the maximum length of a redirect URI, in bytes.
const maxRedirect = 512

// applications are the accepted application schemes without a dot. All other applications need a reverse domain name as
// their scheme (RFC 8252, section 7.1).
var applications = []string{"claude", "cursor", "vscode", "vscode-insiders", "windsurf", "zed"}

// secure is the scheme of websites, and unsecured that of programs on this machine.
const (
	secure    = "https"
	unsecured = "http"
)

// checkRedirect returns an error if a redirect URI is not allowed.
func checkRedirect(address string) error {
	if len(address) > maxRedirect {
		return errors.New("it is too long")
	}
	// Parsers disagree about these characters; no legitimate address contains them.
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`\"<>^{|}`+"`", r) }) {
		return errors.New("it has characters that an address must encode")
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("it is not an address")
	case strings.Contains(address, "#"):
		return errors.New("it has a fragment")
	case u.User != nil:
		return errors.New("it contains a user name")
	case !plainHost(u):
		return errHost
	case u.Scheme == secure:
		return requireHost(u)
	case u.Scheme == unsecured:
		if !loopback(u) {
			return errors.New("plain http is allowed only for loopback hosts: 127.0.0.1, [::1] or localhost")
		}
		return nil
	case strings.Contains(u.Scheme, ".") || slices.Contains(applications, u.Scheme):
		return nil
	default:
		return errors.New("its scheme must be https, http for this machine, or an application's own, which is a domain name backwards")
	}
}

// errHost is the error for a host that plainHost rejects.
var errHost = errors.New("its host contains characters other than letters, digits and .-_:[]; write other letters in Punycode, such as xn--bcher-kva.example")

// plainHost reports whether a host has only unambiguous ASCII characters. url.Parse decodes letters of other scripts,
// invisible characters and direction marks in a host, so a user could see a different site than the one that receives
// the answer.
func plainHost(u *url.URL) bool {
	return !strings.ContainsFunc(u.Host, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_:[]", r)
	})
}

func requireHost(u *url.URL) error {
	if u.Hostname() == "" || u.Opaque != "" {
		return errors.New("it has no host")
	}
	return nil
}

// loopback reports whether a plain HTTP address is on the user's machine.
func loopback(u *url.URL) bool {
	return u.Scheme == unsecured && u.Opaque == "" && slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, u.Hostname())
}

// redirectMatches reports whether an address is registered. It compares the exact text, except for the port of an
// address on the user's machine, which is assigned when an application starts (RFC 8252, section 7.3).
func redirectMatches(registered []string, asked string) bool {
	if checkRedirect(asked) != nil {
		return false
	}
	if slices.Contains(registered, asked) {
		return true
	}
	u, err := url.Parse(asked)
	if err != nil || !loopback(u) {
		return false
	}
	return slices.ContainsFunc(registered, func(address string) bool {
		r, err := url.Parse(address)
		return err == nil && loopback(r) && withoutPort(r) == withoutPort(u)
	})
}

// withoutPort returns a loopback address without its port, for comparison.
func withoutPort(u *url.URL) string {
	bare := *u
	bare.Host = u.Hostname()
	return bare.String()
}

// hostOf returns the display form of an address: its host, or the scheme of an application.
func hostOf(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return address
	case u.Scheme == secure || u.Scheme == unsecured:
		return u.Host
	default:
		return u.Scheme + ":"
	}
}

// FormAction returns the source that the consent page's form-action directive must allow in addition to 'self'.
// Browsers check the redirects after a form submission against it (CSP 3, form-action), including redirects by the
// client's own site.
func FormAction(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return ""
	case u.Scheme == secure:
		return "https:"
	case u.Scheme == unsecured:
		if net.ParseIP(u.Hostname()) != nil && strings.Contains(u.Hostname(), ":") {
			return "http: https:" // CSP cannot express an IPv6 address
		}
		return "http://" + u.Host + " https:"
	default:
		return u.Scheme + ":"
	}
}

func answerTo(address string, answer url.Values) string {
	u, err := url.Parse(address)
	if err != nil { // checkRedirect has parsed it
		return ""
	}
	query := answer.Encode()
	if u.RawQuery != "" {
		query = u.RawQuery + "&" + query
	}
	u.RawQuery = query
	return u.String()
}
