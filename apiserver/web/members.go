// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/apiserver/access"
)

// Bindings lists role bindings.
type Bindings interface {
	// List returns a namespace's role bindings, in any order. more reports that there are others.
	List(ctx context.Context, namespace string) (bindings []rbacv1.RoleBinding, more bool, err error)
}

// member is a user or a group with a role in a team.
type member struct {
	// name is the user's or group's name in Kubernetes, and shown its display text.
	name, shown string
	group       bool
	role        memberRole
	// binding is the role binding's name.
	binding string
	since   time.Time
}

// memberRole is a role's display text. rank sorts roles, highest first.
type memberRole struct {
	name, may string
	rank      int
}

// roleOf returns a role's display text: Herald's three roles, and those of Kubernetes that include them (docs/people.md).
func (s *Site) roleOf(ref rbacv1.RoleRef) memberRole {
	name := ref.Name
	if ref.Kind == "ClusterRole" {
		name = strings.TrimPrefix(name, s.RolePrefix+"-")
		switch name {
		case "admin":
			return memberRole{"Admin", "Writes posts, connects accounts, and manages API keys and agents", 0}
		case "edit", "editor":
			return memberRole{"Editor", "Writes, schedules and publishes posts", 1}
		case "view", "viewer":
			return memberRole{"Viewer", "Sees posts and accounts", 2}
		}
	}
	return memberRole{ref.Name, "Custom role", 3}
}

// membersOf returns the users and groups in role bindings, by role and name. It omits service accounts, which are
// programs.
func (s *Site) membersOf(v *visit, bindings []rbacv1.RoleBinding) []member {
	var all []member
	for i := range bindings {
		b := &bindings[i]
		for _, subject := range b.Subjects {
			if subject.Kind != rbacv1.UserKind && subject.Kind != rbacv1.GroupKind || strings.HasPrefix(subject.Name, "system:serviceaccount") {
				continue
			}
			m := member{name: subject.Name, shown: s.personNamed(v, subject.Name), role: s.roleOf(b.RoleRef), binding: b.Name, since: b.CreationTimestamp.Time}
			if subject.Kind == rbacv1.GroupKind {
				m.group, m.shown = true, s.groupNamed(subject.Name)
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b member) int {
		return cmp.Or(a.role.rank-b.role.rank, cmp.Compare(a.name, b.name), cmp.Compare(a.binding, b.binding))
	})
	return all
}

// everyoneSignedIn is the Kubernetes group that every authenticated user belongs to.
const everyoneSignedIn = "system:authenticated"

func (s *Site) groupNamed(name string) string {
	if name == everyoneSignedIn {
		return "Everyone who is signed in"
	}
	if provider := s.Config.SignIn.OIDC; provider != nil {
		name = strings.TrimPrefix(name, provider.GroupsPrefix)
	}
	return "Everyone in " + quoted(name)
}

// members shows who has a role in the team. Only people who may list role bindings with kubectl see the page.
func (s *Site) members(w http.ResponseWriter, v *visit) error {
	bindings, more, err := s.Members.List(v.Context(), v.namespace)
	if err != nil {
		return err
	}
	binds, err := s.allowed(v.Context(), v, createBindings)
	if err != nil {
		return err
	}
	all := s.membersOf(v, bindings)
	content := []g.Node{g.If(more, notice(neutral, paragraph("There are more role bindings than this page shows.")))}
	if len(all) == 0 {
		content = append(content, empty("No one has a role in this team only", "People with a role in the whole cluster can still use it."))
	} else {
		content = append(content, h.Ul(h.Class("list members"), g.Map(all, func(m member) g.Node { return v.memberRow(&m) })),
			h.P(h.Class("soft"), g.Text("People with a role in the whole cluster, such as its administrators, are not listed.")))
	}
	s.render(w, v, http.StatusOK, view{title: "Members", place: placeTeam, content: append(content, s.invitation(v, all, binds))})
	return nil
}

func (v *visit) memberRow(m *member) g.Node {
	kind := "Person"
	if m.group {
		kind = "Group"
	}
	isYou := !m.group && m.name == v.person.Name || m.group && slices.Contains(v.person.Groups, m.name)
	name := m.shown
	switch {
	case m.name == access.LinkPerson:
		name = "Anyone with a sign-in link"
	case isYou && !m.group:
		name = v.person.Shown()
	}
	return h.Li(h.Div(h.Class("row"),
		h.Span(h.Class("what"), h.Strong(h.Title(m.name), g.Text(name)), g.If(isYou, h.Span(h.Class("badge kind-info"), g.Text("You")))),
		h.Span(h.Class("badge"), g.Text(m.role.name)),
		h.Span(h.Class("soft"), g.Text(m.role.may+". "+kind+" · role binding "), h.Code(g.Text(m.binding)), g.If(!m.since.IsZero(), g.Group{g.Text(" · created "), v.moment(m.since)})),
	))
}

// invitation explains how another user gets a role. Herald itself cannot grant one: roles come from role bindings.
func (s *Site) invitation(v *visit, all []member, binds bool) g.Node {
	provider := s.Config.SignIn.OIDC
	roles := h.P(h.Class("soft"), g.Text("To remove a role, delete its role binding, or remove the user from the group. Roles: "+s.roleNames()+"."))
	if provider == nil {
		return h.Section(h.Class("card"), h.H2(g.Text("Invite someone")), paragraph("This installation has no sign-in provider. "+
			"Everyone signs in with a one-time link, which an administrator of the installation creates, and is the same user to Herald. "+
			"With a provider, each person has a name and a role of their own."), roles)
	}
	alone := h.P(g.Text("You cannot assign roles. Ask a cluster administrator to give this person a role. "+
		"They need the person's name at the sign-in provider and this team's namespace: "), h.Code(g.Text(v.namespace)))
	if binds {
		command := "kubectl create rolebinding NAME --namespace " + v.namespace + " --clusterrole " + s.RolePrefix + "-editor --user '" + provider.UsernamePrefix + "ada@example.com'"
		alone = g.Group{
			h.P(g.Text("Give them a role of their own, under the name that the sign-in provider gives them:")), h.Pre(h.Code(h.ID("invite"), g.Text(command))),
			h.P(h.Button(h.Type("button"), h.Class("button small"), h.Data("copy", "#invite"), g.Text("Copy"))),
		}
	}
	return h.Section(h.Class("card"), h.H2(g.Text("Invite someone")),
		g.If(slices.ContainsFunc(all, func(m member) bool { return m.group }),
			h.P(g.Text("Add the person to one of the groups above, at your sign-in provider. They get the group's role the next time they sign in. Otherwise:"))),
		alone,
		h.P(g.Text("Send them this address, where they sign in: "), h.Code(g.Text(s.Config.SignIn.SiteURL+"/"))),
		roles)
}
