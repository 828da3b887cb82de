// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import "context"

// LinkPerson is the name of the person who signs in with the one-time link, without an OpenID Connect provider.
const LinkPerson = "herald:link"

// KeyAuthor is the prefix of an API key's name in an object's record of who changed it. No user's name starts with it,
// because providers' names cannot start with "herald:".
const KeyAuthor = "herald:key:"

// Person is a signed-in user of the web application.
type Person struct {
	// Name is the user name for role bindings in Kubernetes: LinkPerson, or the configured prefix and the claim of an
	// OpenID Connect provider, such as oidc:ada@example.com.
	Name string `json:"n"`
	// Groups are the person's groups for role bindings, with their prefix.
	Groups []string `json:"g,omitempty"`
	// DisplayName is the name shown on pages; it has no effect on permissions.
	DisplayName string `json:"d,omitempty"`
}

// Shown returns the name to show on pages: the display name or, if there is none, the name. Everyone with a one-time
// link has the same name.
func (p Person) Shown() string {
	if p.Name == LinkPerson {
		return "Signed in with a link"
	}
	if p.DisplayName != "" {
		return p.DisplayName
	}
	return p.Name
}

type personKey struct{}

// WithPerson returns a context with the person.
func WithPerson(ctx context.Context, p Person) context.Context {
	return context.WithValue(ctx, personKey{}, p)
}

// PersonFrom returns the person from a context, or false if there is none.
func PersonFrom(ctx context.Context) (Person, bool) {
	p, ok := ctx.Value(personKey{}).(Person)
	return p, ok
}
