// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/oauth"
	"github.com/herald-social/herald/apiserver/session"
)

const teamParameter = "team"

// levels are the scopes as shown to users. Each includes those before it.
var levels = []struct {
	scope       bridge.Scope
	label, text string
}{
	{bridge.ScopeRead, "Read", "It can read accounts, posts and their results."},
	{bridge.ScopeDraft, "Read and write drafts", "It can also write drafts and upload files. A user publishes the drafts."},
	{bridge.ScopePublish, "Read, write and publish", "It can also publish, schedule and cancel posts without asking."},
}

// authorize shows the consent page for an agent. It does not change anything.
func (s *Site) authorize(w http.ResponseWriter, r *http.Request) {
	// An agent that runs in a web page waits for the response in the window that opened this one.
	w.Header().Set("Cross-Origin-Opener-Policy", "unsafe-none")
	of, ok := session.From(r.Context())
	if !ok {
		s.toSignIn(w, r)
		return
	}
	query := r.URL.Query()
	asked, err := s.Agents.Read(r.Context(), query, of.Person)
	if err != nil {
		s.notAllowed(w, r, err)
		return
	}
	teams, err := s.Access.Teams(r.Context(), of.Person)
	if err != nil {
		s.failure(w, r, nil, err)
		return
	}
	var team *v1alpha1.Team
	for _, t := range teams {
		if len(teams) == 1 || t.Spec.Namespace == query.Get(teamParameter) {
			team = t
		}
	}
	switch {
	case len(teams) == 0:
		s.noTeam(w, of.Person)
	case team == nil:
		s.chooseTeam(w, asked, teams, query)
	default:
		s.renderConsent(w, r, of, asked, team, len(teams) > 1)
	}
}

func (s *Site) chooseTeam(w http.ResponseWriter, asked *oauth.Request, teams []*v1alpha1.Team, query url.Values) {
	s.page(w, http.StatusOK, "For which team?",
		h.P(h.Strong(g.Text(asked.Client.Shown())), g.Text(" wants to act for one of your teams.")),
		h.Ul(h.Class("choices"), g.Map(teams, func(t *v1alpha1.Team) g.Node {
			query.Set(teamParameter, t.Spec.Namespace)
			return h.Li(link(oauth.AuthorizePath+"?"+query.Encode(), nameOf(t), ""))
		})))
}

// renderConsent shows the requesting agent, the scopes, and where the response is sent.
func (s *Site) renderConsent(w http.ResponseWriter, r *http.Request, of session.Session, asked *oauth.Request, team *v1alpha1.Team, several bool) {
	offered, err := s.Agents.Offer(r.Context(), asked, of.Person, team.Spec.Namespace)
	if err != nil {
		s.failure(w, r, nil, err)
		return
	}
	if len(offered) == 0 {
		s.page(w, http.StatusForbidden, "You are not allowed to grant this",
			paragraph("Ask an administrator of the team "+nameOf(team)+" for a role."), link("/", "To the start page", "primary"))
		return
	}
	again := r.URL.Query()
	again.Del(teamParameter)
	// Browsers also apply form-action to the redirect after this form.
	w.Header().Set("Content-Security-Policy", strings.Replace(s.policy, "form-action 'self'", "form-action 'self' "+oauth.FormAction(asked.Redirect), 1))
	s.page(w, http.StatusOK, "Allow "+quoted(asked.Client.Shown())+"?",
		requester(asked),
		h.Dl(
			fact("For the team", h.Strong(g.Text(nameOf(team))), g.If(several, g.Group{g.Text(" "), h.A(h.Href(oauth.AuthorizePath+"?"+again.Encode()), g.Text("another one"))})),
			fact("Allowed by", g.If(of.Person.Shown() != of.Person.Name, g.Text(of.Person.Shown()+", ")), h.Code(g.Text(of.Person.Name))),
			fact("It redirects to", g.Group(whereTo(asked))),
		),
		h.Form(h.Method("post"), h.Action(oauth.AuthorizePath), h.Class("pick"),
			hidden("consent", s.Agents.Seal(asked, of, team.Spec.Namespace)),
			// No level is preselected, so a single click cannot allow anything.
			h.FieldSet(h.Legend(g.Text("It may")), h.Ul(g.Map(indexes(len(offered)), func(i int) g.Node {
				level := levels[i]
				id := "level-" + string(level.scope)
				return h.Li(h.Input(h.Type("radio"), h.ID(id), h.Name("level"), h.Value(string(level.scope)), h.Required()),
					h.Label(h.For(id), h.Span(h.Class("account"), h.Strong(g.Text(level.label)), h.Span(h.Class("soft"), g.Text(level.text)))))
			}))),
			g.If(team.Spec.Agents.Publishing == v1alpha1.AgentsDraft, h.P(g.Text("In this team, agents' posts wait as drafts for a user's review."))),
			h.P(h.Class("soft"), g.Text("It never has more rights than you. You can revoke it at any time on the team's Agents page.")),
			h.Div(h.Class("actions"),
				h.Button(h.Type("submit"), h.Class("button primary"), h.Name("decision"), h.Value("allow"), g.Text("Allow")),
				h.Button(h.Type("submit"), h.Class("button"), h.Name("decision"), h.Value("deny"), g.Attr("formnovalidate"), g.Text("Deny"))),
		))
}

// requester shows how far the agent's name can be trusted.
func requester(asked *oauth.Request) g.Node {
	c := &asked.Client
	if !c.Verified {
		return notice(caution, h.P(h.Strong(g.Text("This agent is not verified.")), g.Text(" It chose its own name, which may be false. Allow it only if you have just connected it yourself.")))
	}
	known := notice(neutral, h.P(g.Text("This agent is identified by its site, "), h.Strong(g.Text(c.Host())), g.Text(". The site provides its name.")))
	if !asked.ToComputer() {
		return known
	}
	return g.Group{known, notice(caution, h.P(h.Strong(g.Text("Any program on this computer can impersonate it.")),
		g.Text(" It redirects to a program on this computer, which its site cannot identify. Allow it only if you have just started it yourself.")))}
}

func whereTo(asked *oauth.Request) []g.Node {
	where := h.Strong(g.Text(asked.RedirectHost()))
	switch application := asked.Application(); {
	case application != "":
		return []g.Node{g.Text("the application on this computer that opens "), h.Strong(g.Text(application))}
	case asked.ToComputer():
		return []g.Node{g.Text("a program on this computer, "), where}
	default:
		return []g.Node{where}
	}
}

func (s *Site) decide(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cross-Origin-Opener-Policy", "unsafe-none")
	of, ok := session.From(r.Context())
	if !ok {
		s.toSignIn(w, r)
		return
	}
	done, err := s.personForm(w, r, of.Person)
	defer done()
	if err != nil {
		s.failure(w, r, nil, err)
		return
	}
	location, err := s.Agents.Decide(r.Context(), of, oauth.Decision{
		Sealed: r.PostForm.Get("consent"), Allow: r.PostForm.Get("decision") == "allow", Most: bridge.Scope(r.PostForm.Get("level")),
	})
	if err != nil {
		s.notAllowed(w, r, err)
		return
	}
	http.Redirect(w, r, location, http.StatusSeeOther)
}

// invalidRequest shows an unverified client's error. The redirect URI is unverified too, so the page has a link instead
// of a redirect.
func (s *Site) invalidRequest(w http.ResponseWriter, refused *oauth.Refused) {
	known := " (not verified)"
	if host := refused.Client.Host(); host != "" {
		known = " (identified by its site, " + host + ")"
	}
	s.page(w, http.StatusBadRequest, "Invalid request from the agent",
		h.P(g.Text("The request of the agent "), h.Strong(g.Text(refused.Client.Shown())), g.Text(known+" is invalid: "), h.Code(g.Text(refused.What())), g.Text(".")),
		h.P(g.Text("Access was not granted. The redirect would go to "), h.Strong(g.Text(refused.Host)), g.Text(". Go there only if you came from there, and do not sign in to Herald there.")),
		h.Div(h.Class("actions"), link("/", "To the start page", "primary"),
			h.A(h.Class("button"), h.Href(refused.Location), h.Rel("noreferrer nofollow"), g.Text("Back to "+refused.Host))))
}

// notAllowed shows an error caused by the agent or the user, or redirects to the agent with the error.
func (s *Site) notAllowed(w http.ResponseWriter, r *http.Request, err error) {
	var (
		shown   *oauth.PageError
		refused *oauth.Refused
	)
	switch {
	case errors.As(err, &refused) && refused.AutoRedirect:
		http.Redirect(w, r, refused.Location, http.StatusSeeOther)
	case errors.As(err, &refused):
		s.invalidRequest(w, refused)
	case errors.As(err, &shown):
		s.page(w, shown.Status, shown.Title, paragraph(shown.Message), link("/", "To the start page", "primary"))
	default:
		s.failure(w, r, nil, err)
	}
}
