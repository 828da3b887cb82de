// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package person says who uses the web application. It knows neither how people sign in nor
// what they may do.
package person

import "context"

// Link is the name of the person who signs in by the one-time link, where no OpenID
// Connect provider is configured.
const Link = "herald:link"

// Person is who is signed in.
type Person struct {
	// Name is what roles in Kubernetes are bound to: Link, or the configured prefix and the
	// claim of an OpenID Connect provider, such as oidc:ada@example.com.
	Name string `json:"n"`
	// Groups are the person's groups, with their prefix, which roles may be bound to as well.
	Groups []string `json:"g,omitempty"`
	// DisplayName is what pages call the person; it decides nothing.
	DisplayName string `json:"d,omitempty"`
}

// Shown is what pages call the person: the display name, or else the name.
func (p Person) Shown() string {
	if p.DisplayName != "" {
		return p.DisplayName
	}
	return p.Name
}

type key struct{}

// With returns a context that carries the person.
func With(ctx context.Context, p Person) context.Context {
	return context.WithValue(ctx, key{}, p)
}

// From returns the person whom the context carries; false if there is none.
func From(ctx context.Context) (Person, bool) {
	p, ok := ctx.Value(key{}).(Person)
	return p, ok
}
