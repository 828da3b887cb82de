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
)

func TestPublishSendsOneExactRequest(t *testing.T) {
	id := snowflake(noon.Add(250 * time.Millisecond))
	p, requests := newX(t, Config{WebURL: "https://x.example/"}, says(http.StatusCreated, `{"data":{"id":"`+id+`","text":"…"}}`))
	const text = "Fish & <chips> \"now\" 🐟\nline two"

	got := p.Publish(t.Context(), jobFor(text))

	want := platforms.Result{
		Outcome: platforms.Posted, ExternalID: id, ExternalURL: "https://x.example/acme/status/" + id,
		PostedAt: noon.Add(250 * time.Millisecond),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if len(requests()) != 1 {
		t.Fatalf("%d requests were made, want exactly one", len(requests()))
	}
	r := requests()[0]
	if r.Method != http.MethodPost || r.URL.Path != "/2/tweets" || r.Header.Get("Authorization") != "Bearer access" {
		t.Errorf("got %s %s with %q", r.Method, r.URL.Path, r.Header.Get("Authorization"))
	}
	var body map[string]any
	if err := json.Unmarshal([]byte(r.body), &body); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"text": text}, body); diff != "" {
		t.Errorf("body (-want +got), X refuses fields that it does not know:\n%s", diff)
	}
	if !strings.Contains(r.body, "& <chips>") {
		t.Errorf("the text was escaped: %s", r.body)
	}
}

// TestPublishWithoutText publishes only images. The text is sent as an empty field, because X rejects a body without
// it.
func TestPublishWithoutText(t *testing.T) {
	p, requests := newX(t, Config{}, says(http.StatusCreated, `{"data":{"id":"1991000000000000777"}}`))
	job := jobFor("")
	job.Content.Category, job.Content.Media, job.Checkpoint = v1alpha1.CategoryImage, make([]platforms.File, 1), "5"
	if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
		t.Fatalf("got %+v", got)
	}
	if got, want := strings.TrimSpace(requests()[0].body), `{"text":"","media":{"media_ids":["5"]}}`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func TestPublishVerdicts(t *testing.T) {
	reset := noon.Add(9 * time.Minute)
	const resetUnix = "1795176540"
	if reset.Unix() != 1795176540 {
		t.Fatalf("the reset must be %d", reset.Unix())
	}
	forbidden := func(kind, detail string) http.HandlerFunc {
		return says(403, `{"title":"Forbidden","detail":"`+detail+`","type":"https://api.x.com/2/problems/`+kind+`","status":403}`)
	}
	type want struct {
		Verdict platforms.Outcome
		Class   platforms.Class
		RetryAt time.Time
		AppWide bool
	}
	tests := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   want
	}{
		"created, id as a number": {
			"an id is a number longer than a float holds, and may come as one",
			says(201, `{"data":{"id":1991000000000000777}}`),
			want{Verdict: platforms.Posted},
		},
		"ok instead of created": {
			"any success with an id is a success",
			says(200, `{"data":{"id":"1991000000000000777"}}`),
			want{Verdict: platforms.Posted},
		},
		"created, cut": {
			"a success whose body broke off published something; which, must be looked for",
			says(201, `{"data":{"id":"19910000`),
			want{Verdict: platforms.Unknown, Class: platforms.ClassUnknown},
		},
		"created, no id": {
			"the same without an id",
			says(201, `{"data":{}}`),
			want{Verdict: platforms.Unknown, Class: platforms.ClassUnknown},
		},
		"created, empty": {
			"the same without a body",
			says(201, ``),
			want{Verdict: platforms.Unknown, Class: platforms.ClassUnknown},
		},
		"invalid request": {
			"content that X finds invalid is never sent again unchanged",
			says(400, `{"title":"Invalid Request","detail":"One or more parameters to your request was invalid.","type":"https://api.twitter.com/2/problems/invalid-request"}`),
			want{Verdict: platforms.Refused, Class: platforms.ClassPermanent},
		},
		"bare 400": {
			"a 400 that is not X's may have been made by something behind which X published",
			says(400, `<html>Bad Request</html>`),
			want{Verdict: platforms.Unknown, Class: platforms.ClassUnknown},
		},
		"unauthorized": {
			"an ended token is renewed, and the call made again",
			says(401, `{"title":"Unauthorized","type":"about:blank","status":401,"detail":"Unauthorized"}`),
			want{Verdict: platforms.Refused, Class: platforms.ClassRefresh},
		},
		"wrong kind of token": {
			"an app token cannot post",
			says(403, `{"title":"Unsupported Authentication","detail":"Authenticating with OAuth 2.0 Application-Only is forbidden for this endpoint.","type":"https://api.twitter.com/2/problems/unsupported-authentication","status":403}`),
			want{Verdict: platforms.Refused, Class: platforms.ClassReconnect},
		},
		"credits": {
			"an empty balance passes when somebody pays, at no known time",
			says(402, `{"title":"CreditsDepleted","detail":"Your account does not have any credits.","type":"https://api.x.com/2/problems/credits"}`),
			want{Verdict: platforms.Refused, Class: platforms.ClassQuota, AppWide: true},
		},
		"duplicate": {
			"the same content is there already: perhaps this very post",
			says(403, `{"detail":"You are not allowed to create a Tweet with duplicate content.","type":"about:blank","title":"Forbidden","status":403}`),
			want{Verdict: platforms.Unknown, Class: platforms.ClassDuplicate},
		},
		"duplicate, old code": {
			"the old API's code for the same",
			says(403, `{"errors":[{"code":187,"message":"Status is a duplicate."}]}`),
			want{Verdict: platforms.Unknown, Class: platforms.ClassDuplicate},
		},
		"not permitted": {
			"the catch-all of X is a refusal of the content",
			says(403, `{"detail":"You are not permitted to perform this action.","type":"about:blank","title":"Forbidden","status":403}`),
			want{Verdict: platforms.Refused, Class: platforms.ClassPermanent},
		},
		"app not enrolled": {
			"only the owner of the app can mend it: connecting the account again would not",
			says(403, `{"client_id":"1","detail":"When authenticating requests to the X API v2 endpoints, you must use keys and tokens from a developer App that is attached to a Project.",`+
				`"reason":"client-not-enrolled","title":"Client Forbidden","type":"https://api.twitter.com/2/problems/client-forbidden"}`),
			want{Verdict: platforms.Refused, Class: platforms.ClassQuota, AppWide: true},
		},
		"read-only app": {
			"a person has to grant writing",
			forbidden("oauth1-permissions", "Your client app is not configured with the appropriate oauth1 app permissions for this endpoint."),
			want{Verdict: platforms.Refused, Class: platforms.ClassReconnect},
		},
		"plan lacks the endpoint": {
			"a person has to change the app or connect by another one",
			forbidden("client-forbidden", "Your app cannot use this endpoint."),
			want{Verdict: platforms.Refused, Class: platforms.ClassReconnect},
		},
		"scope missing": {
			"a person has to grant the scope",
			forbidden("not-authorized-for-resource", "You are not authorized."),
			want{Verdict: platforms.Refused, Class: platforms.ClassReconnect},
		},
		"suspended": {
			"the account waits until X lifts the suspension",
			forbidden("user-suspended", "User is suspended."),
			want{Verdict: platforms.Refused, Class: platforms.ClassRestricted},
		},
		"cashtags": {
			"the text has to change",
			forbidden("invalid", "You have exceeded the maximum of one cashtag."),
			want{Verdict: platforms.Refused, Class: platforms.ClassPermanent},
		},
		"bare 403": {
			"an address filter between X and us answers with a page",
			says(403, `<html>Forbidden</html>`),
			want{Verdict: platforms.Unknown, Class: platforms.ClassUnknown},
		},
		"rate limited": {
			"X says when to try again",
			says(429, `{"title":"Too Many Requests","detail":"Too Many Requests","type":"about:blank","status":429}`, "x-rate-limit-remaining", "0", "x-rate-limit-reset", resetUnix),
			want{Verdict: platforms.Refused, Class: platforms.ClassRateLimited, RetryAt: reset},
		},
		"rate limited, old form": {
			"the old form, and the general header",
			says(429, `{"errors":[{"code":88,"message":"Rate limit exceeded"}]}`, "Retry-After", "60"),
			want{Verdict: platforms.Refused, Class: platforms.ClassRateLimited, RetryAt: noon.Add(time.Minute)},
		},
		"rate limited, absurd reset": {
			"a reset in the past or in years is not believed",
			says(429, ``, "x-rate-limit-remaining", "0", "x-rate-limit-reset", "4102444800"),
			want{Verdict: platforms.Refused, Class: platforms.ClassRateLimited},
		},
		"daily limit": {
			"the limit of a day outlasts the window of a quarter of an hour",
			says(429, `{"title":"Too Many Requests","type":"about:blank"}`,
				"x-rate-limit-remaining", "80", "x-user-limit-24hour-remaining", "0", "x-user-limit-24hour-reset", resetUnix),
			want{Verdict: platforms.Refused, Class: platforms.ClassQuota, RetryAt: reset},
		},
		"usage capped": {
			"a monthly cap is not waited for in minutes",
			says(429, `{"title":"UsageCapExceeded","detail":"Usage cap exceeded: Monthly product cap","type":"https://api.twitter.com/2/problems/usage-capped"}`),
			want{Verdict: platforms.Refused, Class: platforms.ClassQuota, AppWide: true},
		},
		"internal error": {
			"X may have published before it failed",
			says(500, `{"title":"Internal Server Error"}`),
			want{Verdict: platforms.Unknown, Class: platforms.ClassUnknown},
		},
		"unavailable": {
			"the same for every 5xx",
			says(503, `{"title":"Service Unavailable","type":"about:blank"}`),
			want{Verdict: platforms.Unknown, Class: platforms.ClassUnknown},
		},
		"request timeout": {
			"408 is not among X's refusals",
			says(408, `{"title":"Request Timeout"}`),
			want{Verdict: platforms.Unknown, Class: platforms.ClassUnknown},
		},
		"redirect": {
			"a redirect is neither followed nor understood",
			says(307, ``, "Location", "/2/tweets"),
			want{Verdict: platforms.Unknown, Class: platforms.ClassUnknown},
		},
		"hang up": {
			"the answer was lost",
			hangUp,
			want{Verdict: platforms.Unknown, Class: platforms.ClassUnknown},
		},
		"endless answer": {
			"an answer that is not read to its end is lost",
			says(201, `{"data":{"id":"1","text":"`+strings.Repeat("x", transport.DefaultMaxBody)+`"}}`),
			want{Verdict: platforms.Unknown, Class: platforms.ClassUnknown},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, requests := newX(t, Config{}, tc.answer)
			result := p.Publish(t.Context(), jobFor("hello"))
			got := want{Verdict: result.Outcome}
			if result.Err != nil {
				got.Class, got.RetryAt, got.AppWide = result.Err.Class, result.Err.RetryAt, result.Err.AppWide
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", tc.reason, diff, result.Err)
			}
			if len(requests()) != 1 {
				t.Errorf("%d requests arrived for one publication", len(requests()))
			}
		})
	}
}

func TestPublishWithoutConnection(t *testing.T) {
	p, _ := newX(t, Config{}, hangUp)
	p.api.BaseURL = "http://herald.invalid"
	got := p.Publish(t.Context(), jobFor("hello"))
	if got.Outcome != platforms.NotSent || got.Err == nil || got.Err.Class != platforms.ClassTransient {
		t.Errorf("got %+v, want NotSent, to be tried again", got)
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
			t.Errorf("an answer means neither that nothing was sent nor that it is worked on: %+v", r)
		}
	})
}
