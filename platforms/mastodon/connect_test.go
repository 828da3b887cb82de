// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

func TestServerURL(t *testing.T) {
	t.Parallel()
	p := New(Config{}, transport.New(transport.Options{}))
	for name, tc := range map[string]struct{ reason, typed, want string }{
		"name":           {"users know the name of their server", " Mastodon.Example ", "https://mastodon.example"},
		"address":        {"they copy it from the address bar", "https://mastodon.example/@acme", "https://mastodon.example"},
		"handle":         {"or enter the account's full name", "@acme@mastodon.example", "https://mastodon.example"},
		"port":           {"spec.server may have a port", "mastodon.example:8443", "https://mastodon.example:8443"},
		"international":  {"spec.server has only ASCII characters", "https://Bücher.example/", "https://xn--bcher-kva.example"},
		"not encrypted":  {"the token would be readable on the way", "http://mastodon.example", ""},
		"IP address":     {"servers have names", "127.0.0.1", ""},
		"IPv6 address":   {"the same in another form", "https://[::1]/", ""},
		"single label":   {"it would be a host of the cluster's network", "localhost", ""},
		"username":       {"it does not name a server", "@acme", ""},
		"credentials":    {"everything before the last @ is a user, and not a server", "https://mastodon.example@evil.example", ""},
		"query":          {"an address is more than a server", "mastodon.example?a=b", ""},
		"control":        {"it could end the line of a header", "mastodon.example\r\nX: y", ""},
		"too long":       {"the account's id would not fit into spec.accountID", strings.Repeat("a", 60) + "." + strings.Repeat("b", 60) + ".example", ""},
		"port of words":  {"a port is a number", "mastodon.example:http", ""},
		"usual port":     {"the address without it names the same server", "mastodon.example:443", "https://mastodon.example"},
		"leading zero":   {"each spelling would count as another server", "mastodon.example:0443", ""},
		"largest port":   {"it is the last one", "mastodon.example:65535", "https://mastodon.example:65535"},
		"no such port":   {"it cannot be called", "mastodon.example:65536", ""},
		"empty port":     {"the name without the colon is enough", "mastodon.example:", "https://mastodon.example"},
		"nothing at all": {"there is no default", "", ""},
	} {
		got, err := p.ServerURL(tc.typed)
		if got != tc.want || (err == nil) != (tc.want != "") || err != nil && recorder.ClassOf(err) != platforms.ClassPermanent {
			t.Errorf("%s: %q is the server %q, %v: %s", name, tc.typed, got, err, tc.reason)
		}
	}
}

const (
	redirectURI = "https://herald.example/back"
	registered  = `{"client_id":"new","client_secret":"hidden"}`
)

var (
	site     = platforms.Site{URL: "https://herald.example", RedirectURI: redirectURI}
	known    = platforms.ServerApp{ClientID: "known", ClientSecret: "hidden", RedirectURI: redirectURI, Scopes: strings.Join(scopes, " ")}
	another  = platforms.ServerApp{ClientID: "new", ClientSecret: "hidden", RedirectURI: redirectURI, Scopes: strings.Join(scopes, " ")}
	announce = recorder.Respond(http.StatusOK, `{"code_challenge_methods_supported":["S256"]}`)
	silent   = refuse(http.StatusNotFound, "Not found")
	accepts  = recorder.Respond(http.StatusOK, `{"access_token":"app"}`)
)

func withPKCE(app platforms.ServerApp) platforms.ServerApp {
	app.PKCE = true
	return app
}

func moved(app platforms.ServerApp) platforms.ServerApp {
	app.RedirectURI = "https://old.example/back"
	return app
}

func TestRegister(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		known   platforms.ServerApp
		answers []http.HandlerFunc
		want    platforms.ServerApp
		class   platforms.Class
	}{
		"first account":     {"the server has no app yet", platforms.ServerApp{}, []http.HandlerFunc{announce, recorder.Respond(200, registered)}, withPKCE(another), ""},
		"second account":    {"there is one app for all accounts", withPKCE(known), []http.HandlerFunc{accepts}, withPKCE(known), ""},
		"older server":      {"servers before Mastodon 4.3 have no metadata, and no PKCE", known, []http.HandlerFunc{silent, accepts}, known, ""},
		"updated server":    {"it has PKCE from then on", known, []http.HandlerFunc{announce, accepts}, withPKCE(known), ""},
		"known PKCE":        {"whatever a server in front of it responds, PKCE is not given up", withPKCE(known), []http.HandlerFunc{accepts}, withPKCE(known), ""},
		"removed, PKCE":     {"the server is the same", withPKCE(known), []http.HandlerFunc{refuse(401, "invalid_client"), recorder.Respond(200, registered)}, withPKCE(another), ""},
		"gone metadata":     {"the server says that it has none", known, []http.HandlerFunc{refuse(410, "Gone"), accepts}, known, ""},
		"limited metadata":  {"the limit says nothing about PKCE", known, []http.HandlerFunc{refuse(429, "Too many requests")}, platforms.ServerApp{}, platforms.ClassRateLimited},
		"refused metadata":  {"a firewall may have refused it, which says nothing about PKCE", known, []http.HandlerFunc{refuse(403, "Forbidden")}, platforms.ServerApp{}, platforms.ClassPermanent},
		"moved metadata":    {"another server must not decide about PKCE", known, []http.HandlerFunc{recorder.Respond(301, "", "Location", "https://elsewhere.example/")}, platforms.ServerApp{}, platforms.ClassPermanent},
		"moved site":        {"a server redirects only to the registered address", moved(known), []http.HandlerFunc{silent, recorder.Respond(200, registered)}, another, ""},
		"removed app":       {"servers remove apps that nobody uses", known, []http.HandlerFunc{silent, refuse(401, "invalid_client"), recorder.Respond(200, registered)}, another, ""},
		"outage":            {"it ends, and another app would be too many", known, []http.HandlerFunc{announce, refuse(503, "away")}, platforms.ServerApp{}, platforms.ClassTransient},
		"outage at first":   {"nothing is known about the server", known, []http.HandlerFunc{refuse(503, "away")}, platforms.ServerApp{}, platforms.ClassTransient},
		"too many":          {"a server limits registrations", platforms.ServerApp{}, []http.HandlerFunc{announce, refuse(429, "Too many requests")}, platforms.ServerApp{}, platforms.ClassRateLimited},
		"refused":           {"a server checks the addresses", platforms.ServerApp{}, []http.HandlerFunc{announce, refuse(422, "Validation failed")}, platforms.ServerApp{}, platforms.ClassPermanent},
		"other site":        {"many sites have no such API", platforms.ServerApp{}, []http.HandlerFunc{silent, recorder.Respond(404, "<html>")}, platforms.ServerApp{}, platforms.ClassPermanent},
		"redirect":          {"a redirect is not followed, so that the server is the one that the user typed", platforms.ServerApp{}, []http.HandlerFunc{silent, recorder.Respond(301, "", "Location", "https://elsewhere.example/")}, platforms.ServerApp{}, platforms.ClassPermanent},
		"no secret":         {"the app could not be used", platforms.ServerApp{}, []http.HandlerFunc{silent, recorder.Respond(200, `{"client_id":"new"}`)}, platforms.ServerApp{}, platforms.ClassPermanent},
		"very long secrets": {"many of them would not fit into the Secret", platforms.ServerApp{}, []http.HandlerFunc{silent, recorder.Respond(200, `{"client_id":"new","client_secret":"`+strings.Repeat("x", 101)+`"}`)}, platforms.ServerApp{}, platforms.ClassPermanent},
		"escaped secrets":   {"JSON writes each such character as six, and many of them would not fit into the Secret", platforms.ServerApp{}, []http.HandlerFunc{silent, recorder.Respond(200, `{"client_id":"new","client_secret":"`+strings.Repeat("<", 43)+`"}`)}, platforms.ServerApp{}, platforms.ClassPermanent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := start(t, tc.answers...)
			got, err := p.Register(t.Context(), server, site, tc.known)
			if diff := cmp.Diff(tc.want, got); diff != "" || recorder.ClassOf(err) != tc.class {
				t.Errorf("%s: %v of class %q, %s", tc.reason, err, recorder.ClassOf(err), diff)
			}
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error has a secret: %v", err)
			}
		})
	}
}

func TestConnectOnServersInside(t *testing.T) {
	t.Parallel()
	p := New(Config{}, transport.New(transport.Options{}))
	for name, address := range map[string]string{"by address": "https://127.0.0.1", "by name": "https://localhost.localdomain"} {
		_, err := p.Register(t.Context(), address, site, platforms.ServerApp{})
		if recorder.ClassOf(err) != platforms.ClassTransient || !strings.Contains(err.Error(), "could not be reached") {
			t.Errorf("%s: a user could explore the cluster's network: %v", name, err)
		}
	}
}

func TestExchange(t *testing.T) {
	t.Parallel()
	const granted = `{"access_token":"t","scope":"read write:statuses write:media"}`
	for name, tc := range map[string]struct {
		reason string
		answer http.HandlerFunc
		class  platforms.Class
	}{
		"broader scope":  {"read includes read:accounts and read:statuses", recorder.Respond(200, granted), ""},
		"missing scope":  {"the account could not publish", recorder.Respond(200, `{"access_token":"t","scope":"read"}`), platforms.ClassReconnect},
		"code":           {"a code is valid once", refuse(400, "invalid_grant"), platforms.ClassReconnect},
		"app":            {"the next attempt registers another", refuse(401, "invalid_client"), platforms.ClassReconnect},
		"outage":         {"it ends", refuse(500, "oops"), platforms.ClassTransient},
		"other response": {"it explains nothing", recorder.Respond(418, "teapot"), platforms.ClassUnknown},
		"no token":       {"the response is incomplete", recorder.Respond(200, `{}`), platforms.ClassUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := one(t, tc.answer)
			token, err := p.On(server, known).Exchange(t.Context(), platforms.Code{Value: "c", RedirectURI: redirectURI})
			if recorder.ClassOf(err) != tc.class {
				t.Fatalf("%s: %v of class %q", tc.reason, err, recorder.ClassOf(err))
			}
			want := platforms.Token{Access: "t", Scopes: "read write:statuses write:media", Server: server, ClientID: "known", ClientSecret: "hidden"}
			if diff := cmp.Diff(want, token); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		answer http.HandlerFunc
		class  platforms.Class
	}{
		"revoked":        {"the server confirms it, also for a token that is invalid already", recorder.Respond(200, `{}`), ""},
		"another's":      {"a token belongs to one app", refuse(403, "unauthorized_client"), platforms.ClassPermanent},
		"outage":         {"nothing was revoked", refuse(502, ""), platforms.ClassTransient},
		"other response": {"it explains nothing", recorder.Respond(302, ""), platforms.ClassUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := one(t, tc.answer)
			err := p.Revoke(t.Context(), platforms.Token{Access: "t", Server: server, ClientID: "known", ClientSecret: "hidden"})
			if recorder.ClassOf(err) != tc.class {
				t.Errorf("%s: %v of class %q", tc.reason, err, recorder.ClassOf(err))
			}
		})
	}
}
