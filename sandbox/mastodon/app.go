// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
)

// app is a registered app. Apps are kept in memory: a restart loses them.
type app struct {
	ID, Name, Secret string
	Redirects        []string
	Scopes           []string
}

// allows reports whether the app may request a scope. "read" includes "read:accounts" (api/oauth-scopes).
func (a *app) allows(scope string) bool {
	whole, _, _ := strings.Cut(scope, ":")
	return slices.Contains(a.Scopes, scope) || slices.Contains(a.Scopes, whole)
}

// appOf returns the app that a request identifies by its id and secret.
func (p *Platform) appOf(q *params) (found app, ok bool) {
	id, secret := q.text("client_id"), q.text("client_secret")
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok = p.apps[id]
	return found, ok && secret == found.Secret
}

// registerApp handles POST /api/v1/apps. Anyone may register an app.
func (p *Platform) registerApp(w http.ResponseWriter, r *faults.Request) {
	q, ok := readParams(r)
	if !ok {
		p.fail(w, badBody())
		return
	}
	name, website := q.text("client_name"), q.text("website")
	made := app{Name: name, ID: rand.Text(), Secret: rand.Text(), Scopes: strings.Fields(q.text("scopes"))}
	made.Redirects = append(q.list("redirect_uris"), strings.Fields(q.text("redirect_uris"))...)
	if len(made.Scopes) == 0 {
		made.Scopes = []string{"read"}
	}
	with := p.checked(q)
	switch {
	case with != nil:
	case name == "":
		with = notValid("Application name can't be blank")
	case len(made.Redirects) == 0 || slices.ContainsFunc(made.Redirects, func(uri string) bool { return !strings.Contains(uri, ":") }):
		with = notValid("Redirect URI must be an absolute URI.")
	case website != "" && !simulator.IsAddress(website):
		with = notValid("Website is not a valid URL")
	}
	if with != nil {
		p.fail(w, with)
		return
	}
	p.mu.Lock()
	p.apps[made.ID] = made
	number := len(p.apps)
	p.mu.Unlock()
	p.write(w, http.StatusOK, map[string]any{
		"id": fmt.Sprint(number), "name": name, "website": website, "scopes": made.Scopes, "redirect_uri": strings.Join(made.Redirects, "\n"),
		"redirect_uris": made.Redirects, "client_id": made.ID, "client_secret": made.Secret, "client_secret_expires_at": 0,
	})
}

// verifyApp handles GET /api/v1/apps/verify_credentials. The sandbox does not record which app a token belongs to.
func (p *Platform) verifyApp(w http.ResponseWriter, r *faults.Request) {
	if _, _, ok := p.Authorized(r, Name); !ok {
		p.fail(w, problemFor(http.StatusUnauthorized))
		return
	}
	p.write(w, http.StatusOK, map[string]any{"name": "sandbox", "website": nil, "scopes": []string{"read", "write"}})
}
