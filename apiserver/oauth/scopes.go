// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"slices"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/person"
)

// requiredRights are the rights of Kubernetes that a scope rests on, beside those of the scopes that it includes. They are what the web
// application asks for the same: a draft is cancelled by an update, and files belong to drafts.
var requiredRights = map[bridge.Scope][]struct{ verb, resource string }{
	bridge.ScopeRead:    {{"list", posts}, {"list", "connections"}},
	bridge.ScopeDraft:   {{"create", posts}, {"update", posts}, {"create", "media"}},
	bridge.ScopePublish: {{"create", posts}, {"update", posts}},
}

// posts is what Kubernetes calls them.
const posts = "posts"

// upTo are a scope and those that it includes.
func upTo(scope bridge.Scope) []bridge.Scope {
	i := slices.Index(scopesOffered, scope)
	return slices.Clone(scopesOffered[:i+1])
}

// asked are the scopes that a text asks for, with those that they include; all if it is empty, and none if it holds no scope of
// ours. Others, such as offline_access, are passed over.
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

// upToHighest are the highest of several scopes and those that it includes, least first.
func upToHighest(scopes []bridge.Scope) []bridge.Scope {
	for _, scope := range slices.Backward(scopesOffered) {
		if slices.Contains(scopes, scope) {
			return upTo(scope)
		}
	}
	return []bridge.Scope{}
}

// scopeText is how scopes are written (RFC 6749, section 3.3).
func scopeText(scopes []bridge.Scope) string {
	words := make([]string, len(scopes))
	for i, scope := range scopes {
		words[i] = string(scope)
	}
	return strings.Join(words, " ")
}

// within are those of scopes that a person may use in a namespace now. A scope rests on those that it includes, also where they are
// not among the scopes, and in whatever order these stand.
func (s *Server) within(ctx context.Context, who person.Person, namespace string, scopes []bridge.Scope) ([]bridge.Scope, error) {
	may := []bridge.Scope{}
	for _, scope := range upToHighest(scopes) {
		all := true
		for _, right := range requiredRights[scope] {
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

// scopesOf are those of a grant, least first. In the resource they are a set, whose order anyone who may update it can change.
func scopesOf(grant *v1alpha1.OAuthGrant) []bridge.Scope {
	return slices.DeleteFunc(slices.Clone(scopesOffered), func(scope bridge.Scope) bool {
		return !slices.Contains(grant.Spec.Scopes, v1alpha1.OAuthScope(scope))
	})
}

// both are the scopes that stand in two lists.
func both(a, b []bridge.Scope) []bridge.Scope {
	return slices.DeleteFunc(slices.Clone(a), func(scope bridge.Scope) bool { return !slices.Contains(b, scope) })
}

// personOf is who allowed a grant.
func personOf(grant *v1alpha1.OAuthGrant) person.Person {
	p := &grant.Spec.Person
	return person.Person{Name: p.Name, Groups: p.Groups, DisplayName: p.DisplayName}
}
