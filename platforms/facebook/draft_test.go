// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

const (
	createPath, postPath, readPhoto = "POST /v25.0/42/feed", "/v25.0/42_9", "GET /v25.0/7"
	readPost                        = "GET " + postPath
)

// inTwoSteps returns a platform with TwoSteps, and its server, which sends the given responses in order.
func inTwoSteps(t *testing.T, answers ...http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	p, server := newFacebook(t, recorder.Sequence(answers))
	p.twoSteps = true
	return p, server
}

// drafted returns a job whose post already exists as an unpublished post.
func drafted(text string) platforms.Job {
	job := jobFor(text)
	job.Checkpoint = "draft:42_9"
	return job
}

// pictured returns a job with one photo, uploaded under the id 7.
func pictured() platforms.Job {
	job := jobFor("hello")
	job.Content.Category, job.Content.Media = v1alpha1.CategoryImage, []platforms.File{{Name: "a.png"}}
	job.Checkpoint = "7"
	return job
}

func shows(published string) http.HandlerFunc {
	return says(200, `{"id":"42_9","is_published":`+published+`,"permalink_url":"https://www.facebook.com/42/posts/9"}`)
}

func TestDraftIsExactlyOneRequest(t *testing.T) {
	created := says(200, `{"id":"42_9"}`)
	unpublished := func(more url.Values) url.Values {
		form := url.Values{"published": {"false"}, "unpublished_content_type": {"DRAFT"}}
		maps.Copy(form, more)
		return form
	}
	tests := map[string]struct {
		reason string
		job    platforms.Job
		want   url.Values
	}{
		"text":    {"an unpublished post is invisible", jobFor("hello"), unpublished(url.Values{"message": {"hello"}})},
		"address": {"the first one gets a card", jobFor("see https://a.example/b. and https://c.example"), unpublished(url.Values{"message": {"see https://a.example/b. and https://c.example"}, "link": {"https://a.example/b"}})},
		"photo":   {"a post of photos shows its photos", pictured(), unpublished(url.Values{"message": {"hello"}, "attached_media[0]": {`{"media_fbid":"7"}`}})},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := inTwoSteps(t, created)
			checkpoint, err := p.Prepare(t.Context(), tc.job)
			if err != nil || checkpoint != "draft:42_9" {
				t.Fatalf("%s: got %q, %v", tc.reason, checkpoint, err)
			}
			seen := server.Requests()
			if diff := cmp.Diff(tc.want, seen[len(seen)-1].Form); diff != "" || seen[len(seen)-1].Path != "/v25.0/42/feed" {
				t.Errorf("%s: form (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPrepareDraft(t *testing.T) {
	created := says(200, `{"id":"42_9"}`)
	invalid, linked := problem(400, 100, 0, false), jobFor("see https://a.example")
	tests := map[string]struct {
		reason  string
		job     platforms.Job
		answers []http.HandlerFunc
		want    string
		class   platforms.Class
		paths   []string
	}{
		"reused":               {"the draft exists", drafted("hello"), []http.HandlerFunc{shows("false")}, "draft:42_9", "", []string{readPost}},
		"published":            {"an earlier call whose response was lost has published it", drafted("hello"), []http.HandlerFunc{shows("true")}, "draft:42_9", platforms.ClassDuplicate, []string{readPost}},
		"gone":                 {"a missing draft is created again", drafted("hello"), []http.HandlerFunc{problem(400, 100, 33, false), says(200, `{"id":"42_10"}`)}, "draft:42_10", "", []string{readPost, createPath}},
		"unknown":              {"without its state, no other draft is created", drafted("hello"), []http.HandlerFunc{says(200, `{"id":"42_9"}`)}, "", platforms.ClassUnknown, []string{readPost}},
		"link refused":         {"a card is not worth a post", linked, []http.HandlerFunc{problem(400, 1500, 0, false), created}, "draft:42_9", "", []string{createPath, createPath}},
		"refused, link or not": {"the draft is retried once", linked, []http.HandlerFunc{invalid, invalid}, "", platforms.ClassPermanent, []string{createPath, createPath}},
		"blocked":              {"a block does not concern the link", linked, []http.HandlerFunc{problem(400, 368, 0, false)}, "", platforms.ClassQuota, []string{createPath}},
		"repetition":           {"the repeated call did not publish", jobFor("hello"), []http.HandlerFunc{problem(400, 506, 1455006, false)}, "", platforms.ClassPermanent, []string{createPath}},
		"no id":                {"an unpublished object may be created again", jobFor("hello"), []http.HandlerFunc{says(200, `{}`)}, "", platforms.ClassUnknown, []string{createPath}},
		"outage":               {"an outage is temporary", jobFor("hello"), []http.HandlerFunc{says(503, ``)}, "", platforms.ClassTransient, []string{createPath}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := inTwoSteps(t, tc.answers...)
			got, err := p.Prepare(t.Context(), tc.job)
			if got != tc.want || (err == nil) != (tc.class == "") || err != nil && err.Class != tc.class {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
			if diff := cmp.Diff(tc.paths, server.Paths()); diff != "" {
				t.Errorf("%s: requests (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSettingChanges prepares a post under one value of TwoSteps and publishes it under the other.
func TestSettingChanges(t *testing.T) {
	t.Run("off, and published", func(t *testing.T) {
		p, _ := inTwoSteps(t, shows("true"))
		p.twoSteps = false
		if got, err := p.Prepare(t.Context(), drafted("hello")); got != "draft:42_9" || err == nil || err.Class != platforms.ClassDuplicate {
			t.Errorf("got %q, %v, want an error without a request", got, err)
		}
	})
	t.Run("off, and claimed", func(t *testing.T) {
		p, server := inTwoSteps(t, says(200, `{"success":true}`), shows("true"))
		p.twoSteps = false
		if got := p.Publish(t.Context(), drafted("hello")); got.Outcome != platforms.Posted || got.ExternalID != "42_9" {
			t.Errorf("got %+v after %v", got, server.Paths())
		}
	})
	t.Run("on, and not prepared", func(t *testing.T) {
		p, server := inTwoSteps(t, says(200, `{"id":"42_9"}`))
		if got := p.Publish(t.Context(), jobFor("hello")); got.Outcome != platforms.NotSent || len(server.Requests()) != 0 {
			t.Errorf("got %+v after %v", got, server.Paths())
		}
	})
}

func TestPublishDraft(t *testing.T) {
	success := says(200, `{"success":true}`)
	posted := platforms.Result{Outcome: platforms.Posted, ExternalID: "42_9", ExternalURL: "https://www.facebook.com/42/posts/9"}
	documented := posted
	documented.ExternalURL = "https://fb.example/42_9"
	tests := map[string]struct {
		reason  string
		answers []http.HandlerFunc
		want    platforms.Result
		class   platforms.Class
		reads   int
	}{
		"confirmed":             {"the post is read once", []http.HandlerFunc{success, shows("true")}, posted, "", 1},
		"confirmed by its id":   {"Meta's SDKs expect the id", []http.HandlerFunc{says(200, `{"id":"42_9"}`), shows("true")}, posted, "", 1},
		"another id":            {"another id is not this post's", []http.HandlerFunc{says(200, `{"id":"42_8"}`)}, platforms.Result{Outcome: platforms.Unknown}, platforms.ClassUnknown, 0},
		"confirmed, not read":   {"the confirmation suffices", []http.HandlerFunc{success, says(503, ``)}, documented, "", 1},
		"confirmed, not public": {"the post's own visibility takes precedence", []http.HandlerFunc{success, shows("false")}, platforms.Result{Outcome: platforms.Unknown}, platforms.ClassUnknown, 1},
		"no success":            {"a response without success is not proof", []http.HandlerFunc{says(200, `{}`)}, platforms.Result{Outcome: platforms.Unknown}, platforms.ClassUnknown, 0},
		"denied":                {"success must be true", []http.HandlerFunc{says(200, `{"success":false}`)}, platforms.Result{Outcome: platforms.Unknown}, platforms.ClassUnknown, 0},
		"hang up":               {"the response was lost", []http.HandlerFunc{hangUp}, platforms.Result{Outcome: platforms.Unknown}, platforms.ClassUnknown, 0},
		"gone":                  {"the next preparation creates it again", []http.HandlerFunc{problem(400, 100, 33, false)}, platforms.Result{Outcome: platforms.Refused}, platforms.ClassTransient, 0},
		"limit":                 {"a rate limit is temporary", []http.HandlerFunc{problem(400, 32, 0, false)}, platforms.Result{Outcome: platforms.Refused}, platforms.ClassRateLimited, 0},
		"repetition":            {"an earlier call may have published the draft", []http.HandlerFunc{problem(400, 506, 0, false)}, platforms.Result{Outcome: platforms.Unknown}, platforms.ClassDuplicate, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := inTwoSteps(t, tc.answers...)
			got := p.Publish(t.Context(), drafted("hello"))
			if got.Err != nil && got.Err.Class != tc.class || (got.Err == nil) != (tc.class == "") {
				t.Errorf("%s: %+v", tc.reason, got.Err)
			}
			got.Err = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			seen := server.Requests()
			if seen[0].Method != http.MethodPost || seen[0].Path != postPath || cmp.Diff(url.Values{"is_published": {"true"}}, seen[0].Form) != "" {
				t.Errorf("the publishing request is %+v", seen[0])
			}
			if got := len(seen) - 1; got != tc.reads {
				t.Errorf("%s: %d reads, want %d", tc.reason, got, tc.reads)
			}
		})
	}
}

func TestLookupDraft(t *testing.T) {
	list := says(200, `{"data":[{"id":"42_9","message":"hello","created_time":"2026-11-20T12:00:00+0000"}]}`)
	tests := map[string]struct {
		reason  string
		answers []http.HandlerFunc
		want    platforms.LookupResult
		class   platforms.Class
	}{
		"published":   {"the post is marked as published", []http.HandlerFunc{shows("true")}, platforms.LookupResult{Matches: 1, ExternalID: "42_9", ExternalURL: "https://www.facebook.com/42/posts/9", Certain: true}, ""},
		"unpublished": {"an unpublished draft is proof", []http.HandlerFunc{shows("false")}, platforms.LookupResult{Proof: true}, ""},
		"gone, listed": {
			"Facebook may list a post that it does not show by its id",
			[]http.HandlerFunc{problem(400, 100, 33, false), list},
			platforms.LookupResult{Matches: 1, ExternalID: "42_9", ExternalURL: "https://fb.example/42_9", PostedAt: noon},
			"",
		},
		"gone":       {"a missing draft is not proof", []http.HandlerFunc{problem(400, 100, 33, false), says(200, `{"data":[]}`)}, platforms.LookupResult{}, ""},
		"no status":  {"a response without the field is not proof", []http.HandlerFunc{says(200, `{"id":"42_9"}`)}, platforms.LookupResult{}, platforms.ClassUnknown},
		"outage":     {"a missing response is not proof", []http.HandlerFunc{says(503, ``)}, platforms.LookupResult{}, platforms.ClassTransient},
		"dead token": {"a user must reconnect the account", []http.HandlerFunc{problem(400, 190, 0, false)}, platforms.LookupResult{}, platforms.ClassReconnect},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, _ := inTwoSteps(t, tc.answers...)
			job := drafted("hello")
			job.SearchFrom = noon.Add(-time.Minute)
			got, err := p.Lookup(t.Context(), job)
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestDraftOfLostPhotos makes Facebook refuse a draft whose photos an earlier draft may have used.
func TestDraftOfLostPhotos(t *testing.T) {
	there := says(200, `{"id":"7"}`)
	for name, refusal := range map[string]http.HandlerFunc{"used": problem(400, 100, 1366051, false), "gone": problem(400, 100, 0, false)} {
		t.Run(name, func(t *testing.T) {
			p, server := inTwoSteps(t, there, refusal)
			job := pictured()
			job.Content.Media[0].Bytes = unreadable{}
			if _, err := p.Prepare(t.Context(), job); err == nil || err.Class != platforms.ClassTransient {
				t.Errorf("got %v, want a temporary error", err)
			}
			if diff := cmp.Diff([]string{readPhoto, createPath}, server.Paths()[:2]); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFirstAddress(t *testing.T) {
	for text, want := range map[string]string{
		"no link": "", "www.example.org": "", "(https://a.example/x).": "https://a.example/x", "HTTP://A.example?b=1&c, d": "HTTP://A.example?b=1&c",
		"first https://a.example then https://b.example": "https://a.example",
	} {
		if got := firstAddress(text); got != want {
			t.Errorf("%q leads to %q, want %q", text, got, want)
		}
	}
}

// unreadable is a file that the store cannot read.
type unreadable struct{}

func (unreadable) Open(context.Context, int64, int64) (io.ReadCloser, error) {
	return nil, errors.New("no store")
}

func (unreadable) Address(context.Context, time.Duration) (string, error) {
	return "", errors.New("no store")
}
