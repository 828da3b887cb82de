// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package web contains a user's steps on the pages of Herald and of the simulated platforms, for tests. names.go
// contains the names of all buttons, links and fields; the suite's README.md lists them.
package web

import (
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/browser/chrome"
)

// DemoHandle returns the name of a platform's demo account: "@herald_demo".
func DemoHandle(platform string) string {
	for _, account := range sandbox.DemoAccounts() {
		if account.Platform == platform {
			return "@" + account.Username
		}
	}
	return ""
}

// Allow grants the client access to the account, on a platform's consent page.
func Allow(page *chrome.Page, handle string) error {
	return page.GetByPartialName("link", handle).Click()
}

// Deny denies access, on a platform's consent page.
func Deny(page *chrome.Page) error { return page.Get("link", "Do not allow").Click() }
