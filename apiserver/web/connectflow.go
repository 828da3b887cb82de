// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/apiserver/session"
)

func (s *Site) visitor(of session.Session) connect.Visitor {
	return connect.Visitor{Session: of.ID, Person: of.Person.Name, May: func(ctx context.Context, namespace string, verb connect.Verb) error {
		may, err := s.Access.May(ctx, of.Person, namespace, string(verb), "connections")
		if err == nil && !may {
			err = &errForbidden{"You are not allowed to " + right{string(verb), ofConnections}.inWords() + ". Ask an administrator of your team."}
		}
		return err
	}}
}

func (s *Site) connect(w http.ResponseWriter, v *visit) error {
	if _, err := s.readForm(w, v); err != nil {
		return err
	}
	platform := v1alpha1.Platform(v.PostForm.Get("platform"))
	wanted := connect.Wanted{
		Platform: platform, Server: v.PostForm.Get("server"), Handle: v.PostForm.Get("handle"), Reconnect: v.PostForm.Get("connection"),
	}
	if page, ok := s.Connect.AppPasswords(platform); ok {
		if wanted.Handle != "" && s.Connect.NeedsHandle(platform) {
			return s.connectByHandle(w, v, wanted, page)
		}
		return s.connectByPassword(w, v, platform, page)
	}
	if s.Connect.NeedsServer(platform) && wanted.Reconnect == "" {
		return s.connectOnServer(w, v, wanted)
	}
	started, err := s.Connect.Start(v.Context(), s.visitor(v.session), v.namespace, wanted)
	if err != nil {
		return err
	}
	s.toConsent(w, started)
	return nil
}

// toConsent sends the browser to a consent page.
func (s *Site) toConsent(w http.ResponseWriter, started connect.Started) {
	http.SetCookie(w, started.Cookie)
	// Browsers apply form-action to all redirects after a form, including the platform's redirects to other hosts,
	// which are unknown. A page with a Refresh header is not a form.
	to := started.Platform.Title()
	w.Header().Set("Refresh", "0; url="+started.Address)
	s.page(w, http.StatusOK, "On to "+to, paragraph("Choose the account there; you will return here."),
		h.P(h.A(h.Class("button primary"), h.Href(started.Address), g.Text("Continue to "+to))))
}

// callback completes a flow after the platform's redirect.
func (s *Site) callback(w http.ResponseWriter, r *http.Request) {
	of, ok := session.From(r.Context())
	if !ok {
		s.page(w, http.StatusUnauthorized, "You are signed out", paragraph("Nothing was connected. Sign in, then start again."), link("/signin", "Sign in", "primary"))
		return
	}
	value := func(name string) string {
		cookie, err := r.Cookie(name)
		if err != nil {
			return ""
		}
		return cookie.Value
	}
	back := connect.Return{Platform: v1alpha1.Platform(r.PathValue("platform")), Server: r.PathValue("server"), Query: r.URL.Query()}
	out, err := s.Connect.Callback(r.Context(), s.visitor(of), back, value)
	if out.Cookie != nil {
		http.SetCookie(w, out.Cookie)
	}
	s.connected(w, r, of.Person, out, err)
}

func (s *Site) choose(w http.ResponseWriter, r *http.Request) {
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
	out, err := s.Connect.Choose(r.Context(), s.visitor(of), r.PostForm.Get("pending"), r.PostForm.Get("account"))
	s.connected(w, r, of.Person, out, err)
}

func (s *Site) connected(w http.ResponseWriter, r *http.Request, who access.Person, out connect.Outcome, err error) {
	accounts := "/teams/" + out.Namespace + "/connections"
	switch {
	case err != nil:
		s.notConnected(w, r, out.Namespace, err)
	case out.Connection == nil:
		s.choices(w, r, out)
	default:
		act, word := bridge.ActConnected, "connected"
		if out.Renewed {
			act, word = bridge.ActReconnected, "reconnected"
		}
		s.Service.Acted(r.Context(), bridge.Caller{Namespace: out.Namespace, Author: who.Name}, act, out.Connection)
		http.Redirect(w, r, accounts+"?said="+word+"#"+out.Connection.Name, http.StatusSeeOther)
	}
}

func (s *Site) notConnected(w http.ResponseWriter, r *http.Request, namespace string, err error) {
	known, ok := asError(err)
	if !ok {
		s.failure(w, r, nil, err)
		return
	}
	back := "/"
	if namespace != "" {
		back = "/teams/" + namespace + "/connections"
	}
	s.page(w, rest.StatusOf(known.Code), "The account is not connected", paragraph(sentence(known.Message)), link(back, "To the accounts", "primary"))
}

func (s *Site) choices(w http.ResponseWriter, r *http.Request, out connect.Outcome) {
	platform := v1alpha1.Platform(r.PathValue("platform"))
	s.page(w, http.StatusOK, "Which account of "+platform.Title()+"?",
		h.Form(h.Method("post"), h.Action("/connect/"+string(platform)+"/choose"), h.Class("pick"),
			hidden("pending", out.Pending),
			h.FieldSet(h.Legend(h.Class("hidden"), g.Text("Accounts")), h.Ul(g.Map(indexes(len(out.Options)), func(i int) g.Node {
				of := out.Options[i]
				id := "account-" + of.Identity.AccountID
				return h.Li(h.Input(h.Type("radio"), h.ID(id), h.Name("account"), h.Value(of.Identity.AccountID), h.Required(), g.If(i == 0, h.Checked())),
					h.Label(h.For(id), h.Span(h.Class("account"), h.Strong(g.Text(of.Identity.DisplayName)),
						g.If(of.Identity.Username != "", h.Span(h.Class("soft"), g.Text("@"+of.Identity.Username))),
						g.If(of.Connection != "", h.Span(h.Class("soft"), g.Text("already connected; its connection is renewed"))))))
			}))),
			submit("Connect this account", "primary"),
		),
		link("/teams/"+out.Namespace+"/connections", "Connect none", "quiet"),
	)
}

func (s *Site) disconnect(w http.ResponseWriter, v *visit) error {
	out, err := s.Connect.Disconnect(v.Context(), s.visitor(v.session), v.namespace, v.PathValue("id"))
	if err != nil {
		return err
	}
	s.Service.Acted(v.Context(), v.caller, bridge.ActDisconnected, out.Connection)
	s.render(w, v, http.StatusOK, view{title: "Disconnected", place: placeAccounts, content: []g.Node{
		notice(good, paragraph(out.Message)), h.P(link(v.path("connections"), "To the accounts", "primary")),
	}})
	return nil
}
