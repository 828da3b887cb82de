// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/bluesky"
)

// byHandle is a platform whose accounts are connected by handle or with an app password. Only acme.example exists.
type byHandle struct {
	byPassword

	// keyless simulates an installation without a key.
	keyless bool
}

func (b byHandle) ClientDocument(site platforms.Site) ([]byte, error) {
	if b.keyless {
		return nil, errors.New("no key")
	}
	return []byte(`{"redirect_uris":["` + site.RedirectURI + `"]}`), nil
}

func (byHandle) Begin(_ context.Context, handle string, _ platforms.Consent) (address, begun string, err error) {
	if handle != "acme.example" {
		return "", "", platforms.Errorf(platforms.ClassPermanent, "there is no account with this handle")
	}
	return "https://pds.example/consent", "begun", nil
}

func (byHandle) Finish(context.Context, string, platforms.Code, string) (platforms.Choice, error) {
	return platforms.Choice{}, nil
}

func TestConnectByHandle(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		who     *access.Person
		keyless bool
		form    url.Values
		code    int
		says    []string
		not     string
	}{
		"asks":        {"an app password remains possible", &administrator, false, url.Values{}, http.StatusOK, []string{"Connect Bluesky", `name="handle"`, `name="password"`}, ""},
		"without key": {"servers would not accept the consent", &administrator, true, url.Values{}, http.StatusOK, []string{`name="password"`}, `name="handle"`},
		"forged":      {"a form that the page does not have changes nothing", &administrator, true, url.Values{"handle": {"acme.example"}}, http.StatusOK, []string{`name="password"`}, "pds.example"},
		"goes on":     {"the consent page is on the account's server", &administrator, false, url.Values{"handle": {"acme.example"}}, http.StatusOK, []string{"https://pds.example/consent"}, ""},
		"asks again":  {"what was typed can be corrected", &administrator, false, url.Values{"handle": {"acme"}}, http.StatusBadRequest, []string{"no account with this handle", `value="acme"`}, ""},
		"not allowed": {"the server is not called", &viewer, false, url.Values{"handle": {"acme.example"}}, http.StatusForbidden, []string{"You are not allowed to"}, "pds.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now), func(c *Config) {
				c.Connect.Platforms = platforms.Registry{v1alpha1.PlatformBluesky: byHandle{keyless: tc.keyless}}
			})
			tc.form.Set("platform", "bluesky")
			answer := w.serve(newRequest(tc.who, "/teams/"+acme+"/connections/connect", tc.form))
			page := answer.Body.String()
			if answer.Code != tc.code || tc.not != "" && strings.Contains(page, tc.not) {
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

// TestClientDocument reads the document as servers do, without a session.
func TestClientDocument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		keyless bool
		path    string
		code    int
		says    string
	}{
		"served":         {"servers identify Herald by it", false, bluesky.ClientDocumentPath, http.StatusOK, "/connect/bluesky/callback"},
		"without key":    {"there is nothing to identify", true, bluesky.ClientDocumentPath, http.StatusNotFound, ""},
		"other platform": {"only servers of Bluesky read such a document", false, "/oauth/x/client-metadata.json", http.StatusNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now), func(c *Config) {
				c.Connect.Platforms = platforms.Registry{v1alpha1.PlatformBluesky: byHandle{keyless: tc.keyless}}
			})
			answer := w.serve(newRequest(nil, tc.path, nil))
			if answer.Code != tc.code || !strings.Contains(answer.Body.String(), tc.says) {
				t.Errorf("%s: %d %s", tc.reason, answer.Code, answer.Body.String())
			}
			if kind := answer.Header().Get("Content-Type"); tc.code == http.StatusOK && kind != "application/json" {
				t.Errorf("the document is %s", kind)
			}
		})
	}
}
