// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/herald-social/herald/apiserver/limits"
)

const draftForX = `{"category":"text","draft":true,"targets":[{"connection_id":"x-1","caption":"hi"}]}`

// TestRepeatedHeaders verifies the handling of duplicate headers, which occur when a proxy or a client library adds one
// to an existing one.
func TestRepeatedHeaders(t *testing.T) {
	t.Parallel()
	handler := serving(Limits{Bodies: limits.NewBodyLimiter(limits.MaxBodyBytes)})
	for name, tc := range map[string]struct {
		reason string
		header http.Header
		status int
		says   string
	}{
		"OneKey":         {"one key is as usual", http.Header{KeyHeader: {"a"}}, 201, ""},
		"NoKey":          {"a key is optional", nil, 201, ""},
		"TwoKeys":        {"either could be the one that the client repeats", http.Header{KeyHeader: {"a", "b"}}, 400, "Idempotency-Key: stands in the request 2 times"},
		"TwoEqualKeys":   {"a header of one value has one line", http.Header{KeyHeader: {"a", "a"}}, 400, "Idempotency-Key: stands in the request 2 times"},
		"EmptyBesideOne": {"an empty line is a line", http.Header{KeyHeader: {"", "a"}}, 400, "Idempotency-Key: stands in the request 2 times"},
		"EmptyKey":       {"an empty key names nothing", http.Header{KeyHeader: {""}}, 400, "must have 1 to 255 characters"},
		"TwoTypes":       {"both say the same", http.Header{"Content-Type": {"application/json", "application/json; charset=utf-8"}}, 201, ""},
		"OtherType":      {"the first line alone does not decide", http.Header{"Content-Type": {"application/json", "text/plain"}}, 415, "Content-Type: application/json"},
		"OtherTypeFirst": {"nor does the last", http.Header{"Content-Type": {"text/plain", "application/json"}}, 415, "Content-Type: application/json"},
		"NoType":         {"nothing says that it is JSON", http.Header{"Content-Type": nil}, 415, "Content-Type: application/json"},
		"TwoEncodings":   {"every encoding counts", http.Header{"Content-Encoding": {"identity", "gzip"}}, 415, "without Content-Encoding"},
		"TwoTokens":      {"the first line is the one that is checked", http.Header{"Authorization": {"Basic YTpi", "Bearer t"}}, 401, "UNAUTHORIZED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := post(t.Context(), strings.NewReader(draftForX), len(draftForX)), httptest.NewRecorder()
			maps.Copy(r.Header, tc.header)
			handler.ServeHTTP(w, r)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("%s: answered %d %s, want %d and %q", tc.reason, w.Code, w.Body, tc.status, tc.says)
			}
		})
	}
}

// TestJSONAsAllowed verifies that all JSON that RFC 8259 allows is accepted, from any serializer.
func TestJSONAsAllowed(t *testing.T) {
	t.Parallel()
	handler := serving(Limits{Bodies: limits.NewBodyLimiter(limits.MaxBodyBytes)})
	size := func(number string) string {
		return `{"mime_type":"image/png","name":"a.png","size_bytes":` + number + `}`
	}
	const shapeIsRight = "this installation keeps no media files"
	for name, tc := range map[string]struct{ reason, path, body, says string }{
		"Mark":        {"programs for Windows begin a text with U+FEFF (section 8.1)", "/posts", byteOrderMark + draftForX, `"draft"`},
		"MarkTwice":   {"the second one is no blank", "/posts", byteOrderMark + byteOrderMark + draftForX, "not valid JSON"},
		"Blanks":      {"blanks may stand around every token (section 2)", "/posts", "\r\n\t " + strings.ReplaceAll(draftForX, ":", " :\n") + " \n", `"draft"`},
		"Escapes":     {"every character may be escaped (section 7)", "/posts", strings.ReplaceAll(draftForX, "hi", `\u0068\/\uD83D\uDE00`), `"caption":"h/😀"`},
		"EscapedName": {"in names too", "/posts", strings.ReplaceAll(draftForX, `"draft"`, `"dr\u0061ft"`), `"draft"`},
		"Point":       {"numbers have one value in all notations (section 6)", "/media/upload-url", size("10.0"), shapeIsRight},
		"Exponent":    {"with an exponent", "/media/upload-url", size("1E+2"), shapeIsRight},
		"Nothing":     {"zero is too small in all notations", "/media/upload-url", size("-0.0e9"), "size_bytes: must be at least 1"},
		"Part":        {"a fraction stays refused", "/media/upload-url", size("1.5"), "size_bytes: must be a whole number"},
		"Seconds":     {"a number that may have a fraction", "/posts", `{"category":"video","media_id":"m","thumbnail_time":2147484e0,"targets":[{"connection_id":"x-1","caption":"a"}]}`, "thumbnail_time: must be at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := post(t.Context(), strings.NewReader(tc.body), len(tc.body)), httptest.NewRecorder()
			r.URL.Path = Prefix + tc.path
			handler.ServeHTTP(w, r)
			if !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("%s: answered %d %s, want %q", tc.reason, w.Code, w.Body, tc.says)
			}
		})
	}
}
