// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// page returns the frame of every page.
func page(title string, live bool, content ...g.Node) g.Node {
	return h.Doctype(h.HTML(
		h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.Meta(h.Name("description"), h.Content("Six social platforms, simulated for tests of Herald.")),
			h.TitleEl(g.Text(title+" · Herald sandbox")),
			h.Link(h.Rel("icon"), h.Href("/_assets/mark.svg"), h.Type("image/svg+xml")),
			h.Link(h.Rel("stylesheet"), h.Href("/_assets/style.css")),
			g.If(live, h.Script(h.Src("/_assets/live.js"), h.Defer())),
		),
		h.Body(
			h.Header(h.Class("bar"),
				h.A(h.Class("brand"), h.Href("/"), picture("/_assets/mark.svg", 26), g.Text(" Herald "), h.Span(g.Text("sandbox"))),
				h.P(h.Class("note"), g.Text("Simulated. Nothing here leaves this machine.")),
			),
			h.Main(h.ID("page"), g.Group(content)),
		),
	))
}

// picture returns a decorative square picture.
func picture(path string, side int) g.Node {
	return h.Img(h.Src(path), h.Alt(""), h.Width(strconv.Itoa(side)), h.Height(strconv.Itoa(side)))
}

func chip() g.Node { return h.Span(h.Class("chip")) }

// lock marks a protected account.
func lock(private bool) g.Node {
	return g.If(private, g.Raw(`<svg class="lock" viewBox="0 0 24 24" role="img" aria-label="Protected account">`+
		`<path d="M7 10V8a5 5 0 0 1 10 0v2h1a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1H6a1 1 0 0 1-1-1v-9a1 1 0 0 1 1-1h1Zm2 0h6V8a3 3 0 0 0-6 0v2Z"/></svg>`))
}

// outward returns the attributes of an external link. Only web addresses are linked.
func outward(address string) g.Node {
	scheme, _, _ := strings.Cut(strings.ToLower(address), "://")
	if scheme != "http" && scheme != "https" {
		address = "#"
	}
	return g.Group{h.Href(address), h.Rel("noopener noreferrer nofollow")}
}

func (p message) render() g.Node {
	return page(p.Title, false, h.Section(h.Class("message"),
		h.H1(g.Text(p.Title)), h.P(g.Text(p.Text)), h.P(h.A(h.Class("more"), h.Href("/"), g.Text("All accounts"))),
	))
}

func (c Consent) render() g.Node {
	scopes := make(g.Group, 0, 2*len(c.Scopes))
	for i, scope := range c.Scopes {
		scopes = append(scopes, g.If(i > 0, g.Text(", ")), h.Code(g.Text(scope)))
	}
	title := "Connect an account on " + c.Platform
	return page(title, false,
		h.Section(h.Class("intro on-"+c.On),
			h.H1(chip(), g.Text(title)),
			h.P(h.Strong(g.Text(c.Client)), g.Text(" asks for: "), scopes),
		),
		h.Section(h.Class("group"),
			h.H2(g.Text("Allow it for")),
			g.Map(c.Choices, func(choice Choice) g.Node {
				return row(choice.Allow, choice.profile, h.Strong(g.Text("Allow")))
			}),
		),
		h.P(h.A(h.Class("more"), h.Href(c.Deny), g.Text("Do not allow"))),
	)
}

// row returns the list row of an account.
func row(path string, p profile, what ...g.Node) g.Node {
	return h.A(h.Class("row"), h.Href(path),
		picture(p.Avatar, 48),
		h.Span(h.Class("row-who"), h.Strong(g.Text(p.Name), lock(p.Private)), h.Span(h.Class("handle"), g.Text(p.Handle))),
		h.Span(h.Class("row-what"), g.Group(what)),
	)
}

func (p indexPage) render() g.Node {
	return page("Accounts", true,
		h.Section(h.Class("intro"),
			h.H1(g.Text("Accounts")),
			h.P(g.Text("What Herald publishes here shows up in these feeds, as it would on the platforms.")),
		),
		g.Map(p.Groups, func(of *group) g.Node {
			return h.Section(h.Class("group on-"+of.On),
				h.H2(chip(), g.Text(of.Title)),
				g.Map(of.Accounts, func(a accountRow) g.Node {
					return row(a.Path, a.profile, h.Strong(g.Text(a.Posts)), g.If(a.Last != "", h.Span(g.Text(a.Last))))
				}),
				g.If(len(of.Accounts) == 0, empty("No accounts.")),
				g.If(of.Hidden > 0, empty(strconv.Itoa(of.Hidden)+" more accounts are not listed.")),
			)
		}),
	)
}

func empty(text string) g.Node { return h.P(h.Class("empty"), g.Text(text)) }

func (p accountPage) render() g.Node {
	return page(p.Name+" ("+p.Handle+") on "+p.Platform, true,
		h.Section(h.Class("profile on-"+p.On),
			h.Div(h.Class("cover")),
			h.Img(h.Class("portrait"), h.Src(p.Avatar), h.Alt(""), h.Width("96"), h.Height("96")),
			h.H1(g.Text(p.Name), lock(p.Private)),
			h.P(h.Class("handle"), g.Text(p.Handle+" on "), chip(), h.Strong(g.Text(p.Platform))),
			h.P(h.Class("since"), h.Strong(g.Text(p.Posts)), g.Text(" · Joined "+p.Joined)),
		),
		h.Section(h.Class("feed"), h.Aria("label", "Posts"),
			g.Map(p.Threads, thread),
			g.If(len(p.Threads) == 0, empty("No posts yet. The first one appears here by itself.")),
			g.If(p.Older != "", h.A(h.Class("more"), h.Href(p.Older), g.Text("Older posts"))),
		),
	)
}

func (p postPage) render() g.Node {
	return page(p.author.Name+" ("+p.author.Handle+")", true,
		h.Nav(h.Class("crumb on-"+p.On), h.A(h.Href(p.Back), g.Text("← All posts")), h.Span(chip(), g.Text(p.Platform))),
		h.Section(h.Class("feed"), h.Aria("label", "Post"), thread(p.Thread)),
	)
}

func thread(posts []postView) g.Node {
	return h.Div(h.Class("thread"), g.Map(posts, postView.render))
}

func (p postView) render() g.Node {
	class := []string{"post"}
	for _, state := range []struct {
		name string
		is   bool
	}{{"above", p.Above}, {"below", p.Below}, {"focus", p.Focus}} {
		if state.is {
			class = append(class, state.name)
		}
	}
	return h.Article(h.Class(strings.Join(class, " ")), h.ID("p"+p.ID),
		h.A(h.Class("face"), h.Href(p.Path), h.TabIndex("-1"), h.Aria("hidden", "true"), picture(p.Avatar, 44)),
		h.Div(h.Class("who"),
			h.A(h.Class("name"), h.Href(p.Path), g.Text(p.Name)), lock(p.Private), g.Text(" "),
			h.Span(h.Class("handle"), g.Text(p.Handle)), g.Text(" "),
			g.If(p.Badge != "", h.Span(h.Class("badge"), g.Text(p.Badge))),
			g.If(!p.Focus, g.Group{
				h.Span(h.Class("dot"), g.Text("·")), g.Text(" "),
				h.A(h.Class("when"), h.Href(p.Link), h.Time(h.DateTime(p.At), g.Attr("title", p.Full), g.Text(p.Ago))),
			}),
		),
		h.Div(h.Class("body"),
			g.If(p.Title != "", h.P(h.Class("title"), g.Text(p.Title))),
			h.P(h.Class("text"), g.Map(p.Text, span.render)),
			g.If(len(p.Media) > 0, h.Div(h.Class("media of-"+strconv.Itoa(len(p.Media))), g.Map(p.Media, mediaView.render))),
			altTexts(p.Media),
			g.If(p.Focus, h.P(h.Class("meta"), h.Time(h.DateTime(p.At), g.Text(p.Full)), h.Span(g.Text("id "+p.ID)))),
		),
	)
}

func (s span) render() g.Node {
	switch {
	case s.Href != "":
		return h.A(outward(s.Href), g.Text(s.Text))
	case s.Tag:
		return h.Span(h.Class("tag"), g.Text(s.Text))
	default:
		return g.Text(s.Text)
	}
}

// altTexts lists the files' alt texts, which browsers otherwise show only to screen readers.
func altTexts(media []mediaView) g.Node {
	described := slices.DeleteFunc(slices.Clone(media), func(m mediaView) bool { return m.AltText == "" })
	if len(described) == 0 {
		return nil
	}
	return h.Ul(h.Class("alts"), h.Aria("hidden", "true"), g.Map(described, func(m mediaView) g.Node {
		return h.Li(h.Span(h.Class("badge"), g.Text("ALT")), g.Text(" "+m.AltText))
	}))
}

func (m mediaView) render() g.Node {
	size := g.If(m.Width > 0, g.Group{h.Width(strconv.Itoa(m.Width)), h.Height(strconv.Itoa(m.Height))})
	if m.Video {
		return h.Video(h.Src(m.Path), h.Controls(), h.Preload("metadata"), size, g.If(m.AltText != "", h.Aria("label", m.AltText)))
	}
	return h.Img(h.Src(m.Path), h.Alt(m.AltText), h.Loading("lazy"), size)
}
