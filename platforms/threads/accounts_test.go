// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta/metatest"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

func TestIdentify(t *testing.T) {
	account := platforms.Identity{AccountID: "42", DisplayName: "Acme", Username: "acme", IconURL: "https://cdn.example/a"}
	numbered := platforms.Identity{AccountID: "24000000000000001", DisplayName: "acme", Username: "acme"}
	platformtest.Identify(t, newThreads, "/v1.0/me?fields=id,username,name,threads_profile_picture_url",
		identifies("account", "it has an id, a name and a handle",
			says(200, `{"id":"42","username":"acme","name":"Acme","threads_profile_picture_url":"https://cdn.example/a"}`), account),
		identifies("number, no name", "an id may be a number; an account without a name has its handle",
			says(200, `{"id":24000000000000001,"username":"acme"}`), numbered),
		refuses("dead token", "a dead token cannot be renewed", problem(400, 190, 463, false), platforms.ClassReconnect),
		refuses("permission", "a user has to grant the permission", problem(403, 200, 0, false), platforms.ClassReconnect),
		refuses("limited", "a limit expires", problem(403, 4, 0, true), platforms.ClassRateLimited),
		refuses("bad request", "a rejected request does not describe the account", problem(400, 100, 0, false), platforms.ClassUnknown))
}

func TestRefresh(t *testing.T) {
	old := platforms.Token{Access: "a1", Scopes: "threads_basic", ExpiresAt: noon}
	asked := recorder.Request{Method: http.MethodGet, Path: "/refresh_access_token", Query: url.Values{
		"grant_type": {"th_refresh_token"}, "access_token": {"a1"},
	}}
	platformtest.Renew(t, newThreads, old, asked,
		renews("renewed", "Threads determines the lifetime of the new token",
			says(200, `{"access_token":"a2","token_type":"bearer","expires_in":5184000}`),
			platforms.Token{Access: "a2", Scopes: "threads_basic", ExpiresAt: noon.Add(60 * 24 * time.Hour)}),
		renews("left-over refresh token", "an access token renews itself, whatever else is stored",
			says(200, `{"access_token":"a2","expires_in":"60"}`),
			platforms.Token{Access: "a2", Refresh: "r1", ExpiresAt: noon.Add(time.Minute)}).Of(platforms.Token{Access: "a1", Refresh: "r1"}),
		refuses("dead", "a dead token needs a user", problem(400, 190, 463, false), platforms.ClassReconnect),
		refuses("too young", "a token that is too young to be renewed is valid", problem(400, 100, 0, false), platforms.ClassTransient))
}

// TestErrorTable tests each row of the table, and compares the table with the page that documents it. To update the
// page, run go test -run ErrorTable -args -update.
func TestErrorTable(t *testing.T) {
	p := New(Config{}, nil)
	metatest.CheckErrors(t, "threads", &p.graph.Graph, map[string]metatest.Want{
		"24": metatest.Trouble, "24/4279009": metatest.Trouble, "100/4279004": metatest.Trouble, "4279013": metatest.Restricted,
		"9004/2207052": metatest.NotFetched, "FAILED_DOWNLOADING_VIDEO": metatest.NotFetched,
		"100 THREADS_API__LINK_LIMIT_EXCEEDED": metatest.BadText,
		"FAILED_PROCESSING_AUDIO":              metatest.BadFile, "FAILED_PROCESSING_VIDEO": metatest.BadFile, "INVALID_ASPEC_RATIO": metatest.BadFile,
		"INVALID_BIT_RATE": metatest.BadFile, "INVALID_DURATION": metatest.BadFile, "INVALID_FRAME_RATE": metatest.BadFile,
		"INVALID_AUDIO_CHANNELS": metatest.BadFile, "INVALID_AUDIO_CHANNEL_LAYOUT": metatest.BadFile, "UNKNOWN": metatest.Refused,
	})
}
