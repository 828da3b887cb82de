// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestRights compares each service account's permissions, from all its bindings, with the lists in testdata. A new
// permission is a deliberate decision and must be added there. The chart has no bindings in the teams' namespaces: the
// manager creates them, for the roles outreach-team-secrets and outreach-team-credentials.
func TestRights(t *testing.T) {
	for _, tc := range []struct{ from, values, account, list string }{
		{"minimal", "", "manager", "manager"},
		{"minimal", "", "apiserver", "apiserver"},
		{"evaluation", "", "manager", "manager"},
		{"evaluation", "", "apiserver", "apiserver"},
		{"minimal", "", "release", "release"},
		// An installation without the web application grants no permissions for it.
		{"minimal", "web: {enabled: false}", "apiserver", "apiserver-rest"},
		// An installation for two namespaces has no permissions in a third.
		{"minimal", "namespaces: [team-a, team-b]", "manager", "manager-namespaces"},
		{"minimal", "namespaces: [team-a, team-b]", "apiserver", "apiserver-namespaces"},
	} {
		want, err := os.ReadFile(filepath.Join("testdata", "rights-"+tc.list+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		objects := rendered(t, with(t, tc.from, tc.values))
		if got := strings.Join(rightsOf(t, objects, "outreach-"+tc.account), "\n") + "\n"; got != string(want) {
			t.Errorf("%s %s: the %s has the rights:\n%s\nwant testdata/rights-%s.txt:\n%s", tc.from, tc.values, tc.account, got, tc.list, want)
		}
	}
}

// TestRightsInTeams checks that the apiserver stores tokens that it cannot read, and that an installation without the
// web application has no role for this.
func TestRightsInTeams(t *testing.T) {
	role := find(rendered(t, valuesOf(t, "minimal")), "ClusterRole", "outreach-team-credentials")
	if role == nil {
		t.Fatal("the manager has no role to bind to the apiserver")
	}
	if got := at(t, role, "{.rules}"); got != `[{"apiGroups":[""],"resources":["secrets"],"verbs":["create"]}]` {
		t.Errorf("the apiserver's rights in team namespaces: %s", got)
	}
	for _, gone := range []string{"ClusterRole outreach-team-credentials", "Secret outreach-web", "Role outreach-apiserver-web"} {
		kind, name, _ := strings.Cut(gone, " ")
		if find(rendered(t, with(t, "minimal", "web: {enabled: false}")), kind, name) != nil {
			t.Errorf("%s exists without the web application", gone)
		}
	}
}

// TestSecretOfTheWeb checks that the template sets no data; otherwise each upgrade would end all sessions.
func TestSecretOfTheWeb(t *testing.T) {
	secret := find(rendered(t, valuesOf(t, "minimal")), "Secret", "outreach-web")
	if secret == nil {
		t.Fatal("the Secret is missing, and the apiserver may not create it")
	}
	for _, field := range []string{"data", "stringData", "immutable"} {
		if _, found := secret.Object[field]; found {
			t.Errorf("the template sets %s, which would overwrite the apiserver's data", field)
		}
	}
}

// TestRightsOfTrials checks that neither the sandbox nor the store has a service account or a token.
func TestRightsOfTrials(t *testing.T) {
	for _, object := range rendered(t, valuesOf(t, "evaluation")) {
		if object.GetKind() != "Deployment" || !slices.Contains([]string{"outreach-sandbox", "outreach-store"}, object.GetName()) {
			continue
		}
		if got := at(t, object, pod+".automountServiceAccountToken}"); got != "false" {
			t.Errorf("%s has a service account token: %q", object.GetName(), got)
		}
	}
}

// TestNoWildcards checks that no role has a wildcard, which would cover resources that do not exist yet. Only roles for
// users may have all verbs, and only for posts.
func TestNoWildcards(t *testing.T) {
	for _, account := range []string{"manager", "apiserver", "release"} {
		for _, right := range rightsOf(t, rendered(t, valuesOf(t, "full")), "outreach-"+account) {
			if strings.Contains(right, "*") {
				t.Errorf("the %s has a wildcard: %s", account, right)
			}
		}
	}
}

// rightsOf returns an account's permissions from the roles bound to it, one line for each resource and rule.
func rightsOf(t *testing.T, objects []*unstructured.Unstructured, account string) []string {
	t.Helper()
	var rights []string
	for _, object := range objects {
		if object.GetKind() != "ClusterRoleBinding" && object.GetKind() != "RoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding
		convert(t, object, &binding)
		mine := slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind != rbacv1.ServiceAccountKind || s.Name == account && s.Namespace == outreach.namespace
		})
		if !mine {
			continue
		}
		where := "everywhere"
		if object.GetKind() == "RoleBinding" {
			where = "in " + object.GetNamespace()
		}
		bound := roleOf(objects, &binding)
		if bound == nil {
			t.Fatalf("%s binds the missing %s %s", object.GetName(), binding.RoleRef.Kind, binding.RoleRef.Name)
		}
		var role rbacv1.ClusterRole
		convert(t, bound, &role)
		for _, rule := range role.Rules {
			rights = append(rights, linesOf(rule, where)...)
		}
	}
	slices.Sort(rights)
	return rights
}

// roleOf returns the role that a binding refers to. A Role is in the same namespace as its binding.
func roleOf(objects []*unstructured.Unstructured, binding *rbacv1.RoleBinding) *unstructured.Unstructured {
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == binding.RoleRef.Kind && o.GetName() == binding.RoleRef.Name &&
			(o.GetKind() == "ClusterRole" || o.GetNamespace() == binding.Namespace)
	})
	if i < 0 {
		return nil
	}
	return objects[i]
}

func linesOf(rule rbacv1.PolicyRule, where string) []string {
	var lines []string
	named := ""
	if len(rule.ResourceNames) > 0 {
		named = " named " + strings.Join(rule.ResourceNames, ", ")
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if group != "" {
				resource += "." + group
			}
			lines = append(lines, fmt.Sprintf("%s: %s%s %s", resource, strings.Join(rule.Verbs, " "), named, where))
		}
	}
	for _, url := range rule.NonResourceURLs {
		lines = append(lines, fmt.Sprintf("%s: %s", url, strings.Join(rule.Verbs, " ")))
	}
	return lines
}

func convert(t *testing.T, object *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		t.Fatal(err)
	}
}
