// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"
)

const wayBack = "http://127.0.0.1/back"

// connector describes how a client connects a platform account.
type connector struct {
	name, platform string
	// dialog and token are the consent page and the token endpoint.
	dialog, token string
	// dialogParams and tokenParams are the additional parameters of the dialog and the token request, as queries.
	dialogParams, tokenParams string
	// used is part of the response to a used code.
	used string
	// answer is the expected content of the response to a code.
	answer is
	// identity is the request that returns the account; at is the path of the account's id.
	identity, at string
}

func connectors() []connector {
	hexed := sha256.Sum256([]byte(verifier))
	google := connector{
		name: "Google, offline", platform: "youtube", dialog: "/youtube/o/oauth2/v2/auth", token: "/youtube/token", used: "invalid_grant",
		dialogParams: "access_type=offline&prompt=consent&code_challenge_method=S256&code_challenge=" + challenge() +
			"&scope=https://www.googleapis.com/auth/youtube+openid",
		tokenParams: "code_verifier=" + verifier, answer: is{200, "expires_in=3600", "refresh_token=*"},
		identity: "/youtube/youtube/v3/channels?part=id&mine=true", at: "items.0.id",
	}
	online := google
	online.name, online.tokenParams, online.answer = "Google, online", "", is{200, "expires_in=3600", "refresh_token="}
	online.dialogParams = "scope=https://www.googleapis.com/auth/youtube.readonly"
	return []connector{
		{
			name: "Threads", platform: "threads", dialog: "/threads/oauth/authorize", token: "/threads/oauth/access_token",
			dialogParams: "scope=threads_basic,threads_content_publish", used: "Matching code was not found",
			answer: is{200, "expires_in=", "refresh_token="}, identity: "/threads/v1.0/me", at: "id",
		},
		{
			name: "Instagram", platform: "instagram", dialog: "/instagram/oauth/authorize", token: "/instagram/oauth/access_token",
			dialogParams: "scope=instagram_business_basic&enable_fb_login=0", used: "Matching code was not found",
			answer: is{200, "expires_in=", "refresh_token="}, identity: "/instagram/v25.0/me?fields=user_id", at: "user_id",
		},
		{
			name: "Facebook", platform: "facebook", dialog: "/facebook/v25.0/dialog/oauth", token: "/facebook/v25.0/oauth/access_token",
			dialogParams: "scope=pages_show_list,pages_manage_posts", used: "This authorization code has been used.",
			answer: is{200, "expires_in=3600", "refresh_token="}, identity: "/facebook/v25.0/me", at: "id",
		},
		{
			name: "TikTok", platform: "tiktok", dialog: "/tiktok/v2/auth/authorize/", token: "/tiktok/v2/oauth/token/",
			dialogParams: "scope=user.info.basic,video.publish&code_challenge_method=S256&code_challenge=" + hex.EncodeToString(hexed[:]),
			tokenParams:  "code_verifier=" + verifier, used: "invalid_grant", answer: is{200, "expires_in=7200", "refresh_token=*"},
			identity: "/tiktok/v2/user/info/?fields=open_id", at: "data.user.open_id",
		},
		google, online,
	}
}

// client returns the name of the parameter with the client's id.
func (c connector) client() string {
	if c.platform == "tiktok" {
		return "client_key"
	}
	return "client_id"
}

// consent authorizes the client as the account's owner and returns the code.
func (b *box) consent(c connector, account string) string {
	b.t.Helper()
	values := query(c.dialogParams)
	maps.Copy(values, url.Values{
		"response_type": {"code"}, c.client(): {"tests"}, "redirect_uri": {wayBack}, "state": {"s"}, "account": {account},
	})
	r := b.page(c.dialog+"?"+values.Encode()).want(b.t, "consent", 302, "Location~"+wayBack)
	back, err := url.Parse(r.header.Get("Location"))
	if err != nil || back.Query().Get("state") != "s" {
		b.t.Fatalf("consent: sent back to %s, %v", back, err)
	}
	return back.Query().Get("code")
}

// redeem exchanges a code, with changed parameters as a query.
func (b *box) redeem(c connector, code, change string) reply {
	b.t.Helper()
	form := url.Values{
		"grant_type": {"authorization_code"}, c.client(): {"tests"}, "client_secret": {"secret"}, "redirect_uri": {wayBack}, "code": {code},
	}
	maps.Copy(form, query(c.tokenParams))
	maps.Copy(form, query(change))
	return b.call(http.MethodPost, c.token, "", formType, form.Encode())
}

// connected connects the demo account and returns its access token.
func (b *box) connected(c connector) string {
	b.t.Helper()
	return b.redeem(c, b.consent(c, demo(b.t, c.platform).ID), "").text("access_token")
}

func TestCodeExchange(t *testing.T) {
	b := start(t, "")
	for _, c := range connectors() {
		t.Run(c.name, func(t *testing.T) {
			account := demo(t, c.platform).ID
			code := b.consent(c, account)
			r := b.redeem(c, code, "").want(t, "the exchange", c.answer...)
			b.call(http.MethodGet, c.identity, r.text("access_token"), "", "").want(t, "the account of the token", c.at+"="+account)
			b.redeem(c, code, "").want(t, "a code that is used", 400, "~"+c.used)
			b.redeem(c, "made-up", "").want(t, "an invented code", 400, "~"+c.used)
			for _, change := range []string{"redirect_uri=" + wayBack + "/elsewhere", c.client() + "=another"} {
				b.redeem(c, b.consent(c, account), change).want(t, change, 400, "~"+c.used)
			}
			if c.tokenParams != "" {
				b.redeem(c, b.consent(c, account), "code_verifier=another").want(t, "another verifier", 400)
			}
		})
	}
	b.page("/threads/oauth/authorize?client_id=a&redirect_uri="+wayBack).want(t, "the page offers the account", 200, "~account="+threadsID)
	b.each(t, func(query string) reply { return b.page("/facebook/v25.0/dialog/oauth?" + query) }, []row{
		{"a client is required", "redirect_uri=" + wayBack, is{400}},
		{"a redirect URI is required", "client_id=a", is{400}},
		{"codes are the only response type", "client_id=a&response_type=token&redirect_uri=" + wayBack, is{400}},
	})
}

// TestLongLivedTokenExchange exchanges the Graph APIs' short-lived tokens for long-lived ones.
func TestLongLivedTokenExchange(t *testing.T) {
	// Instagram Login tokens cannot be inspected: no documentation mentions it.
	for i, tt := range []struct{ name, lengthen, inspect string }{
		{"Threads", "/threads/access_token?grant_type=th_exchange_token&client_secret=s&access_token=", "/threads/v1.0/debug_token"},
		{"Instagram", "/instagram/access_token?grant_type=ig_exchange_token&client_secret=s&access_token=", ""},
		{
			"Facebook", "/facebook/v25.0/oauth/access_token?grant_type=fb_exchange_token&client_id=i&client_secret=s&fb_exchange_token=",
			"/facebook/v25.0/debug_token",
		},
	} {
		b, c := start(t, ""), connectors()[i]
		short := b.connected(c)
		long := b.page(tt.lengthen+short).want(t, tt.name, 200, "expires_in=5184000", "token_type=bearer").text("access_token")
		b.clock.Step(time.Hour)
		b.call(http.MethodGet, c.identity, long, "", "").want(t, tt.name+": the long-lived token works", 200)
		b.page(tt.lengthen+short).want(t, tt.name+": the short-lived token has expired", "error.code=190")
		if tt.inspect == "" {
			continue
		}
		b.each(t, func(token string) reply {
			return b.page(tt.inspect + "?access_token=app%7Csecret&input_token=" + token)
		}, []row{
			{tt.name + ": the long-lived token", long, is{"data.is_valid=true", "data.user_id=" + demo(t, c.platform).ID, "data.scopes=*"}},
			{tt.name + ": the short-lived token", short, is{"data.is_valid=false", "data.error.code=190"}},
			{tt.name + ": an invented token", "made-up", is{"data.is_valid=false"}},
		})
		b.page(tt.inspect+"?input_token=a").want(t, tt.name+": an inspection needs a token too", "error.code=104")
	}
}

// TestPageTokens requests a user's Pages, as every Facebook connect flow does.
func TestPageTokens(t *testing.T) {
	b, c := start(t, ""), connectors()[2]
	b.account("facebook", "771", `{"username":"bakery"}`)
	b.set("facebook", `{"pages":["771","gone"]}`)
	short := b.connected(c)
	long := b.page("/facebook/oauth/access_token?grant_type=fb_exchange_token&client_id=i&client_secret=s&fb_exchange_token=" + short).
		text("access_token")
	for _, tt := range []struct{ why, token, end string }{
		{"a Page's token expires with the user's", short, fmt.Sprint("data.expires_at=", b.clock.Now().Add(time.Hour).Unix())},
		{"long-lived user tokens yield Page tokens that never expire", long, "data.expires_at=0"},
		{"a Page's own token does not expire", "facebook-access-demo", "data.expires_at=0"},
	} {
		r := b.call(http.MethodGet, "/facebook/v25.0/me/accounts?fields=id,name,access_token,tasks", tt.token, "", "")
		r.want(t, tt.why, 200, "data.0.id="+pageID, "data.0.access_token=*")
		b.call(http.MethodGet, "/facebook/debug_token?input_token="+r.text("data", "0", "access_token"), tt.token, "", "").want(t, tt.why, tt.end)
	}
	r := b.call(http.MethodGet, "/facebook/v25.0/me/accounts?fields=id,access_token", short, "", "")
	same(t, "the chosen Page and the user's other Pages", []string{pageID, "771"}, r.ids())
	b.call(http.MethodGet, "/facebook/v25.0/me", r.text("data", "1", "access_token"), "", "").want(t, "each Page has its own token", "id=771")
	b.call(http.MethodGet, "/facebook/v25.0/me/permissions", short, "", "").
		want(t, "the permissions", "data.0.permission=pages_show_list", "data.0.status=granted")
}

// TestInstagramFacebookLogin connects an Instagram account through its Page.
func TestInstagramFacebookLogin(t *testing.T) {
	b := start(t, "")
	b.account("instagram", "77", `{"login":"facebook","username":"linked77"}`)
	c := connector{
		dialog: linkedHost + "/v25.0/dialog/oauth", token: linkedHost + "/v25.0/oauth/access_token",
		dialogParams: "scope=instagram_basic,pages_show_list,pages_read_engagement",
	}
	token := b.redeem(c, b.consent(c, "77"), "").text("access_token")
	b.call(http.MethodGet, linkedHost+"/v25.0/me/accounts?fields=access_token,instagram_business_account{id,account_type}", token, "", "").
		want(t, "the Page of the account", 200, "data.0.instagram_business_account.id=77", "data.0.access_token=*")
	b.page(c.dialog+"?client_id=tests&redirect_uri="+wayBack+"&account="+instagramID).want(t, "an account of Instagram Login", 404)
}
