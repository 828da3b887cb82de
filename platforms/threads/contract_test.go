// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/threads"
)

func newAt(t *testing.T, url string) platforms.Platform {
	t.Helper()
	return threads.New(threads.Config{Config: platforms.Config{
		APIURL: url + "/threads", WebURL: url + "/threads", AuthorizeURL: url + "/threads",
		ClientID: "herald", ClientSecret: func() string { return platformtest.AppSecret },
	}}, transport.New(transport.Options{}))
}

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "threads", New: newAt, Renewal: platformtest.ByItself, TellsPostsLeft: true, Refusals: platformtest.GraphRefusals(),
		AltTexts: []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo},
	}
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }

// TestExchangeOfRealResponses tests responses that Meta documents but the sandbox does not send.
func TestExchangeOfRealResponses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason, code, debug string
		debugStatus         int
		scopes              string
	}{
		"suffix":     {"the redirect URL ends in #_", "abc#_", `{"data":{"scopes":["threads_basic","threads_content_publish","threads_manage_replies","threads_read_replies"]}}`, 200, "threads_basic threads_content_publish threads_manage_replies threads_read_replies"},
		"no testers": {"token details are shown to an app's testers only; unknown permissions are not missing", "abc", `{"error":{"code":10,"message":"(#10) not a tester"}}`, 400, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/oauth/access_token":
					if code := r.FormValue("code"); code != "abc" {
						t.Errorf("%s: the code is %q", tc.reason, code)
					}
					// A number that exceeds the precision of float64.
					_, _ = w.Write([]byte(`{"access_token":"short","user_id":24000000000000001}`))
				case "/v1.0/debug_token":
					w.WriteHeader(tc.debugStatus)
					_, _ = w.Write([]byte(tc.debug))
				case "/access_token":
					_, _ = w.Write([]byte(`{"access_token":"long","token_type":"bearer","expires_in":5184000}`))
				}
			}))
			t.Cleanup(server.Close)
			p := threads.New(threads.Config{Config: platforms.Config{APIURL: server.URL, ClientID: "herald"}}, transport.New(transport.Options{}))
			token, err := p.Exchange(t.Context(), platforms.Code{Value: tc.code, RedirectURI: "https://herald.example.com/back"})
			if err != nil || token.Access != "long" || token.Scopes != tc.scopes {
				t.Errorf("%s: got %+v, %v", tc.reason, token, err)
			}
		})
	}
}

func TestConnect(t *testing.T) {
	scopes := []string{"threads_basic", "threads_content_publish", "threads_manage_replies", "threads_read_replies"}
	connecting := platformtest.Connecting{Suite: contract(), Scopes: scopes, Needed: scopes}
	connecting.Run(t)
}

func TestConsentURL(t *testing.T) {
	p := threads.New(threads.Config{Config: platforms.Config{ClientID: "herald"}}, transport.New(transport.Options{}))
	platformtest.CheckConsent(t, p, "https://threads.com/oauth/authorize", url.Values{
		"client_id": {"herald"}, "scope": {"threads_basic,threads_content_publish,threads_manage_replies,threads_read_replies"},
	})
}
