// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/errordocs"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

func TestErrorTable(t *testing.T) {
	var rows []errordocs.Row
	for _, row := range errorTable {
		rows = append(rows, errordocs.Row{Code: row.code, Kind: row.kind, Error: row.err, Also: row.also, Instead: row.instead, Source: row.source})
	}
	errordocs.Check(t, "youtube", rows)
}

// expectation is the error expected for a code that YouTube uses to refuse a video.
type expectation struct {
	status  int
	code    string
	class   platforms.Class
	subject platforms.Subject
	at      time.Time
}

// callExpectations covers every code in callErrors and videoErrors, except those of the token endpoint, which
// TestRefresh tests.
func callExpectations() []expectation {
	var (
		never             time.Time
		none              platforms.Subject
		midnight          = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
		file, text        = platforms.SubjectFile, platforms.SubjectText
		account           = platforms.SubjectAccount
		permanent, closed = platforms.ClassPermanent, platforms.ClassRestricted
	)
	return []expectation{
		{401, "authError", platforms.ClassRefresh, none, never},
		{401, "authorizationRequired", platforms.ClassRefresh, none, never},
		{401, "youtubeSignupRequired", platforms.ClassReconnect, account, never},
		{403, "insufficientPermissions", platforms.ClassReconnect, account, never},
		{403, "authenticatedUserAccountClosed", closed, account, never},
		{403, "authenticatedUserAccountSuspended", closed, account, never},
		{403, "channelClosed", closed, account, never},
		{403, "channelSuspended", closed, account, never},
		{403, "forbidden", permanent, none, never},
		{403, "accessNotConfigured", permanent, platforms.SubjectApp, never},
		{403, "quotaExceeded", platforms.ClassQuota, platforms.SubjectApp, midnight},
		{403, "dailyLimitExceeded", platforms.ClassQuota, platforms.SubjectApp, midnight},
		{400, "uploadLimitExceeded", platforms.ClassQuota, account, noon.Add(24 * time.Hour)},
		{403, "rateLimitExceeded", platforms.ClassRateLimited, none, never},
		{429, "userRateLimitExceeded", platforms.ClassRateLimited, none, never},
		{400, "invalidTitle", permanent, text, never},
		{400, "invalidDescription", permanent, text, never},
		{400, "invalidVideoMetadata", permanent, none, never},
		{403, "forbiddenPrivacySetting", permanent, account, never},
		{400, "invalidTags", permanent, none, never},
		{400, "invalidCategoryId", permanent, none, never},
		{400, "invalidPublishAt", permanent, none, never},
		{400, "invalidRecordingDetails", permanent, none, never},
		{400, "invalidFilename", permanent, none, never},
		{400, "defaultLanguageNotSet", permanent, none, never},
		{403, "forbiddenLicenseSetting", permanent, none, never},
		{400, "badRequest", permanent, none, never},
		{400, "badContent", permanent, file, never},
		{400, "mediaBodyRequired", permanent, file, never},
		{429, "uploadRateLimitExceeded", platforms.ClassRateLimited, none, never},
		{400, "invalidImage", permanent, file, never},
		{400, "imageFormatUnsupported", permanent, file, never},
		{400, "imageTooTall", permanent, file, never},
		{400, "imageTooWide", permanent, file, never},
	}
}

// fits reports whether an error is the expected one.
func (e *expectation) fits(got *platforms.Error) bool {
	return got != nil && got.Class == e.class && got.Code == e.code && got.Subject == e.subject && got.RetryAt.Equal(e.at) && !got.Unlisted
}

func TestErrors(t *testing.T) {
	for _, want := range callExpectations() {
		t.Run(want.code, func(t *testing.T) {
			p, _ := newGoogle(t, fails(want.status, want.code))
			if _, got := p.Prepare(t.Context(), videoJob(10)); !want.fits(got) {
				t.Errorf("the start of the upload returned %+v", got)
			}
			p, g := newGoogle(t, fails(want.status, want.code), goOn(0))
			got := p.Publish(t.Context(), g.upTo(10, 0))
			if got.Outcome != platforms.Refused || !want.fits(got.Err) {
				t.Errorf("the last part returned %+v (%+v)", got, got.Err)
			}
		})
	}
	for _, code := range []string{codeBackend, "internalError"} {
		for _, status := range []int{500, 502, 503, 504} {
			p, _ := newGoogle(t, fails(status, code))
			if _, got := p.Prepare(t.Context(), videoJob(10)); class(got) != platforms.ClassTransient || got.Code != code || got.Unlisted {
				t.Errorf("%d returned %+v", status, got)
			}
		}
	}
	p, g := newGoogle(t, fails(404, "videoNotFound"))
	if got := p.sendThumbnail(t.Context(), pictured(g), videoID); got == nil || got.Code != "videoNotFound" || got.Class != platforms.ClassPermanent {
		t.Errorf("the video of a thumbnail is missing: %+v", got)
	}
}

// pictured returns a job with a thumbnail.
func pictured(g *google) *platforms.Job {
	job := g.upTo(10, 0)
	job.Content.Thumbnail = &platforms.File{Name: "t.jpg", MIMEType: "image/jpeg", Size: 5, Bytes: inMemory("12345")}
	return &job
}

// TestUnlisted makes YouTube refuse calls with codes that are not in any table.
func TestUnlisted(t *testing.T) {
	tests := map[string]struct {
		reason  string
		answer  http.HandlerFunc
		outcome platforms.Outcome
		class   platforms.Class
		code    string
	}{
		"bad request": {"the code is reported", fails(400, "tooManyCats"), platforms.Refused, platforms.ClassPermanent, "tooManyCats"},
		"forbidden":   {"whichever of the two statuses it has", fails(403, "tooManyCats"), platforms.Refused, platforms.ClassPermanent, "tooManyCats"},
		"nonsense":    {"an invalid code is not repeated", fails(400, "<b>no</b>"), platforms.Refused, platforms.ClassPermanent, "unspecified"},
		"no code":     {"an error without a code is unknown", says(400, `{}`), platforms.Unknown, platforms.ClassUnknown, ""},
		"the token":   {"an unknown token error renews the token", fails(401, "tokenTooOld"), platforms.Refused, platforms.ClassRefresh, "tokenTooOld"},
		"a limit":     {"one about a limit waits", fails(429, "slowDown"), platforms.Refused, platforms.ClassRateLimited, "slowDown"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, g := newGoogle(t, tc.answer, goOn(0))
			got := p.Publish(t.Context(), g.upTo(10, 0))
			if got.Outcome != tc.outcome || got.Err.Class != tc.class {
				t.Fatalf("%s: got %+v (%+v)", tc.reason, got, got.Err)
			}
			if tc.outcome != platforms.Refused {
				return
			}
			if got.Err.Code != tc.code || !got.Err.Unlisted || got.Err.Subject != "" {
				t.Errorf("%s: got %+v", tc.reason, got.Err)
			}
			if permanent := tc.class == platforms.ClassPermanent; permanent && !strings.Contains(got.Err.Problem, tc.code) {
				t.Errorf("%s: people read %q", tc.reason, got.Err.Problem)
			}
			for _, blamed := range []string{"title", "caption", "file"} {
				if strings.Contains(got.Err.Error(), blamed) {
					t.Errorf("%s: %q blames the %s", tc.reason, got.Err, blamed)
				}
			}
		})
	}
}

// TestStates tests the unsuccessful results of YouTube's processing.
func TestStates(t *testing.T) {
	const permanent, restricted = platforms.ClassPermanent, platforms.ClassRestricted
	file := platforms.SubjectFile
	tests := []struct {
		// code is the error's code and determines the video's state.
		code    string
		class   platforms.Class
		subject platforms.Subject
		words   string
	}{
		{"rejected/claim", permanent, file, "claims rights"},
		{"rejected/copyright", permanent, file, "copyright"},
		{"rejected/duplicate", permanent, file, "already has the same video"},
		{"rejected/inappropriate", permanent, file, "inappropriate"},
		{"rejected/legal", permanent, file, "legal complaint"},
		{"rejected/length", permanent, file, "youtube.com/verify"},
		{"rejected/termsOfUse", permanent, file, "terms of use"},
		{"rejected/trademark", permanent, file, "trademark"},
		{"rejected/uploaderAccountClosed", restricted, platforms.SubjectAccount, "closed or suspended"},
		{"rejected/uploaderAccountSuspended", restricted, platforms.SubjectAccount, "closed or suspended"},
		{"failed/codec", permanent, file, "codec"},
		{"failed/conversion", permanent, file, "convert"},
		{"failed/emptyFile", permanent, file, "empty"},
		{"failed/invalidFile", permanent, file, "supported format"},
		{"failed/tooSmall", permanent, file, "too small"},
		{"failed/uploadAborted", permanent, file, "aborted"},
		{"failed/streamingFailed", permanent, file, "streaming"},
		{"failed/transcodeFailed", permanent, file, "convert"},
		{"failed/uploadFailed", permanent, file, "receive"},
		{"failed/other", permanent, "", "unspecified reason"},
		{"uploadStatus/deleted", permanent, "", "deleted"},
	}
	covered := map[string]bool{codeDeadRefresh: true, codeBackend: true, "internalError": true, "videoNotFound": true}
	for _, want := range callExpectations() {
		covered[want.code] = true
	}
	for _, tc := range tests {
		covered[tc.code] = true
		t.Run(tc.code, func(t *testing.T) {
			var v video
			how, why, _ := strings.Cut(tc.code, "/")
			switch how {
			case "rejected":
				v.Status.Upload, v.Status.Rejection = "rejected", jsondoc.Text(why)
			case "failed":
				v.Status.Upload, v.Status.Failure = "failed", jsondoc.Text(why)
			default:
				v.Status.Upload = jsondoc.Text(why)
			}
			got := v.progress()
			if got.stage != dropped || got.why.Code != tc.code || got.why.Class != tc.class || got.why.Subject != tc.subject || got.why.Unlisted {
				t.Errorf("got %+v (%+v)", got, got.why)
			}
			if !strings.Contains(got.why.Error(), tc.words) || got.why.Remedy == "" {
				t.Errorf("people read %q", got.why)
			}
		})
	}
	for _, row := range errorTable {
		if !covered[row.code] {
			t.Errorf("no test has the code %s", row.code)
		}
	}
	for _, reason := range []string{"", "<b>", "tooLoud"} {
		v := video{}
		v.Status.Upload, v.Status.Rejection = "rejected", jsondoc.Text(reason)
		if got := v.progress(); got.stage != dropped || !got.why.Unlisted || got.why.Class != permanent || got.why.Subject != "" || got.why.Code != "rejected/"+sanitizeWord(reason) {
			t.Errorf("an unlisted reason %q returned %+v (%+v)", reason, got, got.why)
		}
	}
}
