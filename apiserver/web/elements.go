// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

// picture is a square decorative image.
func picture(path string, side int) g.Node {
	return h.Img(h.Src(path), h.Alt(""), h.Width(strconv.Itoa(side)), h.Height(strconv.Itoa(side)))
}

// drawings are line icons on a grid of 24 by 24.
var drawings = map[string]string{
	"home":     `<path d="M4 11 12 4l8 7v8a1 1 0 0 1-1 1h-4v-6H9v6H5a1 1 0 0 1-1-1z"/>`,
	"posts":    `<path d="M5 5h14M5 12h14M5 19h9"/>`,
	"calendar": `<path d="M4 7a2 2 0 0 1 2-2h12a2 2 0 0 1 2 2v11a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2zM4 10h16M8 3v4M16 3v4"/>`,
	"accounts": `<path d="M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-3.3 2.700-6 6-6s6 2.700 6 6M16 4.500a3.500 3.500 0 0 1 0 6.500M18 14.500c1.900.9 3 2.900 3 5.500"/>`,
	"key":      `<path d="M8 18a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM11 11l8-8M16 6l3 3M14 8l2 2"/>`,
	"agent":    `<path d="M7 8h10a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2v-7a2 2 0 0 1 2-2zM12 8V4M9.500 13v.1M14.500 13v.1M3 13v2M21 13v2"/>`,
	"team":     `<path d="M4 20V6l8-3v17M12 9l8 2v9M3 20h18M7 9h2M7 13h2M15 14h2"/>`,
	"plus":     `<path d="M12 5v14M5 12h14"/>`,
	"outward":  `<path d="M9 5H5v14h14v-4M13 5h6v6M19 5l-9 9"/>`,
	"alert":    `<path d="M12 4 2.500 20h19zM12 10v4M12 17v.1"/>`,
	"check":    `<path d="m5 13 4 4L19 7"/>`,
	"image":    `<path d="M5 4h14a1 1 0 0 1 1 1v14a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1zM4 16l4-4 4 4 3-3 5 5M15 9v.1"/>`,
	"film":     `<path d="M5 5h14a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1zM10 9l5 3-5 3z"/>`,
	"before":   `<path d="m14 6-6 6 6 6"/>`,
	"after":    `<path d="m10 6 6 6-6 6"/>`,
}

// drawing is an icon next to text with the same meaning.
func drawing(name string) g.Node {
	return g.Raw(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">` + drawings[name] + `</svg>`)
}

var letters = map[v1alpha1.Platform]string{
	v1alpha1.PlatformFacebook: "f", v1alpha1.PlatformInstagram: "ig", v1alpha1.PlatformThreads: "@",
	v1alpha1.PlatformTikTok: "tt", v1alpha1.PlatformX: "X", v1alpha1.PlatformYouTube: "yt",
	v1alpha1.PlatformBluesky: "bs", v1alpha1.PlatformMastodon: "ma",
}

// chip is a colored label with a platform's short name.
func chip(p v1alpha1.Platform) g.Node {
	return h.Span(h.Class("chip on-"+string(p)), h.Title(p.Title()), h.Role("img"), h.Aria("label", p.Title()), g.Text(letters[p]))
}

var phases = map[v1alpha1.PostPhase]string{
	v1alpha1.PhaseDraft: "Draft", v1alpha1.PhaseScheduled: "Scheduled", v1alpha1.PhaseProcessing: "Being published",
	v1alpha1.PhasePosted: "Posted", v1alpha1.PhaseFailed: "Failed", v1alpha1.PhaseCancelled: "Cancelled",
}

// form is a POST form. A non-empty confirm is a question that the user has to confirm first.
func form(action, confirm string, content ...g.Node) g.Node {
	return h.Form(h.Method("post"), h.Action(action), g.If(confirm != "", h.Data("confirm", confirm)), g.Group(content))
}

func submit(label, class string) g.Node {
	return h.Button(h.Type("submit"), h.Class(strings.TrimSpace("button "+class)), g.Text(label))
}

// link is a link that looks like a button.
func link(path, label, class string) g.Node {
	return h.A(h.Class(strings.TrimSpace("button "+class)), h.Href(path), g.Text(label))
}

// typed is the content of a textarea. Browsers drop a line break right after the tag (HTML, "textarea"), so typed adds
// one.
func typed(text string) g.Node { return g.Text("\n" + text) }

func hidden(name, value string) g.Node {
	return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
}

// onTheWeb reports whether an external address uses http or https, rather than a scheme that runs code.
func onTheWeb(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// outward returns the attributes of an external link. It replaces any scheme except http and https.
func outward(address string) g.Node {
	if !onTheWeb(address) {
		address = "#"
	}
	return g.Group{h.Href(address), h.Rel("noopener noreferrer nofollow"), h.Target("_blank")}
}

// elsewhere is a link to another site.
func elsewhere(address, label string) g.Node {
	return h.A(h.Class("outward"), outward(address), g.Text(label), drawing("outward"), h.Span(h.Class("hidden"), g.Text(" (opens in a new tab)")))
}

// tone is a message's severity, which selects its color.
type tone string

const (
	neutral tone = "info"
	good    tone = "good"
	caution tone = "warning"
	bad     tone = "bad"
)

func notice(of tone, content ...g.Node) g.Node {
	return h.Div(h.Class("note "+string(of)), g.If(of == caution || of == bad, drawing("alert")), h.Div(g.Group(content)))
}

func empty(title, text string, actions ...g.Node) g.Node {
	return h.Div(h.Class("empty"), h.H2(g.Text(title)), h.P(g.Text(text)), g.If(len(actions) > 0, h.P(h.Class("actions"), g.Group(actions))))
}

// distance returns the text for a duration until or since a time.
func distance(d time.Duration) string {
	past := d < 0
	d = d.Abs()
	var n int
	var unit string
	switch {
	case d < 45*time.Second:
		if past {
			return "just now"
		}
		return "in a moment"
	case d < 90*time.Minute:
		n, unit = int(d.Round(time.Minute)/time.Minute), "minute"
	case d < 36*time.Hour:
		n, unit = int(d.Round(time.Hour)/time.Hour), "hour"
	default:
		n, unit = int(d.Round(24*time.Hour)/(24*time.Hour)), "day"
	}
	words := plural(n, unit)
	if past {
		return words + " ago"
	}
	return "in " + words
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
