// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

// place is a page's entry in the navigation.
type place string

const (
	placeOverview place = ""
	placePosts    place = "posts"
	placeCalendar place = "calendar"
	placeAccounts place = "connections"
	placeKeys     place = "keys"
	placeAgents   place = "agents"
	placeTeam     place = "team"
	// placeNone is for a page that is not in the navigation, such as an error page.
	placeNone place = "none"
)

// view is one of a team's pages.
type view struct {
	title string
	// heading replaces the title in the page's heading if it contains more than text.
	heading g.Node
	// before is a prefix for the title in the browser tab.
	before string
	place  place
	// wide lets the content use the full width, as the calendar does.
	wide bool
	// uploads adds the scripts for writing posts and uploading files.
	uploads bool
	// lists adds the script for choosing and dragging posts.
	lists bool
	// without names the features that the page lacks in a browser without scripts; empty if there are none.
	without string
	// actions are shown next to the title.
	actions []g.Node
	content []g.Node
}

// inHeading returns the content of the page's heading.
func (v *view) inHeading() g.Node {
	if v.heading != nil {
		return v.heading
	}
	return g.Text(v.title)
}

func (s *Site) document(title string, body ...g.Node) g.Node {
	return h.Doctype(h.HTML(
		h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.Meta(h.Name("description"), h.Content("Herald publishes one post to several social platforms.")),
			h.Meta(h.Name("htmx-config"), h.Content(htmxConfig)),
			h.TitleEl(g.Text(title+" · Herald")),
			h.Link(h.Rel("icon"), h.Href(s.assets.path("mark.svg")), h.Type("image/svg+xml")),
			h.Link(h.Rel("stylesheet"), h.Href(s.assets.path("style.css"))),
			// The page waits for this script, so that no time is first seen in another zone.
			h.Script(h.Src(s.assets.path("times.js"))),
			h.Script(h.Src(s.assets.path("htmx.min.js")), h.Defer()),
			h.Script(h.Src(s.assets.path("app.js")), h.Type("module")),
		),
		h.Body(body...),
	))
}

// htmxConfig makes htmx comply with the Content-Security-Policy: it neither uses eval nor adds inline styles.
const htmxConfig = `{"allowEval":false,"includeIndicatorStyles":false,"allowScriptTags":false,"selfRequestsOnly":true,"historyCacheSize":0}`

func (s *Site) render(w http.ResponseWriter, r *visit, status int, v view) {
	needing := s.needing(r)
	s.write(w, status, s.document(cmp.Or(v.before, needingPrefix(needing))+v.title+" · "+r.teamName(),
		g.Iff(r.teamZone != nil, func() g.Node { return h.Data("team-zone", r.zone.String()) }),
		h.A(h.Class("skip"), h.Href("#content"), g.Text("Skip to the content")),
		s.sidebar(r, v.place, needing),
		h.Main(h.ID("content"), h.Class(classes("content", v.wide, "wide")), h.TabIndex("-1"),
			r.flash(),
			r.suspended(),
			withoutScript(v.without),
			h.Header(h.Class("title"),
				h.H1(v.inHeading()),
				g.If(len(v.actions) > 0, h.Div(h.Class("actions"), g.Group(v.actions))),
			),
			g.Group(v.content),
			h.P(h.ID("status"), h.Class("hidden"), h.Role("status")),
		),
		shortcuts(),
		h.Script(h.Src(s.assets.path("keys.js")), h.Type("module")),
		g.If(v.lists, h.Script(h.Src(s.assets.path("lists.js")), h.Type("module"))),
		g.If(v.uploads, g.Map([]string{"upload.js", "files.js", "preview.js"}, func(name string) g.Node { return h.Script(h.Src(s.assets.path(name)), h.Type("module")) })),
		// compose.js loads drafts.js once there is something to keep.
		g.If(v.uploads || r.URL.Query().Has("said"), h.Script(h.Src(s.assets.path("compose.js")), h.Type("module"), h.Data("drafts", s.assets.path("drafts.js")))),
	))
}

// classes returns a class, followed by a second one if the condition holds.
func classes(always string, holds bool, more string) string {
	if holds {
		return always + " " + more
	}
	return always
}

// sidebar is the navigation: a column, or a bar at the bottom of a phone's screen.
func (s *Site) sidebar(r *visit, at place, needing int) g.Node {
	item := func(to place, icon, label string, more ...g.Node) g.Node {
		return h.Li(h.A(h.Href(r.path(string(to))), g.If(to == at, h.Aria("current", "page")), drawing(icon), h.Span(g.Text(label)), g.Group(more)))
	}
	return h.Header(h.Class("side"),
		h.A(h.Class("brand"), h.Href(r.path("")), picture(s.assets.path("mark.svg"), 28), h.Span(g.Text("Herald"))),
		s.teams(r),
		g.If(r.may.compose(), h.A(h.Class("button primary new"), h.Href(r.path("posts/new")), h.Data("shortcut", "n"), g.Attr("aria-keyshortcuts", "n"), drawing("plus"), h.Span(g.Text("New post")))),
		h.Nav(h.Aria("label", "Main"), h.Ul(
			item(placeOverview, "home", "Overview", needingBadge(needing)),
			item(placePosts, "posts", "Posts"),
			item(placeCalendar, "calendar", "Calendar"),
			g.If(r.may.seeAccounts, item(placeAccounts, "accounts", "Accounts")),
			g.If(r.may.listKeys, item(placeKeys, "key", "API keys")),
			g.If(s.Agents != nil, item(placeAgents, "agent", "Agents")),
			item(placeTeam, "team", "Team"),
		)),
		h.Div(h.Class("who"),
			h.Span(h.Class("name"), h.Title(r.person.Name), g.Text(r.person.Shown())),
			h.Button(h.Type("button"), h.Class("button quiet small shortcuts"), h.Data("dialog", shortcutsID), h.Data("needs-script", ""), g.Attr("hidden"), g.Text("Keyboard shortcuts")),
			form("/signout", "", submit("Sign out", "quiet small")),
		),
	)
}

func (s *Site) teams(r *visit) g.Node {
	if len(r.teams) < 2 {
		return h.P(h.Class("team"), g.Text(r.teamName()))
	}
	return h.Details(h.Class("teams"),
		h.Summary(h.Span(h.Class("hidden"), g.Text("Team: ")), g.Text(r.teamName())),
		h.Ul(g.Map(r.teams, func(t *v1alpha1.Team) g.Node {
			return h.Li(h.A(h.Href("/teams/"+t.Spec.Namespace+"/"), g.If(t.Spec.Namespace == r.namespace, h.Aria("current", "true")), g.Text(nameOf(t))))
		})),
	)
}

func nameOf(t *v1alpha1.Team) string {
	if t.Spec.DisplayName != "" {
		return t.Spec.DisplayName
	}
	return t.Name
}

// alone is a page outside a team, such as the sign-in page. The content includes its heading.
func (s *Site) alone(title string, content ...g.Node) g.Node {
	return s.document(title,
		h.Main(h.ID("content"), h.Class("alone"),
			h.P(h.Class("brand"), picture(s.assets.path("mark.svg"), 36), h.Span(g.Text("Herald"))),
			g.Group(content),
			h.P(h.ID("status"), h.Class("hidden"), h.Role("status")),
		),
	)
}

func (s *Site) page(w http.ResponseWriter, status int, title string, content ...g.Node) {
	s.write(w, status, s.alone(title, h.H1(g.Text(title)), g.Group(content)))
}
