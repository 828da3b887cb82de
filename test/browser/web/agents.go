// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import "github.com/herald-social/herald/test/browser/chrome"

// The grant levels on the consent page.
const (
	MayRead    = "Read"
	MayDraft   = "Read and write drafts"
	MayPublish = "Read, write and publish"
)

// Agents opens the page of authorized agents.
func (s Site) Agents() error { return s.menu(linkAgents) }

// ChooseLevel chooses a level on the consent page. The lowest level comes first, and the labels of the others start
// with its word.
func ChooseLevel(page *chrome.Page, level string) error {
	return page.Get("group", groupMay).GetByPartialName("radio", level).Nth(0).Check(true)
}

// AllowAgent approves the chosen level on the consent page, or the highest level if none is chosen.
func AllowAgent(page *chrome.Page) error {
	return steps(func() error { return chooseMost(page) }, page.Get("button", allow).Follow)
}

// chooseMost selects the highest access level offered, unless a level is already selected.
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

// DenyAgent denies access on the consent page.
func DenyAgent(page *chrome.Page) error { return page.Get("button", deny).Follow() }

// RevokeAgent revokes the grant on the card that contains the text, and confirms.
func (s Site) RevokeAgent(text string) error {
	return steps(
		s.card(text).Get("button", revoke).Click,
		s.Page.Get("dialog", "").Get("button", revoke).Follow,
	)
}
