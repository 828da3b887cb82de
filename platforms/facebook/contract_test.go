// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/facebook"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/test/sandboxtest"
)

func config(url string) facebook.Config {
	return facebook.Config{Config: platforms.Config{
		APIURL: url + "/facebook", WebURL: url + "/facebook", AuthorizeURL: url + "/facebook",
		ClientID: "herald", ClientSecret: func() string { return platformtest.AppSecret },
	}}
}

func newAt(t *testing.T, url string) platforms.Platform {
	t.Helper()
	return facebook.New(config(url), transport.New(transport.Options{}))
}

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "facebook", New: newAt,
		Renewal: platformtest.Never, Refusals: platformtest.GraphRefusals(),
		AltTexts: []v1alpha1.Category{v1alpha1.CategoryImage},
		// The listing of a Page's posts is incomplete, and neither a text post nor a photo post has an id before it is
		// published.
		Unprovable: []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage},
	}
}

// TestContractInTwoSteps runs the contract for posts that are created unpublished. A post's state then shows whether it
// is published.
func TestContractInTwoSteps(t *testing.T) {
	suite := contract()
	suite.New = func(t *testing.T, url string) platforms.Platform {
		t.Helper()
		c := config(url)
		c.TwoSteps = true
		return facebook.New(c, transport.New(transport.Options{}))
	}
	// Photos are checked while they are uploaded, and nothing is processed later.
	suite.Unprovable, suite.LateProcessing = nil, true
	suite.Run(t)
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }

// TestChoice connects one of a user's several Pages.
func TestChoice(t *testing.T) {
	t.Parallel()
	control := sandboxtest.Start(t)
	bakery, err := control.Account(t.Context(), "facebook", "772", nil)
	if err != nil {
		t.Fatal(err)
	}
	cafe, err := control.Account(t.Context(), "facebook", "773", map[string]any{"pages": []string{bakery.ID}})
	if err != nil {
		t.Fatal(err)
	}
	p, ok := newAt(t, control.URL).(platforms.Connector)
	if !ok {
		t.Fatal("Pages cannot be connected")
	}
	choices, err := p.Choices(t.Context(), platforms.Token{Access: cafe.AccessToken, Scopes: "pages_manage_posts"})
	if err != nil || len(choices) != 2 {
		t.Fatalf("got %d choices, %v", len(choices), err)
	}
	for i, want := range []string{cafe.ID, bakery.ID} {
		identity, err := p.Identify(t.Context(), choices[i].Token)
		if err != nil || identity.AccountID != want || choices[i].Identity.AccountID != want {
			t.Errorf("choice %d is %+v, and its token that of %+v, %v; want %s", i, choices[i].Identity, identity, err, want)
		}
	}
}

// TestNoApp connects an account when no app is configured.
func TestNoApp(t *testing.T) {
	t.Parallel()
	_, err := facebook.New(facebook.Config{}, transport.New(transport.Options{})).ConsentURL(platforms.Consent{})
	failure, ok := errors.AsType[*platforms.Error](err)
	if !ok || failure.Class != platforms.ClassPermanent || !strings.Contains(failure.Remedy, "platforms.facebook.clientID") {
		t.Errorf("got %v; want the setting that is missing", err)
	}
}

// TestPages tests how Graph lists a user's Pages.
func TestPages(t *testing.T) {
	t.Parallel()
	page := func(id, tasks string) string {
		return fmt.Sprintf(`{"id":%q,"name":"Page %s","access_token":"token-%s","tasks":[%s],"picture":{"data":{"url":"https://cdn.example.com/%s"}}}`, id, id, id, tasks, id)
	}
	tests := map[string]struct {
		reason     string
		pages, ids []string
		words      string
	}{
		"several":        {"a user chooses one", []string{`{"data":[` + page("1", `"MANAGE"`) + "," + page("2", `"CREATE_CONTENT"`) + `]}`}, []string{"1", "2"}, ""},
		"next page":      {"agencies have hundreds of Pages", []string{`{"data":[` + page("1", `"MANAGE"`) + `],"paging":{"next":"https://elsewhere.example.com/me/accounts?after=c1&access_token=leaked"}}`, `{"data":[` + page("2", `"MANAGE"`) + `]}`}, []string{"1", "2"}, ""},
		"read only":      {"Pages without the right to post are not offered", []string{`{"data":[` + page("1", `"ANALYZE"`) + "," + page("2", `"MANAGE"`) + `]}`}, []string{"2"}, ""},
		"no usable page": {"the error names the missing task", []string{`{"data":[` + page("1", `"ANALYZE","ADVERTISE"`) + `]}`}, nil, "create content"},
		"none":           {"a user without a Page gets the message that profiles are not supported", []string{`{"data":[]}`}, nil, "personal profiles"},
		"no list":        {"a response without a list is not an empty list", []string{`{}`}, nil, "did not identify"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("access_token") || r.Header.Get("Authorization") != "Bearer person" || r.URL.Path != "/v25.0/me/accounts" {
					t.Errorf("%s: requested %s", tc.reason, r.URL)
				}
				if calls > 0 && r.URL.Query().Get("after") != "c1" {
					t.Errorf("%s: the second page was requested with %q", tc.reason, r.URL.RawQuery)
				}
				_, _ = w.Write([]byte(tc.pages[calls]))
				calls++
			}))
			t.Cleanup(server.Close)
			p := facebook.New(facebook.Config{Config: platforms.Config{APIURL: server.URL, ClientID: "herald"}}, transport.New(transport.Options{}))
			choices, err := p.Choices(t.Context(), platforms.Token{Access: "person", Scopes: "pages_manage_posts"})
			var ids []string
			for _, c := range choices {
				ids = append(ids, c.Identity.AccountID)
				if c.Token.Access != "token-"+c.Identity.AccountID || c.Token.Scopes != "pages_manage_posts" || c.Identity.IconURL == "" {
					t.Errorf("%s: got %+v", tc.reason, c)
				}
			}
			if !slices.Equal(ids, tc.ids) || (err != nil) != (tc.words != "") || err != nil && !strings.Contains(err.Error(), tc.words) {
				t.Errorf("%s: got %q, %v", tc.reason, ids, err)
			}
		})
	}
}

func TestConnect(t *testing.T) {
	scopes := []string{"pages_show_list", "pages_manage_posts", "pages_read_engagement"}
	connecting := platformtest.Connecting{Suite: contract(), Scopes: scopes, Needed: scopes, Lasts: true}
	connecting.Run(t)
}

// TestLoginForBusiness tests that the consent page requests the configuration if there is one, and scopes otherwise.
func TestLoginForBusiness(t *testing.T) {
	for configuration, want := range map[string]url.Values{
		"":    {"client_id": {"me"}, "scope": {"pages_show_list,pages_manage_posts,pages_read_engagement"}},
		"123": {"client_id": {"me"}, "config_id": {"123"}},
	} {
		p := facebook.New(facebook.Config{Config: platforms.Config{ClientID: "me"}, LoginConfigID: configuration}, transport.New(transport.Options{}))
		platformtest.CheckConsent(t, p, "https://www.facebook.com/v25.0/dialog/oauth", want)
	}
}
