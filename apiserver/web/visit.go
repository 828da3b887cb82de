// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/session"
)

// visit is a signed-in user's request about a team.
type visit struct {
	*http.Request

	session   session.Session
	person    access.Person
	namespace string
	team      *v1alpha1.Team
	teams     []*v1alpha1.Team
	caller    bridge.Caller
	may       rights
	// zone is the page's time zone, teamZone the team's, and own the viewer's; the latter two are nil if unknown.
	zone, teamZone, own *time.Location
	now                 time.Time
	pictures            pictures
	// thumbnails are the pictures of a list, by the files' names; nil on pages without them.
	thumbnails map[string]bridge.MediaPreview
	// settled is true on the page of a post that has no delivery in progress.
	settled bool
	// done releases the form's memory; nil until a form is read.
	done func()
}

// rights are the visitor's permissions. A page omits the actions that they do not allow.
type rights struct {
	create, update, upload, seeFiles, seeAccounts, connect, reconnect, disconnect, listKeys, createKeys, changeKeys, seeUsage, seeMembers bool

	seeSchedules, createSchedules, changeSchedules, deleteSchedules bool
	seeNotifiers, createNotifiers, changeNotifiers, deleteNotifiers bool
}

// compose and edit report whether the user may use the form for posts, which lists the accounts.
func (has *rights) compose() bool { return has.create && has.seeAccounts }

func (has *rights) edit() bool { return has.update && has.seeAccounts }

// writeNotifiers reports whether the user may do everything with notifiers that an API key with the permission may.
func (has *rights) writeNotifiers() bool {
	return has.createNotifiers && has.changeNotifiers && has.deleteNotifiers
}

// byRight maps the permissions that Kubernetes checks to the fields.
func (has *rights) byRight() map[right]*bool {
	return map[right]*bool{
		createPosts: &has.create, updatePosts: &has.update, createMedia: &has.upload, seeMedia: &has.seeFiles, seeConnections: &has.seeAccounts,
		createConnection: &has.connect, patchConnection: &has.reconnect, deleteConnection: &has.disconnect,
		seeKeys: &has.listKeys, createKeys: &has.createKeys, updateKeys: &has.changeKeys, seeUsages: &has.seeUsage, seeBindings: &has.seeMembers,
		seeSchedules: &has.seeSchedules, createSchedules: &has.createSchedules, updateSchedules: &has.changeSchedules, deleteSchedules: &has.deleteSchedules,
		seeNotifiers: &has.seeNotifiers, createNotifiers: &has.createNotifiers, updateNotifiers: &has.changeNotifiers, deleteNotifiers: &has.deleteNotifiers,
	}
}

func (v *visit) teamName() string { return nameOf(v.team) }

// path returns the path of one of the team's pages.
func (v *visit) path(page string) string { return "/teams/" + v.namespace + "/" + page }

// handler serves a visit. An error of package bridge is shown to the user; any other is logged.
type handler func(w http.ResponseWriter, v *visit) error

// right is a permission that a page requires: a verb and one of Herald's resources.
type right struct{ verb, resource string }

// Kubernetes terms shared by several permissions.
const (
	verbList, verbCreate, verbUpdate = "list", "create", "update"
	ofConnections                    = "connections"
	ofSchedules                      = "postschedules"
	ofNotifiers                      = "notifiers"
	ofBindings                       = "rolebindings.rbac.authorization.k8s.io"
)

// The permissions that pages require.
var (
	seePosts         = right{verbList, "posts"}
	createPosts      = right{verbCreate, "posts"}
	updatePosts      = right{verbUpdate, "posts"}
	createMedia      = right{verbCreate, "media"}
	seeMedia         = right{verbList, "media"}
	seeConnections   = right{verbList, ofConnections}
	createConnection = right{verbCreate, ofConnections}
	patchConnection  = right{"patch", ofConnections}
	deleteConnection = right{"delete", ofConnections}
	seeKeys          = right{verbList, "apikeys"}
	createKeys       = right{verbCreate, "apikeys"}
	updateKeys       = right{verbUpdate, "apikeys"}
	seeUsages        = right{verbList, "usages"}
	seeSchedules     = right{verbList, ofSchedules}
	createSchedules  = right{verbCreate, ofSchedules}
	updateSchedules  = right{verbUpdate, ofSchedules}
	deleteSchedules  = right{"delete", ofSchedules}
	seeNotifiers     = right{verbList, ofNotifiers}
	createNotifiers  = right{verbCreate, ofNotifiers}
	updateNotifiers  = right{verbUpdate, ofNotifiers}
	deleteNotifiers  = right{"delete", ofNotifiers}
	seeBindings      = right{verbList, ofBindings}
	createBindings   = right{verbCreate, ofBindings}
)

// team converts a handler for a team's pages to an http.HandlerFunc. A user without access to the team gets the same
// page as for a team that does not exist.
func (s *Site) team(needs []right, handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, ok := session.From(r.Context())
		if !ok {
			s.toSignIn(w, r)
			return
		}
		v, err := s.visit(r, who)
		if err == nil && v.team != nil {
			err = s.require(r.Context(), v, needs)
		}
		switch {
		case err != nil:
		case v.team == nil:
			s.absent(w, r)
			return
		default:
			err = s.serveLimited(w, v, handle) //nolint:contextcheck // the visit carries the request's context
		}
		if err != nil {
			s.failure(w, r, v, err)
		}
	}
}

// serveLimited handles a visit and charges its cost to the team and the user. Only the personal limit, which is as
// high as the team's limit, can reject a visit, so that a program that exhausts the team's limit does not lock out the
// users who want to investigate it. Conversely, users cannot block the team's programs: pages leave half of the team's
// limit free.
func (s *Site) serveLimited(w http.ResponseWriter, v *visit, handle handler) error {
	own := "person\x00" + v.namespace + "\x00" + v.person.Name
	if err := s.limitPerson(w, own, "you open too many pages at once"); err != nil {
		return err
	}
	s.Teams.ChargeSparing(v.namespace, 1)
	ctx, spent := limits.WithMeter(v.Context())
	v.Request = v.WithContext(ctx)
	defer func() {
		s.Teams.ChargeSparing(v.namespace, spent.Requests())
		s.Teams.Charge(own, spent.Requests(), http.Header{})
		v.releaseForm()
	}()
	return handle(w, v)
}

// visit returns a request's person, team and permissions. The team is nil if the user may not see it.
func (s *Site) visit(r *http.Request, of session.Session) (*visit, error) {
	ctx, who := r.Context(), of.Person
	v := &visit{Request: r, session: of, person: who, namespace: r.PathValue("namespace"), now: s.Clock.Now(), zone: time.UTC, own: zoneOf(r)}
	v.caller = bridge.Caller{Namespace: v.namespace, Author: who.Name}
	request.From(ctx).Namespace, request.From(ctx).Key = v.namespace, who.Name
	var err error
	if v.teams, err = s.Access.Teams(ctx, who); err != nil {
		return v, err
	}
	for _, team := range v.teams {
		if team.Spec.Namespace == v.namespace {
			v.team = team
		}
	}
	if v.team == nil {
		return v, nil
	}
	v.useZone(v.team)
	// In parallel, because each may be a request to the Kubernetes API.
	group, ctx := errgroup.WithContext(ctx)
	for need, has := range v.may.byRight() {
		group.Go(func() (err error) {
			*has, err = s.allowed(ctx, v, need)
			return err
		})
	}
	return v, group.Wait()
}

func (s *Site) require(ctx context.Context, v *visit, needs []right) error {
	for _, need := range needs {
		switch allowed, err := s.allowed(ctx, v, need); {
		case err != nil:
			return err
		case !allowed:
			return forbidden(need, v)
		}
	}
	return nil
}

func (s *Site) allowed(ctx context.Context, v *visit, need right) (bool, error) {
	return s.Access.May(ctx, v.person, v.namespace, need.verb, need.resource)
}

type errForbidden struct{ message string }

func (e *errForbidden) Error() string { return e.message }

func forbidden(need right, v *visit) error {
	return &errForbidden{"You are not allowed to " + need.inWords() + " of the team " + v.teamName() +
		". " + v.toAsk()}
}
