// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"
	"unicode"
	"unicode/utf16"

	clocktesting "k8s.io/utils/clock/testing"

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

	identifies, renews, refuses = platformtest.Identified, platformtest.Renewed, platformtest.Refused
)

func newYouTube(t *testing.T, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	server := recorder.Start(t, answer)
	return New(Config{
		APIURL: server.URL + "/", ClientID: "id", ClientSecret: func() string { return "s3cr3t" }, Clock: recorder.Clock{FakeClock: clocktesting.NewFakeClock(noon)},
	}, transport.New(transport.Options{})), server
}

func fails(status int, reason string, headers ...string) http.HandlerFunc {
	return says(status, `{"error":{"code":403,"message":"…","errors":[{"domain":"youtube","reason":"`+reason+`","message":"…"}]}}`, headers...)
}

func TestIdentify(t *testing.T) {
	channel := platforms.Identity{AccountID: "UC1", DisplayName: "Acme", Username: "acme", IconURL: "https://yt.example/a"}
	snippet := `{"title":"Acme","customUrl":"@acme","thumbnails":{"default":{"url":"https://yt.example/a"}}}`
	missing := `{"kind":"youtube#channelListResponse","pageInfo":{"totalResults":0}}`
	platformtest.Identify(t, newYouTube, "/youtube/v3/channels?mine=true&part=snippet",
		identifies("channel", "it has an id, a title and a handle",
			says(200, `{"kind":"youtube#channelListResponse","items":[{"id":"UC1","snippet":`+snippet+`}]}`), channel),
		refuses("no channel", "a connected account needs a channel", says(200, missing), platforms.ClassReconnect),
		refuses("empty list", "an empty list means the same", says(200, `{"items":[]}`), platforms.ClassReconnect),
		refuses("signup", "the error means the same", fails(401, "youtubeSignupRequired"), platforms.ClassReconnect),
		refuses("ended token", "an expired token is renewed", fails(401, "authError"), platforms.ClassRefresh),
		refuses("scope", "a user has to grant the scope", fails(403, "insufficientPermissions"), platforms.ClassReconnect),
		refuses("closed", "retries do not reopen a closed channel", fails(403, "channelClosed"), platforms.ClassPermanent),
		refuses("API off", "reconnecting does not correct a wrong configuration", fails(403, "accessNotConfigured"), platforms.ClassTransient),
		refuses("quota", "the quota is renewed at midnight Pacific time", fails(403, "quotaExceeded"), platforms.ClassQuota).Waiting(20*time.Hour),
		refuses("limited", "a limit expires", fails(403, "userRateLimitExceeded"), platforms.ClassRateLimited).Waiting(platformtest.NoRetryTime),
		refuses("limited, by time", "Google may state the end of the limit", says(429, ``, "Retry-After", "30"), platforms.ClassRateLimited).Waiting(30*time.Second),
		refuses("limited, absurd", "a time in years is ignored", says(429, ``, "Retry-After", "99999999"), platforms.ClassRateLimited).Waiting(platformtest.NoRetryTime),
		refuses("outage", "an outage ends", fails(503, "backendError"), platforms.ClassTransient),
		refuses("bad request", "a rejected request does not describe the account", fails(400, "badRequest"), platforms.ClassUnknown),
		refuses("forbidden", "a refusal without a reason does not describe the account", says(403, `{}`), platforms.ClassUnknown),
		refuses("no id", "a channel without an id is not a channel", says(200, `{"items":[{}]}`), platforms.ClassUnknown))
}

func TestRefresh(t *testing.T) {
	old := platforms.Token{Access: "a1", Refresh: "r1", Scopes: "s", ExpiresAt: noon}
	oauth := func(status int, code string) http.HandlerFunc {
		return says(status, `{"error":"`+code+`","error_description":"…"}`)
	}
	asked := recorder.Request{Method: http.MethodPost, Path: "/token", Form: url.Values{
		"client_id": {"id"}, "client_secret": {"s3cr3t"}, "grant_type": {"refresh_token"}, "refresh_token": {"r1"},
	}}
	platformtest.Renew(t, newYouTube, old, asked,
		renews("renewed", "Google leaves the refresh token as it is",
			says(200, `{"access_token":"a2","expires_in":3599,"scope":"s t","token_type":"Bearer"}`),
			platforms.Token{Access: "a2", Refresh: "r1", Scopes: "s t", ExpiresAt: noon.Add(3599 * time.Second)}),
		renews("rotated", "a new refresh token would be stored", says(200, `{"access_token":"a2","refresh_token":"r2"}`),
			platforms.Token{Access: "a2", Refresh: "r2", Scopes: "s"}),
		refuses("no refresh token", "a refresh needs a refresh token", nil, platforms.ClassReconnect).Of(platforms.Token{Access: "a1"}),
		refuses("dead", "a dead refresh token needs a user", oauth(400, "invalid_grant"), platforms.ClassReconnect),
		refuses("app refused", "reconnecting does not correct a wrong secret", oauth(401, "invalid_client"), platforms.ClassTransient),
		refuses("outage", "an outage ends", says(500, ``), platforms.ClassTransient))
}

func TestQuotaRenewed(t *testing.T) {
	tests := map[string]struct {
		reason    string
		now, want time.Time
	}{
		"winter":      {"midnight Pacific standard time", time.Date(2026, 11, 20, 7, 59, 0, 0, time.UTC), time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)},
		"at":          {"the very instant is the next day's", time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)},
		"month end":   {"days follow the calendar", time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)},
		"summer":      {"midnight Pacific daylight time", time.Date(2026, 7, 1, 6, 59, 0, 0, time.UTC), time.Date(2026, 7, 1, 7, 0, 0, 0, time.UTC)},
		"clocks back": {"the day on which daylight saving time ends has 25 hours", time.Date(2026, 11, 1, 7, 0, 0, 0, time.UTC), time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := quotaRenewed(tc.now); !got.Equal(tc.want) {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	if p := New(Config{}, nil); p.API.BaseURL != DefaultAPIURL || p.Tokens.BaseURL != DefaultTokenURL {
		t.Errorf("Google renews tokens at another host: %q, %q", p.API.BaseURL, p.Tokens.BaseURL)
	}
	if p := New(Config{WebURL: "https://tube.example/"}, nil); p.videoURL("AbC-_1") != "https://tube.example/watch?v=AbC-_1" {
		t.Errorf("a video is watched at %q", p.videoURL("AbC-_1"))
	}
}

func TestLimits(t *testing.T) {
	limits := New(Config{}, nil).Capabilities()
	if !slices.Equal(limits.Delivers, limits.Categories) || len(limits.ListingAuthoritative) > 0 || limits.RefreshLead != 5*time.Minute {
		t.Errorf("got %+v", limits)
	}
}

// FuzzCaption checks that a description is counted in bytes and a title in UTF-16 code units, that both are refused
// only for angle brackets, and that a title is also refused if it is only whitespace.
func FuzzCaption(f *testing.F) {
	for _, text := range []string{"", "Hello", "é日本", "a < b", "<b>", "👨‍👩‍👧 and 🇮🇸", "\xff\xed\xa0\x80", "＜b＞", " \n\u00a0"} {
		f.Add(text)
	}
	limits := New(Config{}, nil).Capabilities()
	f.Fuzz(func(t *testing.T, text string) {
		brackets, blank, units := false, text != "", 0
		for _, r := range text {
			blank = blank && unicode.IsSpace(r)
			brackets = brackets || r == '<' || r == '>'
			units += utf16.RuneLen(r)
		}
		if got := limits.CaptionLength(text); got != len([]byte(text)) {
			t.Errorf("%q has %d bytes, but %d were counted", text, len(text), got)
		}
		if got := limits.TitleLength(text); got != units {
			t.Errorf("%q has %d UTF-16 code units, but %d were counted", text, units, got)
		}
		if got := []bool{limits.CaptionProblem(text) != "", limits.TitleProblem(text) != ""}; got[0] != brackets || got[1] != (brackets || blank) {
			t.Errorf("%q has brackets: %t, is blank: %t; refused: %t", text, brackets, blank, got)
		}
	})
}

// FuzzStanding checks, for any session response, that the number of stored bytes does not exceed the file's size, and
// that a video has a valid id.
func FuzzStanding(f *testing.F) {
	f.Add(308, "bytes=0-262143", "", "", int64(1<<20))
	f.Add(308, "bytes=0-999999999999999999", "", "", int64(10))
	f.Add(308, "", "https://elsewhere.example", "", int64(10))
	f.Add(308, "0-3", "/upload?upload_id=1", "", int64(10))
	f.Add(308, "Bytes = 0-3, 4-9", "https://other.googleapis.com/?upload_id=1", "", int64(10))
	f.Add(308, "bytes=0-3,2-8,9-9", "?upload_id=2", "", int64(10))
	f.Add(200, "", "", `{"id":"dQw4w9WgXcQ"}`, int64(10))
	f.Add(200, "", "", `{"id":"../x"}`, int64(10))
	p := New(Config{}, nil)
	f.Fuzz(func(t *testing.T, status int, span, location, body string, size int64) {
		header := http.Header{}
		header.Set("Range", span)
		header.Set("Location", location)
		found, bad := p.parseSession(&transport.Response{Status: status, Header: header, Body: []byte(body)}, session{address: DefaultAPIURL + "/upload?upload_id=1"}, size)
		switch {
		case bad != nil:
			if bad.Problem == "" {
				t.Error("an error has no message")
			}
		case found.state == done && !validID(found.video.ID.String()):
			t.Errorf("the video %q", found.video.ID)
		case found.state == open && (found.stored < 0 || found.stored > max(size, 0)):
			t.Errorf("%d of %d bytes are stored", found.stored, size)
		}
	})
}
