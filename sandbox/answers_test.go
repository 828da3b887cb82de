// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// is lists the expected status of an answer and the expected facts, as in want.
type is []any

// row is a request, the expected answer, and the reason for that answer. send is the part of the request that differs between the rows.
type row struct {
	why, send string
	want      is
}

// each sends the request of each row. A rejected request must not publish anything.
func (b *box) each(t *testing.T, send func(string) reply, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.why, func(t *testing.T) {
			before := len(b.texts())
			got := send(r.send).want(t, r.why, r.want...)
			if after := len(b.texts()); got.status >= 400 && after != before {
				t.Errorf("%s: rejected with %d, but %d posts became %d", r.why, got.status, before, after)
			}
		})
	}
}

// apart is like each, but with a new sandbox for each row, for requests that publish one post if they succeed.
func apart(t *testing.T, send func(*box, string) reply, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.why, func(t *testing.T) {
			b := start(t, "")
			got := send(b, r.send).want(t, r.why, r.want...)
			if posts := len(b.texts()); (posts == 1) != (got.status < 300) {
				t.Errorf("%s: %d posts after status %d", r.why, posts, got.status)
			}
		})
	}
}

// want compares the answer with facts. An int is the status. A text has one of these forms:
//
//	path=value   the value at the path of names and list indexes; "*" is any value but an empty one, "" is none
//	path~text    the value at the path contains the text; without a path, the body does
//	path!text    it does not contain the text
//	path#n       the list at the path has n elements
//	Name: value  the header; "*" is any value but an empty one
func (r reply) want(t *testing.T, why string, facts ...any) reply {
	t.Helper()
	for _, fact := range facts {
		if problem := r.differs(fact); problem != "" {
			t.Errorf("%s: %s; the response is %d %s", why, problem, r.status, r.body)
		}
	}
	return r
}

var factForm = regexp.MustCompile(`(?s)^([\w.]*)([=~!#])(.*)$`)

// differs describes how the answer differs from a fact; "" if it does not.
func (r reply) differs(fact any) string {
	if status, ok := fact.(int); ok {
		if r.status != status {
			return fmt.Sprintf("want status %d", status)
		}
		return ""
	}
	text := fmt.Sprint(fact)
	m := factForm.FindStringSubmatch(text)
	if m == nil {
		name, value, _ := strings.Cut(text, ": ")
		m = []string{text, name, "=", value}
	}
	if got := r.shown(m[1]); !matches(got, m[2], m[3]) {
		return fmt.Sprintf("want %s, not %q", text, got)
	}
	return ""
}

func matches(got, operator, want string) bool {
	switch operator {
	case "=":
		return got == want || want == "*" && got != ""
	case "~":
		return strings.Contains(got, want)
	case "!":
		return !strings.Contains(got, want)
	}
	var list []any
	return json.Unmarshal([]byte(got), &list) == nil && strconv.Itoa(len(list)) == want || got == "" && want == "0"
}

// shown returns, as text, the body for the empty path, a header, or the value at a path; "" if there is none.
func (r reply) shown(path string) string {
	if path == "" {
		return strings.TrimSpace(r.body)
	}
	if header := r.header.Get(path); header != "" {
		return header
	}
	switch v := r.at(strings.Split(path, ".")...).(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		out, _ := json.Marshal(v) // it was decoded from JSON
		return string(out)
	}
}

// same fails the test if two values differ.
func same(t *testing.T, why string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", why, diff)
	}
}

// made is the answer to a request that creates an object on one of Meta's platforms.
var made = is{200, "id=*"}

// graphError returns the expected error of one of Meta's Graph APIs.
func graphError(code int, message string) is {
	return is{400, fmt.Sprint("error.code=", code), "error.message~" + message, "error.fbtrace_id=*"}
}

// graphSubcode returns an expected Graph error with a subcode.
func graphSubcode(code, subcode int) is {
	return append(graphError(code, ""), fmt.Sprint("error.error_subcode=", subcode))
}

// missing is the Graph error for an object that does not exist, or that belongs to another account.
var missing = graphSubcode(100, 33)

// tiktokError returns an expected error in TikTok's envelope.
func tiktokError(status int, code string) is {
	return is{status, "error.code=" + code, "error.log_id=*"}
}

// youtubeError returns an expected error in Google's envelope.
func youtubeError(status int, reason string) is {
	return is{status, fmt.Sprint("error.code=", status), "error.errors.0.reason=" + reason}
}

// xProblem returns an expected error from X. in is part of its body.
func xProblem(status int, in string) is { return is{status, fmt.Sprint("status=", status), "~" + in} }
