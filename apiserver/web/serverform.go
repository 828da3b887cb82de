// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/apiserver/rest"
)

// connectOnServer asks for an account's server, and redirects to the server's consent page once it is known. After an
// error it asks again.
func (s *Site) connectOnServer(w http.ResponseWriter, v *visit, wanted connect.Wanted) error {
	if err := s.visitor(v.session).May(v.Context(), v.namespace, connect.Create); err != nil {
		return err
	}
	if wanted.Server == "" {
		s.renderServerForm(w, v, wanted, http.StatusOK, nil)
		return nil
	}
	started, err := s.Connect.Start(v.Context(), s.visitor(v.session), v.namespace, wanted)
	if known, ok := asError(err); ok {
		s.renderServerForm(w, v, wanted, rest.StatusOf(known.Code), notice(bad, paragraph(sentence(known.Message))))
		return nil
	}
	if err != nil {
		return err
	}
	s.toConsent(w, started)
	return nil
}

func (s *Site) renderServerForm(w http.ResponseWriter, v *visit, wanted connect.Wanted, status int, problem g.Node) {
	on := wanted.Platform.Title()
	s.render(w, v, status, view{title: "Connect " + on, place: placeAccounts, content: []g.Node{
		problem,
		h.Section(h.Class("card"),
			paragraph(on+" has many servers. Enter the one where the account is. You allow access there, and return here."),
			form(v.path("connections/connect"), "", hidden("platform", string(wanted.Platform)),
				h.P(h.Class("field"), h.Label(h.For("server"), g.Text("Server")),
					h.Input(h.ID("server"), h.Name("server"), h.Value(wanted.Server), h.Required(), h.MaxLength("261"), h.AutoComplete("off"), g.Attr("spellcheck", "false"),
						g.Attr("autocapitalize", "none"), g.Attr("inputmode", "url"), h.Placeholder("mastodon.social"))),
				submit("Continue", "primary"),
			)),
		link(v.path("connections"), "Connect none", "quiet"),
	}})
}
