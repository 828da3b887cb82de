// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

const videoID = "AbCdEfGhIjK"

// shows responds to videos.list with one video. status and work are the fields of the video's parts status and
// processingDetails.
func shows(id, status, work string) http.HandlerFunc {
	return says(200, fmt.Sprintf(`{"kind":"youtube#videoListResponse","items":[{"id":%q,"snippet":{"publishedAt":"2026-11-20T12:00:01Z"},"status":{"privacyStatus":"public",%s},"processingDetails":{%s}}]}`,
		id, status, work))
}

const (
	uploaded   = `"uploadStatus":"uploaded"`
	processed  = `"uploadStatus":"processed"`
	atWork     = `"processingStatus":"processing"`
	succeeded  = `"processingStatus":"succeeded"`
	terminated = `"processingStatus":"terminated"`
)

// shown responds with a public video.
func shown(id string) http.HandlerFunc { return shows(id, processed, succeeded) }

// none responds to videos.list with an empty list.
var none = says(200, `{"kind":"youtube#videoListResponse","items":[]}`)

// listLine is the request for the video in these tests.
const listLine = "GET /youtube/v3/videos?id=AbCdEfGhIjK&part=snippet%2Cstatus%2CprocessingDetails"

// TestSettle tests Publish's results for a completely uploaded video.
func TestSettle(t *testing.T) {
	tests := map[string]struct {
		reason  string
		answer  http.HandlerFunc
		outcome platforms.Outcome
		code    string
	}{
		"processed":            {"the video is public", shown(videoID), platforms.Posted, ""},
		"no details":           {"YouTube deletes the details of finished processing", shows(videoID, processed, terminated), platforms.Posted, ""},
		"uploaded":             {"a video in processing is not public", shows(videoID, uploaded, atWork), platforms.Accepted, ""},
		"one of two":           {"only the first resolution is processed", shows(videoID, processed, atWork), platforms.Accepted, ""},
		"no status":            {"a missing status is not final", shows(videoID, `"a":"b"`, ""), platforms.Accepted, ""},
		"unknown word":         {"an undocumented status is not final", shows(videoID, `"uploadStatus":"pondering"`, succeeded), platforms.Accepted, ""},
		"not shown":            {"a video may be missing for a while", none, platforms.Accepted, ""},
		"empty response":       {"an empty list may be omitted", says(200, `{"kind":"youtube#videoListResponse"}`), platforms.Accepted, ""},
		"cut":                  {"the id must not be lost with the question", says(200, `{"kind":"youtube#vid`), platforms.Accepted, ""},
		"outage":               {"an outage is not final", fails(503, "backendError"), platforms.Accepted, ""},
		"quota":                {"a used-up quota is not final", fails(403, "quotaExceeded"), platforms.Accepted, ""},
		"rejected":             {"a video that YouTube rejects is not posted", shows(videoID, `"uploadStatus":"rejected","rejectionReason":"duplicate"`, terminated), platforms.Refused, "rejected/duplicate"},
		"failed":               {"failed processing is a rejection", shows(videoID, `"uploadStatus":"failed","failureReason":"codec"`, `"processingStatus":"failed"`), platforms.Refused, "failed/codec"},
		"processing failed":    {"either of the two reports it", shows(videoID, uploaded, `"processingStatus":"failed","processingFailureReason":"transcodeFailed"`), platforms.Refused, "failed/transcodeFailed"},
		"deleted":              {"a deleted video is a rejection", shows(videoID, `"uploadStatus":"deleted"`, ""), platforms.Refused, "uploadStatus/deleted"},
		"rejected, new reason": {"an unknown reason is reported, too", shows(videoID, `"uploadStatus":"rejected","rejectionReason":"tooLoud"`, terminated), platforms.Refused, "rejected/tooLoud"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, g := newGoogle(t, says(200, published), tc.answer)
			got := p.Publish(t.Context(), g.upTo(10, 0))
			if got.Outcome != tc.outcome {
				t.Fatalf("%s: got %+v (%v)", tc.reason, got, got.Err)
			}
			if at := p.Clock.Since(noon); at != firstPause {
				t.Errorf("the account is blocked for %v", at)
			}
			switch {
			case tc.outcome == platforms.Accepted && (got.OperationID != videoID || got.Err.Problem != msgProcessing):
				t.Errorf("%s: got %+v (%v)", tc.reason, got, got.Err)
			case tc.outcome == platforms.Refused && (got.Err.Class != platforms.ClassPermanent || got.Err.Code != tc.code || got.Err.Remedy == ""):
				t.Errorf("%s: got %+v", tc.reason, got.Err)
			case tc.outcome == platforms.Posted && (got.ExternalID != videoID || got.Err != nil):
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			g.did(t, asked{Line: putLine, Span: "bytes 0-9/10", Length: 10}, asked{Line: listLine})
		})
	}
}

// TestFollow tests lookups of a video whose id is stored.
func TestFollow(t *testing.T) {
	tests := map[string]struct {
		reason string
		after  time.Duration
		answer http.HandlerFunc
		want   platforms.LookupResult
		class  platforms.Class
		wait   time.Duration
	}{
		"processed":          {"the video is public", time.Minute, shown(videoID), platforms.LookupResult{Matches: 1, ExternalID: videoID, Certain: true}, "", 0},
		"processing":         {"lookups repeat with growing pauses", time.Hour, shows(videoID, uploaded, atWork), platforms.LookupResult{}, platforms.ClassTransient, 15 * time.Minute},
		"processing, slowly": {"YouTube processes it and did not reject it: posted, with a note", processingFor + time.Second, shows(videoID, uploaded, atWork), platforms.LookupResult{Matches: 1, ExternalID: videoID, Certain: true, Note: fmt.Sprintf(msgSlow, 12)}, "", 0},
		"not shown yet":      {"a video may be missing for a while", unseenFor, none, platforms.LookupResult{}, platforms.ClassTransient, unseenFor / 4},
		"outage":             {"without a response the state is unknown", processingFor + time.Second, fails(503, "backendError"), platforms.LookupResult{}, platforms.ClassTransient, 0},
		"nonsense":           {"a response without a list of videos is not proof", processingFor + time.Second, says(200, `{}`), platforms.LookupResult{}, platforms.ClassUnknown, 0},
		"another video":      {"another video is not proof", processingFor + time.Second, shown("other"), platforms.LookupResult{}, platforms.ClassUnknown, 0},
		"token ended":        {"an ended token is renewed", time.Minute, fails(401, "authError"), platforms.LookupResult{}, platforms.ClassRefresh, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, g := newGoogle(t, tc.answer)
			job := g.upTo(unit+7, unit)
			job.OperationID, job.AcceptedAt = videoID, noon.Add(-tc.after)
			got, err := p.Lookup(t.Context(), job)
			got.ExternalURL, got.PostedAt = "", time.Time{}
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if failure, ok := err.(*platforms.Error); ok && tc.wait > 0 && !failure.RetryAt.Equal(noon.Add(tc.wait)) { //nolint:errorlint // the contract uses this type
				t.Errorf("%s: the retry is at %v", tc.reason, failure.RetryAt)
			}
			g.did(t, asked{Line: listLine})
		})
	}
}

// TestMissingVideo twice looks up a video that YouTube no longer returns.
func TestMissingVideo(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		first, second http.HandlerFunc
		after         time.Duration
		gone          bool
	}{
		"missing twice":              {"the video was deleted", none, none, missingFor, true},
		"missing twice, in a moment": {"one fault of YouTube's may last as long", none, none, missingFor - time.Second, false},
		"missing once":               {"the first response was wrong", none, shows(videoID, uploaded, atWork), missingFor, false},
		"not shown by a fault":       {"a failed lookup does not count", fails(503, "backendError"), none, missingFor, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, g := newGoogle(t, tc.first, tc.second)
			job := g.upTo(unit+7, unit)
			job.OperationID, job.AcceptedAt = videoID, noon.Add(-unseenFor-time.Second)
			if got, err := p.Lookup(t.Context(), job); err == nil {
				t.Errorf("the first lookup is not proof: got %+v", got)
			}
			p.Clock.(recorder.Clock).Step(tc.after)
			got, err := p.Lookup(t.Context(), job)
			if gone := err == nil && got.Refused != nil && got.Refused.Code == codeDeleted; gone != tc.gone {
				t.Errorf("%s: got %+v, %v", tc.reason, got, err)
			}
		})
	}
}

// TestDetailsForbidden makes YouTube hide the processing details from the token. Only the status then decides.
func TestDetailsForbidden(t *testing.T) {
	p, g := newGoogle(t, fails(403, "forbidden"), shows(videoID, processed, ""))
	job := g.upTo(unit+7, unit)
	job.OperationID, job.AcceptedAt = videoID, noon
	if got, err := p.Lookup(t.Context(), job); err != nil || got.Matches != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	g.did(t, asked{Line: listLine}, asked{Line: "GET /youtube/v3/videos?id=AbCdEfGhIjK&part=snippet%2Cstatus"})
}

// TestLostResponse makes the session return a video whose id was not stored.
func TestLostResponse(t *testing.T) {
	tests := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   platforms.LookupResult
	}{
		"processed":   {"the video is public", shown(videoID), platforms.LookupResult{Matches: 1, ExternalID: videoID, Certain: true}},
		"processing":  {"the next lookup uses its id", shows(videoID, uploaded, atWork), platforms.LookupResult{OperationID: videoID}},
		"not shown":   {"a video that is not listed yet", none, platforms.LookupResult{OperationID: videoID}},
		"outage":      {"the id is stored before any status is read", fails(503, "backendError"), platforms.LookupResult{OperationID: videoID}},
		"token ended": {"the id is stored even with an expired token", fails(401, "authError"), platforms.LookupResult{OperationID: videoID}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, g := newGoogle(t, says(200, published), tc.answer)
			got, err := p.Lookup(t.Context(), g.upTo(unit+7, unit))
			got.ExternalURL, got.PostedAt = "", time.Time{}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
	p, g := newGoogle(t, says(200, published), shows(videoID, `"uploadStatus":"rejected","rejectionReason":"length"`, ""))
	if got, err := p.Lookup(t.Context(), g.upTo(unit+7, unit)); err != nil || got.Refused == nil || got.Refused.Code != "rejected/length" {
		t.Errorf("a video that was rejected is no post: got %+v, %v", got, err)
	}
}

// TestFinish sets the thumbnail of a video that was found by a lookup.
func TestFinish(t *testing.T) {
	picture := &platforms.File{Name: "t.jpg", MIMEType: v1alpha1.MimeJPEG, Size: 5, Bytes: inMemory("12345")}
	set := asked{Line: "POST /upload/youtube/v3/thumbnails/set?uploadType=media&videoId=AbCdEfGhIjK", Length: 5}
	p, g := newGoogle(t, says(200, `{}`), fails(403, "forbidden"))
	job := g.upTo(10, 0)
	if note := p.Finish(t.Context(), job, videoID); note != "" {
		t.Errorf("without a picture, the note must be empty: %q", note)
	}
	job.Content.Thumbnail = picture
	if note := p.Finish(t.Context(), job, "a/b"); note != "" {
		t.Errorf("an invalid id must not be sent: %q", note)
	}
	if note := p.Finish(t.Context(), job, videoID); note != "" {
		t.Errorf("the thumbnail was set, but the note is %q", note)
	}
	if note := p.Finish(t.Context(), job, videoID); !strings.Contains(note, "verified by phone") {
		t.Errorf("the thumbnail was rejected, but the note is %q", note)
	}
	g.did(t, set, set)
}
