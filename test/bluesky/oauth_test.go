// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/bluesky"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
	"github.com/herald-social/herald/test/keytest"
	"github.com/herald-social/herald/test/must"
)

// startForOAuth starts a server that can read Herald's client metadata document, and the site with that document.
func startForOAuth(t *testing.T, handles ...string) (*server, *website) {
	t.Helper()
	node(t) // skips the test before the site starts
	at := startWebsite(t)
	return startWith(t, []string{"NODE_EXTRA_CA_CERTS=" + at.certificate}, append([]string{"--site=" + siteHost}, handles...)...), at
}

// newClient returns the platform for a site with a key.
func newClient(s *server, at *website, key string) *bluesky.Platform {
	return bluesky.New(bluesky.Config{
		Config:       platforms.Config{APIURL: s.URL, ClientID: at.URL + bluesky.ClientDocumentPath, ClientSecret: func() string { return key }},
		DirectoryURL: s.Directory,
	}, transport.New(transport.Options{}))
}

// TestOAuth connects an account, publishes with its token, renews it and revokes it. The server reads Herald's client
// metadata document, and verifies proofs signed with Herald's key and with the token's key.
func TestOAuth(t *testing.T) {
	s, at := startForOAuth(t, "bakery.test")
	acme := &s.Accounts[0]
	p := newClient(s, at, keytest.P256(t))
	back := at.URL + "/connect/bluesky/callback"
	document, err := p.ClientDocument(platforms.Site{URL: at.URL, RedirectURI: back})
	must.Succeed(t, err)
	at.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document)
	}))

	connect := func() platforms.Choice {
		t.Helper()
		asked := platforms.Consent{RedirectURI: back, State: "state", Verifier: rand.Text() + rand.Text()}
		page, begun, err := p.Begin(t.Context(), "@bakery.test", asked)
		must.Succeed(t, err)
		returned := consent(t, s, acme, page)
		query := returned.Query()
		if query.Get("state") != asked.State || !strings.HasPrefix(returned.String(), back+"?") {
			t.Errorf("the server redirects to %s", returned)
		}
		choice, err := p.Finish(t.Context(), begun, platforms.Code{Value: query.Get("code"), RedirectURI: back, Verifier: asked.Verifier}, query.Get("iss"))
		must.Succeed(t, err)
		return choice
	}
	choice := connect()
	if choice.Identity.AccountID != acme.DID || choice.Identity.Username != acme.Handle {
		t.Errorf("the account is %+v", choice.Identity)
	}
	if left := time.Until(choice.Token.ExpiresAt); left < 4*p.Capabilities().RefreshLead || left > time.Hour {
		t.Errorf("the access token is valid for %s, which does not fit the renewal %s before", left, p.Capabilities().RefreshLead)
	}

	job := func(n byte, token platforms.Token, content platforms.Content) platforms.Job {
		job := acme.job(n, content)
		job.Account.Token = token
		return job
	}
	publish(t, p, job(1, choice.Token, platforms.Content{Category: v1alpha1.CategoryImage, Text: "a picture", Media: []platforms.File{picture(t, 10)}}))
	publish(t, p, job(2, choice.Token, platforms.Content{Category: v1alpha1.CategoryVideo, Text: "moves", Media: []platforms.File{film(t)}}))

	renewed, err := p.Refresh(t.Context(), choice.Token)
	must.Succeed(t, err)
	text := job(3, renewed, platforms.Content{Category: v1alpha1.CategoryText, Text: "for @bakery.test"})
	key := publish(t, p, text)
	if found, err := p.Lookup(t.Context(), text); err != nil || found.ExternalID != key {
		t.Errorf("the post is looked up as %+v, %v", found, err)
	}
	if posts := s.read(t, acme); len(posts) != 3 || posts[0].Images[0].Downloaded == 0 || posts[1].Video == nil || len(posts[2].Facets) != 1 {
		t.Errorf("the server has %+v", posts)
	}

	must.Succeed(t, p.Revoke(t.Context(), renewed))
	if _, err := p.Refresh(t.Context(), renewed); recorder.ClassOf(err) != platforms.ClassReconnect {
		t.Errorf("a revoked token is renewed with %v", err)
	}
	must.Succeed(t, p.Revoke(t.Context(), renewed)) // revoking an invalid token is not an error

	again := connect().Token
	_, err = p.Refresh(t.Context(), again)
	must.Succeed(t, err)
	if _, err := p.Refresh(t.Context(), again); recorder.ClassOf(err) != platforms.ClassReconnect {
		t.Errorf("a refresh token is valid for one renewal, but a second one returns %v", err)
	}
}

var consentLink = regexp.MustCompile(`href="(http://localhost:[0-9]+/oauth/authorize[^"]+)"`)

// TestHeraldOAuth connects an account by its handle in the web application, publishes to it, and disconnects it. The
// manager then revokes the token.
func TestHeraldOAuth(t *testing.T) {
	s, at := startForOAuth(t, "bakery.test", "zoe.test")
	acme, zoe := &s.Accounts[0], &s.Accounts[1]
	key, file := keytest.P256(t), filepath.Join(t.TempDir(), "key.pem")
	must.Succeed(t, os.WriteFile(file, []byte(key), 0o600))
	h := startHerald(t, &configv1alpha1.Platform{
		Server: s.URL, Directory: s.Directory, ClientID: at.URL + bluesky.ClientDocumentPath, ClientSecretFile: file,
	}, at)
	h.setUp(t, acme)
	h.signIn(t)

	accounts := "/teams/" + team + "/connections"
	found := consentLink.FindStringSubmatch(h.web(t, accounts+"/connect", url.Values{"platform": {"bluesky"}, "handle": {"@zoe.test"}}))
	if found == nil {
		t.Fatal("there is no way to the consent page")
	}
	back := consent(t, s, zoe, html.UnescapeString(found[1]))
	if status, page := h.send(t, h.person, http.MethodGet, back.String(), "", nil, ""); status != http.StatusOK || !bytes.Contains(page, []byte("zoe.test")) && !bytes.Contains(page, []byte(zoe.DID)) {
		t.Fatalf("after the consent, the site responds %d %s", status, page)
	}
	connection := h.connectionOf(t, zoe)
	if connection.Status.TokenExpiresAt == nil {
		t.Errorf("the connection's status is %+v", connection.Status)
	}

	h.create(t, `{"category":"text","targets":[{"connection_id":"`+connection.Name+`","caption":"with access"}]}`)
	h.posted(t, 1)
	if posts := s.read(t, zoe); len(posts) != 1 || posts[0].Text != "with access" {
		t.Errorf("the server has %+v", posts)
	}

	var secret corev1.Secret
	must.Succeed(t, h.env.Client.Get(t.Context(), keyOf(connection.Status.WorkingSecret), &secret))
	token := platforms.Token{Access: string(secret.Data[v1alpha1.CredentialsAccessToken]), Refresh: string(secret.Data[v1alpha1.CredentialsRefreshToken])}
	if page := h.web(t, accounts+"/"+connection.Name+"/disconnect", url.Values{}); !strings.Contains(page, "revoke its access") {
		t.Errorf("the user reads %s", page)
	}
	h.await(t, "the connection to be removed", func() (bool, error) {
		err := h.env.Client.Get(t.Context(), client.ObjectKeyFromObject(connection), connection)
		return apierrors.IsNotFound(err), err
	})
	// The pause before the revocation is in real time. A renewal would end the session as well, so the test attempts
	// only one, after the revocation.
	h.await(t, "the token to be revoked", func() (bool, error) {
		return strings.Contains(h.manager.Log(), "the token of a disconnected account was revoked"), nil
	})
	if _, err := newClient(s, at, key).Refresh(t.Context(), token); recorder.ClassOf(err) != platforms.ClassReconnect {
		t.Errorf("after the account is disconnected, its token is renewed with %v", err)
	}
}

// connectionOf waits until an account is connected, and returns its connection.
func (h *herald) connectionOf(t *testing.T, a *account) *v1alpha1.Connection {
	t.Helper()
	var all v1alpha1.ConnectionList
	var found *v1alpha1.Connection
	h.await(t, "the account that was connected on the web", func() (bool, error) {
		if err := h.env.Client.List(t.Context(), &all, client.InNamespace(team)); err != nil {
			return false, err
		}
		for i := range all.Items {
			if all.Items[i].Spec.AccountID == a.DID && all.Items[i].Status.ConnectedAt != nil {
				found = &all.Items[i]
			}
		}
		text, err := json.Marshal(all.Items)
		return found != nil && err == nil, fmt.Errorf("the connections are %s", text)
	})
	return found
}
