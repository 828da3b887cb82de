// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/signin"
)

func bindingOf(namespace, name, kind, role string, subjects ...rbacv1.Subject) rbacv1.RoleBinding {
	return rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(now.AddDate(0, -1, 0))},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}, Subjects: subjects,
	}
}

func user(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.UserKind, Name: name} }

func group(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.GroupKind, Name: name} }

// byProvider lets people sign in through a provider.
func byProvider(c *Config) {
	c.SignIn.OIDC = &signin.OIDC{IssuerURL: "https://id.example.com", UsernamePrefix: "oidc:", GroupsPrefix: "oidc:"}
}

// TestMembers verifies which subjects of role bindings are members, and under which names and roles they are shown.
func TestMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now), byProvider)
	w.bindings = []rbacv1.RoleBinding{
		bindingOf(acme, "marketing", "ClusterRole", "herald-editor", user("oidc:zoe@example.com"), group("oidc:marketing"), user("oidc:edith")),
		bindingOf(acme, "lead", "ClusterRole", "herald-admin", user(administrator.Name), user("oidc:ada@example.com")),
		bindingOf(acme, "cluster-view", "ClusterRole", "view", user("oidc:kim@example.com")),
		bindingOf(acme, "own", "Role", "herald-admin", user("oidc:own@example.com")),
		bindingOf(acme, "herald-manager-secrets", "ClusterRole", "herald-team-secrets", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "herald-manager"}),
		bindingOf(acme, "system", "ClusterRole", "herald-viewer", group("system:authenticated"), user("system:serviceaccount:ci:publisher"), group("system:serviceaccounts:ci")),
		bindingOf(acme, "root", "ClusterRole", "cluster-admin", user("system:admin")),
		bindingOf(beta, "other", "ClusterRole", "herald-admin", user("oidc:other@example.com")),
	}
	var got []string
	for _, item := range elements(withID(t, w.get(t, administrator, "/teams/"+acme+"/members"), "content"), "li") {
		if names := elements(item, "strong"); len(names) == 1 {
			badges := elements(item, "span")
			role := ""
			for _, badge := range badges {
				if class, _ := attribute(badge, "class"); class == "badge" {
					role = textOf(badge)
				}
			}
			got = append(got, textOf(names[0])+": "+role)
		}
	}
	want := []string{
		"Anyone with a sign-in link: Admin", "ada@example.com: Admin", "edith: Editor", "Everyone in “marketing”: Editor", "zoe@example.com: Editor", "kim@example.com: Viewer", "Everyone who is signed in: Viewer",
		"own@example.com: herald-admin", "system:admin: cluster-admin",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestMembersNeedPermission verifies that the page needs the permission that kubectl would need, and that other pages
// do not mention it without that permission.
func TestMembersNeedPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now), byProvider)
	w.bindings = []rbacv1.RoleBinding{bindingOf(acme, "lead", "ClusterRole", "herald-admin", user("oidc:ada@example.com"))}
	for who, code := range map[*access.Person]int{&viewer: http.StatusForbidden, &editor: http.StatusForbidden, &administrator: http.StatusOK, &stranger: http.StatusNotFound} {
		answer := w.serve(newRequest(who, "/teams/"+acme+"/members", nil))
		if answer.Code != code || code != http.StatusOK && strings.Contains(answer.Body.String(), "ada@example.com") {
			t.Errorf("%s: %d, want %d", who.Name, answer.Code, code)
		}
		team := w.serve(newRequest(who, "/teams/"+acme+"/team", nil)).Body.String()
		if got := strings.Contains(team, acme+"/members"); got != (code == http.StatusOK) {
			t.Errorf("%s: the team's page has a link to the members: %t", who.Name, got)
		}
	}
}

// TestInvitation verifies that the page explains only what its reader can do.
func TestInvitation(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason     string
		edits      []func(*Config)
		subject    rbacv1.Subject
		want, lack []string
	}{
		"Asks": {
			"a team's admin cannot create role bindings",
			[]func(*Config){byProvider},
			user("oidc:ada@example.com"),
			[]string{"Ask a cluster administrator", "https://herald.example/", acme},
			[]string{"kubectl", "groups above"},
		},
		"Binds": {
			"an administrator of the cluster can",
			[]func(*Config){byProvider, mayBind},
			user("oidc:ada@example.com"),
			[]string{"kubectl create rolebinding NAME --namespace team-acme --clusterrole herald-editor --user 'oidc:ada@example.com'"},
			[]string{"Ask a cluster administrator"},
		},
		"Group":  {"a group adds new users automatically", []func(*Config){byProvider}, group("oidc:marketing"), []string{"Add the person to one of the groups above"}, nil},
		"NoOIDC": {"users cannot be distinguished", nil, user(access.LinkPerson), []string{"no sign-in provider"}, []string{"kubectl", "Ask a cluster administrator"}},
	} {
		w := newWorld(clocktesting.NewFakeClock(now), tc.edits...)
		w.bindings = []rbacv1.RoleBinding{bindingOf(acme, "lead", "ClusterRole", "herald-admin", tc.subject)}
		says(t, name+": "+tc.reason, textOf(withID(t, w.get(t, administrator, "/teams/"+acme+"/members"), "content")), tc.want, tc.lack)
	}
}

// mayBind permits everyone to create role bindings.
func mayBind(c *Config) {
	r, _ := c.Access.(roles)
	r.has = append(r.has, "create "+ofBindings)
	c.Access = r
}

// TestNamesOfPeople verifies that pages show users' names in a readable form.
func TestNamesOfPeople(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, author, want string }{
		"Self":  {"the page marks the viewer", viewer.Name, "by you"},
		"Other": {"role bindings contain the prefix", "oidc:ada@example.com", "by ada@example.com"},
		"Link":  {"all users of links have the same name", access.LinkPerson, "by someone with a sign-in link"},
		"Plain": {"a name may have no prefix", "ada", "by ada"},
	} {
		w := newWorld(clocktesting.NewFakeClock(now), byProvider)
		post := textPost("p"+strings.Repeat("a", 25), "text", func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.AuthorAnnotation: tc.author}
			p.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
		})
		w.put(post)
		says(t, name+": "+tc.reason, textOf(w.get(t, viewer, "/teams/"+acme+"/posts/"+post.Name)), []string{tc.want}, []string{"by oidc:", "herald:link"})
	}
}
