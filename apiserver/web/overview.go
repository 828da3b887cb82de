// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
)

// fewPosts is how many posts of each kind the overview shows.
const fewPosts = 5

// overview shows a team's first page: open questions, problems, and upcoming and recent posts.
func (s *Site) overview(w http.ResponseWriter, v *visit) error {
	counts, err := s.Service.CountPosts(v.Context(), v.caller)
	if err != nil {
		return err
	}
	asked, err := s.Service.ListPosts(v.Context(), v.caller, postindex.Query{Undecided: postindex.OnlyUndecided, Page: 1, Limit: fewPosts})
	if err != nil {
		return err
	}
	next, err := s.Service.FindPosts(v.Context(), v.caller, &postindex.Search{Status: v1alpha1.PhaseScheduled, From: v.now, SoonestFirst: true, Limit: fewPosts})
	if err != nil {
		return err
	}
	open := filters{status: stateUnhandled}
	q := open.search(v)
	q.Limit = fewPosts
	failed, err := s.Service.FindPosts(v.Context(), v.caller, q)
	if err != nil {
		return err
	}
	recent := map[v1alpha1.PostPhase][]postindex.Summary{}
	for _, status := range []v1alpha1.PostPhase{v1alpha1.PhaseProcessing, v1alpha1.PhasePosted, v1alpha1.PhaseDraft} {
		page, err := s.Service.ListPosts(v.Context(), v.caller, postindex.Query{Status: status, Undecided: postindex.ExcludeUndecided, Page: 1, Limit: fewPosts})
		if err != nil {
			return err
		}
		recent[status] = page.Posts
	}
	content := []g.Node{s.questions(v, &asked), s.attention(v), s.failures(v, &failed), s.tiles(v, &counts)}
	if counts.All() == 0 {
		content = append(content, s.nothingYet(v))
	}
	content = append(content,
		s.few(v, "Next", next.Posts, "calendar", "Calendar"),
		s.few(v, "Being published", recent[v1alpha1.PhaseProcessing], "posts?status=processing", "All"),
		s.few(v, "Recently posted", recent[v1alpha1.PhasePosted], "posts?status=posted", "All"),
		s.few(v, "Drafts", recent[v1alpha1.PhaseDraft], "posts?status=draft", "All"),
	)
	s.render(w, v, http.StatusOK, view{title: "Overview", place: placeOverview, content: content})
	return nil
}

func (s *Site) tiles(v *visit, counts *postindex.Counts) g.Node {
	tile := func(state v1alpha1.PostPhase, label string, n int) g.Node {
		return h.Li(h.A(h.Class(classes("tile", n > 0, "is-"+string(state))), h.Href(v.path("posts")+filters{status: state}.query()),
			h.Strong(g.Text(strconv.Itoa(n))), h.Span(g.Text(label))))
	}
	asked := counts.AllUndecided()
	return h.Ul(h.Class("tiles"), g.If(asked > 0, tile(stateUndecided, needsAnswer.word, asked)),
		g.Map(listed, func(phase v1alpha1.PostPhase) g.Node { return tile(phase, phases[phase], counts.Decided(phase)) }))
}

// few is a short list of posts, or nothing if there are none.
func (s *Site) few(v *visit, title string, of []postindex.Summary, page, more string) g.Node {
	return g.Iff(len(of) > 0, func() g.Node {
		return h.Section(h.Header(h.Class("section"), h.H2(g.Text(title)), h.A(h.Href(v.path(page)), g.Text(more), h.Span(h.Class("hidden"), g.Text(": "+title)))),
			h.Ul(h.Class("list"), g.Map(of, func(p postindex.Summary) g.Node { return s.row(v, &p) })))
	})
}

// failures are the recently failed posts that need a user.
func (s *Site) failures(v *visit, of *postindex.Found) g.Node {
	return g.Iff(of.Total > 0, func() g.Node {
		return h.Section(
			h.Header(h.Class("section"), h.H2(g.Text("Failed in the last 7 days")),
				h.A(h.Href(v.path("posts")+filters{status: stateUnhandled}.query()), g.Text("All "+strconv.Itoa(of.Total)), h.Span(h.Class("hidden"), g.Text(" that failed in the last 7 days")))),
			h.Ul(h.Class("list failures"), g.Map(of.Posts, func(p postindex.Summary) g.Node {
				return h.Li(s.rowLink(v, &p), g.If(v.may.update, v.dismissForm(p.ID, headingOf(&p), v.path(""))))
			})))
	})
}

// questions are the posts with an unknown outcome, which a user has to resolve.
func (s *Site) questions(v *visit, of *bridge.PostPage) g.Node {
	var out g.Group
	for i := range of.Posts {
		p := &of.Posts[i]
		action := "Look at the post"
		if v.may.update {
			action = "Answer"
		}
		out = append(out, notice(caution,
			h.P(h.Strong(g.Text(needsAnswer.word+": ")), g.Text("it is not known whether "+quoted(headingOf(p))+" was published on "+inDoubt(p)+". Do not post it again before you have looked.")),
			h.P(h.A(h.Class("button small"), h.Href(v.path("posts/"+p.ID)), g.Text(action), h.Span(h.Class("hidden"), g.Text(": "+headingOf(p)))))))
	}
	if more := of.Total - len(of.Posts); more > 0 {
		out = append(out, notice(caution, h.P(g.Text("More posts need your answer: "+strconv.Itoa(more)+". "),
			h.A(h.Href(v.path("posts")+filters{status: stateUndecided}.query()), g.Text("All posts that need an answer")))))
	}
	return out
}

// inDoubt returns the platforms where a post's outcome is unknown.
func inDoubt(p *postindex.Summary) string {
	var names []string
	for _, t := range p.Platforms {
		if name := t.Platform.Title(); t.Mark == v1alpha1.MarkUndecided && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

func (s *Site) attention(v *visit) g.Node {
	var out g.Group
	for _, account := range s.accounts(v) {
		state := stateOf(account, v.now)
		if state.tone == good || state.tone == neutral {
			continue
		}
		name := nameOfAccount(account, account.Name) + " on " + account.Spec.Platform.Title()
		about := h.Span(h.Class("hidden"), g.Text(": "+name))
		out = append(out, notice(state.tone, h.P(h.Strong(g.Text(name+": ")), g.Text(state.text)), h.Div(h.Class("actions"),
			g.If(state.reconnect, s.reconnectForm(v, account, h.Button(h.Type("submit"), h.Class("button small primary"), g.Text("Connect again"), about))),
			h.A(h.Class("button small"), h.Href(v.path("connections")+"#"+account.Name), g.Text("Look at the account"), about))))
	}
	if trial := s.trial(v); trial != nil {
		out = append(out, trial)
	}
	return out
}
