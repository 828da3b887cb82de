// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"net/http"
	"testing"
	"time"

	"github.com/herald-social/herald/internal/transport"
)

// FuzzUsage checks that waits are bounded and no count is negative, whatever rate limits a response contains.
func FuzzUsage(f *testing.F) {
	f.Add(`{"call_count":28,"total_time":"25","total_cputime":101}`, `{"1":[{"call_count":100,"estimated_time_to_regain_access":19}]}`)
	f.Add(`{"call_count":-1}`, `{"1":[{"estimated_time_to_regain_access":99999999999}]}`)
	f.Add(`[]`, `{"1":{}}`)
	now := time.Unix(1_800_000_000, 0)
	f.Fuzz(func(t *testing.T, app, account string) {
		header := http.Header{}
		header.Set(appUsageHeader, app)
		header.Set(usageHeader, account)
		used := ParseUsage(header)
		if used.RetryAfter < 0 || used.RetryAfter > longestWait {
			t.Errorf("no calls for %s", used.RetryAfter)
		}
		for _, limit := range used.rateLimits(now) {
			if limit.Remaining < 0 || limit.Remaining > limit.Limit || limit.BlockedUntil.After(now.Add(longestWait)) {
				t.Errorf("%+v", limit)
			}
		}
	})
}

// FuzzAnswer checks that parsing never panics, that ids are valid, and that the query for the next page never contains
// a token.
func FuzzAnswer(f *testing.F) {
	f.Add(400, `{"error":{"code":190,"error_subcode":463,"message":"x"}}`, "https://graph.example/v1/1/posts?after=a&access_token=secret")
	f.Add(500, `{"error":{"code":"4","is_transient":"true"}}`, "%zz")
	f.Add(200, `{"id":"42_1"}`, "?ACCESS_TOKEN=a&access_token=b")
	f.Fuzz(func(t *testing.T, status int, body, next string) {
		if id := CreatedID([]byte(body)); id != "" && !ValidID(id) {
			t.Errorf("%q names the post %q", body, id)
		}
		if said := shared.Parse(&transport.Response{Status: status, Header: http.Header{}, Body: []byte(body)}); said != nil {
			said.Kind()
			_ = said.Name() + said.Error()
		}
		query := nextPage(next)
		if (query == nil) != (next == "") {
			t.Errorf("the page behind %q is %v", next, query)
		}
		if query.Has("access_token") || query.Has("appsecret_proof") {
			t.Errorf("the page behind %q is asked for with %v", next, query)
		}
	})
}
