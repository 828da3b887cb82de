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

// AllowAgent lets an agent do what is chosen, on the page of consent; all that it asks for if nothing is.
func AllowAgent(page *chrome.Page) error {
	return steps(func() error { return chooseMost(page) }, page.Get("button", allow).Follow)
}

// chooseMost chooses the last level that is offered, unless one is chosen.
func chooseMost(page *chrome.Page) error {
	may := page.Get("group", groupMay)
	chosen, err := chrome.Read[bool](may, "function() { return this.querySelector(':checked') !== null }")
	if err != nil || chosen {
		return err
	}
	levels := may.Get("radio", "")
	count, err := levels.Count()
	if err != nil {
		return err
	}
	return levels.Nth(count - 1).Check(true)
}

// DenyAgent refuses, on the page of consent.
func DenyAgent(page *chrome.Page) error { return page.Get("button", deny).Follow() }

// RevokeAgent ends what the agent was allowed whose card says that text, and answers the question before it.
func (s Site) RevokeAgent(text string) error {
	return steps(
		s.card(text).Get("button", revoke).Click,
		s.Page.Get("dialog", "").Get("button", revoke).Follow,
	)
}
