// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/instagram"
	"github.com/herald-social/herald/platforms/platformtest"
)

// through returns a function that creates the platform with the given login for new connections.
func through(login instagram.Login) func(t *testing.T, url string) platforms.Platform {
	return func(t *testing.T, url string) platforms.Platform {
		t.Helper()
		site := url + "/instagram"
		config := instagram.Config{
			Config: platforms.Config{
				APIURL: site, AuthorizeURL: site, ClientID: "herald", ClientSecret: func() string { return platformtest.AppSecret },
			},
			FacebookURL: site + "/graph.facebook.com", UploadURL: site + "/rupload.facebook.com", Login: login,
		}
		if login == instagram.FacebookLogin {
			config.AuthorizeURL = config.FacebookURL
		}
		return instagram.New(config, transport.New(transport.Options{}))
	}
}

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "instagram", New: through(""), Renewal: platformtest.ByItself, TellsPostsLeft: true, Refusals: platformtest.GraphRefusals(),
		AltTexts: []v1alpha1.Category{v1alpha1.CategoryImage},
	}
}

// contractLinked is the contract for accounts that are connected through their Page.
func contractLinked() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "instagram", New: through(instagram.FacebookLogin), Renewal: platformtest.Never, TellsPostsLeft: true,
		Account:  map[string]any{"login": "facebook"},
		AltTexts: []v1alpha1.Category{v1alpha1.CategoryImage},
	}
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }

func TestContractLinked(t *testing.T) { contractLinked().Run(t) }

func TestConnect(t *testing.T) {
	scopes := []string{"instagram_business_basic", "instagram_business_content_publish"}
	connecting := platformtest.Connecting{Suite: contract(), Scopes: scopes, Needed: scopes}
	connecting.Run(t)
}

func TestConnectLinked(t *testing.T) {
	scopes := []string{"instagram_basic", "instagram_content_publish", "pages_read_engagement", "pages_show_list"}
	connecting := platformtest.Connecting{Suite: contractLinked(), Scopes: scopes, Needed: scopes, Lasts: true}
	connecting.Run(t)
}

// TestExchangeOfRealResponses tests the forms of the response found in Meta's documentation and its clients.
func TestExchangeOfRealResponses(t *testing.T) {
	t.Parallel()
	const granted = "instagram_business_basic instagram_business_content_publish"
	tests := map[string]struct{ reason, answer, scopes string }{
		"in a list":           {"the reference shows a list", `{"data":[{"access_token":"short","user_id":"1020","permissions":"instagram_business_basic,instagram_business_content_publish"}]}`, granted},
		"at the top":          {"clients read the top level", `{"access_token":"short","user_id":17841400000000001,"permissions":["instagram_business_basic","instagram_business_content_publish"]}`, granted},
		"permissions omitted": {"omitted permissions count as granted (RFC 6749, section 5.1)", `{"access_token":"short","user_id":17841400000000001}`, granted},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/oauth/access_token" {
					_, _ = w.Write([]byte(tc.answer))
					return
				}
				if r.URL.Query().Get("access_token") != "short" {
					t.Errorf("%s: %s was called with another token", tc.reason, r.URL.Path)
				}
				_, _ = w.Write([]byte(`{"access_token":"long","token_type":"bearer","expires_in":5184000}`))
			}))
			t.Cleanup(server.Close)
			p := instagram.New(instagram.Config{Config: platforms.Config{APIURL: server.URL, ClientID: "herald"}}, transport.New(transport.Options{}))
			token, err := p.Exchange(t.Context(), platforms.Code{Value: "abc", RedirectURI: "https://herald.example.com/back"})
			if err != nil || token.Access != "long" || token.Scopes != tc.scopes {
				t.Errorf("%s: got %+v, %v", tc.reason, token, err)
			}
		})
	}
}

// TestChoicesAmongPages connects accounts for a user with several Pages.
func TestChoicesAmongPages(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"data":[
			{"id":"1","name":"Plain","access_token":"page-1","tasks":["MANAGE"]},
			{"id":"2","name":"Linked","access_token":"page-2","tasks":["CREATE_CONTENT"],"instagram_business_account":{"id":"17","username":"linked","name":"Linked"}},
			{"id":"3","name":"Watched","access_token":"page-3","tasks":["ANALYZE"],"instagram_business_account":{"id":"18","username":"watched"}}
		]}`))
	}))
	t.Cleanup(server.Close)
	p := instagram.New(instagram.Config{Config: platforms.Config{ClientID: "herald"}, FacebookURL: server.URL, Login: instagram.FacebookLogin}, transport.New(transport.Options{}))
	choices, err := p.Choices(t.Context(), platforms.Token{Access: "person", Scopes: "instagram_basic"})
	if err != nil || len(choices) != 1 || choices[0].Identity.AccountID != "17" || choices[0].Token.Access != "page-2" || choices[0].Token.Scopes != "instagram_basic" {
		t.Errorf("got %+v, %v; want the account linked to the Page on which the user may post", choices, err)
	}
}
