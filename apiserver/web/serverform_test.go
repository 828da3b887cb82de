// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sessiontest"
)

// onServers is a platform whose users choose the server. The server away.example does not respond.
type onServers struct{ platforms.Platform }

func (onServers) ServerURL(typed string) (string, error) {
	if !strings.Contains(typed, ".") {
		return "", platforms.Errorf(platforms.ClassPermanent, "this is not the name of a server")
	}
	return "https://" + typed, nil
}

func (onServers) Register(_ context.Context, server string, site platforms.Site, _ platforms.ServerApp) (platforms.ServerApp, error) {
	if server == "https://away.example" {
		return platforms.ServerApp{}, platforms.Errorf(platforms.ClassTransient, "away.example could not be reached")
	}
	return platforms.ServerApp{ClientID: "app", RedirectURI: site.RedirectURI}, nil
}

func (o onServers) On(server string, _ platforms.ServerApp) platforms.Connector {
	return onServer{o.Platform, server}
}

type onServer struct {
	platforms.Platform
	server string
}

func (o onServer) ConsentURL(platforms.Consent) (string, error) { return o.server + "/consent", nil }

func (onServer) Exchange(context.Context, platforms.Code) (platforms.Token, error) {
	return platforms.Token{}, nil
}

func (onServer) Choices(context.Context, platforms.Token) ([]platforms.Choice, error) {
	return nil, nil
}

func TestConnectOnServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		who    *access.Person
		form   url.Values
		code   int
		says   []string
	}{
		"asks":         {"only the user knows the server", &administrator, url.Values{}, http.StatusOK, []string{"Connect Mastodon", `name="server"`}},
		"goes on":      {"the consent page is on that server", &administrator, url.Values{"server": {"mastodon.example"}}, http.StatusOK, []string{"https://mastodon.example/consent"}},
		"asks again":   {"what was typed can be corrected", &administrator, url.Values{"server": {"mastodon"}}, http.StatusBadRequest, []string{"not the name of a server", `value="mastodon"`}},
		"away":         {"the server may be back soon", &administrator, url.Values{"server": {"away.example"}}, http.StatusConflict, []string{"could not be reached", `value="away.example"`}},
		"not allowed":  {"who may not connect accounts gets no form", &viewer, url.Values{}, http.StatusForbidden, []string{"You are not allowed to"}},
		"nor register": {"and registers no app", &viewer, url.Values{"server": {"mastodon.example"}}, http.StatusForbidden, []string{"You are not allowed to"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := clocktesting.NewFakeClock(now)
			w := newWorld(clock, func(c *Config) {
				c.Connect.Platforms = platforms.Registry{v1alpha1.PlatformMastodon: onServers{}}
				c.Connect.Servers = connect.NewServerApps(sessiontest.New(), sessiontest.Name, clock)
			})
			tc.form.Set("platform", "mastodon")
			answer := w.serve(newRequest(tc.who, "/teams/"+acme+"/connections/connect", tc.form))
			page := answer.Body.String()
			if answer.Code != tc.code {
				t.Errorf("%s: %d %s", tc.reason, answer.Code, page)
			}
			for _, text := range tc.says {
				if !strings.Contains(page, text) {
					t.Errorf("%s: the page does not have %q: %s", tc.reason, text, page)
				}
			}
		})
	}
}
