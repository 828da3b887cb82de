// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// shortcutsID is the id of the dialog that lists the keyboard shortcuts.
const shortcutsID = "shortcuts"

// shortcuts is the dialog that lists the keyboard shortcuts and switches them off. The page's script opens it.
func shortcuts() g.Node {
	row := func(what string, keys ...string) g.Node {
		return h.Div(h.Dt(g.Map(keys, func(key string) g.Node { return h.Kbd(g.Text(key)) })), h.Dd(g.Text(what)))
	}
	return h.Dialog(h.ID(shortcutsID), h.Aria("labelledby", "shortcuts-title"),
		h.Form(h.Method("dialog"),
			h.H2(h.ID("shortcuts-title"), g.Text("Keyboard shortcuts")),
			h.Dl(h.Class("keys"),
				row("New post", "N"),
				row("Search (where available)", "/"),
				row("Publish, schedule or save what you are writing", "Ctrl", "Enter"),
				row("On a file's arrows: move it, also to either end", "←", "→", "Home", "End"),
				row("This list", "?"),
			),
			h.P(h.Class("soft"), g.Text("Single keys have no effect while you type. On a Mac, use the Command key instead of Ctrl.")),
			h.P(h.Class("box"), h.Input(h.Type("checkbox"), h.ID("shortcuts-on"), h.Data("shortcuts", "")), h.Label(h.For("shortcuts-on"), g.Text("Use shortcuts in this browser"))),
			h.Div(h.Class("actions"), submit("Close", "")),
		))
}

// withoutScript shows a note about missing features to users without scripts.
func withoutScript(what string) g.Node {
	return g.If(what != "", h.NoScript(notice(caution, h.P(h.Strong(g.Text("JavaScript is off. ")), g.Text(what)))))
}
