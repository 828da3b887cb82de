// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// newDeadline returns a context that ends before any other timeout.
func newDeadline(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), 50*time.Millisecond)
}

// post renders a listed post.
func post(t *testing.T, id, text string, at time.Time, fields ...string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	fields = append([]string{
		`"id":"` + id + `"`, `"text":` + string(quoted), `"timestamp":"` + at.Format("2006-01-02T15:04:05-0700") + `"`,
		`"permalink":"https://threads.example/` + id + `"`,
	}, fields...)
	return "{" + strings.Join(fields, ",") + "}"
}

func list(posts ...string) http.HandlerFunc {
	return says(200, `{"data":[`+strings.Join(posts, ",")+`]}`)
}

func TestLookup(t *testing.T) {
	later := noon.Add(time.Minute)
	fits := func(id string, at time.Time) platforms.LookupResult {
		return platforms.LookupResult{Matches: 1, ExternalID: id, ExternalURL: "https://threads.example/" + id, PostedAt: at}
	}
	proof := platforms.LookupResult{Proof: true}
	tests := map[string]struct {
		reason  string
		answer  http.HandlerFunc
		without bool
		taken   string
		want    platforms.LookupResult
		class   platforms.Class
	}{
		"published":               {reason: "the container says that it is, and the list which", answer: inTurn(answers{holds("PUBLISHED"), list(post(t, "2", "other", later), post(t, "1", "hello", noon, `"media_type":"TEXT_POST"`, `"is_reply":false`))}), want: fits("1", noon)},
		"published, not listed":   {reason: "what is published is never absent", answer: inTurn(answers{holds("PUBLISHED"), list()}), class: platforms.ClassUnknown},
		"published, other listed": {reason: "nor if others are listed", answer: inTurn(answers{holds("PUBLISHED"), list(post(t, "1", "hello!", noon))}), class: platforms.ClassUnknown},
		"finished":                {reason: "what is ready is not published", answer: holds("FINISHED"), want: proof},
		"error":                   {reason: "what failed never will be", answer: holds("ERROR"), want: proof},
		"expired":                 {reason: "nor what Threads has dropped unpublished", answer: holds("EXPIRED"), want: proof},
		"in progress":             {reason: "what is under way proves nothing", answer: holds("IN_PROGRESS"), class: platforms.ClassTransient},
		"odd state":               {reason: "nor does a state that nobody knows", answer: holds("LATER"), class: platforms.ClassUnknown},
		"container lost":          {reason: "without the container's word there is none", answer: hangUp, class: platforms.ClassTransient},
		"dead token":              {reason: "a person must connect again", answer: problem(400, 190, 0, false), class: platforms.ClassReconnect},
		"container gone, listed":  {reason: "the list may still show the post", answer: inTurn(answers{problem(400, 100, 33, false), list(post(t, "1", "hello", noon))}), want: fits("1", noon)},
		"container gone":          {reason: "a list that does not show it proves nothing", answer: inTurn(answers{problem(400, 100, 33, false), list()}), want: platforms.LookupResult{}},
		"no container":            {reason: "nor without a container", answer: list(), without: true, want: platforms.LookupResult{}},
		"reply":                   {reason: "what a job publishes answers nobody", answer: list(post(t, "1", "hello", noon, `"is_reply":true`)), without: true},
		"picture":                 {reason: "a post of another kind is another post", answer: list(post(t, "1", "hello", noon, `"media_type":"IMAGE"`)), without: true},
		"too old":                 {reason: "what is older than the attempt cannot be its post", answer: list(post(t, "1", "hello", noon.Add(-time.Second))), without: true},
		"taken":                   {reason: "a post of another job is not this job's", answer: list(post(t, "2", "hello", later), post(t, "1", "hello", noon)), without: true, taken: "2", want: fits("1", noon)},
		"two":                     {reason: "two fits need a person; the earlier is named", answer: list(post(t, "2", "hello", later), post(t, "1", "hello", noon)), without: true, want: platforms.LookupResult{Matches: 2, ExternalID: "1", ExternalURL: "https://threads.example/1", PostedAt: noon}},
		"no list":                 {reason: "an answer without a list is no empty list", answer: says(200, `{}`), without: true, class: platforms.ClassUnknown},
		"cut":                     {reason: "nor is one that broke off", answer: says(200, `{"data":[{"id":"1`), without: true, class: platforms.ClassUnknown},
		"odd entry":               {reason: "an entry without an id may be the post", answer: says(200, `{"data":[{"text":"hello"}]}`), without: true, class: platforms.ClassUnknown},
		"limited":                 {reason: "a limit passes", answer: says(429, ``), without: true, class: platforms.ClassRateLimited},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newThreads(t, tc.answer)
			job := jobFor("hello")
			if tc.without {
				job.Checkpoint = ""
			}
			job.BelongsToOther = func(id string) bool { return id == tc.taken }
			got, err := p.Lookup(t.Context(), job)
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			for _, r := range server.Requests() {
				if r.Method != http.MethodGet || r.Query.Has("access_token") {
					t.Errorf("a look-up asked %+v", r)
				}
			}
		})
	}
}

func TestLookupReadsEveryPage(t *testing.T) {
	pages := map[string]string{
		"":   `{"data":[` + post(t, "3", "newer", noon.Add(2*time.Hour)) + `],"paging":{"next":"https://elsewhere.example/x?access_token=s3cr3t&limit=100&since=1&after=p2"}}`,
		"p2": `{"data":[` + post(t, "2", "hello", noon.Add(time.Hour)) + `],"paging":{"next":"https://elsewhere.example/x?after=p3"}}`,
		"p3": `{"data":[` + post(t, "1", "hello", noon) + `],"paging":{"cursors":{"after":"p4"}}}`,
	}
	p, server := newThreads(t, func(w http.ResponseWriter, r *http.Request) { says(200, pages[r.URL.Query().Get("after")])(w, r) })
	job := jobFor("hello")
	job.Checkpoint = ""
	got, err := p.Lookup(t.Context(), job)
	if err != nil || got.Matches != 2 || got.ExternalID != "1" {
		t.Errorf("got %+v, %v; want both matches, the earlier named", got, err)
	}
	seen := server.Requests()
	if len(seen) != len(pages) {
		t.Fatalf("%d requests for %d pages", len(seen), len(pages))
	}
	if q := seen[0].Query; seen[0].Path != "/v1.0/42/threads" || q.Get("limit") != "100" || q.Get("since") != strconv.FormatInt(noon.Unix()-1, 10) {
		t.Errorf("asked %+v", seen[0])
	}
	if seen[1].Query.Has("access_token") || seen[1].Token != "access" {
		t.Errorf("the token stands in the header only; got %+v", seen[1])
	}
}

func TestLookupEnds(t *testing.T) {
	p, server := newThreads(t, says(200, `{"data":[],"paging":{"next":"https://elsewhere.example/x?after=more"}}`))
	job := jobFor("hello")
	job.Checkpoint = ""
	if _, err := p.Lookup(t.Context(), job); class(err) != platforms.ClassUnknown || len(server.Requests()) != meta.MaxPages {
		t.Errorf("a list without an end proves nothing; got %v after %d pages", err, len(server.Requests()))
	}
}

func TestLookupWithoutText(t *testing.T) {
	p, _ := newThreads(t, inTurn(answers{holds("PUBLISHED"), list(post(t, "2", "a text", noon, `"media_type":"IMAGE"`), post(t, "1", "", noon, `"media_type":"IMAGE"`))}))
	job := jobFor("")
	job.Content.Category, job.Content.Media = v1alpha1.CategoryImage, []platforms.File{{MIMEType: v1alpha1.MimeJPEG}}
	if got, err := p.Lookup(t.Context(), job); err != nil || got.Matches != 1 || got.ExternalID != "1" {
		t.Errorf("got %+v, %v; an image without a text is found by its kind", got, err)
	}
}
