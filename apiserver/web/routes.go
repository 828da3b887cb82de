// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/oauth"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
)

func (s *Site) routes() {
	s.mux.Handle("GET /assets/{file}", s.assets)
	s.mux.HandleFunc("GET /{$}", s.start)
	in := s.Config.SignIn
	in.Page = s.alone
	s.SignIn = signin.New(in)
	s.SignIn.Mount(s.mux)
	s.mux.HandleFunc("GET /teams/{namespace}", overviewOf)
	s.mux.HandleFunc("GET /oauth/{platform}/client-metadata.json", s.clientDocument)
	s.mux.HandleFunc("GET /connect/{platform}/callback", s.callback)
	s.mux.HandleFunc("GET /connect/{platform}/callback/{server}", s.callback)
	s.mux.HandleFunc("POST /connect/{platform}/choose", s.choose)
	if s.Agents != nil {
		s.mux.HandleFunc("GET "+oauth.AuthorizePath, s.authorize)
		s.mux.HandleFunc("POST "+oauth.AuthorizePath, s.decide)
		s.mux.HandleFunc("GET /teams/{namespace}/agents", s.team([]right{seePosts}, s.agents))
		s.mux.HandleFunc("POST /teams/{namespace}/agents/{id}/revoke", s.team([]right{seePosts}, s.revokeAgent))
	}
	for pattern, page := range s.pages() {
		method, path, _ := strings.Cut(pattern, " ")
		s.mux.HandleFunc(method+" /teams/{namespace}"+path, s.team(page.requires, page.handle))
	}
}

// page is one of a team's pages, with the rights that it requires.
type page struct {
	handle   handler
	requires []right
}

// pages returns a team's pages, by method and path. Connecting an account requires the right to create a connection or
// to patch an existing one: package connect checks it once it knows which applies.
func (s *Site) pages() map[string]page {
	of := func(handle handler, needs ...right) page { return page{handle, needs} }
	return map[string]page{
		"GET /{$}":                          of(s.overview, seePosts),
		"GET /posts":                        of(s.posts, seePosts),
		"GET /calendar":                     of(s.calendar, seePosts),
		"GET /bulk":                         of(s.confirmBulk, updatePosts),
		"POST /bulk":                        of(s.applyBulk, updatePosts),
		"GET /posts/new":                    of(s.compose, createPosts, seeConnections),
		"POST /posts/new":                   of(s.create, createPosts, seeConnections),
		"POST /compose/check":               of(s.check, createPosts, seeConnections),
		"POST /compose/save":                of(s.saveNew, createPosts, updatePosts, seeConnections),
		"POST /posts/{id}/save":             of(s.saveEdit, updatePosts, seeConnections),
		"POST /posts/{id}/check":            of(s.check, updatePosts, seeConnections),
		"POST /media":                       of(s.upload, createMedia),
		"POST /media/{id}/parts":            of(s.resumeUpload, createMedia),
		"POST /media/{id}/finish":           of(s.finishUpload, createMedia),
		"POST /media/{id}/abort":            of(s.abortUpload, createMedia),
		"GET /files":                        of(s.filesPage, seeMedia),
		"GET /files/list":                   of(s.fileList, seeMedia),
		"GET /posts/{id}":                   of(s.post, seePosts),
		"GET /posts/{id}/events":            of(s.events, seePosts),
		"GET /posts/{id}/edit":              of(s.edit, updatePosts, seeConnections),
		"POST /posts/{id}/edit":             of(s.change, updatePosts, seeConnections),
		"POST /posts/{id}/cancel":           of(s.cancel, updatePosts),
		"POST /posts/{id}/reschedule":       of(s.reschedule, updatePosts),
		"POST /posts/{id}/takeback":         of(s.withdrawPublished, updatePosts, createPosts, seeConnections),
		"POST /posts/{id}/settle":           of(s.settle, updatePosts),
		"POST /posts/{id}/dismiss":          of(s.dismiss, updatePosts),
		"GET /connections":                  of(s.connections, seeConnections),
		"POST /connections/connect":         of(s.connect, seeConnections),
		"POST /connections/{id}/disconnect": of(s.disconnect, deleteConnection),
		"GET /keys":                         of(s.keys, seeKeys),
		"POST /keys":                        of(s.createKey, createKeys),
		"POST /keys/{id}/{act}":             of(s.changeKey, updateKeys),
		"GET /schedules":                    of(s.schedules, seeSchedules),
		"GET /schedules/new":                of(s.newSchedule, createSchedules, seeConnections),
		"POST /schedules/new":               of(s.storeSchedule, createSchedules, seeConnections),
		"POST /schedules/check":             of(s.checkSchedule, createSchedules, seeConnections),
		"GET /schedules/{id}/edit":          of(s.editSchedule, updateSchedules, seeConnections),
		"POST /schedules/{id}/edit":         of(s.storeSchedule, updateSchedules, seeConnections),
		"POST /schedules/{id}/check":        of(s.checkSchedule, updateSchedules, seeConnections),
		"POST /schedules/{id}/suspend":      of(s.suspendSchedule, updateSchedules),
		"POST /schedules/{id}/resume":       of(s.resumeSchedule, updateSchedules),
		"GET /schedules/{id}/delete":        of(s.confirmDelete, deleteSchedules),
		"POST /schedules/{id}/delete":       of(s.deleteSchedule, deleteSchedules),
		"GET /notifications":                of(s.notifiers, seeNotifiers),
		"GET /notifications/new":            of(s.newNotifier, createNotifiers),
		"POST /notifications/new":           of(s.storeNotifier, createNotifiers, seeNotifiers),
		"GET /notifications/{id}":           of(s.notifier, seeNotifiers),
		"GET /notifications/{id}/edit":      of(s.editNotifier, updateNotifiers),
		"POST /notifications/{id}/edit":     of(s.storeNotifier, updateNotifiers),
		"POST /notifications/{id}/suspend":  of(s.suspendNotifier, updateNotifiers),
		"POST /notifications/{id}/resume":   of(s.resumeNotifier, updateNotifiers),
		"POST /notifications/{id}/resend":   of(s.resendDelivery, updateNotifiers),
		"POST /notifications/{id}/secret":   of(s.replaceSecret, updateNotifiers),
		"GET /notifications/{id}/delete":    of(s.confirmDeleteNotifier, deleteNotifiers),
		"POST /notifications/{id}/delete":   of(s.deleteNotifier, deleteNotifiers),
		"GET /team":                         of(s.teamPage, seePosts),
		"GET /members":                      of(s.members, seePosts, seeBindings),
	}
}

// overviewOf redirects from a team's address without the trailing slash, whether or not the team exists.
func overviewOf(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/teams/"+url.PathEscape(r.PathValue("namespace"))+"/", http.StatusSeeOther)
}

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

func (s *Site) roleNames() string {
	return s.RolePrefix + "-viewer, " + s.RolePrefix + "-editor or " + s.RolePrefix + "-admin"
}

func (s *Site) noTeam(w http.ResponseWriter, who access.Person) {
	s.page(w, http.StatusForbidden, "You do not belong to a team yet",
		paragraph("You are signed in as "+who.Shown()+". Ask an administrator for a role in a team, and give them this name:"), h.P(h.Code(g.Text(who.Name))),
		form("/signout", "", submit("Sign out", "")))
}
