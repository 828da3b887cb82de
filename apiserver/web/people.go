// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"

	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
)

// linkUser is the display text for everyone who signs in with a one-time link: they all have the same name.
const linkUser = "someone with a sign-in link"

// personNamed returns the display text for a user's name: "you" for the viewer, and the name without the sign-in
// provider's prefix for others.
func (s *Site) personNamed(v *visit, name string) string {
	switch name {
	case v.person.Name:
		return "you"
	case access.LinkPerson:
		return linkUser
	default:
		if key, ok := strings.CutPrefix(name, access.KeyAuthor); ok {
			return "the API key " + key
		}
		return s.withoutPrefix(name)
	}
}

func (s *Site) withoutPrefix(name string) string {
	if provider := s.Config.SignIn.OIDC; provider != nil {
		return strings.TrimPrefix(name, provider.UsernamePrefix)
	}
	return name
}

// messageOf returns an error's message, with people's names as pages show them.
func (s *Site) messageOf(v *visit, known *bridge.Error) string {
	if v == nil || known.ChangedBy == "" {
		return known.Message
	}
	return strings.Replace(known.Message, bridge.LastBy+known.ChangedBy, bridge.LastBy+s.personNamed(v, known.ChangedBy), 1)
}

// toAsk explains whom to ask for a role. It mentions namespaces only to people who can see role bindings.
func (v *visit) toAsk() string {
	if v.may.seeMembers {
		return "Ask an administrator for a role in the namespace " + v.namespace + "."
	}
	return "Ask an administrator of your team."
}
