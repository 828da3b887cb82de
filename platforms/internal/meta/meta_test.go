// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

func says(code, subcode int, transient bool) string {
	return fmt.Sprintf(`{"error":{"message":"…","type":"OAuthException","code":%d,"error_subcode":%d,"is_transient":%t,"fbtrace_id":"A1"}}`, code, subcode, transient)
}

func TestError(t *testing.T) {
	tests := map[string]struct {
		reason  string
		status  int
		body    string
		kind    Kind
		refusal bool
	}{
		"dead token": {"a user must reconnect the account", 400, says(190, 463, false), KindToken, true},
		"permission": {"the scope is missing", 403, says(10, 0, false), KindPermission, true},
		"app blocked": {
			"no account of the app works, and none is the cause", 400,
			`{"error":{"message":"API access blocked.","type":"OAuthException","code":200,"fbtrace_id":"A1"}}`, KindApp, true,
		},
		"app deactivated": {
			"the same with another message", 400,
			`{"error":{"message":"API access deactivated. To reactivate, go to the app dashboard.","code":200}}`, KindApp, true,
		},
		"permission, 200": {
			"the same code is mostly about a permission of the account", 403,
			`{"error":{"message":"(#200) Permissions error","type":"OAuthException","code":200}}`, KindPermission, true,
		},
		"permission, range":     {"200 to 299 are permissions", 403, says(283, 0, false), KindPermission, true},
		"app limit":             {"calls are limited", 400, says(4, 0, false), KindLimit, true},
		"transient limit":       {"a limit refuses, also where the graph calls it transient", 400, says(32, 0, true), KindLimit, true},
		"business limit":        {"the family of business limits", 400, says(80001, 0, false), KindLimit, true},
		"business limit, end":   {"80014 is its last", 400, says(80014, 0, false), KindLimit, true},
		"beyond that":           {"code 80015 is outside the range", 400, says(80015, 0, false), KindOther, true},
		"bare 429":              {"the status suffices", 429, ``, KindLimit, true},
		"limit in trouble":      {"a 5xx status is not reliable", 500, says(4, 0, false), KindLimit, false},
		"blocked":               {"the account is blocked because of its content", 400, says(368, 0, false), KindBlocked, true},
		"spam, code of a limit": {"the subcode is more precise", 400, says(4, 2207051, false), KindBlocked, true},
		"duplicate":             {"the same content twice in a row", 400, says(506, 1455006, false), KindDuplicate, true},
		"against the rules":     {"the content is refused, under the code of a permission", 400, says(200, 1346003, false), KindContent, true},
		"unknown error":         {"code 1 may follow a successful call", 400, says(1, 0, false), KindUnavailable, false},
		"service down":          {"code 2 may follow a successful call", 500, says(2, 0, false), KindUnavailable, false},
		"transient":             {"the graph's own flag is used", 400, says(100, 0, true), KindUnavailable, false},
		"invalid":               {"a permanent rejection", 400, says(100, 0, false), KindOther, true},
		"missing object":        {"404 is also an error of the Graph API", 404, says(100, 33, false), KindOther, true},
		"code as text":          {"a code may be a string", 400, `{"error":{"code":"190"}}`, KindToken, true},
		"page of a proxy":       {"a response from elsewhere is not proof", 400, `<html>Bad Request</html>`, KindNonsense, false},
		"bare 403":              {"a status alone is not reliable", 403, ``, KindNonsense, false},
		"message only":          {"an error without a code is not reliable", 400, `{"error":{"message":"no"}}`, KindNonsense, false},
		"OAuth's words":         {"OAuth's error format is not the Graph API's", 400, `{"error":"invalid_request"}`, KindNonsense, false},
		"timeout":               {"408 may come from a proxy", 408, says(100, 0, false), KindOther, false},
		"redirect":              {"a redirect is not a platform's response", 302, ``, KindNonsense, false},
		"outage":                {"an outage is temporary", 503, `oops`, KindUnavailable, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := shared.Parse(&transport.Response{Status: tc.status, Body: []byte(tc.body)})
			if e.Kind() != tc.kind || e.Refusal() != tc.refusal {
				t.Errorf("%s: got %s, refusal %v (%v)", tc.reason, e.Kind(), e.Refusal(), e)
			}
		})
	}
}

func TestRetryAt(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		reason, usage string
		kind          Kind
		want          time.Duration
	}{
		"named":            {"the graph names minutes", `{"1":[{"type":"pages","call_count":100,"estimated_time_to_regain_access":19}]}`, KindLimit, 19 * time.Minute},
		"longest":          {"every limit must have passed", `{"1":[{"estimated_time_to_regain_access":3},{"estimated_time_to_regain_access":7}],"2":[{"estimated_time_to_regain_access":5}]}`, KindLimit, 7 * time.Minute},
		"zero":             {"no time is named", `{"1":[{"estimated_time_to_regain_access":0}]}`, KindLimit, limitPause},
		"silent":           {"calling while limited prolongs it", ``, KindLimit, limitPause},
		"absurd":           {"a wait of a week is ignored", `{"1":[{"estimated_time_to_regain_access":10080}]}`, KindLimit, limitPause},
		"nonsense":         {"an unreadable time is ignored", `{"1":{"estimated_time_to_regain_access":3},"2":[7]}`, KindLimit, limitPause},
		"blocked":          {"a block lasts", ``, KindBlocked, blockPause},
		"quota":            {"a quota lasts", ``, KindQuota, blockPause},
		"blocked, shorter": {"the block does not depend on limits", `{"1":[{"estimated_time_to_regain_access":3}]}`, KindBlocked, blockPause},
		"blocked, longer":  {"unless they last longer", `{"1":[{"estimated_time_to_regain_access":90}]}`, KindBlocked, 90 * time.Minute},
		"app blocked":      {"a block of the app lasts for the usual pause", ``, KindApp, blockPause},
		"refused":          {"a permanent error has no end", `{"1":[{"estimated_time_to_regain_access":3}]}`, KindOther, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			h.Set(usageHeader, tc.usage)
			want := time.Time{}
			if tc.want > 0 {
				want = now.Add(tc.want)
			}
			if got := RetryAt(h, tc.kind, now); !got.Equal(want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, want)
			}
		})
	}
}

func TestNextPage(t *testing.T) {
	tests := map[string]struct {
		reason, page string
		want         url.Values
	}{
		"last":    {"without a next page this is the last", `{"data":[],"paging":{"cursors":{"after":"x"}}}`, nil},
		"none":    {"a page without paging is the last one", `{"data":[]}`, nil},
		"next":    {"the query has the next page, without the token", `{"paging":{"next":"https://graph.facebook.com/v25.0/1/feed?access_token=s3cr3t&limit=25&after=QVFI"}}`, url.Values{"limit": {"25"}, "after": {"QVFI"}}},
		"by time": {"some listings continue by time", `{"paging":{"next":"https://graph.facebook.com/v25.0/1/feed?until=1&__paging_token=p&appsecret_proof=s3cr3t"}}`, url.Values{"until": {"1"}, "__paging_token": {"p"}}},
		"broken":  {"an unreadable next page exists", `{"paging":{"next":"http://[::1"}}`, url.Values{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			page, _ := jsondoc.Decode[page[struct{}]]([]byte(tc.page))
			if diff := cmp.Diff(tc.want, nextPage(page.Paging.Next.String())); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseTime(t *testing.T) {
	want := time.Date(2026, 11, 20, 12, 0, 1, 0, time.UTC)
	for _, written := range []jsondoc.Text{"2026-11-20T12:00:01+0000", "2026-11-20T12:00:01Z", "2026-11-20T13:00:01+01:00"} {
		if got := ParseTime(written); !got.Equal(want) {
			t.Errorf("%s reads as %v", written, got)
		}
	}
	if got := ParseTime("yesterday"); !got.IsZero() {
		t.Errorf("nonsense reads as %v", got)
	}
}

func TestSameText(t *testing.T) {
	tests := map[string]struct {
		reason, sent, listed string
		want                 bool
	}{
		"same":        {"the same text", "hello", "hello", true},
		"blanks":      {"blanks are changed", " a\r\n\r\nb\u00a0c ", "a\n\nb c", true},
		"composition": {"letters are composed", "cafe\u0301", "café", true},
		"case":        {"another case is another text", "hello", "Hello", false},
		"longer":      {"a longer text differs", "hello", "hello!", false},
		"empty":       {"an empty text is nowhere", " ", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := SameText(tc.sent, jsondoc.Text(tc.listed)); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{"17990000000000001": true, "1000_2000": true, "": false, "../me": false, "1?x=y": false, "abc": false} {
		if ValidID(id) != want {
			t.Errorf("%q: want %v", id, want)
		}
	}
}

func TestUsageOf(t *testing.T) {
	tests := map[string]struct {
		reason, app, business string
		want                  Usage
	}{
		"no usage header": {"a response without headers", "", "", Usage{App: -1, Account: -1}},
		"app":             {"the most used of three budgets counts", `{"call_count":28,"total_time":95,"total_cputime":25}`, "", Usage{App: 95, Account: -1}},
		"account": {
			"a business may have several use cases", "",
			`{"17":[{"type":"pages","call_count":10,"total_cputime":20,"total_time":20,"estimated_time_to_regain_access":0},{"type":"other","call_count":91}]}`,
			Usage{App: -1, Account: 91},
		},
		"shut out": {
			"minutes are reported", "", `{"17":[{"type":"pages","call_count":100,"total_cputime":20,"total_time":20,"estimated_time_to_regain_access":19}]}`,
			Usage{App: -1, Account: 100, RetryAfter: 19 * time.Minute},
		},
		"not theirs": {"invalid JSON is ignored", "95%", "many", Usage{App: -1, Account: -1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			h.Set(appUsageHeader, tc.app)
			h.Set(usageHeader, tc.business)
			if got := ParseUsage(h); got != tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

// noon is the current time in these tests.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestUsageLimit(t *testing.T) {
	tests := map[string]struct {
		reason  string
		used    int
		shutOut time.Duration
		left    int
		hold    time.Duration
	}{
		"little used": {"usage is low", 28, 0, 72, 0},
		"ninety":      {"the advice is about more than that", 90, 0, 10, 0},
		"nearly":      {"calls are less frequent", 91, 0, 9, time.Minute},
		"used up":     {"calling now prolongs the block", 100, 0, 0, 5 * time.Minute},
		"beyond":      {"Meta counts beyond a hundred", 130, 0, 0, 5 * time.Minute},
		"shut out":    {"the platform's own time has precedence over percentages", 95, 19 * time.Minute, 0, 19 * time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := platforms.RateLimit{Name: "usage", Limit: 100, Remaining: tc.left}
			if tc.hold > 0 {
				want.BlockedUntil, want.ResetsAt = noon.Add(tc.hold), noon.Add(tc.hold)
			}
			if diff := cmp.Diff(want, usageLimit("usage", false, tc.used, tc.shutOut, noon)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestQuotaLimit(t *testing.T) {
	tests := map[string]struct {
		reason, total, used string
		want                []platforms.RateLimit
	}{
		"room":     {"the remainder is the difference", "250", "4", []platforms.RateLimit{{Name: platforms.PostsPerDay, Limit: 250, Remaining: 246}}},
		"used up":  {"calls pause for a while", "50", "50", []platforms.RateLimit{{Name: platforms.PostsPerDay, Limit: 50, BlockedUntil: noon}}},
		"beyond":   {"other clients may have exceeded the limit", "50", "51", []platforms.RateLimit{{Name: platforms.PostsPerDay, Limit: 50, BlockedUntil: noon}}},
		"no total": {"without a total, the remainder is unknown", "", "4", nil},
		"no use":   {"without the usage, the remainder is unknown", "250", "", nil},
		"nonsense": {"negative numbers are ignored", "-1", "0", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, quotaLimit(tc.total, tc.used, noon)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzUsage checks that waits are bounded and that no count is negative, for any rate limits in a response.
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
		if graphErr := shared.Parse(&transport.Response{Status: status, Header: http.Header{}, Body: []byte(body)}); graphErr != nil {
			graphErr.Kind()
			_ = graphErr.Name() + graphErr.Error()
		}
		query := nextPage(next)
		if (query == nil) != (next == "") {
			t.Errorf("the page after %q is %v", next, query)
		}
		if query.Has("access_token") || query.Has("appsecret_proof") {
			t.Errorf("the page after %q was requested with %v", next, query)
		}
	})
}
