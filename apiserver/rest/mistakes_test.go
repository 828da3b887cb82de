// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
)

// TestAllMistakes verifies that one response names every mistake in a request, from all checks, and no consequence of
// another mistake.
func TestAllMistakes(t *testing.T) {
	t.Parallel()
	handler := serving(Limits{Bodies: limits.NewBodyLimiter(limits.MaxBodyBytes)})
	long := strings.Repeat("a", 281)
	for name, tc := range map[string]struct {
		reason, method, path, body, key string
		want                            []string
	}{
		"ShapeAndRules": {
			"five different errors", "POST", "/posts",
			`{"category":"text","draft":"no","scheduled_at":"2020-01-01T00:00:00Z","targets":[{"connection_id":"x-1","caption":"` + long + `"},{"connection_id":"nobody","caption":7}]}`, "",
			[]string{"draft: must be a boolean", "targets[1].caption: must be a string", "targets[0].caption: 281 weighted characters are too many for x", `targets[1].connection_id: no such connection "nobody"`},
		},
		"NothingFollows": {
			"a field with a wrong type is not reported as missing or unknown", "POST", "/posts",
			`{"category":"text","targets":[{"connection_id":"x-1","caption":7},{"connection_id":8,"caption":"a"}]}`, "",
			[]string{"targets[0].caption: must be a string", "targets[1].connection_id: must be a string"},
		},
		"NoTargets": {
			"the missing list is reported once", "POST", "/posts", `{"category":"text","scheduled_at":"2020-01-01T00:00:00Z"}`, "",
			[]string{"targets: is missing", "scheduled_at: must be in the future; leave it out to post at once"},
		},
		"NoCategory": {
			"fields of every category are checked without a valid one", "POST", "/posts", `{"category":"poem","scheduled_at":"2020-01-01T00:00:00Z","targets":[{}]}`, "",
			[]string{"category: must be one of image, text, tree, video", "targets[0].connection_id: is missing", "scheduled_at: must be in the future; leave it out to post at once"},
		},
		"Options": {
			"combinations, rules and files together", "POST", "/posts",
			`{"category":"image","media_ids":["m1",2],"targets":[{"connection_id":"tiktok-1","caption":"a","tiktok_draft":true,"tiktok_auto_add_music":true},{"connection_id":"youtube-1","caption":"a"}]}`, "",
			[]string{
				"media_ids[1]: must be a string", "targets[0].tiktok_auto_add_music: cannot be combined with tiktok_draft; omit one of the two",
				"targets[1].connection_id: youtube does not accept posts of category image; choose another connection", "targets[1].youtube_title: a post to youtube needs a title unless it is a draft",
			},
		},
		"Files": {
			"a missing file and a caption that is too long", "POST", "/posts",
			`{"category":"image","media_ids":["m1","No-Name"],"targets":[{"connection_id":"x-1","caption":"` + long + `"}]}`, "",
			[]string{"targets[0].caption: 281 weighted characters are too many for x", `media_ids[1]: no such media file "No-Name" in this team`},
		},
		"Card": {
			"a card whose caption has a wrong type is not reported as empty", "POST", "/posts",
			`{"category":"tree","targets":[{"connection_id":"x-1"}],"tree_cards":[{"caption":7},{"caption":"` + long + `"}]}`, "",
			[]string{"tree_cards[0].caption: must be a string or null", "tree_cards[1].caption: 281 weighted characters are too many for x"},
		},
		"Key": {
			"errors in headers and in the body are reported together", "POST", "/posts",
			`{"category":"text","targets":[{"connection_id":"nobody","caption":"a"}]}`, strings.Repeat("k", 256),
			[]string{"Idempotency-Key: must have 1 to 255 characters", `targets[0].connection_id: no such connection "nobody"`},
		},
		"KeyAndNoJSON": {
			"an unparsable body does not hide errors in headers", "POST", "/posts", `{"category":}`, strings.Repeat("k", 256),
			[]string{"Idempotency-Key: must have 1 to 255 characters", "the body is not valid JSON: invalid character '}' looking for beginning of value at byte 13"},
		},
		"Upload": {
			"the size is not a number, and the extension does not match", "POST", "/media/upload-url", `{"mime_type":"image/png","size_bytes":"1","name":"a.txt"}`, "",
			[]string{"size_bytes: must be an integer", "name: the name of an image ends in .jpg, .jpeg, .png or .webp; rename the file"},
		},
		"Query": {
			"every parameter", "GET", "/posts?page=a&limit=b&status=sent&platform=myspace", "", "",
			[]string{"page: must be a whole number", "limit: must be a whole number", "status: must be one of posted", "platform: must be one of youtube"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(request.With(t.Context(), &request.Info{Header: http.Header{}}), tc.method, Prefix+tc.path, strings.NewReader(tc.body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer t")
			if tc.key != "" {
				r.Header.Set(KeyHeader, tc.key)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			answer := strings.ReplaceAll(w.Body.String(), `\"`, `"`)
			for _, want := range tc.want {
				if !strings.Contains(answer, want) {
					t.Errorf("%s: got %d %s, which lacks %q", tc.reason, w.Code, answer, want)
				}
			}
			named := 0
			for _, path := range []string{"draft: ", "_at: ", "targets: ", "category: ", "caption: ", "connection_id: ", "_music: ", "title: ", "media_ids[", "Key: ", "the body ", "size_bytes: ", "name: ", "page: ", "limit: ", "status: ", "platform: "} {
				named += strings.Count(answer, path)
			}
			if w.Code != http.StatusBadRequest || !strings.Contains(answer, string(bridge.CodeValidation)) || named != len(tc.want) {
				t.Errorf("%s: got %d %s, want %d problems", tc.reason, w.Code, answer, len(tc.want))
			}
		})
	}
}

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
		"OneKey":         {"one key is valid", http.Header{KeyHeader: {"a"}}, 201, ""},
		"NoKey":          {"a key is optional", nil, 201, ""},
		"TwoKeys":        {"the client may repeat either key", http.Header{KeyHeader: {"a", "b"}}, 400, "Idempotency-Key: appears 2 times in the request"},
		"TwoEqualKeys":   {"a single-valued header has one line", http.Header{KeyHeader: {"a", "a"}}, 400, "Idempotency-Key: appears 2 times in the request"},
		"EmptyBesideOne": {"an empty line is a line", http.Header{KeyHeader: {"", "a"}}, 400, "Idempotency-Key: appears 2 times in the request"},
		"EmptyKey":       {"an empty key is invalid", http.Header{KeyHeader: {""}}, 400, "must have 1 to 255 characters"},
		"TwoTypes":       {"both types are equal", http.Header{"Content-Type": {"application/json", "application/json; charset=utf-8"}}, 201, ""},
		"OtherType":      {"the last line matters too", http.Header{"Content-Type": {"application/json", "text/plain"}}, 415, "Content-Type: application/json"},
		"OtherTypeFirst": {"the first line matters too", http.Header{"Content-Type": {"text/plain", "application/json"}}, 415, "Content-Type: application/json"},
		"NoType":         {"the content type is required", http.Header{"Content-Type": nil}, 415, "Content-Type: application/json"},
		"TwoEncodings":   {"every encoding is checked", http.Header{"Content-Encoding": {"identity", "gzip"}}, 415, "without Content-Encoding"},
		"TwoTokens":      {"the first line is used", http.Header{"Authorization": {"Basic YTpi", "Bearer t"}}, 401, "UNAUTHORIZED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := post(t.Context(), strings.NewReader(draftForX), len(draftForX)), httptest.NewRecorder()
			maps.Copy(r.Header, tc.header)
			handler.ServeHTTP(w, r)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("%s: got %d %s, want %d and %q", tc.reason, w.Code, w.Body, tc.status, tc.says)
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
	const shapeIsRight = "this installation has no media store"
	for name, tc := range map[string]struct{ reason, path, body, says string }{
		"Mark":      {"Windows programs start a text with U+FEFF (section 8.1)", "/posts", byteOrderMark + draftForX, `"draft"`},
		"MarkTwice": {"a second mark is not whitespace", "/posts", byteOrderMark + byteOrderMark + draftForX, "not valid JSON"},
		"Blanks":    {"whitespace is allowed around each token (section 2)", "/posts", "\r\n\t " + strings.ReplaceAll(draftForX, ":", " :\n") + " \n", `"draft"`},
		"Escapes":   {"every character may be escaped (section 7)", "/posts", strings.ReplaceAll(draftForX, "hi", `\u0068\/\uD83D\uDE00`), `"caption":"h/😀"`},
		"Point":     {"all notations of a number are equal (section 6)", "/media/upload-url", size("10.0"), shapeIsRight},
		"Seconds":   {"the field accepts fractions", "/posts", `{"category":"video","media_id":"m","thumbnail_time":2147484e0,"targets":[{"connection_id":"x-1","caption":"a"}]}`, "thumbnail_time: must be at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := post(t.Context(), strings.NewReader(tc.body), len(tc.body)), httptest.NewRecorder()
			r.URL.Path = Prefix + tc.path
			handler.ServeHTTP(w, r)
			if !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("%s: got %d %s, want %q", tc.reason, w.Code, w.Body, tc.says)
			}
		})
	}
}
