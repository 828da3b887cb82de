// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
	texts "github.com/herald-social/herald/internal/text"
)

// pageSize is the number of posts per page of the list.
const pageSize = 25

func (s *Site) posts(w http.ResponseWriter, v *visit) error {
	query := v.URL.Query()
	f := filtersOf(query)
	q := f.search(v)
	q.Cursor, q.Limit = cursorIn(query), pageSize
	found, err := s.Service.FindPosts(v.Context(), v.caller, q)
	if err != nil {
		return err
	}
	s.loadThumbnails(v, found.Posts)
	narrow, err := s.narrow(v, string(placePosts), f)
	if err != nil {
		return err
	}
	s.render(w, v, http.StatusOK, view{title: "Posts", place: placePosts, lists: true, actions: v.toFiles(), content: []g.Node{
		narrow,
		s.list(v, &found, f),
	}})
	return nil
}

// The parameters for a page's cursor: the post before its first one, or the post after its last one.
const (
	paramAfter  = "after"
	paramBefore = "before"
)

// cursorIn parses the cursor in an address: the display time in milliseconds and the id. It ignores invalid ones.
func cursorIn(query url.Values) *postindex.Cursor {
	at, back := query.Get(paramAfter), false
	if before := query.Get(paramBefore); before != "" {
		at, back = before, true
	}
	millis, id, ok := strings.Cut(at, ".")
	number, err := strconv.ParseInt(millis, 10, 64)
	if !ok || err != nil {
		return nil
	}
	return &postindex.Cursor{ID: texts.First(id, maxFilter), DisplayAt: time.UnixMilli(number), Back: back}
}

func cursorAt(p *postindex.Summary) string {
	return strconv.FormatInt(p.DisplayAt.UnixMilli(), 10) + "." + p.ID
}

func (s *Site) list(v *visit, found *postindex.Found, f filters) g.Node {
	if found.Total == 0 {
		if f == (filters{}) {
			return s.nothingYet(v)
		}
		return s.noMatch(v, string(placePosts), f)
	}
	earlier, later := "Newer", "Older"
	if f.soonestFirst() {
		earlier, later = "Sooner", "Later"
	}
	return g.Group{
		h.P(h.Class("soft"), g.Text(position(found)+order(f)+" Times are in "), h.Span(h.Data("zone", ""), g.Text(v.zone.String())), g.Text(". "), s.reach(v, f)),
		v.bulkForm(found, h.Ul(h.Class("list"), g.Map(found.Posts, func(p postindex.Summary) g.Node { return s.selectableRow(v, &p) }))),
		v.pager(string(placePosts), found, earlier, later, f.pairs()...),
	}
}

// position describes the posts on a page, such as "Posts 26 to 50 of 60".
func position(found *postindex.Found) string {
	if len(found.Posts) == found.Total {
		return plural(found.Total, "post")
	}
	return "Posts " + strconv.Itoa(found.First+1) + " to " + strconv.Itoa(found.First+len(found.Posts)) + " of " + strconv.Itoa(found.Total)
}

func order(f filters) string {
	if f.soonestFirst() {
		return ", soonest first."
	}
	return ", newest first."
}

// reach describes what a search does not cover.
func (s *Site) reach(v *visit, f filters) g.Node {
	q := f.search(v)
	if q.CoversArchive() {
		return nil
	}
	limits := ""
	if f.words != "" {
		limits = "The search covers only the beginning of each post. "
	}
	if s.Service.Archive != nil {
		limits += "Archived posts are not searched."
	}
	return g.If(limits != "", g.Text(limits))
}

// noMatch reports that no posts match, and shows the filters.
func (s *Site) noMatch(v *visit, page string, f filters, more ...string) g.Node {
	return h.Div(h.Class("empty"), h.H2(g.Text("No posts match")), h.P(g.Text("Active filters:")),
		items(s.inWordsOf(v, f)), g.If(f.turned(), paragraph("The first day is later than the last one.")), g.If(!f.search(v).CoversArchive(), h.P(s.reach(v, f))),
		h.P(h.Class("actions"), link(v.path(page)+filters{}.query(more...), "Clear all filters", "")))
}

// pager links to the pages before and after. params are the page's other parameters.
func (v *visit) pager(page string, found *postindex.Found, earlier, later string, params ...string) g.Node {
	begins, ends := found.First == 0, found.First+len(found.Posts) >= found.Total
	if begins && ends || len(found.Posts) == 0 {
		return nil
	}
	step := func(param string, at *postindex.Summary, content ...g.Node) g.Node {
		return h.A(h.Class("button"), h.Href(v.path(page)+queryOf(append(slices.Clone(params), param, cursorAt(at)))), g.Group(content))
	}
	return h.Nav(h.Class("pager"), h.Aria("label", "Pages"),
		g.Iff(!begins, func() g.Node { return step(paramBefore, &found.Posts[0], drawing(paramBefore), g.Text(earlier)) }),
		g.Iff(!ends, func() g.Node {
			return step(paramAfter, &found.Posts[len(found.Posts)-1], g.Text(later), drawing(paramAfter))
		}),
	)
}

// nothingYet shows the first step to a team without posts.
func (s *Site) nothingYet(v *visit) g.Node {
	if v.may.seeAccounts && len(s.accounts(v)) == 0 {
		return empty("Connect an account first", "Posts are published to your accounts on "+s.platformNames()+".",
			g.If(v.may.connect, link(v.path("connections"), "Connect an account", "primary")))
	}
	return empty("Write your first post", "It is published to any number of accounts, immediately or at a time that you choose.",
		g.If(v.may.compose(), link(v.path("posts/new"), "New post", "primary")))
}

// platformNames returns the names of the platforms, such as "X, Threads or Facebook".
func (s *Site) platformNames() string {
	names := s.offered()
	titles := make([]string, len(names))
	for i, p := range names {
		titles[i] = p.Title()
	}
	last := len(titles) - 1
	return strings.Join(titles[:last], ", ") + " or " + titles[last]
}

func (s *Site) row(v *visit, p *postindex.Summary) g.Node { return h.Li(s.rowLink(v, p)) }

// selectableRow is a row with a checkbox, if an action on several posts can change the post.
func (s *Site) selectableRow(v *visit, p *postindex.Summary) g.Node {
	return h.Li(v.selection(p), s.rowLink(v, p))
}

func (s *Site) rowLink(v *visit, p *postindex.Summary) g.Node {
	return h.A(h.Href(v.path("posts/"+p.ID)), v.tile(p),
		h.Span(h.Class("what"), h.Strong(h.Dir("auto"), g.Text(headingOf(p))), h.Span(h.Class("soft"), g.Text(categories[p.Category]), byAgent(p.Agent)), chips(p)),
		h.Span(h.Class("when"), displayStatusOf(p).badge(), v.moment(p.DisplayAt)),
	)
}

// byAgent shows the self-reported name of the agent that created a post, if any.
func byAgent(name string) g.Node { return g.If(name != "", g.Text(" by "+quoted(name))) }

var categories = map[v1alpha1.Category]string{
	v1alpha1.CategoryText: "Text", v1alpha1.CategoryImage: "Images", v1alpha1.CategoryVideo: "Video", v1alpha1.CategoryTree: "Thread",
}

func titleOfPost(p *postindex.Summary) string {
	if p.Title == "" {
		return "No caption"
	}
	return p.Title
}

// archivedTitle is the length at which an archived post's title may be truncated.
const archivedTitle = 30

// headingOf returns a post's long title. Archived posts have only a short one.
func headingOf(p *postindex.Summary) string {
	if p.Archived && p.Rest == "" && utf8.RuneCountInString(p.Title) == archivedTitle {
		return strings.TrimSpace(p.Title) + "…"
	}
	return titleOfPost(p) + p.Rest
}
