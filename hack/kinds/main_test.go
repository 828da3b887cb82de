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
		"a rule of an object":         "- `spec`: a draft has no scheduledAt;",
		"a rule with several texts":   "- `spec`: a post that is not a draft cannot become one;",
		"a rule of a scalar":          "; a posted target stays posted |",
		"printer columns":             "prints the columns Phase, Category, Posted, Platforms, Scheduled, Age; with `-o wide` also Reason",
	} {
		if !strings.Contains(string(page), row) {
			t.Errorf("the page lacks %s: %s", what, row)
		}
	}
}
