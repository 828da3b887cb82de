// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"strings"

	"github.com/herald-social/herald/apiserver/oauth"
	"github.com/herald-social/herald/apiserver/person"
	"github.com/herald-social/herald/apiserver/web/session"
	"github.com/herald-social/herald/apiserver/web/signin"
)

func (s *Site) routes() {
	s.mux.Handle("GET /assets/{file}", s.assets)
	s.mux.HandleFunc("GET /{$}", s.start)
	in := s.Config.SignIn
	in.Page = s.alone
	s.SignIn = signin.New(in)
	s.SignIn.Mount(s.mux)
	s.mux.HandleFunc("GET /connect/{platform}/callback", s.callback)
	s.mux.HandleFunc("POST /connect/{platform}/choose", s.choose)
	if s.Agents != nil {
		s.mux.HandleFunc("GET "+oauth.AuthorizePath, s.authorize)
		s.mux.HandleFunc("POST "+oauth.AuthorizePath, s.decide)
		s.mux.HandleFunc("GET /teams/{namespace}/agents", s.team(seePosts, s.agents))
		s.mux.HandleFunc("POST /teams/{namespace}/agents/{id}/revoke", s.team(seePosts, s.endAgent))
	}
	for pattern, page := range map[string]struct {
		need   right
		handle handler
	}{
		"GET /{$}":                          {seePosts, s.overview},
		"GET /posts":                        {seePosts, s.posts},
		"GET /calendar":                     {seePosts, s.calendar},
		"GET /posts/new":                    {createPosts, s.compose},
		"POST /posts/new":                   {createPosts, s.create},
		"POST /compose/check":               {seePosts, s.check},
		"POST /media":                       {createPosts, s.upload},
		"GET /posts/{id}":                   {seePosts, s.post},
		"GET /posts/{id}/events":            {seePosts, s.events},
		"GET /posts/{id}/edit":              {updatePosts, s.edit},
		"POST /posts/{id}/edit":             {updatePosts, s.change},
		"POST /posts/{id}/cancel":           {updatePosts, s.cancel},
		"POST /posts/{id}/reschedule":       {updatePosts, s.reschedule},
		"POST /posts/{id}/settle":           {updatePosts, s.settle},
		"GET /connections":                  {seeConnections, s.connections},
		"POST /connections/connect":         {createConnection, s.connect},
		"POST /connections/{id}/disconnect": {deleteConnection, s.disconnect},
		"GET /keys":                         {seeKeys, s.keys},
		"POST /keys":                        {createKeys, s.makeKey},
		"POST /keys/{id}/{act}":             {updateKeys, s.changeKey},
		"GET /team":                         {seePosts, s.teamPage},
	} {
		method, path, _ := strings.Cut(pattern, " ")
		s.mux.HandleFunc(method+" /teams/{namespace}"+path, s.team(page.need, page.handle))
	}
}

// start leads to the first of the person's teams.
func (s *Site) start(w http.ResponseWriter, r *http.Request) {
	of, ok := session.From(r.Context())
	if !ok {
		http.Redirect(w, r, "/signin", http.StatusSeeOther)
		return
	}
	teams, err := s.Access.Teams(r.Context(), of.Person)
	switch {
	case err != nil:
		s.failure(w, r, nil, err)
	case len(teams) == 0:
		s.noTeam(w, of.Person)
	default:
		http.Redirect(w, r, "/teams/"+teams[0].Spec.Namespace+"/", http.StatusSeeOther)
	}
}

func (s *Site) noTeam(w http.ResponseWriter, who person.Person) {
	s.page(w, http.StatusForbidden, "You belong to no team yet",
		paragraph("You are signed in as "+who.Name+". Ask the people who run Herald to give you a role in the namespace of a team: herald-viewer, herald-editor or herald-admin."),
		form("/signout", "", submit("Sign out", "")))
}
