// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/realplatforms"
)

// byPassword is a platform whose accounts are connected with an app password, and which rejects every password.
type byPassword struct{ platforms.Platform }

func (byPassword) AppPasswords() string { return "https://bsky.example/settings" }

func (byPassword) PasswordToken(name, password string) (platforms.Token, error) {
	return platforms.Token{Access: name + ":" + password}, nil
}

func (byPassword) Identify(context.Context, platforms.Token) (platforms.Identity, error) {
	return platforms.Identity{}, platforms.Errorf(platforms.ClassReconnect, "the password is wrong")
}

func TestConnectByAppPassword(t *testing.T) {
	t.Parallel()
	const secret = "wxyz-2345-wxyz-2345"
	for name, tc := range map[string]struct {
		reason string
		form   url.Values
		code   int
		says   []string
	}{
		"asks": {
			"users create the password on the platform",
			url.Values{},
			http.StatusOK,
			[]string{"Connect Bluesky", "https://bsky.example/settings", `type="password"`},
		},
		"asks again": {
			"the handle is filled in", url.Values{"connection": {"our-bluesky"}}, http.StatusOK, []string{`value="our-bluesky"`, `type="password"`},
		},
		"refused": {
			"the problem is above the form, with the handle as typed",
			url.Values{"name": {"acme.example"}, "password": {secret}},
			http.StatusBadRequest,
			[]string{"the password is wrong", `value="acme.example"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now), func(c *Config) {
				c.Connect.Platforms = platforms.Registry{v1alpha1.PlatformBluesky: byPassword{}}
			})
			tc.form.Set("platform", "bluesky")
			answer := w.serve(newRequest(&administrator, "/teams/"+acme+"/connections/connect", tc.form))
			page := answer.Body.String()
			if answer.Code != tc.code || strings.Contains(page, secret) {
				t.Errorf("%s: %d %s", tc.reason, answer.Code, page)
			}
			for _, text := range tc.says {
				if !strings.Contains(page, text) {
					t.Errorf("%s: the page does not have %q", tc.reason, text)
				}
			}
		})
	}
}

// TestLaterPlatformsAreNotMentioned checks that pages do not name a platform that version 1 of the API lacks, unless
// the installation publishes to it.
func TestLaterPlatformsAreNotMentioned(t *testing.T) {
	t.Parallel()
	const bluesky, mastodon = v1alpha1.PlatformBluesky, v1alpha1.PlatformMastodon
	for name, tc := range map[string]struct {
		reason string
		has    []v1alpha1.Platform
	}{
		"both":     {"menus and texts name each platform", []v1alpha1.Platform{bluesky, mastodon}},
		"bluesky":  {"the pages do not mention the other platform", []v1alpha1.Platform{bluesky}},
		"mastodon": {"the pages do not mention the other platform", []v1alpha1.Platform{mastodon}},
		"neither":  {"the pages mention the platforms of version 1 only", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now), func(c *Config) {
				c.Service.Capabilities = func(p v1alpha1.Platform) (platforms.Capabilities, bool) {
					if !p.InVersion1() && !slices.Contains(tc.has, p) {
						return platforms.Capabilities{}, false
					}
					return realplatforms.All().Capabilities(p)
				}
			})
			w.connections[acme] = w.connections[acme][:1]
			text := ""
			for _, path := range []string{"", "posts", "posts/new", "connections", "calendar", "team", "bulk"} {
				text += w.serve(newRequest(&administrator, "/teams/"+acme+"/"+path, nil)).Body.String()
			}
			w.connections[acme] = nil
			text += w.serve(newRequest(&administrator, "/teams/"+acme+"/posts", nil)).Body.String()
			for _, p := range []v1alpha1.Platform{bluesky, mastodon} {
				if got := strings.Contains(strings.ToLower(text), string(p)); got != slices.Contains(tc.has, p) {
					t.Errorf("%s: the pages mention %s: %v", tc.reason, p, got)
				}
			}
		})
	}
}
