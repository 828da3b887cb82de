// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"encoding/json"
	"net/http"
	"strings"
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

const server = "https://mastodon.example"

var hello = platforms.Job{
	Account: platforms.Account{ID: "1@mastodon.example", Username: "acme@mastodon.example", Token: platforms.Token{Access: "access", Server: server}},
	Content: platforms.Content{Category: v1alpha1.CategoryText, Text: "hello"},
	Key:     platforms.Key{Sum: [16]byte{1, 2, 3}}, SearchFrom: recorder.Noon,
}

func start(t *testing.T, answers ...http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	site := recorder.Start(t, recorder.Sequence(answers))
	clock := recorder.Clock{FakeClock: clocktesting.NewFakeClock(recorder.Noon)}
	return New(Config{APIURL: site.URL, Clock: clock}, transport.New(transport.Options{})), site
}

func one(t *testing.T, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	return start(t, answer)
}

func refuse(status int, text string, headers ...string) http.HandlerFunc {
	return recorder.Respond(status, `{"error":"`+text+`"}`, headers...)
}

const published = `{"id":"109300000000000001","url":"https://mastodon.example/@acme/109300000000000001","created_at":"2026-11-20T12:00:00.000Z","account":{"id":"1"}}`

func TestVerdicts(t *testing.T) {
	t.Parallel()
	platformtest.Verdicts(t, one, hello, "POST /api/v1/statuses", "",
		platformtest.Refused("no token", "the account must be reconnected", refuse(401, "The access token is invalid"), platforms.ClassReconnect),
		platformtest.Refused("no scope", "a user has to grant the scope", refuse(403, "This action is outside the authorized scopes"), platforms.ClassReconnect),
		platformtest.Refused("disabled", "the owner has to act on the server", refuse(403, "Your login is currently disabled"), platforms.ClassRestricted),
		platformtest.Refused("not allowed", "the owner has to act on the server, whatever the reason", refuse(403, "This action is not allowed"), platforms.ClassRestricted),
		platformtest.Refused("suspended", "the server has suspended the account", refuse(410, "Gone"), platforms.ClassRestricted),
		platformtest.Refused("no parent", "the previous card was deleted", refuse(404, "The post you are trying to reply to does not appear to exist."), platforms.ClassPermanent),
		platformtest.Refused("deleted", "an earlier call's post with the key was deleted", refuse(404, "Record not found"), platforms.ClassPermanent),
		platformtest.Refused("too long", "the text has to change", refuse(422, "Validation failed: Text character limit of 500 exceeded"), platforms.ClassPermanent),
		platformtest.Refused("in German", "the status suffices", refuse(422, "Validierung fehlgeschlagen"), platforms.ClassPermanent),
		platformtest.Refused("processing", "the file will be ready soon", refuse(422, "Cannot attach files that have not finished processing. Try again in a moment!"), platforms.ClassTransient),
		platformtest.Refused("limited", "the server states the end of the limit", refuse(429, "Too many requests", "X-RateLimit-Reset", "2026-11-20T12:05:00.000000Z"), platforms.ClassRateLimited).Waiting(5*time.Minute),
		platformtest.Refused("limited for a year", "no limit lasts for a year", refuse(429, "Too many requests", "X-RateLimit-Reset", "2027-11-20T12:05:00.000000Z"), platforms.ClassRateLimited).Waiting(platformtest.NoRetryTime),
		platformtest.Refused("files used", "an earlier call may have used the files", refuse(422, "Validation failed: Media 1 not found or already attached to another post"), platforms.ClassDuplicate).Unproven(),
		platformtest.Unknown("unlisted", "an unlisted error does not show the outcome", refuse(418, "I'm a teapot")),
		platformtest.Unknown("bare 429", "a proxy may have sent the response", recorder.Respond(429, "")),
		platformtest.Unknown("bare 401", "a proxy may have sent the response", recorder.Respond(401, "")),
	)
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	platformtest.Identify(t, one, "/api/v1/accounts/verify_credentials?",
		platformtest.Identified("account", "its server is not part of the id in the sandbox", recorder.Respond(200, `{"id":"1","username":"acme","display_name":"Acme","avatar":"https://mastodon.example/a.png"}`),
			platforms.Identity{AccountID: "1", Username: "acme", DisplayName: "Acme", IconURL: "https://mastodon.example/a.png"}),
		platformtest.Identified("no name", "the username stands for it, and only web addresses are shown", recorder.Respond(200, `{"id":"1","username":"acme","avatar":"javascript:alert(1)"}`),
			platforms.Identity{AccountID: "1", Username: "acme", DisplayName: "acme"}),
		platformtest.Refused("revoked", "a new token is needed", refuse(401, "The access token was revoked"), platforms.ClassReconnect),
		platformtest.Refused("odd id", "the id would become part of addresses", recorder.Respond(200, `{"id":"../1"}`), platforms.ClassUnknown))
}

// TestServer tests which servers may be called. The test does not connect to any of them.
func TestServer(t *testing.T) {
	t.Parallel()
	p := New(Config{}, transport.New(transport.Options{}))
	for address, tc := range map[string]struct {
		reason string
		class  platforms.Class
	}{
		"":                              {"a Connection has to name one", platforms.ClassReconnect},
		"http://mastodon.example":       {"tokens are sent encrypted only", platforms.ClassReconnect},
		"https://":                      {"the address has no host", platforms.ClassReconnect},
		"https://mastodon.example/path": {"the API's path is fixed", platforms.ClassReconnect},
		"https://user@mastodon.example": {"the user name hides the host", platforms.ClassReconnect},
		"https://mastodon.example?a=b":  {"the API has its own queries", platforms.ClassReconnect},
		"https://127.0.0.1":             {"only public addresses are called", platforms.ClassTransient},
		"https://169.254.169.254":       {"the metadata service is not public", platforms.ClassTransient},
		"https://[::1]:8443":            {"this host is not public at any port", platforms.ClassTransient},
		"https://host.herald.invalid":   {"a name without an address gives the same error", platforms.ClassTransient},
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			job := hello
			job.Account.Token.Server = address
			if got := p.Publish(t.Context(), job); got.Outcome != platforms.NotSent || got.Err.Class != tc.class {
				t.Errorf("%s: got %+v (%v)", tc.reason, got, got.Err)
			}
			if _, err := p.Identify(t.Context(), job.Account.Token); recorder.ClassOf(err) != tc.class {
				t.Errorf("%s: identified with %v", tc.reason, err)
			}
		})
	}
}

// TestAccountIDs tests that accounts on different servers have different ids, and that a server's API receives its own
// id.
func TestAccountIDs(t *testing.T) {
	t.Parallel()
	if a, b := accountID("1", server), accountID("1", "https://other.example:8443"); a != "1@mastodon.example" || b != "1@other.example:8443" {
		t.Errorf("the ids are %s and %s", a, b)
	}
	p, site := start(t, recorder.Respond(200, `[]`))
	if _, err := p.Lookup(t.Context(), hello); err != nil || site.Requests()[0].Path != "/api/v1/accounts/1/statuses" {
		t.Errorf("asked %+v, %v", site.Requests(), err)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	job := hello
	job.Content.InReplyTo = "5"
	job.Content.Mastodon = v1alpha1.MastodonOptions{ContentWarning: "spoilers", Visibility: v1alpha1.MastodonUnlisted, Sensitive: true}
	job.Content.Language = "en"
	job.Content.Media, job.Checkpoint = make([]platforms.File, 2), "7,8"
	p, site := start(t, recorder.Respond(200, published, "X-RateLimit-Limit", "300", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "2026-11-20T12:05:00.000000Z"))
	got := p.Publish(t.Context(), job)
	want := platforms.Result{
		Outcome: platforms.Posted, ExternalID: "109300000000000001", ExternalURL: "https://mastodon.example/@acme/109300000000000001", PostedAt: recorder.Noon,
		RateLimits: []platforms.RateLimit{{Name: platforms.PostsPerWindow, Limit: 300, ResetsAt: recorder.Noon.Add(5 * time.Minute), BlockedUntil: recorder.Noon.Add(5 * time.Minute)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	request := site.Requests()[0]
	if key := request.Header.Get("Idempotency-Key"); key != "01020300000000000000000000000000" || request.Header.Get("Accept-Language") != "en" {
		t.Errorf("the headers are %v", request.Header)
	}
	var body map[string]any
	if err := json.Unmarshal([]byte(request.Body), &body); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"status": "hello", "media_ids": []any{"7", "8"}, "in_reply_to_id": "5", "spoiler_text": "spoilers", "sensitive": true, "visibility": "unlisted", "language": "en",
	}, body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// TestLookupResponses tests which conclusions a lookup draws from the account's posts and files.
func TestLookupResponses(t *testing.T) {
	t.Parallel()
	const withFile = `[{"id":"9","url":"https://mastodon.example/@acme/9","created_at":"2026-11-20T12:00:01.000Z","media_attachments":[{"id":"7"}]}]`
	media := hello
	media.Content.Media, media.Checkpoint = make([]platforms.File, 1), "7"
	text := func(id, text string) http.HandlerFunc {
		return recorder.Respond(200, `{"id":"`+id+`","text":"`+text+`","spoiler_text":""}`)
	}
	list, none := recorder.Respond(200, `[{"id":"9","created_at":"2026-11-20T12:00:01.000Z"},{"id":"8","created_at":"2026-11-20T11:59:59.000Z"}]`), recorder.Respond(200, `[]`)
	for name, tc := range map[string]struct {
		reason  string
		job     platforms.Job
		answers []http.HandlerFunc
		want    platforms.LookupResult
		class   platforms.Class
	}{
		"text":         {"the source is the sent text", hello, []http.HandlerFunc{list, text("9", "hello")}, platforms.LookupResult{Matches: 1, ExternalID: "9", PostedAt: recorder.Noon.Add(time.Second)}, ""},
		"another":      {"the second post is too old to be read", hello, []http.HandlerFunc{list, text("9", "hello you")}, platforms.LookupResult{}, ""},
		"deleted":      {"the post was deleted after it was listed", hello, []http.HandlerFunc{list, refuse(404, "Record not found")}, platforms.LookupResult{}, ""},
		"no source":    {"the listed post may be this one", hello, []http.HandlerFunc{list, refuse(500, "x")}, platforms.LookupResult{}, platforms.ClassTransient},
		"other source": {"the source belongs to another post", hello, []http.HandlerFunc{list, text("1", "hello")}, platforms.LookupResult{}, platforms.ClassUnknown},
		"bare 404":     {"a proxy's response is not proof", hello, []http.HandlerFunc{list, recorder.Respond(404, "")}, platforms.LookupResult{}, platforms.ClassUnknown},
		"no list":      {"an object is not a list", hello, []http.HandlerFunc{recorder.Respond(200, `{}`)}, platforms.LookupResult{}, platforms.ClassUnknown},
		"null":         {"an entry cannot be read", hello, []http.HandlerFunc{recorder.Respond(200, `[null]`)}, platforms.LookupResult{}, platforms.ClassUnknown},
		"file":         {"a file belongs to one post at most", media, []http.HandlerFunc{recorder.Respond(200, withFile)}, platforms.LookupResult{Matches: 1, Certain: true, ExternalID: "9", ExternalURL: "https://mastodon.example/@acme/9", PostedAt: recorder.Noon.Add(time.Second)}, ""},
		"free":         {"the file has no post yet", media, []http.HandlerFunc{none, recorder.Respond(200, `{"id":"7"}`)}, platforms.LookupResult{Proof: true}, ""},
		"processing":   {"the file's post is still being processed", media, []http.HandlerFunc{none, recorder.Respond(206, `{"id":"7"}`)}, platforms.LookupResult{Proof: true}, ""},
		"gone":         {"the media may belong to a post that is not listed yet", media, []http.HandlerFunc{none, refuse(404, "Record not found")}, platforms.LookupResult{}, ""},
		"proxy's 404":  {"only Mastodon's own 404 proves that the media are gone", media, []http.HandlerFunc{none, recorder.Respond(404, "")}, platforms.LookupResult{}, platforms.ClassUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := start(t, tc.answers...)
			got, err := p.Lookup(t.Context(), tc.job)
			if diff := cmp.Diff(tc.want, got); diff != "" || recorder.ClassOf(err) != tc.class {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestEndlessList tests that Herald stops reading if a server repeats the same page.
func TestEndlessList(t *testing.T) {
	t.Parallel()
	p, site := start(t, recorder.Respond(200, `[{"id":"9","created_at":"2026-11-20T12:00:01.000Z","in_reply_to_id":"1"}]`))
	if _, err := p.Lookup(t.Context(), hello); recorder.ClassOf(err) != platforms.ClassUnknown || len(site.Requests()) != 2 {
		t.Errorf("got %v after %d calls", err, len(site.Requests()))
	}
}

// TestLimits tests that a server's limits are applied, and that they are kept in memory for an hour.
func TestLimits(t *testing.T) {
	t.Parallel()
	const instance = `{"configuration":{"statuses":{"max_characters":5000,"max_media_attachments":40,"characters_reserved_per_url":10},"media_attachments":{"image_size_limit":8000000,"video_size_limit":40000000}}}`
	clock := clocktesting.NewFakeClock(recorder.Noon)
	site := recorder.Start(t, recorder.Respond(200, instance))
	p := New(Config{APIURL: site.URL, Clock: clock}, transport.New(transport.Options{}))
	want := &v1alpha1.MastodonServer{MaxCharacters: 5000, CharactersPerURL: 10, MaxMedia: 20, MaxImageBytes: 8000000, MaxVideoBytes: 40000000}
	for _, calls := range []int{1, 1, 2} {
		found, err := p.Inspect(t.Context(), hello.Account)
		if diff := cmp.Diff(platforms.AccountInfo{Mastodon: want}, found); diff != "" || err != nil || len(site.Requests()) != calls {
			t.Errorf("%v after %d calls, want %d (-want +got):\n%s", err, len(site.Requests()), calls, diff)
		}
		if calls == 1 {
			clock.Step(40 * time.Minute)
		}
	}
	rules := p.Capabilities()
	own := rules.Of(&v1alpha1.ConnectionStatus{Mastodon: want})
	if address := "https://mastodon.example/a/long/path"; rules.MaxCaption != 500 || rules.CaptionLength(address) != 23 || own.MaxCaption != 5000 || own.CaptionLength(address) != 10 {
		t.Errorf("the limits are %d and %d", rules.MaxCaption, own.MaxCaption)
	}
	if own.MaxImages != 20 || own.Card.MaxImageBytes != 8000000 || own.MaxVideoBytes != 40000000 || rules.Of(&v1alpha1.ConnectionStatus{}).MaxImages != 4 {
		t.Errorf("the files' limits are %+v", own)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"not found": refuse(404, "x"), "no limits": recorder.Respond(200, `{}`), "negative": recorder.Respond(200, strings.ReplaceAll(instance, "5000", "-1")), "lost": recorder.HangUp,
	} {
		p, _ := start(t, answer)
		if found, err := p.Inspect(t.Context(), hello.Account); found.Mastodon != nil || err != nil {
			t.Errorf("%s: %+v, %v; an account can publish without known limits", name, found, err)
		}
	}
}

func TestParsePost(t *testing.T) {
	t.Parallel()
	for entered, tc := range map[string]struct{ reason, want string }{
		"109300000000000001": {"the address contains the id", "109300000000000001"},
		"https://mastodon.example/@acme/109300000000000001": {"users copy the address from the site", "109300000000000001"},
		"mastodon.example/@acme/109300000000000001?a=b":     {"browsers hide the scheme", "109300000000000001"},
		"https://mastodon.example/users/acme/statuses/1":    {"the post's ActivityPub id", "1"},
		"https://other.example/@acme@mastodon.example/5":    {"the other server gives the post another id", ""},
		"https://mastodon.example/@acme@other.example/5":    {"the address of another account's post", ""},
		"https://mastodon.example/@acme":                    {"a profile is not a post", ""},
		"https://x.com/acme/status/1991":                    {"the address belongs to another platform", ""},
		"hello":                                             {"a word is not an id", ""},
	} {
		if got, ok := (&Platform{}).ParsePost(hello.Account, entered); ok != (tc.want != "") || ok && got.ID != tc.want {
			t.Errorf("%s: %s: got %+v, %t", entered, tc.reason, got, ok)
		}
	}
}

// FuzzResponses checks that no response from a server makes Herald panic, or report a post without a valid id as
// published.
func FuzzResponses(f *testing.F) {
	for _, body := range []string{published, `[` + published + `]`, `{"error":"x"}`, `{"id":{},"media_attachments":[null]}`, `[{"id":"1","reblog":{}}]`, `{"configuration":{"statuses":{"max_characters":1e9}}}`, ``} {
		f.Add(200, body)
		f.Add(422, body)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 {
			t.Skip("no status of HTTP")
		}
		resp := &transport.Response{Status: status, Header: http.Header{}, Body: []byte(body)}
		p := New(Config{}, nil)
		got := p.publishResult(resp)
		if got.Outcome == platforms.Posted != validID(got.ExternalID) || got.Outcome != platforms.Posted && got.Err == nil {
			t.Errorf("got %+v", got)
		}
		if id, failure := p.uploaded(resp, &platforms.File{}); (failure == nil) != validID(id) {
			t.Errorf("uploaded %q, %v", id, failure)
		}
		if found := parseLimits(resp.Body); found != nil && (found.MaxCharacters <= 0 || found.MaxMedia < 0 || found.MaxMedia > mostFiles || found.MaxVideoBytes < 0) {
			t.Errorf("the limits are %+v", found)
		}
	})
}
