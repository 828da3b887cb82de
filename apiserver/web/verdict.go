// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"regexp"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// verdict is the form that a user uses to resolve an undecided target.
func (s *Site) verdict(v *visit, post *v1alpha1.Post, i int) g.Node {
	if given, err := attempt.ParseResolutions(post.Annotations[v1alpha1.SettleAnnotation]); err == nil &&
		slices.ContainsFunc(given, func(r attempt.Resolution) bool { return int(r.Index) == i }) {
		return notice(neutral, paragraph("Herald is applying your answer."))
	}
	status := posting.Of(post).Target(i)
	to := verdictForm{s: s, v: v, post: post, target: i}
	return h.Div(h.Class("verdict"),
		g.If(status.AnswerProblem != "", notice(caution, paragraph("Herald could not apply your last answer: "+sentence(inPlainWords(status.AnswerProblem))))),
		to.candidates(status.Candidates),
		h.H3(g.Text("Is it another one?")),
		to.byName(),
		to.unnamed(len(status.Cards)+1 < posting.Of(post).Cards()),
		h.H3(g.Text("Is it missing?")),
		to.notSent(),
	)
}

// inPlainWords removes the parts of a problem that are meant for kubectl users: the target's number, and the
// annotation's syntax.
func inPlainWords(problem string) string {
	return notation.ReplaceAllString(problem, "")
}

var notation = regexp.MustCompile(`^target [0-9]+: | \("[0-9]+=posted"\)|: "[0-9]+=posted:<[^>]*>"`)

type verdictForm struct {
	s      *Site
	v      *visit
	post   *v1alpha1.Post
	target int
}

// form returns a form that submits a verdict. See the function form for confirm.
func (a *verdictForm) form(verdict, confirm string, content ...g.Node) g.Node {
	return form(a.v.path("posts/"+a.post.Name+"/settle"), confirm, hidden("target", strconv.Itoa(a.target)), hidden("verdict", verdict), g.Group(content))
}

// candidates shows the account's posts that may be the target's result.
func (a *verdictForm) candidates(found []v1alpha1.Candidate) g.Node {
	again := a.form(verdictRelist, "", submit("Look again", "small"))
	if a.post.Annotations[v1alpha1.ListCandidatesAnnotation] != "" {
		again = h.P(h.Class("soft"), g.Text("Herald is checking the account. The result appears here in a few seconds; reload the page if nothing changes."))
	}
	if len(found) == 0 {
		return g.Group{h.P(g.Text("None of the account's listed posts could be this one. The platform may list it later.")), again}
	}
	return g.Group{
		h.H3(g.Text("Is it one of these?")),
		h.P(h.Class("soft"), g.Text("These were published on the account since then.")),
		h.Ul(h.Class("candidates"), g.Map(found, a.candidate)),
		again,
	}
}

func (a *verdictForm) candidate(c v1alpha1.Candidate) g.Node {
	words := c.Text
	if words == "" {
		words = "A post without text"
	}
	return h.Li(
		h.P(h.Class("caption"), g.Attr("dir", "auto"), g.Text(words)),
		h.P(h.Class("soft"),
			g.Iff(c.PostedAt != nil, func() g.Node { return g.Group{a.v.moment(c.PostedAt.Time), g.Text(" ")} }),
			g.If(c.ExternalURL != "", elsewhere(c.ExternalURL, "Open on "+a.s.platformOf(a.v, a.post, a.target).Title()))),
		a.form(verdictCandidate, "", hidden("candidate", c.ExternalID), submit("Yes, it is this one", "small")),
	)
}

func (a *verdictForm) byName() g.Node {
	id := "found-" + strconv.Itoa(a.target)
	help := "the post's id on the platform"
	if reader := a.s.reader(a.s.platformOf(a.v, a.post, a.target)); reader != nil {
		help = reader.PostHint()
	}
	return g.Group{
		a.form(verdictPosted, "", h.Class("inline"),
			h.Label(h.For(id), g.Text("Its address")), h.Input(h.ID(id), h.Name("found"), h.Required(), h.MaxLength("2000"), h.AutoComplete("off"), h.Aria("describedby", id+"-help")),
			submit("It was published", "small")),
		h.P(h.ID(id+"-help"), h.Class("soft"), g.Text(sentence("Enter "+help))),
	}
}

// unnamed is the form for a published post whose address is not known. If more parts of the thread follow, it is not
// offered: the next part replies to this one and needs its id.
func (a *verdictForm) unnamed(partsFollow bool) g.Node {
	if partsFollow {
		return h.P(h.Class("soft"), g.Text("The next part of the thread replies to this one, so Herald needs its address to continue."))
	}
	return a.form(verdictUnnamed, "The post then counts as published, without a link to it. Is it certain that it is online?",
		submit("It was published, but I have no address", "small"))
}

func (a *verdictForm) notSent() g.Node {
	return g.Group{
		h.P(h.Class("soft"), g.Text("Herald may publish it then. If it is online after all, it is published twice.")),
		a.form(verdictNotSent, "Is it certain that the post was not published? Herald records it as not sent, and sends it if it can still be published.",
			submit("It was not published", "small danger")),
	}
}
