// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/url"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

// visibilities are the labels of a Mastodon post's audiences, in the order of the form.
var visibilities = []struct {
	value v1alpha1.MastodonVisibility
	label string
}{
	{"", "As set on Mastodon"},
	{v1alpha1.MastodonPublic, "Everyone"},
	{v1alpha1.MastodonUnlisted, "Everyone, but not in public timelines"},
	{v1alpha1.MastodonPrivate, "Followers"},
	{v1alpha1.MastodonDirect, "Mentioned accounts"},
}

// mastodonFields are the fields for an account's Mastodon options. Unlike other options, they also apply to threads.
func mastodonFields(name string, options *v1alpha1.MastodonOptions) g.Node {
	warning, visibility, sensitive := "warning-"+name, "visibility-"+name, "sensitive-"+name
	return g.Group{
		h.P(h.Class("field"), h.Label(h.For(warning), g.Text("Content warning on Mastodon")),
			h.Input(h.ID(warning), h.Name(warning), h.Dir("auto"), h.Value(options.ContentWarning), h.MaxLength("500"), h.Placeholder("shown instead of the post at first"), h.AutoComplete("off"))),
		h.P(h.Class("field"), h.Label(h.For(visibility), g.Text("Who can see it on Mastodon")), h.Select(h.ID(visibility), h.Name(visibility), g.Group(visibilityOptions(options.Visibility)))),
		h.P(h.Class("boxes"), h.Span(h.Class("box"), h.Input(h.Type("checkbox"), h.ID(sensitive), h.Name(sensitive), h.Value("yes"), g.If(options.Sensitive, h.Checked())),
			h.Label(h.For(sensitive), g.Text("Hide its files until they are opened")))),
	}
}

func visibilityOptions(has v1alpha1.MastodonVisibility) []g.Node {
	options := make([]g.Node, 0, len(visibilities))
	for _, v := range visibilities {
		options = append(options, h.Option(h.Value(string(v.value)), g.If(v.value == has, h.Selected()), g.Text(v.label)))
	}
	return options
}

func readMastodon(form url.Values, name string) v1alpha1.MastodonOptions {
	options := v1alpha1.MastodonOptions{ContentWarning: form.Get("warning-" + name), Sensitive: form.Get("sensitive-"+name) != ""}
	for _, v := range visibilities {
		if form.Get("visibility-"+name) == string(v.value) {
			options.Visibility = v.value
		}
	}
	return options
}

// mockWarning shows a content warning, which hides the post until the reader opens it.
func mockWarning(target *v1alpha1.PostTarget) g.Node {
	warning := warningOf(target)
	return g.If(warning != "", h.P(h.Class("mock-title"), h.Dir("auto"), g.Text(warning)))
}
