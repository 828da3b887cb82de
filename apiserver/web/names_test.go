// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestFilesKeepTheirNames verifies that a rejected form shows the user's file names.
func TestFilesKeepTheirNames(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.upload("m-1", func(m *v1alpha1.Media) { m.Spec.FileName = "launch party.png" })
	form := w.compose(t, "posts/new", url.Values{"category": {"image"}, "image": {"m-1", "m-unknown"}, "when": {whenNow}, "caption": {"Hello"}})
	answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form))
	if answer.Code != http.StatusBadRequest {
		t.Fatalf("a post without accounts returned %d", answer.Code)
	}
	page := parsed(t, answer.Body.String())
	var names []string
	for _, span := range elements(withID(t, page, "compose"), "span") {
		if _, is := attribute(span, "data-file"); is && textOf(span) != "" {
			names = append(names, textOf(span))
		}
	}
	if got := strings.Join(names, ", "); got != "launch party.png, m-unknown" {
		t.Errorf("the form lists %s", got)
	}
	if files := sent(withID(t, page, "compose"))["image"]; strings.Join(files, ", ") != "m-1, m-unknown" {
		t.Errorf("the form sends the files %q", files)
	}
}

// TestErrorsWithoutIDs verifies that errors contain no generated ids, but do contain names that users chose.
func TestErrorsWithoutIDs(t *testing.T) {
	t.Parallel()
	made := "p" + strings.Repeat("a", 25)
	for message, want := range map[string]string{
		"post " + made + " has changed since you opened it; reload": "the post has changed since you opened it; reload",
		"target 0 of post " + made + " is posted":                   "target 0 of the post is posted",
		"post launch is now posted":                                 "post launch is now posted",
		"this team has no post \"p1\"":                              "this team has no post \"p1\"",
	} {
		if got := withoutID(message); got != want {
			t.Errorf("%q became %q, want %q", message, got, want)
		}
	}
}
