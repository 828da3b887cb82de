// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"slices"
	"strings"
	"unicode"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Caller is the identity on whose behalf a request acts.
type Caller struct {
	// Namespace is the namespace of the caller's team.
	Namespace string
	// Key is the name of the API key or of the agent's grant; empty for a user.
	Key string
	// Author is the user's name, such as "herald:link", even if an agent acts for the user; empty for an API key.
	Author string
	// Agent is the name of the agent or other MCP client, as returned by AgentName; empty for other callers.
	Agent string
	// Version1 is true for a caller of version 1 of the API, which has only the platforms of its contract: accounts on
	// other platforms, and posts that go only to such accounts, do not exist for this caller.
	Version1 bool
	// Scopes are the caller's permissions; nil allows everything but what Permissions lists.
	Scopes []Scope
	// Permissions are an API key's permissions.
	Permissions []v1alpha1.KeyPermission
}

// grant returns the name of an agent's grant, or "" for other callers.
func (c Caller) grant() string {
	if c.Author == "" {
		return ""
	}
	return c.Key
}

// Scope is a permission. Each scope includes the scopes before it.
type Scope string

const (
	// ScopeRead allows reading accounts and posts.
	ScopeRead Scope = "read"
	// ScopeDraft allows uploading files, creating drafts and cancelling them. A post that would be
	// published becomes a draft for a user's review.
	ScopeDraft Scope = "draft"
	// ScopePublish allows publishing posts, now or later, and cancelling scheduled posts.
	ScopePublish Scope = "publish"
)

// Scopes are all scopes. Each includes the scopes before it.
var Scopes = []Scope{ScopeRead, ScopeDraft, ScopePublish}

// May reports whether the caller has a scope.
func (c Caller) May(scope Scope) bool {
	if c.Scopes == nil {
		return true
	}
	return slices.ContainsFunc(c.Scopes, func(has Scope) bool { return slices.Index(Scopes, has) >= slices.Index(Scopes, scope) })
}

// maxAgent limits the length of an agent's name, in characters.
const maxAgent = 80

// AgentName returns an agent's name, sanitized: invisible characters, such as control characters, direction marks and
// Unicode tags, are removed, consecutive blanks become one space, and a long name is truncated. The name is
// self-reported by the client.
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
