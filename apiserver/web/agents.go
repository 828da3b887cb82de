// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Permissions for other users' grants. Users can always see and revoke their own.
var (
	seeGrants    = right{verbList, "oauthgrants"}
	updateGrants = right{verbUpdate, "oauthgrants"}
)

func (s *Site) agents(w http.ResponseWriter, v *visit) error {
	all, err := s.allowed(v.Context(), v, seeGrants)
	if err != nil {
		return err
	}
	mayEnd, err := s.allowed(v.Context(), v, updateGrants)
	if err != nil {
		return err
	}
	grants, err := s.Agents.List(v.Context(), v.namespace)
	if err != nil {
		return err
	}
	if !all {
		grants = slices.DeleteFunc(grants, func(grant v1alpha1.OAuthGrant) bool { return !isOwnGrant(v, &grant) })
	}
	how := h.P(g.Text("To connect one, add "), h.Code(h.ID("mcp"), g.Text(s.Agents.Resource())), g.Text(" "),
		h.Button(h.Type("button"), h.Class("button small"), h.Data("copy", "#mcp"), g.Text("Copy")), g.Text(" to it as an MCP server. It then sends you here for permission."))
	content := []g.Node{how}
	if len(grants) == 0 {
		content = append(content, empty("No agent yet", "Agents that people allow to act for the team are listed here."))
	} else {
		content = append(content, h.Ul(h.Class("accounts"), g.Map(grants, func(grant v1alpha1.OAuthGrant) g.Node {
			return s.agentCard(v, &grant, mayEnd || isOwnGrant(v, &grant))
		})))
	}
	s.render(w, v, http.StatusOK, view{title: "Agents", place: placeAgents, content: content})
	return nil
}

func isOwnGrant(v *visit, grant *v1alpha1.OAuthGrant) bool {
	return grant.Spec.Person.Name == v.person.Name
}

func (s *Site) agentCard(v *visit, grant *v1alpha1.OAuthGrant, mayEnd bool) g.Node {
	client, over := &grant.Spec.Client, s.Agents.State(grant)
	name, label, shade := client.Name, "Allowed", good
	if name == "" {
		name = client.RedirectHost
	}
	if over != "" {
		label, shade = strings.TrimSuffix(sentence(over), "."), neutral
	}
	who := grant.Spec.Person.DisplayName
	if who == "" || isOwnGrant(v, grant) {
		who = s.personNamed(v, grant.Spec.Person.Name)
	}
	return h.Li(h.Class("card account"), h.ID(grant.Name),
		h.Div(h.Class("target-head"), h.Span(h.Class("account"), h.H2(g.Text(name)), h.Span(h.Class("soft"), g.Text(origin(client)))),
			h.Span(h.Class("badge kind-"+string(shade)), g.Text(label))),
		h.Dl(h.Class("small"),
			fact("It may", g.Text(levelOf(grant))),
			fact("Allowed by", h.Span(h.Title(grant.Spec.Person.Name), g.Text(who))),
			fact("Since", v.about(grant.CreationTimestamp.Time)),
			fact("Last used", lastCall(v, grant)),
			fact("Ends", v.moment(grant.Spec.ExpiresAt.Time)),
			g.If(grant.Status.RevokedReason != "", fact("Why it ended", g.Text(revocationReasons[grant.Status.RevokedReason]))),
		),
		g.If(mayEnd && over == "", h.Div(h.Class("actions"),
			form(v.path("agents/"+grant.Name+"/revoke"), "Revoke this agent? It loses access immediately and must ask again.", submit("Revoke", "small danger")))),
	)
}

var revocationReasons = map[string]string{
	v1alpha1.GrantReuse:     "Its token was used twice and may have been stolen",
	v1alpha1.GrantReplay:    "Its code was used twice and may have been stolen",
	v1alpha1.GrantSignedOff: "Revoked by the agent",
	v1alpha1.GrantExpired:   "Expired",
}

// origin describes an agent's origin, and whether it is verified.
func origin(client *v1alpha1.OAuthGrantClient) string {
	if client.Verified {
		return client.ID + ", verified"
	}
	return client.RedirectHost + ", not verified"
}

func levelOf(grant *v1alpha1.OAuthGrant) string {
	words := ""
	for _, level := range levels {
		if slices.Contains(grant.Spec.Scopes, v1alpha1.OAuthScope(level.scope)) {
			words = level.label
		}
	}
	return words
}

func lastCall(v *visit, grant *v1alpha1.OAuthGrant) g.Node {
	if at := grant.Status.LastUsedAt; at != nil {
		return v.about(at.Time)
	}
	return g.Text("never")
}

// revokeAgent revokes one of the visitor's own agents or, with permission to update grants, any agent.
func (s *Site) revokeAgent(w http.ResponseWriter, v *visit) error {
	may, err := s.allowed(v.Context(), v, updateGrants)
	if err != nil {
		return err
	}
	err = s.Agents.RevokeGrant(v.Context(), v.caller, v.PathValue("id"), func(grant *v1alpha1.OAuthGrant) error {
		if may || isOwnGrant(v, grant) {
			return nil
		}
		return forbidden(updateGrants, v)
	})
	if err != nil {
		return err
	}
	v.redirect(w, "agents", "ended")
	return nil
}
