// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
)

func TestPublishSendsOneExactRequest(t *testing.T) {
	id := snowflake(noon.Add(250 * time.Millisecond))
	p, server := newX(t, Config{WebURL: "https://x.example/"}, says(http.StatusCreated, `{"data":{"id":"`+id+`","text":"…"}}`))
	const text = "Fish & <chips> \"now\" 🐟\nline two"

	got := p.Publish(t.Context(), jobFor(text))

	want := platforms.Result{
		Outcome: platforms.Posted, ExternalID: id, ExternalURL: "https://x.example/acme/status/" + id,
		PostedAt: noon.Add(250 * time.Millisecond),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if len(server.Requests()) != 1 {
		t.Fatalf("%d requests, want one", len(server.Requests()))
	}
	r := server.Requests()[0]
	if r.Method != http.MethodPost || r.Path != "/2/tweets" || r.Token != "access" {
		t.Errorf("got %+v", r)
	}
	var body map[string]any
	if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"text": text}, body); diff != "" {
		t.Errorf("body (-want +got), X rejects unknown fields:\n%s", diff)
	}
	if !strings.Contains(r.Body, "& <chips>") {
		t.Errorf("the text was escaped: %s", r.Body)
	}
}

// TestPublishWithoutText publishes only images. The text is sent as an empty field, because X rejects a body without
// it.
func TestPublishWithoutText(t *testing.T) {
	p, server := newX(t, Config{}, says(http.StatusCreated, `{"data":{"id":"1991000000000000777"}}`))
	job := jobFor("")
	job.Content.Category, job.Content.Media, job.Checkpoint = v1alpha1.CategoryImage, make([]platforms.File, 1), "5"
	if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
		t.Fatalf("got %+v", got)
	}
	if got, want := strings.TrimSpace(server.Requests()[0].Body), `{"text":"","media":{"media_ids":["5"]}}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func TestPublishVerdicts(t *testing.T) {
	const resetUnix, reset = "1795176540", 9 * time.Minute
	forbidden := func(kind, detail string) http.HandlerFunc { return says(403, problemOf(kind, detail)) }
	spent := []string{"x-rate-limit-remaining", "80", "x-user-limit-24hour-remaining", "0", "x-user-limit-24hour-reset", resetUnix}
	tooMany := `{"title":"Too Many Requests","type":"about:blank"}`
	platformtest.Verdicts(t, newPublicX, jobFor("hello"), "POST /2/tweets", "",
		leavesOpen("created, cut", "a success with a truncated body published the post: a lookup has to find it", says(201, `{"data":{"id":"19910000`)),
		leavesOpen("created, no id", "the same without an id", says(201, `{"data":{}}`)),
		leavesOpen("created, empty", "the same without a body", says(201, ``)),
		refuses("invalid request", "invalid content is never sent again unchanged",
			says(400, problemOf("invalid-request", "One or more parameters to your request was invalid.")), platforms.ClassPermanent),
		refuses("unauthorized", "an expired token is renewed, and the call repeated",
			says(401, `{"title":"Unauthorized","type":"about:blank","status":401,"detail":"Unauthorized"}`), platforms.ClassRefresh),
		refuses("wrong kind of token", "an app token cannot post",
			forbidden("unsupported-authentication", "Authenticating with OAuth 2.0 Application-Only is forbidden."), platforms.ClassReconnect),
		refuses("credits", "an empty balance ends with a payment, at an unknown time",
			says(402, problemOf("credits", "Your account does not have any credits.")), platforms.ClassQuota).OfTheApp(),
		refuses("duplicate", "the same content exists already: perhaps this very post",
			says(403, words("You are not allowed to create a Tweet with duplicate content.")), platforms.ClassDuplicate).Unproven(),
		refuses("duplicate, old code", "the old API has another code for a duplicate",
			says(403, legacy(187, "Status is a duplicate.")), platforms.ClassDuplicate).Unproven(),
		refuses("not permitted", "X's catch-all error rejects the content",
			says(403, words("You are not permitted to perform this action.")), platforms.ClassPermanent),
		refuses("app not enrolled", "only the app's owner can enroll it: reconnecting does not help",
			says(403, `{"reason":"client-not-enrolled","type":"https://api.twitter.com/2/problems/client-forbidden"}`), platforms.ClassQuota).OfTheApp(),
		refuses("read-only app", "a user has to grant write access", forbidden("oauth1-permissions",
			"Your client app is not configured with the appropriate oauth1 app permissions for this endpoint."), platforms.ClassReconnect),
		refuses("plan lacks the endpoint", "an administrator has to change the app or its plan",
			forbidden("client-forbidden", "Your app cannot use this endpoint."), platforms.ClassReconnect),
		refuses("scope missing", "a user has to grant the scope",
			forbidden("not-authorized-for-resource", "You are not authorized."), platforms.ClassReconnect),
		refuses("suspended", "the account waits until X lifts the suspension",
			forbidden("user-suspended", "User is suspended."), platforms.ClassRestricted),
		refuses("cashtags", "the text has to change",
			forbidden("invalid", "You have exceeded the maximum of one cashtag."), platforms.ClassPermanent),
		refuses("rate limited", "X states the end of the limit",
			says(429, tooMany, "x-rate-limit-remaining", "0", "x-rate-limit-reset", resetUnix), platforms.ClassRateLimited).Waiting(reset),
		refuses("rate limited, old form", "the old form has the general header",
			says(429, legacy(88, "Rate limit exceeded"), "Retry-After", "60"), platforms.ClassRateLimited).Waiting(time.Minute),
		refuses("rate limited, absurd reset", "a reset in the past or in years is ignored",
			says(429, ``, "x-rate-limit-remaining", "0", "x-rate-limit-reset", "4102444800"), platforms.ClassRateLimited),
		refuses("daily limit", "the daily limit outlasts the window of 15 minutes",
			says(429, tooMany, spent...), platforms.ClassQuota).Waiting(reset),
		refuses("usage capped", "a monthly cap lasts longer than minutes",
			says(429, problemOf("usage-capped", "Usage cap exceeded: Monthly product cap")), platforms.ClassQuota).OfTheApp(),
		leavesOpen("internal error", "X may have published before it failed", says(500, `{"title":"Internal Server Error"}`)),
		leavesOpen("unavailable", "the same for every 5xx", says(503, `{"title":"Service Unavailable","type":"about:blank"}`)),
		leavesOpen("request timeout", "408 is not among X's refusals", says(408, `{"title":"Request Timeout"}`)),
		leavesOpen("endless answer", "an answer that is not read to its end is lost",
			says(201, `{"data":{"id":"1","text":"`+strings.Repeat("x", transport.DefaultMaxBody)+`"}}`)))
	for reason, answer := range map[string]http.HandlerFunc{
		"an id exceeds a float64, and may be a number": says(201, `{"data":{"id":1991000000000000777}}`),
		"any success with an id is a success":          says(200, `{"data":{"id":"1991000000000000777"}}`),
	} {
		p, _ := newPublicX(t, answer)
		if got := p.Publish(t.Context(), jobFor("hello")); got.Outcome != platforms.Posted || got.ExternalID != "1991000000000000777" {
			t.Errorf("%s: got %+v", reason, got)
		}
	}
}

func FuzzJudge(f *testing.F) {
	f.Add(201, `{"data":{"id":"1991000000000000777"}}`, "0", "1795176540")
	f.Add(403, `{"errors":[{"code":187,"message":"Status is a duplicate."}]}`, "", "")
	f.Add(429, `{"errors":{"code":"88"}}`, "0", "-1")
	f.Add(400, `{"type":"//","title":null,"errors":[null,1,"x",{}]}`, "", "")
	p := New(Config{}, nil)
	f.Fuzz(func(t *testing.T, status int, body, remaining, reset string) {
		header := http.Header{}
		header.Set("x-rate-limit-remaining", remaining)
		header.Set("x-rate-limit-reset", reset)
		r := p.publishResult(&transport.Response{Status: status, Header: header, Body: []byte(body)}, &platforms.Job{Account: platforms.Account{Username: "acme"}})

		success := status >= 200 && status < 300
		switch r.Outcome {
		case platforms.Posted:
			if !success || !validID(r.ExternalID) || r.ExternalURL == "" || r.Err != nil {
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
