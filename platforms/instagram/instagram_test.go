// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// noon is the current time in these tests.
var noon = recorder.Noon

const (
	container = "17900000000000001"
	mediaID   = "17900000000000777"
)

var (
	says   = recorder.Respond
	hangUp = recorder.HangUp
	inTurn = recorder.Sequence
	class  = recorder.ClassOf

	identifies, renews  = platformtest.Identified, platformtest.Renewed
	refuses, leavesOpen = platformtest.Refused, platformtest.Unknown
)

type answers = []http.HandlerFunc

// newInstagram returns the platform with all of its hosts on one server. All hosts except Instagram's own have a path
// prefix.
func newInstagram(t *testing.T, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	server := recorder.Start(t, answer)
	return New(Config{
		Config:      platforms.Config{APIURL: server.URL + "/", Clock: recorder.Clock{FakeClock: clocktesting.NewFakeClock(noon)}},
		FacebookURL: server.URL + "/facebook/", UploadURL: server.URL + "/rupload/",
	}, transport.New(transport.Options{})), server
}

func problem(status, code, subcode int) http.HandlerFunc {
	return says(status, fmt.Sprintf(`{"error":{"message":"token access","type":"OAuthException","code":%d,"error_subcode":%d}}`, code, subcode))
}

// made responds that a container was created.
func made(id string) http.HandlerFunc { return says(200, `{"id":"`+id+`"}`) }

// containerState responds with a container's state.
func containerState(state string) http.HandlerFunc {
	return says(200, `{"status_code":"`+state+`","status":"In words","id":"`+container+`"}`)
}

// broke responds with the state of a container whose processing failed.
func broke(subcode string) http.HandlerFunc {
	return says(200, `{"status_code":"ERROR","status":"Error: Media upload has failed with error code `+subcode+`"}`)
}

// bytes is a test file's content.
type bytes struct {
	content string
	err     error
}

func (b bytes) Open(_ context.Context, offset, length int64) (io.ReadCloser, error) {
	if b.err != nil {
		return nil, b.err
	}
	return io.NopCloser(strings.NewReader(b.content[offset : offset+length])), nil
}

func (b bytes) Address(context.Context, time.Duration) (string, error) {
	return "https://store.example/" + b.content, b.err
}

func picture(name string) platforms.File {
	return platforms.File{Name: name, MIMEType: v1alpha1.MimeJPEG, Size: int64(len(name)), Bytes: bytes{content: name}}
}

func film(name string) platforms.File {
	return platforms.File{Name: name, MIMEType: v1alpha1.MimeMP4, Size: int64(len(name)), Duration: 10 * time.Second, Bytes: bytes{content: name}}
}

// linked are the scopes of Facebook's login.
const linked = "pages_show_list instagram_basic,instagram_content_publish"

// jobFor returns a job for a post with files, for an account that was connected through the login with the given
// scopes.
func jobFor(text, scopes string, files ...platforms.File) platforms.Job {
	job := platforms.Job{
		Account: platforms.Account{ID: "42", Username: "acme", Token: platforms.Token{Access: "access", Scopes: scopes}},
		Content: platforms.Content{Category: v1alpha1.CategoryImage, Text: text, Media: files}, SearchFrom: noon,
	}
	if files[0].IsVideo() {
		job.Content.Category = v1alpha1.CategoryVideo
	}
	return job
}

// diary records the checkpoints of a preparation.
type diary struct {
	mu    sync.Mutex
	notes []string
}

func (d *diary) save(_ context.Context, checkpoint, secret string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, checkpoint+secret)
	return nil
}

func TestLimits(t *testing.T) {
	limits := New(Config{}, nil).Capabilities()
	if len(limits.Categories) != 2 || len(limits.Delivers) != 2 || limits.RefreshLead != 30*24*time.Hour || limits.PreparedTTL != 24*time.Hour {
		t.Errorf("got %+v", limits)
	}
	if got := limits.CaptionLength("日本"); got != 2 || limits.MaxCaption != 2200 {
		t.Errorf("got %d for two characters of the allowed 2200", got)
	}
	want := platforms.ImageLimits{Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG}, MaxBytes: 8388608, MinAspect: 0.8, MaxAspect: 1.91, OnePicture: true}
	if diff := cmp.Diff(want, limits.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestHostOf(t *testing.T) {
	tests := map[string]struct {
		reason, scopes  string
		otherwise, want Login
	}{
		"Instagram's":            {"its permissions have their own names", "instagram_business_basic instagram_business_content_publish", FacebookLogin, InstagramLogin},
		"Facebook's":             {"Facebook's permissions have their own names", "instagram_basic instagram_content_publish", InstagramLogin, FacebookLogin},
		"Facebook's, later":      {"a later known permission counts", "pages_show_list,instagram_basic", InstagramLogin, FacebookLogin},
		"unknown":                {"Instagram's own login is the usual one", "", "", InstagramLogin},
		"unknown, as configured": {"the administrator may configure the host", "", FacebookLogin, FacebookLogin},
		"neither":                {"a Page's permissions do not determine the host", "pages_show_list", "", InstagramLogin},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := New(Config{Login: tc.otherwise}, nil).hostOf(platforms.Token{Scopes: tc.scopes}).login; got != tc.want {
				t.Errorf("%s: got %s", tc.reason, got)
			}
		})
	}
}

func TestIdentify(t *testing.T) {
	account := platforms.Identity{AccountID: "42", DisplayName: "Acme", Username: "acme", IconURL: "https://cdn.example/a"}
	numbered := platforms.Identity{AccountID: "17841400000000001", DisplayName: "acme", Username: "acme"}
	whole := `{"id":"999","user_id":"42","username":"acme","name":"Acme","profile_picture_url":"https://cdn.example/a","account_type":"BUSINESS"}`
	platformtest.Identify(t, newInstagram, "/v25.0/me?fields=user_id,username,name,profile_picture_url,account_type",
		identifies("account", "the professional account's id counts, not the app's own for it", says(200, whole), account),
		identifies("in a list", "some of Instagram's pages show it so; an id may come as a number",
			says(200, `{"data":[{"user_id":17841400000000001,"username":"acme"}]}`), numbered),
		refuses("dead token", "a dead token cannot be renewed", problem(400, 190, 463), platforms.ClassReconnect),
		refuses("permission", "a user has to grant the permission", problem(403, 10, 0), platforms.ClassReconnect),
		refuses("checkpoint", "a user has to act on Instagram", problem(400, 100, 1404006), platforms.ClassRestricted),
		refuses("limited", "a limit expires", problem(400, 4, 0), platforms.ClassRateLimited),
		refuses("blocked", "a block expires", problem(400, 4, 2207051), platforms.ClassQuota),
		refuses("bad request", "a rejected request does not describe the account", problem(400, 100, 0), platforms.ClassUnknown),
		refuses("app's own id", "the id for this app is not the account's", says(200, `{"id":"999"}`), platforms.ClassUnknown),
		refuses("several in one", "a token belongs to one account", says(200, `{"data":[{"user_id":"1"},{"user_id":"2"}]}`), platforms.ClassUnknown))
}

func TestRefresh(t *testing.T) {
	old := platforms.Token{Access: "a1", Scopes: "instagram_business_basic", ExpiresAt: noon}
	asked := recorder.Request{Method: http.MethodGet, Path: "/refresh_access_token", Query: url.Values{
		"grant_type": {"ig_refresh_token"}, "access_token": {"a1"},
	}}
	platformtest.Renew(t, newInstagram, old, asked,
		renews("renewed", "Instagram determines the lifetime of the new token",
			says(200, `{"access_token":"a2","token_type":"bearer","expires_in":5184000}`),
			platforms.Token{Access: "a2", Scopes: "instagram_business_basic", ExpiresAt: noon.Add(60 * 24 * time.Hour)}),
		renews("left-over refresh token", "an access token renews itself, whatever else is stored", says(200, `{"access_token":"a2"}`),
			platforms.Token{Access: "a2", Refresh: "r1"}).Of(platforms.Token{Access: "a1", Refresh: "r1"}),
		refuses("dead", "a dead token needs a user", problem(400, 190, 463), platforms.ClassReconnect),
		refuses("too young", "a token that is too young to be renewed is valid", problem(400, 100, 0), platforms.ClassTransient))
}

func TestIdentifyLinked(t *testing.T) {
	account := `{"id":"17841400000000002","username":"acme","name":"Acme","profile_picture_url":"https://cdn.example/a"}`
	page := `{"id":"1","name":"Acme's Page","instagram_business_account":` + account + `}`
	other := `{"id":"2","name":"Another","instagram_business_account":{"id":"17841400000000003","username":"other"}}`
	want := platforms.Identity{AccountID: "17841400000000002", DisplayName: "Acme", Username: "acme", IconURL: "https://cdn.example/a"}
	me, pages := "GET /facebook/v25.0/me", "GET /facebook/v25.0/me/accounts"
	noField := problem(400, 100, 0)
	tests := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   platforms.Identity
		class  platforms.Class
		asked  []string
	}{
		"a Page's token":           {"its Page is read", says(200, page), want, "", []string{me}},
		"a user token":             {"a user has no account, but Pages", inTurn(answers{noField, says(200, `{"data":[`+page+`,{"id":"3","name":"Bare"}]}`)}), want, "", []string{me, pages}},
		"a user token, no refusal": {"missing fields of a user may be omitted", inTurn(answers{says(200, `{"id":"9","name":"A Person"}`), says(200, `{"data":[`+page+`]}`)}), want, "", []string{me, pages}},
		"several":                  {"one token is for one account", inTurn(answers{noField, says(200, `{"data":[`+page+`,`+other+`]}`)}), platforms.Identity{}, platforms.ClassReconnect, []string{me, pages}},
		"no linked account":        {"a user must link an account", inTurn(answers{says(200, `{"id":"1","name":"A Page"}`), noField}), platforms.Identity{}, platforms.ClassReconnect, []string{me, pages}},
		"no Page":                  {"a user must link an account", inTurn(answers{noField, says(200, `{"data":[]}`)}), platforms.Identity{}, platforms.ClassReconnect, []string{me, pages}},
		"no list":                  {"a response without a list is not evidence", inTurn(answers{noField, says(200, `{}`)}), platforms.Identity{}, platforms.ClassUnknown, []string{me, pages}},
		"refused twice":            {"rejected requests do not prove that no account is linked", noField, platforms.Identity{}, platforms.ClassUnknown, []string{me, pages}},
		"odd id":                   {"an invalid id is not an account", says(200, `{"instagram_business_account":{"id":"../me"}}`), platforms.Identity{}, platforms.ClassUnknown, []string{me}},
		"dead token":               {"a user must reconnect the account", problem(400, 190, 463), platforms.Identity{}, platforms.ClassReconnect, []string{me}},
		"permission":               {"a user must grant it", problem(403, 10, 0), platforms.Identity{}, platforms.ClassReconnect, []string{me}},
		"outage":                   {"an outage passes", says(500, ``), platforms.Identity{}, platforms.ClassTransient, []string{me}},
		"outage, then":             {"at any time", inTurn(answers{noField, says(502, ``)}), platforms.Identity{}, platforms.ClassTransient, []string{me, pages}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, tc.answer)
			got, err := p.Identify(t.Context(), platforms.Token{Access: "access", Scopes: linked})
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if diff := cmp.Diff(tc.asked, server.Paths()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			for _, r := range server.Requests() {
				if r.Token != "access" || r.Query.Has("access_token") || !strings.Contains(r.Query.Get("fields"), "instagram_business_account{id,") {
					t.Errorf("requested %+v", r)
				}
			}
		})
	}
}

func TestRefreshLinked(t *testing.T) {
	tests := map[string]struct {
		reason string
		ends   time.Time
		class  platforms.Class
	}{
		"a Page's":  {"a Page's token does not expire, and cannot be renewed", time.Time{}, platforms.ClassReconnect},
		"good":      {"a valid token must not be disconnected", noon.Add(time.Hour), platforms.ClassTransient},
		"has ended": {"a user must reconnect the account", noon, platforms.ClassReconnect},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, hangUp)
			got, err := p.Refresh(t.Context(), platforms.Token{Access: "access", Scopes: linked, ExpiresAt: tc.ends})
			if got != (platforms.Token{}) || class(err) != tc.class || len(server.Requests()) != 0 {
				t.Errorf("%s: %v after %v", tc.reason, err, server.Paths())
			}
		})
	}
}
