// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"strings"
	"testing"
)

// TestHostile renders hostile input, which must appear on the page only as text.
func TestHostile(t *testing.T) {
	tests := map[string]struct {
		reason    string
		post      postView
		want, not string
	}{
		"script in a text": {
			"a text is escaped", postView{Text: []span{{Text: "<script>alert(1)</script>"}}}, "&lt;script&gt;", "<script",
		},
		"script in a title": {"a title is escaped", postView{Title: "<b>bold</b>"}, "&lt;b&gt;", "<b>"},
		"quotes in a name": {
			"quotes do not end an attribute", postView{profile: profile{Path: `/accounts/x/1" onclick="alert(1)`}}, "&#34; onclick", `" onclick=`,
		},
		"script as an address": {
			"only http and https addresses are links", postView{Text: []span{{Text: "x", Href: "javascript://%0aalert(1)"}}}, `href="#"`, `href="javascript`,
		},
		"the web": {
			"http and https addresses are links", postView{Text: []span{{Text: "x", Href: "HTTPS://example.com/?a=1&b=2"}}}, `href="HTTPS://example.com/?a=1&amp;b=2"`, `href="#"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := tc.post.render().Render(&out); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); !strings.Contains(got, tc.want) || strings.Contains(got, tc.not) {
				t.Errorf("%s: want %q and not %q in\n%s", tc.reason, tc.want, tc.not, got)
			}
		})
	}
}
