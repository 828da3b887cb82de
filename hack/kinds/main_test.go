// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPage(t *testing.T) {
	want, err := render()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("docs/kinds.md is stale, run `make generate` (-want +got):\n%s", diff)
	}
}

func TestWrap(t *testing.T) {
	long := strings.Repeat("a", maxLine-4)
	for name, tc := range map[string]struct{ reason, text, want string }{
		"a short text":        {"nothing is broken", "- one two", "- one two"},
		"a long text":         {"the next line belongs to the same item", "- " + long + " two three", "- " + long + "\n  two three"},
		"the longest line":    {"the limit includes the last character", long + " two", long + " two"},
		"a code span":         {"a span is one command", long + " `a b`", long + " `a b`"},
		"a word after a span": {"only the span may exceed the limit", long + " `a b` c", long + " `a b`\nc"},
	} {
		indent := ""
		if strings.HasPrefix(tc.text, "- ") {
			indent = "  "
		}
		if got := wrap(tc.text, indent); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

func TestPageIsComplete(t *testing.T) {
	page, err := render()
	if err != nil {
		t.Fatal(err)
	}
	for what, row := range map[string]string{
		"a kind":                      "| [Team](#team) | cluster | `hteam` | Team owns a namespace",
		"a field of a list's element": "| `spec.targets[].youtube.title` | string | 1 to 4096 characters | title of the video.",
		"an enum":                     "one of `text`, `image`, `video`, `tree`",
		"a default":                   "| `spec.onUnknownOutcome` | string | default `\"fail\"`",
		"a rule of an object":         "- `spec`: a draft cannot have scheduledAt;",
		"a rule with several texts":   "- `spec`: a post that is not a draft cannot become one;",
		"a rule of a scalar":          "; a posted target stays posted |",
		"printer columns":             "prints the columns Phase, Category, Posted, Platforms, Scheduled, Age; with `-o wide` also Reason",
	} {
		if !strings.Contains(string(page), row) {
			t.Errorf("the page lacks %s: %s", what, row)
		}
	}
}
