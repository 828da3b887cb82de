// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// noon is the current time in these tests.
var noon = recorder.Noon

var (
	says   = recorder.Respond
	hangUp = recorder.HangUp
	class  = recorder.ClassOf

	identifies, renews  = platformtest.Identified, platformtest.Renewed
	refuses, leavesOpen = platformtest.Refused, platformtest.Unknown
)

// newX returns a Platform that uses a server with the given response.
func newX(t *testing.T, config Config, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	server := recorder.Start(t, answer)
	config.APIURL, config.Clock = server.URL, clocktesting.NewFakeClock(noon)
	return New(config, transport.New(transport.Options{})), server
}

func newPublicX(t *testing.T, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	return newX(t, Config{ClientID: "id"}, answer)
}

// snowflake returns the id of a post created at the given time.
func snowflake(at time.Time) string {
	return fmt.Sprint((at.UnixMilli()-snowflakeEpoch)<<snowflakeShift | 7)
}

func jobFor(text string) platforms.Job {
	return platforms.Job{
		Account: platforms.Account{ID: "42", Username: "acme", Token: platforms.Token{Access: "access"}},
		Content: platforms.Content{Category: v1alpha1.CategoryText, Text: text},
	}
}

func TestLimits(t *testing.T) {
	limits := New(Config{}, nil).Capabilities()
	if !limits.Allows(v1alpha1.CategoryText) {
		t.Error("X must accept text posts")
	}
	if got := limits.CaptionLength("read https://example.com/" + strings.Repeat("a", 300)); got != 28 {
		t.Errorf("a URL counts 23, so the text has 28; got %d", got)
	}
	tests := map[string]struct {
		reason, caption string
		problem         bool
	}{
		"plain":           {"ordinary text is fine", "We launched.", false},
		"empty":           {"X does not decide whether a caption may be empty", "", false},
		"byte order mark": {"X refuses U+FEFF anywhere", "We\uFEFF launched.", true},
		"blanks":          {"X refuses a post without a visible character", " \n\t", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := limits.CaptionProblem(tc.caption); (got != "") != tc.problem {
				t.Errorf("%s: got %q", tc.reason, got)
			}
		})
	}
}

func TestSnowflake(t *testing.T) {
	at := noon.Add(123 * time.Millisecond)
	got, ok := snowflakeTime(snowflake(at))
	if !ok || !got.Equal(at) {
		t.Errorf("got %v, %v; want %v", got, ok, at)
	}
	for _, id := range []string{"", "abc", "-5", "12", "99999999999999999999"} {
		if _, ok := snowflakeTime(id); ok {
			t.Errorf("%q is no id of X's, but got a time", id)
		}
	}
	// The bound is exclusive, so the id of a post from the same millisecond is above it.
	bound, _ := snowflakeTime(idBefore(at))
	if want := at.Add(-time.Millisecond); !bound.Equal(want) {
		t.Errorf("the bound is %v, want %v", bound, want)
	}
	if got := idBefore(time.Time{}); got != "" {
		t.Errorf("ids before X existed must be empty; got %q", got)
	}
}

// TestCashtags tests the warning for captions that an app on a self-serve plan may not post.
func TestCashtags(t *testing.T) {
	warning := New(Config{}, nil).Capabilities().CaptionWarning
	for text, want := range map[string]bool{
		"": false, "$ACME is up": false, "$ACME and $abc": true, "$ACME $ABC": true, "$ACME, ($ABC) and $BRK.B": true, "a$ACME b$ABC": false,
		"costs $5 and $10": false, "$TOOLONGNAME and $OTHERTOO": false,
	} {
		if got := warning(text); (got != "") != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestIdentify(t *testing.T) {
	account := platforms.Identity{AccountID: "2244994945", DisplayName: "Acme", Username: "acme", IconURL: "https://pbs.twimg.com/a_normal.jpg"}
	whole := `{"data":{"id":"2244994945","name":"Acme","username":"acme","profile_image_url":"https://pbs.twimg.com/a_normal.jpg"}}`
	hidden := `{"errors":[{"title":"Authorization Error","type":"https://api.twitter.com/2/problems/not-authorized-for-resource"}]}`
	platformtest.Identify(t, newPublicX, "/2/users/me?user.fields=id,name,username,profile_image_url",
		identifies("account", "it has an id, a name and a handle", says(200, whole), account),
		refuses("ended token", "an expired token is renewed", says(401, `{"title":"Unauthorized","type":"about:blank"}`), platforms.ClassRefresh),
		refuses("no scope", "a missing scope needs a user", says(403, problemOf("not-authorized-for-resource", "")), platforms.ClassReconnect),
		refuses("limited", "a limit expires", says(429, ``), platforms.ClassRateLimited),
		refuses("outage", "an outage ends", says(503, `oops`), platforms.ClassTransient),
		refuses("errors with status 200", "X reports some errors next to the data", says(200, hidden), platforms.ClassReconnect))
}

func TestRefresh(t *testing.T) {
	old := platforms.Token{Access: "a1", Refresh: "r1", Scopes: "tweet.read", ExpiresAt: noon}
	rotated := platforms.Token{Access: "a2", Refresh: "r2", Scopes: "tweet.read tweet.write", ExpiresAt: noon.Add(2 * time.Hour)}
	kept := platforms.Token{Access: "a2", Refresh: "r1", Scopes: "tweet.read", ExpiresAt: noon.Add(time.Minute)}
	invalid := func(description string) http.HandlerFunc {
		return says(400, `{"error":"invalid_request","error_description":"`+description+`"}`)
	}
	asked := recorder.Request{Method: http.MethodPost, Path: "/2/oauth2/token", Form: url.Values{
		"client_id": {"id"}, "grant_type": {"refresh_token"}, "refresh_token": {"r1"},
	}}
	platformtest.Renew(t, newPublicX, old, asked,
		renews("rotated", "both tokens are replaced, and the end follows from expires_in", says(200, `{"token_type":"bearer","expires_in":7200,`+
			`"access_token":"a2","scope":"tweet.read tweet.write","refresh_token":"r2"}`), rotated),
		renews("not rotated", "a refresh token that is left out stays in force", says(200, `{"access_token":"a2","expires_in":60}`), kept),
		refuses("no refresh token", "a refresh needs a refresh token", nil, platforms.ClassReconnect).Of(platforms.Token{Access: "a1"}),
		refuses("used or revoked", "a dead refresh token needs a user", says(400, `{"error":"invalid_grant"}`), platforms.ClassReconnect),
		refuses("X's own wording", "X often sends invalid_request instead",
			invalid("Value passed for the token was invalid."), platforms.ClassReconnect),
		refuses("bad request", "the same code may mean a wrong request, which an administrator has to correct",
			invalid("Missing required parameter [client_id]."), platforms.ClassTransient),
		refuses("no description", "without a description the token may still be valid",
			says(400, `{"error":"invalid_request"}`), platforms.ClassTransient),
		refuses("with status 401", "the status varies", says(401, `{"error":"invalid_grant"}`), platforms.ClassReconnect),
		refuses("app refused", "reconnecting does not correct a wrong client secret",
			says(401, `{"error":"invalid_client"}`), platforms.ClassTransient))
}

// TestRefreshOfAConfidentialClient renews a token through an app with a secret, which must be sent in the header and
// not in the body.
func TestRefreshOfAConfidentialClient(t *testing.T) {
	app := Config{ClientID: "id", ClientSecret: func() string { return "secret" }}
	p, server := newX(t, app, says(200, `{"access_token":"a2","refresh_token":"r2"}`))
	if _, err := p.Refresh(t.Context(), platforms.Token{Refresh: "r1"}); err != nil {
		t.Fatal(err)
	}
	r := http.Request{Header: server.Requests()[0].Header}
	if user, password, basic := r.BasicAuth(); !basic || user != "id" || password != "secret" || server.Requests()[0].Form.Has("client_id") {
		t.Errorf("got Basic %v %q %q and the form %v", basic, user, password, server.Requests()[0].Form)
	}
}

func TestConfirm(t *testing.T) {
	account := jobFor("").Account
	own := `{"data":{"id":"1991","author_id":"` + account.ID + `","text":"hello"}}`
	gone := `{"errors":[{"title":"Not Found Error","type":"https://api.twitter.com/2/problems/resource-not-found"}]}`
	tests := map[string]struct {
		reason, id string
		answer     http.HandlerFunc
		want       platforms.Ownership
		fails      bool
	}{
		"own":          {"the account wrote it", "1991", says(200, own), platforms.OwnershipConfirmed, false},
		"foreign":      {"another one did", "1991", says(200, strings.ReplaceAll(own, account.ID, "666")), platforms.OwnershipForeign, false},
		"gone":         {"X returns no such post", "1991", says(200, gone), platforms.OwnershipUnknown, false},
		"no author":    {"the requested field is missing", "1991", says(200, `{"data":{"id":"1991"}}`), platforms.OwnershipUnknown, false},
		"another post": {"another post's response is not evidence", "1992", says(200, own), platforms.OwnershipUnknown, false},
		"no id":        {"an invalid id is not queried", "1991/../../users", says(200, own), platforms.OwnershipUnknown, false},
		"trouble":      {"X did not respond", "1991", says(503, `{}`), platforms.OwnershipUnknown, true},
		"limited":      {"a rejected request is not evidence", "1991", says(429, `{}`), platforms.OwnershipUnknown, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newX(t, Config{}, tc.answer)
			got, err := p.Confirm(t.Context(), account, tc.id)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("%s: it is %q, %v, want %q", tc.reason, got, err, tc.want)
			}
			for _, path := range server.Paths() {
				if path != "GET /2/tweets/"+tc.id {
					t.Errorf("requested %s", path)
				}
			}
		})
	}
}
