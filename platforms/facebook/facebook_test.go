// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/meta/metatest"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// noon is the current time in these tests.
var noon = recorder.Noon

var (
	says   = recorder.Respond
	hangUp = recorder.HangUp
	class  = recorder.ClassOf

	identifies, refuses, leavesOpen = platformtest.Identified, platformtest.Refused, platformtest.Unknown
)

func newFacebook(t *testing.T, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	server := recorder.Start(t, answer)
	return New(Config{Config: platforms.Config{APIURL: server.URL + "/", WebURL: "https://fb.example/", Clock: clocktesting.NewFakeClock(noon)}}, transport.New(transport.Options{})), server
}

func jobFor(text string) platforms.Job {
	return platforms.Job{
		Account: platforms.Account{ID: "42", Username: "acme", Token: platforms.Token{Access: "access"}},
		Content: platforms.Content{Category: v1alpha1.CategoryText, Text: text}, SearchFrom: noon,
	}
}

// problem responds with an error in Facebook's format.
func problem(status, code, subcode int, transient bool) http.HandlerFunc {
	return says(status, body(code, subcode, transient))
}

func body(code, subcode int, transient bool) string {
	return fmt.Sprintf(`{"error":{"message":"token access","type":"OAuthException","code":%d,"error_subcode":%d,"is_transient":%t}}`, code, subcode, transient)
}

func TestPublishSendsOneExactRequest(t *testing.T) {
	const text = "Fish & <chips> \"now\" 🐟\nline two"
	p, server := newFacebook(t, says(200, `{"id":"42_1001","permalink_url":"https://www.facebook.com/42/posts/1001"}`))
	got := p.Publish(t.Context(), jobFor(text))
	want := platforms.Result{Outcome: platforms.Posted, ExternalID: "42_1001", ExternalURL: "https://www.facebook.com/42/posts/1001"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	seen := server.Requests()
	if len(seen) != 1 {
		t.Fatalf("%d requests, want one", len(seen))
	}
	asked := recorder.Request{
		Method: http.MethodPost, Path: "/v25.0/42/feed", Token: "access",
		Query: map[string][]string{"fields": {"id,permalink_url"}}, Form: map[string][]string{"message": {text}},
	}
	if diff := cmp.Diff(asked, seen[0], cmpopts.IgnoreFields(asked, "Header", "Body")); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestPublishSendsPhotosWithoutAText(t *testing.T) {
	p, server := newFacebook(t, says(200, `{"id":"42_1001"}`))
	job := jobFor("")
	job.Content.Category, job.Content.Media = v1alpha1.CategoryImage, []platforms.File{{Name: "a.png"}}
	job.Checkpoint = platforms.JoinFileIDs([]string{"7"})
	if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
		t.Fatalf("got %+v", got)
	}
	want := url.Values{"attached_media[0]": {`{"media_fbid":"7"}`}}
	if diff := cmp.Diff(want, server.Requests()[0].Form); diff != "" {
		t.Errorf("form (-want +got):\n%s", diff)
	}
}

func TestPostURL(t *testing.T) {
	tests := map[string]struct{ reason, answer, want string }{
		"complete": {"Facebook's own URL", `{"id":"42_1","permalink_url":"https://www.facebook.com/x"}`, "https://www.facebook.com/x"},
		"path":     {"some responses contain only the path", `{"id":"42_1","permalink_url":"/42/posts/1"}`, "https://fb.example/42/posts/1"},
		"missing":  {"without it the documented form leads there", `{"id":"42_1"}`, "https://fb.example/42_1"},
		"odd":      {"an invalid URL is ignored", `{"id":"42_1","permalink_url":{}}`, "https://fb.example/42_1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, _ := newFacebook(t, says(200, tc.answer))
			got := p.Publish(t.Context(), jobFor("hello"))
			if got.Outcome != platforms.Posted || got.ExternalURL != tc.want {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	blocked := says(400, `{"error":{"message":"API access blocked.","type":"OAuthException","code":200}}`)
	minutes := `{"42":[{"type":"pages","estimated_time_to_regain_access":19}]}`
	platformtest.Verdicts(t, newFacebook, jobFor("hello"), "POST /v25.0/42/feed", "",
		leavesOpen("error with 200", "an error with the status of a success is unknown", says(200, body(190, 0, false))),
		leavesOpen("service down", "code 2 may come after the act", problem(500, 2, 0, true)),
		leavesOpen("code 1", "so may code 1", problem(400, 1, 0, false)),
		leavesOpen("transient", "Facebook's own word is believed", problem(400, 100, 0, true)),
		leavesOpen("limit, in a 5xx", "with a 5xx nothing is certain", problem(500, 4, 0, false)),
		leavesOpen("temporary", "trouble under another code", problem(400, 1609010, 1609010, false)),
		refuses("duplicate", "the same content exists already: perhaps this very post",
			problem(400, 506, 1455006, false), platforms.ClassDuplicate).Unproven(),
		refuses("dead token", "a user has to reconnect the account", problem(400, 190, 463, false), platforms.ClassReconnect),
		refuses("session", "an expired session needs the same", problem(400, 102, 0, false), platforms.ClassReconnect),
		refuses("permission", "a user has to grant the permission", problem(403, 283, 0, false), platforms.ClassReconnect),
		refuses("Page lost", "the token no longer reaches the Page", problem(400, 100, 33, false), platforms.ClassReconnect),
		refuses("app blocked", "the block affects every Page", blocked, platforms.ClassQuota).OfTheApp().Waiting(time.Hour),
		refuses("authorization", "a user has to act on Facebook",
			problem(400, 100, 1404078, false), platforms.ClassRestricted).Waiting(time.Hour),
		refuses("Page limit", "without a time, calling soon would prolong the limit",
			problem(400, 32, 0, false), platforms.ClassRateLimited).Waiting(5*time.Minute),
		refuses("limit with time", "Facebook reports minutes", says(400, body(80001, 2446079, true), "X-Business-Use-Case-Usage", minutes),
			platforms.ClassRateLimited).Waiting(19*time.Minute),
		refuses("abusive", "a block lasts for hours", problem(400, 368, 0, false), platforms.ClassQuota).Waiting(time.Hour),
		refuses("too fast", "a block for posting too fast lasts for hours, too", problem(400, 368, 1390008, false), platforms.ClassQuota).Waiting(time.Hour),
		refuses("link not allowed", "the text has to change", problem(400, 1609005, 0, false), platforms.ClassPermanent),
		refuses("invalid", "rejected content is never sent again unchanged", problem(400, 100, 0, false), platforms.ClassPermanent),
		refuses("against rules", "content against the rules is never sent again unchanged", problem(400, 200, 1346003, false), platforms.ClassPermanent))
}

func TestLimits(t *testing.T) {
	limits := New(Config{}, nil).Capabilities()
	if !limits.Allows(v1alpha1.CategoryText) || limits.RefreshLead != 0 {
		t.Errorf("Facebook accepts text, and its tokens do not expire: %+v", limits)
	}
	if limits.ProvesAbsence(v1alpha1.CategoryText) || limits.ProvesAbsence(v1alpha1.CategoryImage) {
		t.Error("Facebook lists about 600 posts a year, which proves neither text nor photo posts absent")
	}
	if limits.MaxCaption != 0 {
		t.Errorf("the contract has no limit for messages; got %d", limits.MaxCaption)
	}
	if limits.CaptionProblem(" \n") == "" || limits.CaptionProblem("") != "" || limits.CaptionProblem("hello") != "" {
		t.Error("only blank messages are invalid")
	}
}

func FuzzJudge(f *testing.F) {
	f.Add(200, `{"id":"42_1"}`, `{"1":[{"estimated_time_to_regain_access":3}]}`)
	f.Add(400, `{"error":{"code":506}}`, ``)
	f.Add(400, `{"error":{"code":"4","is_transient":"true"}}`, `[]`)
	f.Add(500, `{"error":[]}`, `{"1":{}}`)
	p := New(Config{}, nil)
	f.Fuzz(func(t *testing.T, status int, body, usage string) {
		header := http.Header{}
		header.Set("X-Business-Use-Case-Usage", usage)
		r := p.graph.ResultOf(&transport.Response{Status: status, Header: header, Body: []byte(body)}, meta.CreatedID)
		p.locate(&r, []byte(body))
		switch r.Outcome {
		case platforms.Posted:
			if status < 200 || status > 299 || r.ExternalID == "" || r.ExternalURL == "" || r.Err != nil {
				t.Errorf("posted without evidence: %+v", r)
			}
		case platforms.Refused:
			if status < 400 || status > 499 || r.Err == nil || r.Err.Problem == "" {
				t.Errorf("refused without a documented refusal: %+v", r)
			}
		case platforms.Unknown:
			if r.Err == nil || r.Err.Problem == "" {
				t.Errorf("unknown without a reason: %+v", r)
			}
		case platforms.NotSent, platforms.Accepted:
			t.Errorf("a response means that the request was sent, and posts are not processed later: %+v", r)
		}
	})
}

// TestLostPhotos makes Facebook refuse a post with photos. If Facebook no longer has one of them, the next preparation
// uploads them again.
func TestLostPhotos(t *testing.T) {
	there, gone := says(200, `{"id":"7"}`), problem(400, 100, 33, false)
	const feed, first, second = "POST /v25.0/42/feed", "GET /v25.0/7", "GET /v25.0/8"
	tests := map[string]struct {
		reason  string
		refusal http.HandlerFunc
		photos  []http.HandlerFunc
		class   platforms.Class
		subject platforms.Subject
		want    []string
	}{
		"lost":      {"the second photo was deleted", problem(400, 100, 0, false), []http.HandlerFunc{there, gone}, platforms.ClassTransient, "", []string{feed, first, second}},
		"kept":      {"another field is invalid", problem(400, 100, 0, false), []http.HandlerFunc{there, there}, platforms.ClassPermanent, "", []string{feed, first, second}},
		"no answer": {"an unreadable response is not proof of a deletion", problem(400, 100, 0, false), []http.HandlerFunc{says(503, ``)}, platforms.ClassPermanent, "", []string{feed, first}},
		"unlisted":  {"a code that is in no table may mean that as well", problem(400, 98765, 0, false), []http.HandlerFunc{gone}, platforms.ClassTransient, "", []string{feed, first}},
		"named":     {"a code about the file is trusted", problem(400, 324, 1366046, false), nil, platforms.ClassPermanent, platforms.SubjectFile, []string{feed}},
		"blocked":   {"photos are not checked when the account is blocked", problem(400, 368, 0, false), nil, platforms.ClassQuota, platforms.SubjectAccount, []string{feed}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			turn := 0
			calls := append([]http.HandlerFunc{tc.refusal}, tc.photos...)
			p, server := newFacebook(t, func(w http.ResponseWriter, r *http.Request) {
				calls[min(turn, len(calls)-1)](w, r)
				turn++
			})
			job := jobFor("hello")
			job.Content.Category, job.Content.Media = v1alpha1.CategoryImage, []platforms.File{{Name: "a.png"}, {Name: "b.png"}}
			job.Checkpoint = platforms.JoinFileIDs([]string{"7", "8"})
			got := p.Publish(t.Context(), job)
			if got.Outcome != platforms.Refused || got.Err.Class != tc.class || got.Err.Subject != tc.subject {
				t.Errorf("%s: got %+v, %+v", tc.reason, got, got.Err)
			}
			if diff := cmp.Diff(tc.want, server.Paths()); diff != "" {
				t.Errorf("%s: requests (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestErrorTable tests each row of the table, and compares the table with the page that documents it. To update the
// page, run go test -run ErrorTable -args -update.
func TestErrorTable(t *testing.T) {
	p := New(Config{}, nil)
	metatest.CheckErrors(t, "facebook", &p.graph, map[string]metatest.Want{
		"324": metatest.BadFile, "1366046": metatest.BadFile,
		"1500": metatest.BadText, "1609005": metatest.BadText, "1609008": metatest.BadText, "2061006": metatest.BadText,
	})
}
