// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"maps"
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

// page is one of a team's pages, with the permissions that it requires.
type page struct {
	handle   handler
	requires []right
}

// pages returns a team's pages, by method and path. Connecting an account requires permission to create a connection or
// to patch an existing one: package connect checks it once it knows which applies.
func (s *Site) pages() map[string]page {
	pages := s.postPages()
	maps.Copy(pages, s.settingPages())
	return pages
}

func newPage(handle handler, needs ...right) page { return page{handle, needs} }

func (s *Site) postPages() map[string]page {
	return map[string]page{
		"GET /{$}":                    newPage(s.overview, seePosts),
		"GET /posts":                  newPage(s.posts, seePosts),
		"GET /calendar":               newPage(s.calendar, seePosts),
		"GET /bulk":                   newPage(s.confirmBulk, updatePosts),
		"POST /bulk":                  newPage(s.applyBulk, updatePosts),
		"GET /posts/new":              newPage(s.compose, createPosts, seeConnections),
		"POST /posts/new":             newPage(s.create, createPosts, seeConnections),
		"POST /compose/check":         newPage(s.check, createPosts, seeConnections),
		"POST /compose/save":          newPage(s.saveNew, createPosts, updatePosts, seeConnections),
		"POST /posts/{id}/save":       newPage(s.saveEdit, updatePosts, seeConnections),
		"POST /posts/{id}/check":      newPage(s.check, updatePosts, seeConnections),
		"POST /media":                 newPage(s.upload, createMedia),
		"POST /media/{id}/parts":      newPage(s.resumeUpload, createMedia),
		"POST /media/{id}/finish":     newPage(s.finishUpload, createMedia),
		"POST /media/{id}/abort":      newPage(s.abortUpload, createMedia),
		"GET /files":                  newPage(s.filesPage, seeMedia),
		"GET /files/list":             newPage(s.fileList, seeMedia),
		"GET /posts/{id}":             newPage(s.post, seePosts),
		"GET /posts/{id}/events":      newPage(s.events, seePosts),
		"GET /posts/{id}/edit":        newPage(s.edit, updatePosts, seeConnections),
		"POST /posts/{id}/edit":       newPage(s.change, updatePosts, seeConnections),
		"POST /posts/{id}/cancel":     newPage(s.cancel, updatePosts),
		"POST /posts/{id}/reschedule": newPage(s.reschedule, updatePosts),
		"POST /posts/{id}/takeback":   newPage(s.withdrawPublished, updatePosts, createPosts, seeConnections),
		"POST /posts/{id}/settle":     newPage(s.settle, updatePosts),
		"POST /posts/{id}/dismiss":    newPage(s.dismiss, updatePosts),
	}
}

func (s *Site) settingPages() map[string]page {
	return map[string]page{
		"GET /connections":                  newPage(s.connections, seeConnections),
		"POST /connections/connect":         newPage(s.connect, seeConnections),
		"POST /connections/{id}/disconnect": newPage(s.disconnect, deleteConnection),
		"GET /keys":                         newPage(s.keys, seeKeys),
		"POST /keys":                        newPage(s.createKey, createKeys),
		"POST /keys/{id}/{act}":             newPage(s.changeKey, updateKeys),
		"GET /schedules":                    newPage(s.schedules, seeSchedules),
		"GET /schedules/new":                newPage(s.newSchedule, createSchedules, seeConnections),
		"POST /schedules/new":               newPage(s.storeSchedule, createSchedules, seeConnections),
		"POST /schedules/check":             newPage(s.checkSchedule, createSchedules, seeConnections),
		"GET /schedules/{id}/edit":          newPage(s.editSchedule, updateSchedules, seeConnections),
		"POST /schedules/{id}/edit":         newPage(s.storeSchedule, updateSchedules, seeConnections),
		"POST /schedules/{id}/check":        newPage(s.checkSchedule, updateSchedules, seeConnections),
		"POST /schedules/{id}/suspend":      newPage(s.suspendSchedule, updateSchedules),
		"POST /schedules/{id}/resume":       newPage(s.resumeSchedule, updateSchedules),
		"GET /schedules/{id}/delete":        newPage(s.confirmDelete, deleteSchedules),
		"POST /schedules/{id}/delete":       newPage(s.deleteSchedule, deleteSchedules),
		"GET /notifications":                newPage(s.notifiers, seeNotifiers),
		"GET /notifications/new":            newPage(s.newNotifier, createNotifiers),
		"POST /notifications/new":           newPage(s.storeNotifier, createNotifiers, seeNotifiers),
		"GET /notifications/{id}":           newPage(s.notifier, seeNotifiers),
		"GET /notifications/{id}/edit":      newPage(s.editNotifier, updateNotifiers),
		"POST /notifications/{id}/edit":     newPage(s.storeNotifier, updateNotifiers),
		"POST /notifications/{id}/suspend":  newPage(s.suspendNotifier, updateNotifiers),
		"POST /notifications/{id}/resume":   newPage(s.resumeNotifier, updateNotifiers),
		"POST /notifications/{id}/resend":   newPage(s.resendDelivery, updateNotifiers),
		"POST /notifications/{id}/secret":   newPage(s.replaceSecret, updateNotifiers),
		"GET /notifications/{id}/delete":    newPage(s.confirmDeleteNotifier, deleteNotifiers),
		"POST /notifications/{id}/delete":   newPage(s.deleteNotifier, deleteNotifiers),
		"GET /team":                         newPage(s.teamPage, seePosts),
		"GET /members":                      newPage(s.members, seePosts, seeBindings),
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
