// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
)

// pageSize is the number of posts per page of the list.
const pageSize = 25

// listed are the phases that lists offer, in the order that a post goes through them.
var listed = []v1alpha1.PostPhase{
	v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled, v1alpha1.PhaseProcessing, v1alpha1.PhasePosted, v1alpha1.PhaseFailed,
}

// platformOrder is the order of platforms in menus.
var platformOrder = []v1alpha1.Platform{
	v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformInstagram, v1alpha1.PlatformFacebook, v1alpha1.PlatformTikTok, v1alpha1.PlatformYouTube,
}

type filters struct {
	// status is a phase, or stateUndecided.
	status   v1alpha1.PostPhase
	platform v1alpha1.Platform
}

// states returns the query's phase and undecided filter. An undecided post is listed only under stateUndecided.
func (f filters) states() (v1alpha1.PostPhase, postindex.UndecidedFilter) {
	if f.status == "" {
		return "", postindex.IncludeUndecided
	}
	if f.status == stateUndecided {
		return "", postindex.OnlyUndecided
	}
	return f.status, postindex.ExcludeUndecided
}

// filtersOf parses the filters in an address. It ignores unknown values.
func filtersOf(query url.Values) filters {
	var f filters
	if status := v1alpha1.PostPhase(query.Get("status")); status == stateUndecided || slices.Contains(listed, status) {
		f.status = status
	}
	if platform := v1alpha1.Platform(query.Get("platform")); slices.Contains(platformOrder, platform) {
		f.platform = platform
	}
	return f
}

// query returns these filters as a query string, with additional parameters.
func (f filters) query(more ...string) string {
	q := url.Values{}
	if f.status != "" {
		q.Set("status", string(f.status))
	}
	if f.platform != "" {
		q.Set("platform", string(f.platform))
	}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

func (s *Site) posts(w http.ResponseWriter, v *visit) error {
	query := v.URL.Query()
	f := filtersOf(query)
	number, _ := strconv.Atoi(query.Get("page"))
	status, asked := f.states()
	page, err := s.Service.ListPosts(v.Context(), v.caller, postindex.Query{Status: status, Undecided: asked, Platform: f.platform, Page: number, Limit: pageSize})
	if err != nil {
		return err
	}
	narrow, err := s.narrow(v, "posts", f)
	if err != nil {
		return err
	}
	s.render(w, v, http.StatusOK, view{title: "Posts", place: placePosts, content: []g.Node{
		narrow,
		s.list(v, page, f),
	}})
	return nil
}

func (s *Site) narrow(v *visit, page string, f filters, more ...string) (g.Node, error) {
	counts, err := s.Service.CountPosts(v.Context(), v.caller)
	if err != nil {
		return nil, err
	}
	tab := func(status v1alpha1.PostPhase, label string, n int) g.Node {
		to := filters{status, f.platform}
		return h.Li(h.A(h.Href(v.path(page)+to.query(more...)), g.If(status == f.status, h.Aria("current", "true")),
			g.Text(label), h.Span(h.Class("count"), g.Text(strconv.Itoa(n)))))
	}
	asked := counts.AllUndecided()
	return h.Div(h.Class("narrow"),
		h.Nav(h.Aria("label", "Posts by state"), h.Ul(h.Class("tabs"),
			tab("", "All", counts.All()),
			g.If(asked > 0 || f.status == stateUndecided, tab(stateUndecided, needsAnswer.word, asked)),
			g.Map(listed, func(phase v1alpha1.PostPhase) g.Node { return tab(phase, phases[phase], counts.Decided(phase)) }),
		)),
		h.Form(h.Method("get"), h.Action(v.path(page)), h.Class("inline"),
			g.If(f.status != "", hidden("status", string(f.status))),
			pairs(more),
			h.Label(h.For("platform"), h.Class("hidden"), g.Text("Platform")),
			h.Select(h.ID("platform"), h.Name("platform"),
				h.Option(h.Value(""), g.Text("All platforms")),
				g.Map(platformOrder, func(p v1alpha1.Platform) g.Node {
					return h.Option(h.Value(string(p)), g.If(p == f.platform, h.Selected()), g.Text(p.Title()))
				}),
			),
			submit("Show", "small"),
		),
	), nil
}

func pairs(of []string) g.Node {
	var out g.Group
	for i := 0; i+1 < len(of); i += 2 {
		out = append(out, hidden(of[i], of[i+1]))
	}
	return out
}

func (s *Site) list(v *visit, page bridge.PostPage, f filters) g.Node {
	if page.Total == 0 && f == (filters{}) {
		return s.nothingYet(v)
	}
	if len(page.Posts) == 0 {
		return empty("No posts here", "No posts match. Choose another state or platform.", link(v.path("posts"), "All posts", ""))
	}
	step := func(to int, icon, label string) g.Node {
		return h.A(h.Class("button"), h.Href(v.path("posts")+f.query("page", strconv.Itoa(to))), drawing(icon), g.Text(label))
	}
	return g.Group{
		h.Ul(h.Class("list"), g.Map(page.Posts, func(p postindex.Summary) g.Node { return s.row(v, &p) })),
		g.If(page.Page > 1 || page.HasNext, h.Nav(h.Class("pager"), h.Aria("label", "Pages"),
			g.If(page.Page > 1, step(page.Page-1, "before", "Newer")),
			h.Span(g.Text("Page "+strconv.Itoa(page.Page)+" of "+strconv.Itoa((page.Total+page.Limit-1)/page.Limit))),
			g.If(page.HasNext, step(page.Page+1, "after", "Older")),
		)),
	}
}

// nothingYet shows the first step to a team without posts.
func (s *Site) nothingYet(v *visit) g.Node {
	if v.may.seeAccounts && len(s.accounts(v)) == 0 {
		return empty("Connect an account first", "Posts are published to your accounts on X, Threads, Instagram, Facebook, TikTok or YouTube.",
			g.If(v.may.connect, link(v.path("connections"), "Connect an account", "primary")))
	}
	return empty("Write your first post", "It is published to any number of accounts, immediately or at a time that you choose.",
		g.If(v.may.compose(), link(v.path("posts/new"), "New post", "primary")))
}

func (s *Site) row(v *visit, p *postindex.Summary) g.Node {
	return h.Li(h.A(h.Href(v.path("posts/"+p.ID)),
		h.Span(h.Class("what"), h.Strong(g.Text(titleOfPost(p))), h.Span(h.Class("soft"), g.Text(categories[p.Category]), byAgent(p.Agent)), chips(p)),
		h.Span(h.Class("when"), displayStatusOf(p).badge(), v.moment(p.DisplayAt)),
	))
}

// byAgent shows the self-reported name of the agent that created a post, if any.
func byAgent(name string) g.Node { return g.If(name != "", g.Text(" by "+quoted(name))) }

var categories = map[v1alpha1.Category]string{
	v1alpha1.CategoryText: "Text", v1alpha1.CategoryImage: "Images", v1alpha1.CategoryVideo: "Video", v1alpha1.CategoryTree: "Thread",
}

func titleOfPost(p *postindex.Summary) string {
	if p.Title == "" {
		return "Without a caption"
	}
	return p.Title
}
