// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestLanguageOfDrafts verifies that a language never keeps a draft from being saved, and that a language that the user
// submits is either valid or named in the response.
func TestLanguageOfDrafts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, typed, saved, problem string }{
		"tag":        {"it is in the usual spelling", "pt-BR", "pt-BR", ""},
		"lower case": {"users do not know the spelling", "pt-br", "pt-BR", ""},
		"script":     {"users do not know the spelling", " ZH_hant-tw ", "zh-Hant-TW", ""},
		"renamed":    {"a user's choice stays", "IW", "iw", ""},
		"unknown":    {"a tag may be newer than Herald", "qq", "qq", ""},
		"beginning":  {"the user is still typing", "p", "", "enter the language as a tag"},
		"name":       {"a platform needs a tag", "Portuguese", "", "enter the language as a tag"},
		"variant":    {"a post has no variants", "sl-nedis", "", "enter the language as a tag"},
		"too long":   {"no tag is that long", strings.Repeat("en-", 1000), "", "enter the language as a tag"},
		"none":       {"it is optional", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			form := w.compose(t, "posts/new", url.Values{"caption": {"Hello"}, "target": {"our-mastodon"}, "language-our-mastodon": {tc.typed}})
			status, saved := w.save(t, &editor, "compose/save", form)
			if status != http.StatusOK || saved.ID == "" {
				t.Fatalf("%s: %d, %+v", tc.reason, status, saved)
			}
			if got := w.posts[acme+"/"+saved.ID].Spec.Targets[0]; got.Language != tc.saved || got.Caption != "Hello" {
				t.Errorf("%s: the draft is %+v, want %q", tc.reason, got, tc.saved)
			}
			answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", with(form, "version", saved.Version, "when", whenDraft)))
			if refused := answer.Code == http.StatusBadRequest; refused != (tc.problem != "") || !strings.Contains(strings.ToLower(answer.Body.String()), tc.problem) {
				t.Errorf("%s: the form is answered with %d", tc.reason, answer.Code)
			}
		})
	}
}
