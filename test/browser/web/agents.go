// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import "github.com/herald-social/herald/test/browser/chrome"

// What an agent may be allowed, as the page of consent calls it.
const (
	MayRead    = "Read"
	MayDraft   = "Read and write drafts"
	MayPublish = "Read, write and publish"
)

// Agents shows the agents that people have allowed.
func (s Site) Agents() error { return s.menu(linkAgents) }

// ChooseLevel chooses what an agent may do, on the page of consent. The least comes first, and its word begins the others.
func ChooseLevel(page *chrome.Page, level string) error {
	return page.Get("group", groupMay).GetPart("radio", level).Nth(0).Check(true)
}

// AllowAgent lets an agent do what is chosen, on the page of consent.
func AllowAgent(page *chrome.Page) error { return page.Get("button", allow).Follow() }

// DenyAgent refuses, on the page of consent.
func DenyAgent(page *chrome.Page) error { return page.Get("button", deny).Follow() }

// RevokeAgent ends what the agent was allowed whose card says that text, and answers the question before it.
func (s Site) RevokeAgent(text string) error {
	return steps(
		s.card(text).Get("button", revoke).Click,
		s.Page.Get("dialog", "").Get("button", revoke).Follow,
	)
}
