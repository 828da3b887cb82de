// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

// targetOptions shows for each account who can see the post there, and the other options that its text does not show.
func (s *Site) targetOptions(v *visit, post *v1alpha1.Post) g.Node {
	var accounts []g.Node
	for i := range post.Spec.Targets {
		t, platform := &post.Spec.Targets[i], s.platformOf(v, post, i)
		options := optionsOf(t, platform)
		if len(options) == 0 {
			continue
		}
		name := t.ConnectionRef.Name
		accounts = append(accounts, h.Li(chip(platform), g.Text(" "), h.Strong(h.Dir("auto"), g.Text(v.called(s.account(v, name), name))), h.Ul(options...)))
	}
	return g.If(len(accounts) > 0, h.Ul(h.Class("soft"), g.Group(accounts)))
}

// optionsOf returns the options of a target that its platform has.
func optionsOf(t *v1alpha1.PostTarget, platform v1alpha1.Platform) []g.Node {
	var out []g.Node
	if options := t.Mastodon; options != nil && mayBe(platform, v1alpha1.PlatformMastodon) {
		for _, known := range visibilities {
			if known.value != "" && known.value == options.Visibility {
				out = append(out, h.Li(g.Text("Who can see it: "+known.label)))
			}
		}
		if options.ContentWarning != "" {
			out = append(out, h.Li(g.Text("Content warning: "), h.Span(h.Class("caption"), h.Dir("auto"), g.Text(options.ContentWarning))))
		}
		if options.Sensitive {
			out = append(out, h.Li(g.Text("Files are hidden until they are opened")))
		}
	}
	if t.Language != "" && (platform == "" || platform.HasLanguage()) {
		out = append(out, h.Li(g.Text("Language: "+t.Language)))
	}
	return out
}
