// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/apiserver/rest"
)

// connectByPassword asks for an account's handle and an app password, which users create on the given page, and
// connects the account once both are entered. After an error it asks again.
func (s *Site) connectByPassword(w http.ResponseWriter, v *visit, platform v1alpha1.Platform, page string) error {
	typed := &connect.Credentials{
		Platform: platform, Name: v.PostForm.Get("name"), Password: v.PostForm.Get("password"), Reconnect: v.PostForm.Get("connection"),
	}
	verb := connect.Create
	if typed.Reconnect != "" {
		verb = connect.Patch
	}
	if err := s.visitor(v.session).May(v.Context(), v.namespace, verb); err != nil {
		return err
	}
	if typed.Password == "" {
		s.renderPasswordForm(w, v, typed, page, http.StatusOK, nil)
		return nil
	}
	out, err := s.Connect.ConnectPassword(v.Context(), s.visitor(v.session), v.namespace, typed)
	if known, ok := asError(err); ok {
		s.renderPasswordForm(w, v, typed, page, rest.StatusOf(known.Code), notice(bad, paragraph(sentence(known.Message))))
		return nil
	}
	if err != nil {
		return err
	}
	s.connected(w, v.Request, v.session.Person, out, nil)
	return nil
}

func (s *Site) renderPasswordForm(w http.ResponseWriter, v *visit, typed *connect.Credentials, page string, status int, problem g.Node) {
	on, name := typed.Platform.Title(), typed.Name
	if c := s.account(v, typed.Reconnect); c != nil && name == "" {
		name = c.Status.Username
	}
	s.render(w, v, status, view{title: "Connect " + on, place: placeAccounts, content: []g.Node{
		problem,
		g.If(s.Connect.NeedsHandle(typed.Platform), handleForm(v, typed, name)),
		h.Section(h.Class("card"),
			g.If(s.Connect.NeedsHandle(typed.Platform), h.H2(g.Text("With an app password"))),
			h.P(g.Text("Herald signs in to "+on+" with an app password, which you can revoke there at any time. "),
				h.A(outward(page), g.Text("Create an app password on "+on)), g.Text(", then enter it here. Do not enter the account's own password.")),
			form(v.path("connections/connect"), "", hidden("platform", string(typed.Platform)), hidden("connection", typed.Reconnect),
				handleField("name", name),
				h.P(h.Class("field"), h.Label(h.For("password"), g.Text("App password")),
					h.Input(h.ID("password"), h.Type("password"), h.Name("password"), h.Required(), h.MaxLength("100"), h.AutoComplete("off"), h.Placeholder("abcd-efgh-ijkl-mnop"))),
				submit("Connect", "primary"),
			)),
		link(v.path("connections"), "Connect none", "quiet"),
	}})
}
