// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

func TestPublish(t *testing.T) {
	const size, last = unit + 7, unit
	tests := map[string]struct {
		reason  string
		answers []http.HandlerFunc
		outcome platforms.Outcome
		class   platforms.Class
	}{
		"posted":      {"the video is online", []http.HandlerFunc{says(200, published), shown(videoID)}, platforms.Posted, ""},
		"created":     {"the same in another form", []http.HandlerFunc{says(201, published), shown(videoID)}, platforms.Posted, ""},
		"no id":       {"a response without an id may be a success", []http.HandlerFunc{says(200, `{}`)}, platforms.Unknown, platforms.ClassUnknown},
		"odd id":      {"an invalid id is not used", []http.HandlerFunc{says(200, `{"id":"a/../b"}`)}, platforms.Unknown, platforms.ClassUnknown},
		"lacks parts": {"YouTube reports that the video is incomplete", []http.HandlerFunc{goOn(3)}, platforms.Refused, platforms.ClassTransient},
		"lacks all":   {"YouTube reports that it has none of the bytes", []http.HandlerFunc{goOn(0)}, platforms.Refused, platforms.ClassTransient},
		"has all":     {"a video that is complete may become visible yet", []http.HandlerFunc{goOn(size)}, platforms.Unknown, platforms.ClassUnknown},
		"redirect":    {"a redirect is not YouTube's response", []http.HandlerFunc{says(308, "", "Location", "/")}, platforms.Unknown, platforms.ClassUnknown},
		"gone":        {"a deleted session does not accept bytes", []http.HandlerFunc{fails(410, "gone")}, platforms.Refused, platforms.ClassTransient},
		"404":         {"a 404 without Google's format may come from a proxy", []http.HandlerFunc{says(404, "not found")}, platforms.Unknown, platforms.ClassUnknown},
		"403":         {"a 403 without Google's format may come from a proxy", []http.HandlerFunc{says(403, "no")}, platforms.Unknown, platforms.ClassUnknown},
		"outage":      {"an outage may follow a successful call", []http.HandlerFunc{fails(500, "backendError")}, platforms.Unknown, platforms.ClassUnknown},
		"odd outage":  {"an outage is not a rejection, whatever the status", []http.HandlerFunc{fails(400, "backendError")}, platforms.Unknown, platforms.ClassUnknown},
		"lost":        {"a lost response is not evidence", []http.HandlerFunc{hangUp}, platforms.Unknown, platforms.ClassUnknown},
		"refused":     {"a permanent rejection is looked up", []http.HandlerFunc{fails(400, "badRequest"), goOn(last)}, platforms.Refused, platforms.ClassPermanent},
		"refused, out of step": {
			"a part with a wrong position is not the video's fault", []http.HandlerFunc{fails(400, "badRequest"), goOn(3)}, platforms.Refused, platforms.ClassTransient,
		},
		"refused, and online": {
			"a published video was not rejected", []http.HandlerFunc{fails(400, "badRequest"), says(200, published)}, platforms.Unknown, platforms.ClassPermanent,
		},
		"refused, no answer": {"without further information, the rejection is final", []http.HandlerFunc{fails(400, "badRequest"), hangUp}, platforms.Refused, platforms.ClassPermanent},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, g := newGoogle(t, tc.answers...)
			got := p.Publish(t.Context(), g.upTo(size, last))
			if got.Outcome != tc.outcome || class(got.Err) != tc.class {
				t.Errorf("%s: got %+v (%v)", tc.reason, got, got.Err)
			}
			if tc.outcome == platforms.Posted {
				want := platforms.Result{
					Outcome: platforms.Posted, ExternalID: "AbCdEfGhIjK", ExternalURL: "https://yt.example/watch?v=AbCdEfGhIjK", PostedAt: noon.Add(time.Second),
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
			seen, headers := g.requests()
			if got := seen[0]; got != (asked{Line: putLine, Span: fmt.Sprintf("bytes %d-%d/%d", last, size-1, size), Length: 7}) || headers[0].Get("Authorization") != "" {
				t.Errorf("the visible call was %+v", got)
			}
			if got.Err != nil && strings.Contains(fmt.Sprintf("%v %+v", got.Err, got.Err.Err), "s3cr3t") {
				t.Errorf("the error contains the session's URL: %v (%v)", got.Err, got.Err.Err)
			}
		})
	}
}

// TestPublishUnprepared tests the cases where no call is made.
func TestPublishUnprepared(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(job *platforms.Job)
		class  platforms.Class
	}{
		"no secret":     {"a lost secret is a new upload", func(j *platforms.Job) { j.Secret = "" }, platforms.ClassTransient},
		"odd secret":    {"an unreadable secret starts a new upload", func(j *platforms.Job) { j.Secret = "x" }, platforms.ClassTransient},
		"another's":     {"a secret of another upload is not used", func(j *platforms.Job) { j.Secret += "0" }, platforms.ClassTransient},
		"no checkpoint": {"a checkpoint is required", func(j *platforms.Job) { j.Checkpoint = "" }, platforms.ClassTransient},
		"another size":  {"the file must have the announced size", func(j *platforms.Job) { j.Content.Media[0].Size = 3 * unit }, platforms.ClassTransient},
		"store away":    {"an outage of the store is temporary", func(j *platforms.Job) { j.Content.Media[0].Bytes = away{errors.New("no")} }, platforms.ClassTransient},
		"file changed":  {"a changed file is not published", func(j *platforms.Job) { j.Content.Media[0].Bytes = away{platforms.ErrFileChanged} }, platforms.ClassPermanent},
		"no video":      {"YouTube accepts videos only", func(j *platforms.Job) { j.Content.Media = nil }, platforms.ClassPermanent},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, g := newGoogle(t)
			job := g.upTo(unit+7, unit)
			tc.change(&job)
			got := p.Publish(t.Context(), job)
			if got.Outcome != platforms.Refused || got.Err.Class != tc.class {
				t.Errorf("%s: got %+v (%v)", tc.reason, got, got.Err)
			}
			g.did(t)
		})
	}
}

func TestNotes(t *testing.T) {
	const set = `{"kind":"youtube#thumbnailSetResponse","items":[{}]}`
	tests := map[string]struct {
		reason  string
		picture bool
		answers []http.HandlerFunc
		want    []string
	}{
		"as requested": {"no message is reported", true, []http.HandlerFunc{says(200, published), shown(videoID), says(200, set)}, nil},
		"no picture":   {"without a picture, no thumbnail is set", false, []http.HandlerFunc{says(200, published), shown(videoID)}, nil},
		"private":      {"a video that is not public is not as requested", false, []http.HandlerFunc{says(200, published), shows(videoID, `"uploadStatus":"processed","privacyStatus":"private"`, succeeded)}, []string{"private instead of public"}},
		"retried":      {"an outage is temporary", true, []http.HandlerFunc{says(200, published), shown(videoID), fails(503, "backendError"), says(200, set)}, nil},
		"not twice":    {"the post does not wait for long", true, []http.HandlerFunc{says(200, published), shown(videoID), hangUp, fails(503, "backendError")}, []string{"without the chosen thumbnail"}},
		"not allowed":  {"a channel has to be verified", true, []http.HandlerFunc{says(200, published), shown(videoID), fails(403, "forbidden")}, []string{"verified by phone"}},
		"bad picture":  {"the picture does not suit", true, []http.HandlerFunc{says(200, published), shown(videoID), fails(400, "imageTooWide")}, []string{"refused the image"}},
		"limited":      {"a limit is reported", true, []http.HandlerFunc{says(200, published), shown(videoID), fails(429, "uploadRateLimitExceeded")}, []string{"rate limit"}},
		"both": {
			"a note may contain several problems", true,
			[]http.HandlerFunc{says(200, published), shows(videoID, `"uploadStatus":"processed","privacyStatus":"unlisted"`, succeeded), fails(403, "quotaExceeded")},
			[]string{"unlisted instead of public", "quota"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, g := newGoogle(t, tc.answers...)
			job := g.upTo(10, 0)
			if tc.picture {
				job.Content.Thumbnail = &platforms.File{Name: "t.jpg", MIMEType: v1alpha1.MimeJPEG, Size: 5, Bytes: inMemory("12345")}
			}
			got := p.Publish(t.Context(), job)
			if got.Outcome != platforms.Posted || got.Err != nil || len(tc.want) == 0 && got.Note != "" {
				t.Errorf("%s: got %+v (%v), want posted", tc.reason, got, got.Err)
			}
			for _, words := range tc.want {
				if !strings.Contains(got.Note, words) {
					t.Errorf("%s: the note %q lacks %q", tc.reason, got.Note, words)
				}
			}
			seen, headers := g.requests()
			if len(seen) != len(tc.answers) {
				t.Errorf("%s: requested %+v", tc.reason, seen)
			}
			if !tc.picture {
				return
			}
			want := asked{Line: "POST /upload/youtube/v3/thumbnails/set?uploadType=media&videoId=AbCdEfGhIjK", Length: 5}
			if seen[2] != want || headers[2].Get("Content-Type") != "image/jpeg" || headers[2].Get("Authorization") != "Bearer access-t0ken" {
				t.Errorf("the thumbnail was sent as %+v with %v", seen[2], headers[2])
			}
		})
	}
}

func TestLookup(t *testing.T) {
	channel := says(200, `{"items":[{"id":"UC1","contentDetails":{"relatedPlaylists":{"uploads":"UU1"}}}]}`)
	item := func(id, title, text, at string) string {
		return `{"snippet":{"title":"` + title + `","description":"` + text + `","publishedAt":"` + at + `"},"contentDetails":{"videoId":"` + id + `"}}`
	}
	list := func(next string, items ...string) http.HandlerFunc {
		return says(200, `{"items":[`+strings.Join(items, ",")+`],"nextPageToken":"`+next+`"}`)
	}
	const now, old = "2026-11-20T12:00:05Z", "2026-11-20T11:00:00Z"
	ours := item("v1", "Release 1.4", "What changed & why", now)
	tests := map[string]struct {
		reason  string
		answers []http.HandlerFunc
		// alone reports whether the session's URL is lost.
		alone bool
		want  platforms.LookupResult
		class platforms.Class
	}{
		"published":       {"the session returns its video", []http.HandlerFunc{says(200, published), shown(videoID)}, false, platforms.LookupResult{Matches: 1, ExternalID: "AbCdEfGhIjK", Certain: true}, ""},
		"not published":   {"bytes that are missing prove it", []http.HandlerFunc{goOn(unit)}, false, platforms.LookupResult{Proof: true}, ""},
		"no bytes stored": {"no bytes are stored", []http.HandlerFunc{goOn(0)}, false, platforms.LookupResult{Proof: true}, ""},
		"under way":       {"a video that is complete may be online in a moment", []http.HandlerFunc{goOn(unit + 7)}, false, platforms.LookupResult{}, platforms.ClassUnknown},
		"outage":          {"a missing response is not absence", []http.HandlerFunc{fails(503, "backendError")}, false, platforms.LookupResult{}, platforms.ClassTransient},
		"nonsense":        {"a response without an id is not proof", []http.HandlerFunc{says(200, `{}`)}, false, platforms.LookupResult{}, platforms.ClassUnknown},
		"session gone":    {"the playlist is searched, which is not proof", []http.HandlerFunc{fails(410, "gone"), channel, list("")}, false, platforms.LookupResult{}, ""},
		"deleted, listed": {"a listed video may be this one", []http.HandlerFunc{says(404, ""), channel, list("", ours), shown("v1")}, false, platforms.LookupResult{Matches: 1, ExternalID: "v1"}, ""},
		"secret lost":     {"the same without the session's address", []http.HandlerFunc{channel, list("", ours), shown("v1")}, true, platforms.LookupResult{Matches: 1, ExternalID: "v1"}, ""},
		"blanks changed":  {"YouTube may change blanks", []http.HandlerFunc{channel, list("", item("v1", " Release  1.4", "What changed & why\\n", now)), shown("v1")}, true, platforms.LookupResult{Matches: 1, ExternalID: "v1"}, ""},
		"others":          {"other videos do not match", []http.HandlerFunc{channel, list("", item("v2", "Release 1.5", "What changed & why", now), item("v3", "Release 1.4", "", now))}, true, platforms.LookupResult{}, ""},
		"older":           {"videos older than the call do not match; older pages are not read", []http.HandlerFunc{channel, list("more", item("v1", "Release 1.4", "What changed & why", old))}, true, platforms.LookupResult{}, ""},
		"second page":     {"each page that may contain the video is read", []http.HandlerFunc{channel, list("more", item("v2", "b", "", now)), list("", ours), shown("v1")}, true, platforms.LookupResult{Matches: 1, ExternalID: "v1"}, ""},
		"listed, at work": {"a video that is not public is not posted", []http.HandlerFunc{channel, list("", ours), shows("v1", uploaded, atWork)}, true, platforms.LookupResult{}, platforms.ClassUnknown},
		"listed, unread":  {"an unreadable video is not proof", []http.HandlerFunc{channel, list("", ours), fails(503, "backendError")}, true, platforms.LookupResult{}, platforms.ClassTransient},
		"two":             {"two matches need a user's decision", []http.HandlerFunc{channel, list("", item("v2", "Release 1.4", "What changed & why", now), ours)}, true, platforms.LookupResult{Matches: 2, ExternalID: "v1"}, ""},
		"no list":         {"an unreadable page is not absence", []http.HandlerFunc{channel, says(200, `{}`)}, true, platforms.LookupResult{}, platforms.ClassUnknown},
		"entry, no id":    {"an unreadable entry is not proof", []http.HandlerFunc{channel, list("", `{}`)}, true, platforms.LookupResult{}, platforms.ClassUnknown},
		"other channel":   {"another channel's videos are not proof", []http.HandlerFunc{says(200, `{"items":[{"id":"UC2","contentDetails":{"relatedPlaylists":{"uploads":"UU2"}}}]}`)}, true, platforms.LookupResult{}, platforms.ClassUnknown},
		"token ended":     {"an ended token is renewed", []http.HandlerFunc{fails(401, "authError")}, true, platforms.LookupResult{}, platforms.ClassRefresh},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, g := newGoogle(t, tc.answers...)
			job := g.upTo(unit+7, unit)
			if tc.alone {
				job.Secret = ""
			}
			got, err := p.Lookup(t.Context(), job)
			if got.Matches > 0 && (got.ExternalURL == "" || got.PostedAt.IsZero()) {
				t.Errorf("found %+v", got)
			}
			got.ExternalURL, got.PostedAt = "", time.Time{}
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			seen, _ := g.requests()
			if len(seen) != len(tc.answers) {
				t.Errorf("%s: requested %+v", tc.reason, seen)
			}
		})
	}
}

// FuzzJudge checks that only a response with an id counts as a success, and that only errors in Google's format and its
// status 308 count as refusals.
func FuzzJudge(f *testing.F) {
	f.Add(200, published, "", "")
	f.Add(200, `{"id":"a/b"}`, "", "")
	f.Add(308, "", "bytes=0-9", "")
	f.Add(308, "", "bytes=0-99999999999999999999", "/")
	f.Add(400, `{"error":{"errors":[{"reason":"badRequest"}]}}`, "", "")
	f.Add(403, `{"error":{"errors":[null]}}`, "", "")
	f.Add(503, `{"error":[]}`, "", "")
	f.Add(404, `{"error":{"errors":[{"reAson":"0"}]}}`, "", "")
	// Package encoding/json matches field names in any case, including letters that fold to ASCII.
	reason := regexp.MustCompile(`(?i)reason`)
	p := New(Config{Clock: clocktesting.NewFakeClock(noon)}, nil)
	f.Fuzz(func(t *testing.T, status int, body, stored, location string) {
		header := http.Header{"Range": {stored}, "Location": {location}}
		s := session{address: DefaultAPIURL + "/upload?upload_id=1"}
		created, got := p.publishResult(&transport.Response{Status: status, Header: header, Body: []byte(body)}, s, 100)
		if created != nil {
			got.Outcome, got.ExternalID = platforms.Posted, created.ID.String()
		}
		switch got.Outcome {
		case platforms.Posted:
			if status != 200 && status != 201 || !validID(got.ExternalID) || got.Err != nil {
				t.Errorf("%d %q counts as success: %+v", status, body, got)
			}
		case platforms.Refused:
			if status == 308 && (location == "" || s.sameSession(location)) && got.Err.Class == platforms.ClassTransient {
				return
			}
			if status < 400 || status > 429 || !reason.MatchString(body) && !strings.Contains(body, `\u`) {
				t.Errorf("%d %q counts as a rejection: %+v", status, body, got)
			}
		case platforms.NotSent, platforms.Unknown:
			if got.Err == nil {
				t.Errorf("%d %q leaves open why: %+v", status, body, got)
			}
		case platforms.Accepted:
			t.Errorf("%d %q is accepted without an id: %+v", status, body, got)
		}
	})
}

// TestLookupWithoutSize checks that a session is not queried with a video size of zero bytes, because it might treat
// the query as the end of the upload.
func TestLookupWithoutSize(t *testing.T) {
	p, g := newGoogle(t,
		says(200, `{"items":[{"id":"UC1","contentDetails":{"relatedPlaylists":{"uploads":"UU1"}}}]}`), says(200, `{"items":[]}`))
	job := g.upTo(unit+7, unit)
	job.Content.Media[0].Size = 0 // its Media was deleted
	if got, err := p.Lookup(t.Context(), job); err != nil || got.Matches != 0 || got.Proof {
		t.Errorf("got %+v, %v", got, err)
	}
	seen, _ := g.requests()
	if len(seen) != 2 {
		t.Errorf("requested %+v", seen)
	}
}
