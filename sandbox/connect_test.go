// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const wayBack = "http://127.0.0.1/back"

// connector describes how a client connects a platform account.
type connector struct {
	name, platform, account string
	// dialog and token are the consent page and the token endpoint.
	dialog, token string
	// asked and told are the additional parameters of the dialog and the token request.
	asked, told url.Values
	// client is the name of the parameter with the client's id.
	client string
	// life is the access token lifetime in the response, in seconds; nil if absent.
	life    any
	refresh bool
	// used is a part of the response to a used code.
	used string
	// identity is the request that returns the account; at is the path of the account's id.
	identity string
	at       []string
}

func connectors() []connector {
	hexed := sha256.Sum256([]byte(verifier))
	return []connector{
		{
			name: "Threads", platform: "threads", account: threadsID, dialog: "/threads/oauth/authorize", token: "/threads/oauth/access_token",
			asked: url.Values{"scope": {"threads_basic,threads_content_publish"}}, client: "client_id", used: "Matching code was not found",
			identity: "/threads/v1.0/me", at: []string{"id"},
		},
		{
			name: "Instagram", platform: "instagram", account: "17841400000000001", dialog: "/instagram/oauth/authorize",
			token: "/instagram/oauth/access_token", asked: url.Values{"scope": {"instagram_business_basic"}, "enable_fb_login": {"0"}},
			client: "client_id", used: "Matching code was not found", identity: "/instagram/v25.0/me?fields=user_id", at: []string{"user_id"},
		},
		{
			name: "Facebook", platform: "facebook", account: pageID, dialog: "/facebook/v25.0/dialog/oauth",
			token: "/facebook/v25.0/oauth/access_token", asked: url.Values{"scope": {"pages_show_list,pages_manage_posts"}}, client: "client_id",
			life: 3600.0, used: "This authorization code has been used.", identity: "/facebook/v25.0/me", at: []string{"id"},
		},
		{
			name: "TikTok", platform: "tiktok", account: "-000HeraldDemoAccount00000000001", dialog: "/tiktok/v2/auth/authorize/",
			token: "/tiktok/v2/oauth/token/", client: "client_key", asked: url.Values{
				"scope": {"user.info.basic,video.publish"}, "code_challenge": {hex.EncodeToString(hexed[:])}, "code_challenge_method": {"S256"},
			}, told: url.Values{"code_verifier": {verifier}}, life: 7200.0, refresh: true, used: "invalid_grant",
			identity: "/tiktok/v2/user/info/?fields=open_id", at: []string{"data", "user", "open_id"},
		},
		{
			name: "Google, offline", platform: "youtube", account: "UCHeraldDemo000000000001", dialog: "/youtube/o/oauth2/v2/auth", token: "/youtube/token",
			client: "client_id", asked: url.Values{
				"scope": {"https://www.googleapis.com/auth/youtube openid"}, "access_type": {"offline"}, "prompt": {"consent"},
				"code_challenge": {challenge()}, "code_challenge_method": {"S256"},
			}, told: url.Values{"code_verifier": {verifier}}, life: 3600.0, refresh: true, used: "invalid_grant",
			identity: "/youtube/youtube/v3/channels?part=id&mine=true", at: []string{"items", "0", "id"},
		},
		{
			name: "Google, online", platform: "youtube", account: "UCHeraldDemo000000000001", dialog: "/youtube/o/oauth2/v2/auth", token: "/youtube/token",
			client: "client_id", asked: url.Values{"scope": {"https://www.googleapis.com/auth/youtube.readonly"}},
			life: 3600.0, used: "invalid_grant",
			identity: "/youtube/youtube/v3/channels?part=id&mine=true", at: []string{"items", "0", "id"},
		},
	}
}

// merged returns the union of all values.
func merged(all ...url.Values) url.Values {
	out := url.Values{}
	for _, values := range all {
		maps.Copy(out, values)
	}
	return out
}

// consent authorizes the client as the account's owner and returns the code.
func (b *box) consent(c connector) string {
	b.t.Helper()
	query := merged(url.Values{
		"response_type": {"code"}, c.client: {"tests"}, "redirect_uri": {wayBack}, "state": {"s"}, "account": {c.account},
	}, c.asked)
	r := b.call(http.MethodGet, c.dialog+"?"+query.Encode(), "", "", "")
	back, err := url.Parse(r.header.Get("Location"))
	if err != nil || r.status != http.StatusFound || back.Query().Get("state") != "s" {
		b.t.Fatalf("consent: %d %s %s", r.status, back, r.body)
	}
	return back.Query().Get("code")
}

// redeem exchanges a code.
func (b *box) redeem(c connector, code string, change url.Values) reply {
	b.t.Helper()
	form := merged(url.Values{
		"grant_type": {"authorization_code"}, c.client: {"tests"}, "client_secret": {"secret"}, "redirect_uri": {wayBack}, "code": {code},
	}, c.told, change)
	return b.call(http.MethodPost, c.token, "", formType, form.Encode())
}

func TestCodesAreExchanged(t *testing.T) {
	b := start(t, "")
	for _, c := range connectors() {
		t.Run(c.name, func(t *testing.T) {
			code := b.consent(c)
			r := b.redeem(c, code, nil)
			if r.status != http.StatusOK || r.at("expires_in") != c.life || (r.text("refresh_token") != "") != c.refresh {
				t.Fatalf("%d %s", r.status, r.body)
			}
			if who := b.call(http.MethodGet, c.identity, r.text("access_token"), "", ""); who.text(c.at...) != c.account {
				t.Errorf("the token is that of %d %s", who.status, who.body)
			}
			refusals := map[string]reply{
				"used":         b.redeem(c, code, nil),
				"made up":      b.redeem(c, "made-up", nil),
				"another way":  b.redeem(c, b.consent(c), url.Values{"redirect_uri": {wayBack + "/elsewhere"}}),
				"other client": b.redeem(c, b.consent(c), url.Values{c.client: {"another"}}),
			}
			for name, r := range refusals {
				if r.status != http.StatusBadRequest || !strings.Contains(r.body, c.used) {
					t.Errorf("a code that is %s: %d %s, want %q", name, r.status, r.body, c.used)
				}
			}
			if c.told == nil {
				return
			}
			if r := b.redeem(c, b.consent(c), url.Values{"code_verifier": {"another"}}); r.status != http.StatusBadRequest {
				t.Errorf("another verifier: %d %s", r.status, r.body)
			}
		})
	}
	page := b.call(http.MethodGet, "/threads/oauth/authorize?client_id=a&redirect_uri="+url.QueryEscape(wayBack), "", "", "")
	if !strings.Contains(page.body, "account="+threadsID) {
		t.Errorf("the page offers no account: %d %s", page.status, page.body)
	}
	for name, query := range map[string]string{
		"no client": "redirect_uri=" + wayBack, "no way back": "client_id=a", "another kind": "client_id=a&response_type=token&redirect_uri=" + wayBack,
	} {
		if r := b.call(http.MethodGet, "/facebook/v25.0/dialog/oauth?"+query, "", "", ""); r.status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, r.status)
		}
	}
}

// TestTokensAreLengthened exchanges the Graph APIs' short-lived tokens for long-lived ones.
func TestTokensAreLengthened(t *testing.T) {
	// Instagram Login tokens cannot be inspected: no documentation mentions it.
	tests := []struct{ name, lengthen, inspect string }{
		{"Threads", "/threads/access_token?grant_type=th_exchange_token&client_secret=s&access_token=", "/threads/v1.0/debug_token"},
		{"Instagram", "/instagram/access_token?grant_type=ig_exchange_token&client_secret=s&access_token=", ""},
		{
			"Facebook", "/facebook/v25.0/oauth/access_token?grant_type=fb_exchange_token&client_id=i&client_secret=s&fb_exchange_token=",
			"/facebook/v25.0/debug_token",
		},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			c := connectors()[i]
			short := b.redeem(c, b.consent(c), nil).text("access_token")
			long := b.call(http.MethodGet, tt.lengthen+short, "", "", "")
			if long.status != http.StatusOK || long.at("expires_in") != 60*24*3600.0 || long.text("token_type") != "bearer" {
				t.Fatalf("%d %s", long.status, long.body)
			}
			b.clock.Step(time.Hour)
			if r := b.call(http.MethodGet, c.identity, long.text("access_token"), "", ""); r.status != http.StatusOK {
				t.Errorf("the long one works: %d %s", r.status, r.body)
			}
			if r := b.call(http.MethodGet, tt.lengthen+short, "", "", ""); r.at("error", "code") != 190.0 {
				t.Errorf("too late: %d %s", r.status, r.body)
			}
			if tt.inspect == "" {
				return
			}
			inspect := func(token string) reply {
				return b.call(http.MethodGet, tt.inspect+"?access_token=app%7Csecret&input_token="+token, "", "", "")
			}
			if r := inspect(long.text("access_token")); r.at("data", "is_valid") != true || r.at("data", "user_id") != c.account || len(r.list("data", "scopes")) == 0 {
				t.Errorf("inspected: %d %s", r.status, r.body)
			}
			if r := inspect(short); r.at("data", "is_valid") != false || r.at("data", "error", "code") != 190.0 {
				t.Errorf("the short one, which is over: %d %s", r.status, r.body)
			}
			if r := inspect("made-up"); r.at("data", "is_valid") != false {
				t.Errorf("made up: %d %s", r.status, r.body)
			}
			if r := b.call(http.MethodGet, tt.inspect+"?input_token=a", "", "", ""); r.at("error", "code") != 104.0 {
				t.Errorf("without a token of its own: %d %s", r.status, r.body)
			}
		})
	}
}

// TestPagesComeWithTheirTokens requests a user's Pages, as every Facebook connect flow does.
func TestPagesComeWithTheirTokens(t *testing.T) {
	b := start(t, "")
	c := connectors()[2]
	short := b.redeem(c, b.consent(c), nil).text("access_token")
	long := b.call(http.MethodGet, "/facebook/oauth/access_token?grant_type=fb_exchange_token&client_id=i&client_secret=s&fb_exchange_token="+short, "", "", "").text("access_token")
	tests := []struct {
		name, reason, token string
		expires             bool
	}{
		{"short-lived", "a Page's token ends with that which it came of", short, true},
		{"long-lived", "unless that is long-lived", long, false},
		{"a Page's", "which stays what it is", "facebook-access-demo", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.call(http.MethodGet, "/facebook/v25.0/me/accounts?fields=id,name,access_token,tasks", tt.token, "", "")
			page := r.text("data", "0", "access_token")
			if r.text("data", "0", "id") != pageID || page == "" {
				t.Fatalf("%d %s", r.status, r.body)
			}
			seen := b.call(http.MethodGet, "/facebook/debug_token?input_token="+page, tt.token, "", "")
			if ends := seen.at("data", "expires_at") != 0.0; ends != tt.expires {
				t.Errorf("%s: %s", tt.reason, seen.body)
			}
		})
	}
}

// TestPagesOfOnePerson lists the chosen Page and the user's other Pages, each with its own token.
func TestPagesOfOnePerson(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/facebook/771", `{"username":"bakery"}`, http.StatusCreated)
	b.control(http.MethodPut, "/accounts/facebook/"+pageID, `{"pages":["771","gone"]}`, http.StatusOK)
	c := connectors()[2]
	token := b.redeem(c, b.consent(c), nil).text("access_token")
	r := b.call(http.MethodGet, "/facebook/v25.0/me/accounts?fields=id,access_token", token, "", "")
	if len(r.list("data")) != 2 || r.text("data", "0", "id") != pageID || r.text("data", "1", "id") != "771" {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if who := b.call(http.MethodGet, "/facebook/v25.0/me", r.text("data", "1", "access_token"), "", ""); who.text("id") != "771" {
		t.Errorf("the second token is that of %d %s", who.status, who.body)
	}
	r = b.call(http.MethodGet, "/facebook/v25.0/me/permissions", token, "", "")
	if r.text("data", "0", "permission") != "pages_show_list" || r.text("data", "0", "status") != "granted" {
		t.Errorf("the permissions are %d %s", r.status, r.body)
	}
}

// TestFacebookLoginOfInstagram connects an Instagram account through its Page.
func TestFacebookLoginOfInstagram(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/instagram/77", `{"login":"facebook","username":"linked77"}`, http.StatusCreated)
	c := connector{
		account: "77", dialog: linkedHost + "/v25.0/dialog/oauth", token: linkedHost + "/v25.0/oauth/access_token", client: "client_id",
		asked: url.Values{"scope": {"instagram_basic,pages_show_list,pages_read_engagement"}},
	}
	token := b.redeem(c, b.consent(c), nil).text("access_token")
	r := b.call(http.MethodGet, linkedHost+"/v25.0/me/accounts?fields=access_token,instagram_business_account{id,account_type}", token, "", "")
	if r.status != http.StatusOK || r.text("data", "0", "instagram_business_account", "id") != "77" || r.text("data", "0", "access_token") == "" {
		t.Errorf("%d %s", r.status, r.body)
	}
	c.account = "17841400000000001"
	query := url.Values{"client_id": {"tests"}, "redirect_uri": {wayBack}, "account": {c.account}}
	if r := b.call(http.MethodGet, c.dialog+"?"+query.Encode(), "", "", ""); r.status != http.StatusNotFound {
		t.Errorf("an account of Instagram Login is not offered: %d", r.status)
	}
}
