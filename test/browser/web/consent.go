// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package web is what a person does on the pages of Herald and of the simulated platforms, step by step, for tests. The
// names of buttons, links and fields stand in names.go alone: README.md beside the suite lists them.
package web

import (
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/browser/chrome"
)

// DemoHandle is the name of the account that a platform of the sandbox has from the start: "@herald_demo".
func DemoHandle(platform string) string {
	for _, account := range sandbox.DemoAccounts() {
		if account.Platform == platform {
			return "@" + account.Username
		}
	}
	return ""
}

// Allow lets the client into the account, on a platform's page of consent.
func Allow(page *chrome.Page, handle string) error { return page.GetPart("link", handle).Click() }

// Deny refuses, on a platform's page of consent.
func Deny(page *chrome.Page) error { return page.Get("link", "Do not allow").Click() }
