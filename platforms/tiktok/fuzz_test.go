// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"net/http"
	"testing"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// FuzzClassify checks that any response results in an error that has a problem, repeats no foreign text, and does not
// treat an outage as a refusal.
func FuzzClassify(f *testing.F) {
	f.Add(400, "invalid_params")
	f.Add(200, "spam_risk_too_many_posts")
	f.Add(401, "access_token_invalid")
	f.Add(429, "")
	f.Add(-1, "<script>")
	p := New(Config{}, nil)
	f.Fuzz(func(t *testing.T, status int, code string) {
		bad := p.classify(apiError{status: status, code: code, signed: true})
		if bad == nil || bad.Error == nil || bad.Problem == "" {
			t.Fatal("no error is made of it")
		}
		if bad.documented && (bad.Class == platforms.ClassTransient || bad.Class == platforms.ClassUnknown) {
			t.Errorf("%d %q is documented as a refusal, of class %v", status, code, bad.Class)
		}
		if bad.Unlisted && (bad.Subject != "" || bad.Class != platforms.ClassPermanent || bad.Code != sanitizeWord(code)) {
			t.Errorf("%d %q is in no table and makes %+v", status, code, bad.Error)
		}
		if bad.isUnknownID() && status >= http.StatusInternalServerError {
			t.Errorf("%d %q proves that nothing was published", status, code)
		}
		if failed := failedOf(code); failed == nil || failed.Problem == "" {
			t.Errorf("the reason %q makes no error", code)
		}
		if said := sanitizeWord(code); said != code && said != "unspecified" {
			t.Errorf("the reason %q is told as %q", code, said)
		}
	})
}

// FuzzListed checks that any listed post is handled without a panic, and that its creation time is plausible or zero.
func FuzzListed(f *testing.F) {
	f.Add(`{"id":"7300000000000000001","create_time":1800000000,"title":"Hello"}`, "Hello")
	f.Add(`{"id":{},"create_time":"-1","video_description":null}`, "")
	f.Add(`{"create_time":1e300}`, "\u200d")
	f.Fuzz(func(t *testing.T, body, caption string) {
		listed, ok := jsondoc.Decode[listedPost]([]byte(body))
		if !ok {
			return
		}
		job := &platforms.Job{}
		job.Content.Text = caption
		_ = listed.fits(job)
		if at := listed.created(); !at.IsZero() && (at.Year() < 1970 || at.Year() > 9999) {
			t.Errorf("%q was created at %s", body, at)
		}
		matchesTruncated(caption, jsondoc.Text(body))
	})
}
