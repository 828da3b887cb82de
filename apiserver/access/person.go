// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package person identifies the users of the web application. It is independent of authentication and authorization.
package person

import "context"

// Link is the name of the person who signs in by the one-time link, in an installation without an OpenID Connect
// provider.
const Link = "herald:link"

// Person is a signed-in user.
type Person struct {
	// Name is the user name for role bindings in Kubernetes: Link, or the configured prefix and the claim of an OpenID
	// Connect provider, such as oidc:ada@example.com.
	Name string `json:"n"`
	// Groups are the person's groups, with their prefix, for role bindings.
	Groups []string `json:"g,omitempty"`
	// DisplayName is the name on pages; it has no effect on permissions.
	DisplayName string `json:"d,omitempty"`
}

// Shown returns the name for pages: the display name, or else the name.
func (p Person) Shown() string {
	if p.DisplayName != "" {
		return p.DisplayName
	}
	return p.Name
}

type key struct{}

// With returns a context with the person.
func With(ctx context.Context, p Person) context.Context {
	return context.WithValue(ctx, key{}, p)
}

// From returns the person of a context; false if there is none.
func From(ctx context.Context) (Person, bool) {
	p, ok := ctx.Value(key{}).(Person)
	return p, ok
}
