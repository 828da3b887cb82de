// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// prepared returns a job whose container already exists.
func prepared(scopes string) platforms.Job {
	job := jobFor("hello", scopes, picture("a.jpg"))
	job.Checkpoint = container
	return job
}

func TestPublish(t *testing.T) {
	for scopes, base := range map[string]string{"": "", linked: "/facebook"} {
		permalink := says(200, `{"id":"`+mediaID+`","permalink":"https://www.instagram.com/p/Cabc/","timestamp":"2026-11-20T12:00:01+0000"}`)
		p, server := newInstagram(t, inTurn(answers{made(mediaID), permalink}))
		got := p.Publish(t.Context(), prepared(scopes))
		want := platforms.Result{
			Outcome: platforms.Posted, ExternalID: mediaID, ExternalURL: "https://www.instagram.com/p/Cabc/", PostedAt: noon.Add(time.Second),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"POST " + base + "/v25.0/42/media_publish", "GET " + base + "/v25.0/" + mediaID}, server.Paths()); diff != "" {
			t.Fatalf("requests (-want +got):\n%s", diff)
		}
		seen := server.Requests()
		if len(seen[0].Form) != 1 || seen[0].Form.Get("creation_id") != container || seen[0].Token != "access" || len(seen[0].Query) != 0 {
			t.Errorf("asked to publish by %+v", seen[0])
		}
	}
}

func TestPublishWithoutPermalink(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"hang up": hangUp, "outage": says(503, `oops`), "dead token": problem(400, 190, 0), "not JSON": says(200, `<html>`),
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newInstagram(t, inTurn(answers{says(200, `{"id":`+mediaID+`}`), answer}))
			got := p.Publish(t.Context(), prepared(""))
			if got.Outcome != platforms.Posted || got.ExternalID != mediaID || got.Err != nil {
				t.Errorf("a post that was confirmed is posted, whatever is known of its address; got %+v", got)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	type want struct {
		Verdict platforms.Outcome
		Class   platforms.Class
		Wait    time.Duration
	}
	unknown := want{platforms.Unknown, platforms.ClassUnknown, 0}
	tests := map[string]struct {
		reason string
		answer http.HandlerFunc
		// state is the container's response to a status call, or "" if there must be no such call.
		state string
		want  want
	}{
		"confirmed, cut":      {"something was published; which, must be looked for", says(200, `{"id":"17`), "", unknown},
		"confirmed, odd id":   {"what is no id is none", says(200, `{"id":"../me"}`), "", unknown},
		"hang up":             {"the answer was lost", hangUp, "", unknown},
		"outage":              {"it may have been published before", says(500, `oops`), "", unknown},
		"code 1":              {"an unknown error proves nothing", problem(400, 1, 0), "", unknown},
		"code -1":             {"nor does a failure of Instagram's own", problem(400, -1, 2207001), "", unknown},
		"code -2":             {"nor one that passes", problem(400, -2, 2207020), "", unknown},
		"redirect":            {"a redirect is neither followed nor understood", says(307, ``, "Location", "/v25.0/42/media_publish"), "", unknown},
		"bare 400":            {"something in between may have answered", says(400, `<html>`), "", unknown},
		"duplicate":           {"an earlier call may have done it", problem(400, 506, 0), "", want{platforms.Unknown, platforms.ClassDuplicate, 0}},
		"dead token":          {"a person must connect again: nothing renews a dead token", problem(400, 190, 463), "", want{platforms.Refused, platforms.ClassReconnect, 0}},
		"permission":          {"a person must grant it", problem(403, 10, 0), "", want{platforms.Refused, platforms.ClassReconnect, 0}},
		"account lost":        {"the token does not reach the account any more", problem(400, 100, 33), "FINISHED", want{platforms.Refused, platforms.ClassReconnect, 0}},
		"lost, and published": {"the same of what is published is no refusal", problem(400, 100, 33), "PUBLISHED", want{platforms.Unknown, platforms.ClassReconnect, 0}},
		"app blocked": {
			"a block of the app is no matter of the account", says(400, `{"error":{"message":"API access blocked.","code":200}}`), "",
			want{platforms.Refused, platforms.ClassQuota, time.Hour},
		},
		"limit":                     {"without a time, calling soon would prolong it", problem(403, 4, 0), "", want{platforms.Refused, platforms.ClassRateLimited, 5 * time.Minute}},
		"limit, linked":             {"the limit of a business", problem(400, 80002, 0), "", want{platforms.Refused, platforms.ClassRateLimited, 5 * time.Minute}},
		"quota":                     {"so many posts in 24 hours, and no more", problem(400, 9, 2207042), "", want{platforms.Refused, platforms.ClassQuota, time.Hour}},
		"spam":                      {"the account is to be left alone for hours", problem(400, 4, 2207051), "", want{platforms.Refused, platforms.ClassQuota, time.Hour}},
		"restricted":                {"a person must act on Instagram", problem(400, 25, 2207050), "", want{platforms.Refused, platforms.ClassRestricted, time.Hour}},
		"invalid":                   {"content that is refused is never sent again unchanged", problem(400, 100, 0), "FINISHED", want{platforms.Refused, platforms.ClassPermanent, 0}},
		"invalid, published":        {"unless the container says that it is published already", problem(400, 100, 0), "PUBLISHED", want{platforms.Unknown, platforms.ClassPermanent, 0}},
		"invalid, expired":          {"another container mends what is wrong with this one", problem(400, 100, 0), "EXPIRED", want{platforms.Refused, platforms.ClassTransient, 0}},
		"invalid, and no answer":    {"what it says of what is published is documented nowhere", problem(400, 100, 0), "oops", want{platforms.Unknown, platforms.ClassPermanent, 0}},
		"not ready":                 {"that passes", problem(400, 9007, 2207027), "IN_PROGRESS", want{platforms.Refused, platforms.ClassTransient, 0}},
		"not found yet":             {"so does that it is not found", problem(400, 24, 2207008), "FINISHED", want{platforms.Refused, platforms.ClassTransient, 0}},
		"not found, published":      {"which is also the answer for what is published", problem(400, 24, 2207008), "PUBLISHED", want{platforms.Unknown, platforms.ClassTransient, 0}},
		"not found, and no answer":  {"without the container's word nothing is known", problem(400, 24, 2207008), "oops", want{platforms.Unknown, platforms.ClassTransient, 0}},
		"media not found, and gone": {"a new container takes its place", problem(400, 24, 2207006), "EXPIRED", want{platforms.Refused, platforms.ClassTransient, 0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, inTurn(answers{tc.answer, holds(tc.state)}))
			result := p.Publish(t.Context(), prepared(""))
			if result.Err == nil {
				t.Fatalf("%s: got %+v without a reason", tc.reason, result)
			}
			got := want{Verdict: result.Outcome, Class: result.Err.Class}
			if !result.Err.RetryAt.IsZero() {
				got.Wait = result.Err.RetryAt.Sub(noon)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", tc.reason, diff, result.Err)
			}
			asked := []string{"POST /v25.0/42/media_publish"}
			if tc.state != "" {
				asked = append(asked, status)
			}
			if diff := cmp.Diff(asked, server.Paths()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if strings.Contains(fmt.Sprint(result.Err, result.Err.Err), "access") && result.Err.Class != platforms.ClassReconnect {
				t.Errorf("what Instagram says in its own words is not passed on: %v, %v", result.Err, result.Err.Err)
			}
		})
	}
}

func TestPublishNeedsAContainer(t *testing.T) {
	p, server := newInstagram(t, hangUp)
	for _, part := range []string{"", "items:1,2", "upload:1"} {
		job := prepared("")
		job.Checkpoint = part
		if got := p.Publish(t.Context(), job); got.Outcome != platforms.NotSent || len(server.Requests()) != 0 {
			t.Errorf("%q: got %+v after %v, want that nothing was sent", part, got, server.Paths())
		}
	}
	p.own.BaseURL = "http://herald.invalid"
	if got := p.Publish(t.Context(), prepared("")); got.Outcome != platforms.NotSent || got.Err.Class != platforms.ClassTransient {
		t.Errorf("got %+v without a connection, want NotSent, to be tried again", got)
	}
}

// FuzzJudge checks that any response leads to a permitted result.
func FuzzJudge(f *testing.F) {
	f.Add(200, `{"id":"17900000000000777"}`)
	f.Add(400, `{"error":{"code":100,"error_subcode":2207028}}`)
	f.Add(400, `{"error":{"code":-1,"error_subcode":2207001}}`)
	f.Add(500, `{"error":{"code":190}}`)
	f.Add(429, ``)
	f.Add(204, ``)
	p := New(Config{Config: platforms.Config{Clock: recorder.Clock{FakeClock: clocktesting.NewFakeClock(noon)}}}, nil)
	f.Fuzz(func(t *testing.T, status int, body string) {
		got := p.own.ResultOf(&transport.Response{Status: status, Body: []byte(body)}, meta.CreatedID)
		success := status >= 200 && status < 300
		switch {
		case got.Outcome == platforms.Posted && (!success || !meta.ValidID(got.ExternalID) || got.Err != nil),
			got.Outcome == platforms.Refused && (status < 400 || status >= 500 || got.Err == nil),
			got.Outcome == platforms.Unknown && (got.Err == nil || got.ExternalID != ""),
			got.Outcome == platforms.NotSent:
			t.Errorf("status %d with %q gives %+v (%v)", status, body, got, got.Err)
		}
	})
}
