// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"maps"
	"net/url"
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestCountOnMastodon checks the composer's counts and offers for accounts on Mastodon servers with different limits.
func TestCountOnMastodon(t *testing.T) {
	t.Parallel()
	of := func(n int) string { return strings.Repeat("a", n) }
	for name, tc := range map[string]struct {
		reason string
		form   url.Values
		counts map[string]string
		offer  bool
	}{
		"default":          {"a server without a known limit has the default one", url.Values{"target": {"our-mastodon"}, "caption": {of(501)}}, map[string]string{"our-mastodon": "501 of 500 characters"}, true},
		"its own":          {"a server may permit more", url.Values{"target": {"large"}, "caption": {of(501)}}, map[string]string{"large": "501 of 5000 characters"}, false},
		"both":             {"each account has its own", url.Values{"target": {"our-mastodon", "large"}, "caption": {of(400)}}, map[string]string{"our-mastodon": "400 of 500 characters", "large": "400 of 5000 characters"}, false},
		"content warning":  {"it counts towards the text", url.Values{"target": {"our-mastodon"}, "caption": {of(495)}, "warning-our-mastodon": {"ending"}}, map[string]string{"our-mastodon": "501 of 500 characters"}, true},
		"another's":        {"other accounts do not have it", url.Values{"target": {"our-mastodon"}, "caption": {of(495)}, "warning-large": {"ending"}}, map[string]string{"our-mastodon": "495 of 500 characters"}, false},
		"parts of threads": {"it counts in each part, by the account's own limit", url.Values{"category": {"tree"}, "target": {"our-mastodon", "large"}, "card-0": {of(498)}, "card-1": {"b"}, "warning-large": {"ending"}}, map[string]string{"our-mastodon": "part 1: 498 of 500 characters, part 2: 1 of 500 characters", "large": "part 1: 504 of 5000 characters, part 2: 7 of 5000 characters"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			large := account(acme, "large", v1alpha1.PlatformMastodon)
			large.Status.Mastodon = &v1alpha1.MastodonServer{MaxCharacters: 5000}
			w.connections[acme] = append(w.connections[acme], large)
			form := url.Values{"category": {"text"}}
			maps.Copy(form, tc.form)
			page := parsed(t, w.serve(newRequest(&editor, "/teams/"+acme+"/compose/check", form)).Body.String())
			for account, want := range tc.counts {
				if got := textOf(withID(t, page, "count-"+account)); got != want {
					t.Errorf("%s: the count of %s is %q, want %q", tc.reason, account, got, want)
				}
			}
			if got := textOf(withID(t, page, splitID)); (got != "") != tc.offer {
				t.Errorf("%s: the offer to split is %q", tc.reason, got)
			}
			if got, want := textOf(withID(t, page, "mock-"+tc.form["target"][0])), tc.form.Get("warning-"+tc.form["target"][0]); !strings.Contains(got, want) {
				t.Errorf("%s: the preview %q lacks the content warning", tc.reason, got)
			}
			// An account that is not chosen has a remark instead of a count.
			if got := textOf(withID(t, page, "remark-large")); strings.Contains(got, "too long") {
				t.Errorf("%s: %q", tc.reason, got)
			}
		})
	}
}
