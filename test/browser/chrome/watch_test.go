// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package chrome

import (
	"slices"
	"testing"
)

func TestWithoutAborts(t *testing.T) {
	const (
		after  = `console.error: "htmx:afterRequest, [object HTMLDivElement]"`
		abort  = `console.error: "htmx:sendAbort, [object HTMLDivElement]"`
		failed = `console.error: "htmx:sendError, [object HTMLDivElement]"`
		other  = "exception: on purpose (/throws.js:1)"
	)
	for name, tc := range map[string]struct {
		reason         string
		problems, want []string
	}{
		"Nothing": {"a quiet page has no problems", nil, []string{}},
		"Left":    {"the browser cancels requests when the page is closed", []string{after, abort}, []string{}},
		"Failed":  {"an unresponsive server is a problem", []string{after, failed}, []string{after, failed}},
		"Both":    {"one problem does not hide the other", []string{after, failed, after, abort, other}, []string{after, failed, other}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := withoutAborts(tc.problems); !slices.Equal(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
