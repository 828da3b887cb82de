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

// personNamed returns the display text for a user's name: their own is "you", and others' lack the prefix of the
// sign-in provider.
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

// messageOf returns an error's message, in which people have the names that pages show.
func (s *Site) messageOf(v *visit, known *bridge.Error) string {
	if v == nil || known.ChangedBy == "" {
		return known.Message
	}
	return strings.Replace(known.Message, bridge.LastBy+known.ChangedBy, bridge.LastBy+s.personNamed(v, known.ChangedBy), 1)
}

// toAsk returns the sentence about whom to ask for a role. Only people who can see role bindings read about namespaces.
func (v *visit) toAsk() string {
	if v.may.seeMembers {
		return "Ask an administrator for a role in the namespace " + v.namespace + "."
	}
	return "Ask an administrator of your team."
}
