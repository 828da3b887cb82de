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

// connectByHandle redirects to the consent page of the server that hosts a handle's account. After an error it shows
// the form again. page is where users create an app password, which can also connect the account.
func (s *Site) connectByHandle(w http.ResponseWriter, v *visit, wanted connect.Wanted, page string) error {
	started, err := s.Connect.Start(v.Context(), s.visitor(v.session), v.namespace, wanted)
	if known, ok := asError(err); ok {
		typed := &connect.Credentials{Platform: wanted.Platform, Name: wanted.Handle, Reconnect: wanted.Reconnect}
		s.renderPasswordForm(w, v, typed, page, rest.StatusOf(known.Code), notice(bad, paragraph(sentence(known.Message))))
		return nil
	}
	if err != nil {
		return err
	}
	s.toConsent(w, started)
	return nil
}

// handleForm asks for an account's handle, from which Herald finds its server.
func handleForm(v *visit, typed *connect.Credentials, handle string) g.Node {
	return h.Section(h.Class("card"),
		paragraph("Enter the account's handle. You allow access on the account's server, and return here."),
		form(v.path("connections/connect"), "", hidden("platform", string(typed.Platform)), hidden("connection", typed.Reconnect),
			handleField("handle", handle),
			submit("Continue", "primary"),
		))
}

// handleField is the input for a handle, with id as its id and name.
func handleField(id, handle string) g.Node {
	return h.P(h.Class("field"), h.Label(h.For(id), g.Text("Handle")),
		h.Input(h.ID(id), h.Name(id), h.Value(handle), h.Required(), h.MaxLength("253"), h.AutoComplete("off"), g.Attr("spellcheck", "false"),
			g.Attr("autocapitalize", "none"), h.Placeholder("name.bsky.social")))
}

// clientDocument serves the document that identifies the installation to a platform's servers.
func (s *Site) clientDocument(w http.ResponseWriter, r *http.Request) {
	document, err := s.Connect.ClientDocument(v1alpha1.Platform(r.PathValue("platform")))
	if err != nil {
		rest.WriteNotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document) //nolint:gosec // JSON from the configuration; an error means that the client has gone
}
