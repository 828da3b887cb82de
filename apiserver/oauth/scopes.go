// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"slices"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
)

// requiredPermissions are the RBAC permissions that a scope needs, in addition to those of the scopes it includes. The web
// application checks the same permissions: a draft is canceled by an update, and files belong to drafts.
var requiredPermissions = map[bridge.Scope][]struct{ verb, resource string }{
	bridge.ScopeRead:    {{"list", posts}, {"list", "connections"}},
	bridge.ScopeDraft:   {{"create", posts}, {"update", posts}, {"create", "media"}},
	bridge.ScopePublish: {{"create", posts}, {"update", posts}},
}

const posts = "posts"

func upTo(scope bridge.Scope) []bridge.Scope {
	i := slices.Index(scopesOffered, scope)
	return slices.Clone(scopesOffered[:i+1])
}

// requestedScopes returns the scopes in a string, with those that they include. An empty string requests all scopes. A
// string without a known scope requests none. Unknown scopes, such as offline_access, are ignored.
func requestedScopes(text string) []bridge.Scope {
	words := strings.Fields(text)
	if len(words) == 0 {
		return slices.Clone(scopesOffered)
	}
	asked := make([]bridge.Scope, len(words))
	for i, word := range words {
		asked[i] = bridge.Scope(word)
	}
	return upToHighest(asked)
}

// upToHighest returns the highest of the given scopes and those that it includes, lowest first.
func upToHighest(scopes []bridge.Scope) []bridge.Scope {
	for _, scope := range slices.Backward(scopesOffered) {
		if slices.Contains(scopes, scope) {
			return upTo(scope)
		}
	}
	return []bridge.Scope{}
}

// scopeText joins scopes in the format of RFC 6749, section 3.3.
func scopeText(scopes []bridge.Scope) string {
	words := make([]string, len(scopes))
	for i, scope := range scopes {
		words[i] = string(scope)
	}
	return strings.Join(words, " ")
}

// within returns the scopes that a user may currently use in a namespace. A scope also needs the permissions of the
// scopes that it includes, even if these are not listed. The list's order does not matter.
func (s *Server) within(ctx context.Context, who access.Person, namespace string, scopes []bridge.Scope) ([]bridge.Scope, error) {
	may := []bridge.Scope{}
	for _, scope := range upToHighest(scopes) {
		all := true
		for _, right := range requiredPermissions[scope] {
			has, err := s.Access.May(ctx, who, namespace, right.verb, right.resource)
			if err != nil {
				return nil, err
			}
			all = all && has
		}
		if !all {
			break
		}
		if slices.Contains(scopes, scope) {
			may = append(may, scope)
		}
	}
	return may, nil
}

// scopesOf returns a grant's scopes, lowest first. In the resource they are an unordered set.
func scopesOf(grant *v1alpha1.OAuthGrant) []bridge.Scope {
	return slices.DeleteFunc(slices.Clone(scopesOffered), func(scope bridge.Scope) bool {
		return !slices.Contains(grant.Spec.Scopes, v1alpha1.OAuthScope(scope))
	})
}

func both(a, b []bridge.Scope) []bridge.Scope {
	return slices.DeleteFunc(slices.Clone(a), func(scope bridge.Scope) bool { return !slices.Contains(b, scope) })
}

func personOf(grant *v1alpha1.OAuthGrant) access.Person {
	p := &grant.Spec.Person
	return access.Person{Name: p.Name, Groups: p.Groups, DisplayName: p.DisplayName}
}
