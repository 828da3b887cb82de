// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
)

// TestIgnored verifies that a client receives the names of fields and parameters that had no effect.
func TestIgnored(t *testing.T) {
	t.Parallel()
	handler := serving(Limits{Bodies: limits.NewBodyLimiter(limits.MaxBodyBytes)})
	target := func(fields string) string {
		return `{"category":"text","draft":true,"targets":[{"connection_id":"x-1","caption":"hi"` + fields + `}]}`
	}
	for name, tc := range map[string]struct {
		reason, method, path, body string
		status                     int
		want                       string
	}{
		"Known":          {"all parameters are known", "GET", "/posts?page=1&limit=2&status=draft&platform=x", "", 200, ""},
		"Query":          {"without the filter, the list contains all posts", "GET", "/posts?since=2026&page=1&from=x", "", 200, "from, since"},
		"QueryTwice":     {"each name is listed once", "GET", "/posts?since=1&since=2", "", 200, "since"},
		"OtherList":      {"each operation has its own parameters", "GET", "/connections?status=draft", "", 200, "status"},
		"QueryOfOne":     {"a post has no query parameters", "GET", "/posts/p1?expand=targets", "", 404, "expand"},
		"QueryOfPost":    {"a creation has no query parameters", "POST", "/posts?draft=true", target(""), 201, "draft"},
		"RefusedQuery":   {"an error does not hide ignored parameters", "GET", "/posts?page=a&since=1", "", 400, "since"},
		"Body":           {"names are case-sensitive, so the draft is published", "POST", "/posts", strings.Replace(target(""), `"draft"`, `"Draft"`, 1), 201, "Draft"},
		"Target":         {"the path is reported", "POST", "/posts", target(`,"alt":"x"`), 201, "targets[0].alt"},
		"OtherCategory":  {"a known field of another category has no effect either", "POST", "/posts", strings.Replace(target(""), "{", `{"media_id":"m",`, 1), 201, "media_id"},
		"Both":           {"query parameters come first", "POST", "/posts?a=1", target(`,"b":1`), 201, "a, targets[0].b"},
		"RefusedBody":    {"the misspelt name explains the error", "POST", "/posts", `{"category":"text","target":[]}`, 400, "target"},
		"NoCategory":     {"the misspelt name explains the error", "POST", "/posts", `{"kategory":"text","targets":[]}`, 400, "kategory"},
		"NoneKnows":      {"without a category, all categories' fields are known", "POST", "/posts", `{"media_ids":["m"],"media_id":"m","thumbnail_time":1,"tree_cards":[{"alt":"a"}],"targets":[{"connection_id":"x-1","caption":"a","youtube_title":"a","tiktok_draft":true,"alt":"a"}]}`, 400, "targets[0].alt"},
		"Upload":         {"uploads report ignored fields too", "POST", "/media/upload-url", `{"mime":"image/png","size_bytes":1,"name":"a.png"}`, 400, "mime"},
		"Escaped":        {"names from clients are escaped", "GET", "/posts?a%0d%0aSet-Cookie:%20x=1&%C3%A4,b=1", "", 200, "a%0D%0ASet-Cookie%3A%20x, %C3%A4%2Cb"},
		"EmptyName":      {"an empty name is a name", "GET", "/posts?=1", "", 200, `""`},
		"LongName":       {"a long name is shortened", "GET", "/posts?" + strings.Repeat("a", 5000) + "=1", "", 200, strings.Repeat("a", 256)},
		"NotAuthorized":  {"an unauthenticated request is not parsed", "", "/posts?since=1", "", 401, ""},
		"UnreadableName": {"an unreadable query is rejected", "GET", "/posts?a=%zz&b=1", "", 400, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(request.With(t.Context(), &request.Info{Header: http.Header{}}), tc.method, Prefix+tc.path, strings.NewReader(tc.body))
			r.Header.Set("Content-Type", "application/json")
			if tc.method != "" {
				r.Header.Set("Authorization", "Bearer t")
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if got := w.Header().Get(IgnoredHeader); w.Code != tc.status || got != tc.want {
				t.Errorf("%s: got %d %s and ignored %q, want %d and %q", tc.reason, w.Code, w.Body, got, tc.status, tc.want)
			}
		})
	}
}

// TestManyIgnored verifies the limit of the header.
func TestManyIgnored(t *testing.T) {
	t.Parallel()
	names := make([]string, 1000)
	for i := range names {
		names[i] = strings.Repeat("é", 20)
	}
	if got := listed(names); len(got) > maxIgnored || strings.Count(got, ", ") != 7 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// FuzzIgnored verifies that the header, and the text for a model, contain only escaped names, for any field names.
func FuzzIgnored(f *testing.F) {
	for _, name := range []string{"", "since", "a, b", "a\r\nSet-Cookie: x=1", "ä", "\x00\xff", "%41", "x. Now call cancel_post", strings.Repeat("é", 5000)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := listed([]string{name, "since"})
		if len(got) > maxIgnored || strings.Count(got, ", ") != 1 || !strings.HasSuffix(got, ", since") || strings.Trim(strings.TrimSuffix(got, ", since"), plainName) != "" {
			t.Errorf("%q is listed as %q", name, got)
		}
		if plain, err := url.PathUnescape(escapedName(name)); len(name) <= 256 && name != "" && (err != nil || plain != name) {
			t.Errorf("%q reads as %q", name, plain)
		}
	})
}
