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

// maxRedirect is how long an address to send the answer to may be.
const maxRedirect = 512

// applications are the schemes without a dot of applications on a person's machine that are known. Those of others are domain
// names backwards (RFC 8252, section 7.1).
var applications = []string{"claude", "cursor", "vscode", "vscode-insiders", "windsurf", "zed"}

// secure is the scheme of sites, and unsecured that of programs on this machine.
const (
	secure    = "https"
	unsecured = "http"
)

// checkRedirect says why the answer cannot be sent to an address; nil if it can.
func checkRedirect(address string) error {
	if len(address) > maxRedirect {
		return errors.New("it is too long")
	}
	// What parsers read differently is in no address that is meant well.
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`\"<>^{|}`+"`", r) }) {
		return errors.New("it has characters that an address must encode")
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("it is no address")
	case strings.Contains(address, "#"):
		return errors.New("it has a fragment")
	case u.User != nil:
		return errors.New("it holds a user name")
	case !plainHost(u):
		return errHost
	case u.Scheme == secure:
		return requireHost(u)
	case u.Scheme == unsecured:
		if !loopback(u) {
			return errors.New("plain http is for this machine only: 127.0.0.1, [::1] or localhost")
		}
		return nil
	case strings.Contains(u.Scheme, ".") || slices.Contains(applications, u.Scheme):
		return nil
	default:
		return errors.New("its scheme must be https, http for this machine, or an application's own, which is a domain name backwards")
	}
}

// errHost is what is wrong with a host that plainHost refuses.
var errHost = errors.New("its host has other characters than letters, digits and .-_:[]; write other letters as xn--bcher-kva.example does")

// plainHost reports whether a host is what it looks like. url.Parse decodes letters of other scripts, marks that cannot be seen and
// marks of direction in a host, and a person would be shown a site that the answer does not go to.
func plainHost(u *url.URL) bool {
	return !strings.ContainsFunc(u.Host, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_:[]", r)
	})
}

func requireHost(u *url.URL) error {
	if u.Hostname() == "" || u.Opaque != "" {
		return errors.New("it names no host")
	}
	return nil
}

// loopback reports whether an address of plain HTTP is on the person's machine.
func loopback(u *url.URL) bool {
	return u.Scheme == unsecured && u.Opaque == "" && slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, u.Hostname())
}

// redirectMatches reports whether an address is one of those that a client has registered: letter by letter, but for the port of
// an address on the person's machine, which an application learns when it starts (RFC 8252, section 7.3).
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

// withoutPort is an address of this machine as it is compared.
func withoutPort(u *url.URL) string {
	bare := *u
	bare.Host = u.Hostname()
	return bare.String()
}

// hostOf is what people are shown of an address: its host, or the scheme of an application.
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

// FormAction is what the policy of the consent page must allow its form beside itself: browsers hold what the answer to a form
// redirects to against it (CSP 3, form-action), and the redirects of the client's own site after that.
func FormAction(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return ""
	case u.Scheme == secure:
		return "https:"
	case u.Scheme == unsecured:
		if net.ParseIP(u.Hostname()) != nil && strings.Contains(u.Hostname(), ":") {
			return "http: https:" // a policy cannot name an address of version 6
		}
		return "http://" + u.Host + " https:"
	default:
		return u.Scheme + ":"
	}
}

// answerTo adds parameters to an address of a client.
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
