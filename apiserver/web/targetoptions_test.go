// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestOptionsOnPages verifies that the page of a post shows who can see it, and the other options that affect what
// readers see.
func TestOptionsOnPages(t *testing.T) {
	t.Parallel()
	all := &v1alpha1.MastodonOptions{ContentWarning: "the ending", Sensitive: true, Visibility: v1alpha1.MastodonPrivate}
	everything := []string{"Who can see it: Followers", "Content warning: the ending", "Files are hidden until they are opened", "Language: pt-BR"}
	for name, tc := range map[string]struct {
		reason, account string
		options         *v1alpha1.MastodonOptions
		language        string
		tree            bool
		want, lack      []string
	}{
		"all":      {"a reviewer checks the audience", "our-mastodon", all, "pt-BR", false, everything, nil},
		"thread":   {"its parts have them, too", "our-mastodon", all, "pt-BR", true, everything, nil},
		"audience": {"only what is set is shown", "our-mastodon", &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonDirect}, "", false, []string{"Who can see it: Mentioned accounts"}, []string{"Content warning", "Files are", "Language"}},
		"account's settings": {
			"Herald does not know them", "our-mastodon", &v1alpha1.MastodonOptions{Sensitive: true}, "", false, []string{"Files are hidden"}, []string{"Who can see it"},
		},
		"language":  {"Bluesky has no other option", "our-bluesky", all, "pt-BR", false, []string{"Language: pt-BR"}, everything[:3]},
		"elsewhere": {"they have no effect on X, where everyone sees the post", "our-x", all, "pt-BR", false, nil, everything},
		"gone":      {"they are kept", "gone", all, "pt-BR", false, everything, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.put(textPost("p-1", "text", asScheduled, func(post *v1alpha1.Post) {
				to := &post.Spec.Targets[0]
				to.ConnectionRef.Name, to.Mastodon, to.Language = tc.account, tc.options, tc.language
				if tc.tree {
					post.Spec.Category, to.Caption = v1alpha1.CategoryTree, ""
					post.Spec.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "one"}, {Caption: "two"}}}
				}
			}))
			says(t, tc.reason, textOf(w.get(t, viewer, "/teams/"+acme+"/posts/p-1")), tc.want, tc.lack)
		})
	}
}

// TestOptionsInConflicts verifies that a conflict shows each version's audience when nothing else differs.
func TestOptionsInConflicts(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text", asDraft, func(post *v1alpha1.Post) { post.Spec.Targets[0].ConnectionRef.Name = "our-mastodon" }))
	mine := w.compose(t, "posts/p-1/edit", url.Values{"visibility-our-mastodon": {"private"}})
	theirs := w.compose(t, "posts/p-1/edit", url.Values{"visibility-our-mastodon": {"unlisted"}})
	if status, got := w.save(t, &administrator, "posts/p-1/save", theirs); status != http.StatusOK {
		t.Fatalf("%d, %+v", status, got)
	}
	status, got := w.save(t, &editor, "posts/p-1/save", mine)
	if status != http.StatusConflict {
		t.Fatalf("%d, %+v", status, got)
	}
	says(t, "a user chooses between them", textOf(parsed(t, got.Versions)), []string{"Who can see it: Followers", "Who can see it: Everyone, but not in public timelines"}, nil)
}
