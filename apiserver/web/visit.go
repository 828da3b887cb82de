// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/http"
	"net/url"
	"time"
	_ "time/tzdata" // images from scratch have no zones

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/cost"
	"github.com/herald-social/herald/apiserver/person"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/web/session"
)

// visit is one request of a person who is signed in, for a team.
type visit struct {
	*http.Request

	session   session.Session
	person    person.Person
	namespace string
	team      *v1alpha1.Team
	teams     []*v1alpha1.Team
	caller    bridge.Caller
	may       rights
	zone      *time.Location
	now       time.Time
	pictures  pictures
	// settled is true on the page of a post of which nothing is on its way any more.
	settled bool
	// done gives back the room of the form that was read; nil while none was.
	done func()
}

// rights say what a page offers to a person.
type rights struct {
	create, update, upload, seeAccounts, connect, reconnect, disconnect, listKeys, createKeys, changeKeys, seeUsage bool
}

// compose and edit are those of the form for posts, in which people choose among the accounts.
func (has *rights) compose() bool { return has.create && has.seeAccounts }

func (has *rights) edit() bool { return has.update && has.seeAccounts }

// byRight says of each of the rights what Kubernetes is asked.
func (has *rights) byRight() map[right]*bool {
	return map[right]*bool{
		createPosts: &has.create, updatePosts: &has.update, createMedia: &has.upload, seeConnections: &has.seeAccounts,
		createConnection: &has.connect, patchConnection: &has.reconnect, deleteConnection: &has.disconnect,
		seeKeys: &has.listKeys, createKeys: &has.createKeys, updateKeys: &has.changeKeys, seeUsages: &has.seeUsage,
	}
}

func (v *visit) teamName() string { return nameOf(v.team) }

// path is the path of a page of the team.
func (v *visit) path(page string) string { return "/teams/" + v.namespace + "/" + page }

// handler answers a visit. An error of package bridge is shown as it is; any other goes to the log.
type handler func(w http.ResponseWriter, v *visit) error

// right is what a person must be allowed to do to get a page: a verb and a resource of Herald.
type right struct{ verb, resource string }

// Words of Kubernetes that several rights have.
const (
	verbList, verbCreate = "list", "create"
	ofConnections        = "connections"
)

// The rights that pages ask for.
var (
	seePosts         = right{verbList, "posts"}
	createPosts      = right{verbCreate, "posts"}
	updatePosts      = right{"update", "posts"}
	createMedia      = right{verbCreate, "media"}
	seeConnections   = right{verbList, ofConnections}
	createConnection = right{verbCreate, ofConnections}
	patchConnection  = right{"patch", ofConnections}
	deleteConnection = right{"delete", ofConnections}
	seeKeys          = right{verbList, "apikeys"}
	createKeys       = right{verbCreate, "apikeys"}
	updateKeys       = right{"update", "apikeys"}
	seeUsages        = right{verbList, "usages"}
)

// team makes an http.Handler of a handler for the pages of a team. A person who may see nothing of a team learns no more than
// that there is nothing.
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
			err = s.serveLimited(w, v, handle) //nolint:contextcheck // the visit has that of the request
		}
		if err != nil {
			s.failure(w, r, v, err)
		}
	}
}

// serveLimited handles a visit and charges the team and the person for what it cost. The limit that refuses a visit is the person's own,
// of the same size: a program that uses up the team's does not close the pages to the people who want to see what it does. Nor do people stop the team's
// programs, whatever they may do else: pages leave half of the team's limit.
func (s *Site) serveLimited(w http.ResponseWriter, v *visit, handle handler) error {
	own := "person\x00" + v.namespace + "\x00" + v.person.Name
	if err := s.limitPerson(w, own, "you open too many pages at once"); err != nil {
		return err
	}
	s.Teams.ChargeSparing(v.namespace, 1)
	ctx, spent := cost.With(v.Context())
	v.Request = v.WithContext(ctx)
	defer func() {
		s.Teams.ChargeSparing(v.namespace, spent.Requests())
		s.Teams.Charge(own, spent.Requests(), http.Header{})
		v.releaseForm()
	}()
	return handle(w, v)
}

// visit finds the person, the team and the rights of a request. The team is nil if the person may not see anything in the namespace.
func (s *Site) visit(r *http.Request, of session.Session) (*visit, error) {
	ctx, who := r.Context(), of.Person
	v := &visit{Request: r, session: of, person: who, namespace: r.PathValue("namespace"), now: s.Clock.Now(), zone: zoneOf(r)}
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
	// Side by side: each may be a question to the Kubernetes API.
	group, ctx := errgroup.WithContext(ctx)
	for need, has := range v.may.byRight() {
		group.Go(func() (err error) {
			*has, err = s.allowed(ctx, v, need)
			return err
		})
	}
	return v, group.Wait()
}

// require refuses a person who lacks one of the rights that a page needs.
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

// errForbidden says that a person may not do something.
type errForbidden struct{ message string }

func (e *errForbidden) Error() string { return e.message }

func forbidden(need right, v *visit) error {
	return &errForbidden{"You may not " + need.inWords() + " of the team " + v.teamName() +
		". Ask the people who run Herald for a role in the namespace " + v.namespace + "."}
}

// zoneCookie names the cookie with the viewer's time zone, which the page's script sets.
const zoneCookie = "zone"

// zoneOf is the viewer's time zone; UTC while it is not known.
func zoneOf(r *http.Request) *time.Location {
	cookie, err := r.Cookie(zoneCookie)
	if err != nil || len(cookie.Value) > 64 {
		return time.UTC
	}
	name, err := url.QueryUnescape(cookie.Value)
	if err != nil {
		return time.UTC
	}
	return zoneNamed(name)
}

// zoneNamed finds a zone of the IANA's database; UTC if there is none of that name.
func zoneNamed(name string) *time.Location {
	if name == "" || name == "Local" {
		return time.UTC
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}
