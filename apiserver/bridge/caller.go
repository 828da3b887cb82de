// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"slices"
	"strings"
	"unicode"
)

// Caller is who a request is made for.
type Caller struct {
	// Namespace is that of the caller's team.
	Namespace string
	// Key names what let the caller in: an API key, or the grant of an agent; empty for a
	// person.
	Key string
	// Author is the name of the person, such as "herald:link", or of the one for whom an
	// agent acts; empty for an API key.
	Author string
	// Agent is the name of the agent, or other MCP client, that acts, as AgentName returns
	// it; empty for a caller that came by another door.
	Agent string
	// Scopes are what the caller may do; nil allows everything.
	Scopes []Scope
}

// grant is the name of the grant of an agent that a person allowed; empty for other
// callers.
func (c Caller) grant() string {
	if c.Author == "" {
		return ""
	}
	return c.Key
}

// Scope is a part of what a caller may do. Each includes those before it.
type Scope string

// The scopes.
const (
	// ScopeRead allows to see accounts and posts.
	ScopeRead Scope = "read"
	// ScopeDraft allows to upload files, and to make drafts and cancel them. A post that
	// was to be published becomes a draft, which waits for a person.
	ScopeDraft Scope = "draft"
	// ScopePublish allows to publish posts, now or later, and to cancel scheduled ones.
	ScopePublish Scope = "publish"
)

// Scopes are all that there are, each including those before it.
var Scopes = []Scope{ScopeRead, ScopeDraft, ScopePublish}

// May reports whether the caller may do what a scope allows.
func (c Caller) May(scope Scope) bool {
	if c.Scopes == nil {
		return true
	}
	return slices.ContainsFunc(c.Scopes, func(has Scope) bool { return slices.Index(Scopes, has) >= slices.Index(Scopes, scope) })
}

// maxAgent is how long the name of an agent may be, in characters.
const maxAgent = 80

// AgentName returns the name of an agent as it is stored and shown: what cannot be seen,
// such as control characters, marks of direction and the tags of Unicode, is left out,
// blanks in a row are one space, and what is too long is cut. The name is what a client
// says of itself.
func AgentName(name string) string {
	var b strings.Builder
	length, blank := 0, false
	for _, r := range strings.ToValidUTF8(name, "") {
		switch {
		case unicode.IsSpace(r):
			blank = length > 0
			continue
		case !unicode.IsPrint(r), unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			continue
		case blank:
			b.WriteByte(' ')
			length++
			blank = false
		}
		if length >= maxAgent {
			return strings.TrimRight(b.String(), " ") + "…"
		}
		b.WriteRune(r)
		length++
	}
	return b.String()
}
