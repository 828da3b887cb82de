// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	. "github.com/onsi/ginkgo/v2"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
)

// page is a tab with a signed-in user.
var page *chrome.Page

func signIn() {
	GinkgoHelper()
	var err error
	page, err = browser.NewPage(chrome.Options{})
	must(err)
	DeferCleanup(page.Close)
	must(web.Site{Page: page, URL: herald.Site()}.SignIn(herald.Variable("HERALD_SIGNIN_URL")))
}

// allow approves the agent's request on the consent page, and waits for the redirect to the agent.
func allow(authorize string) {
	GinkgoHelper()
	must(page.Open(authorize))
	must(web.AllowAgent(page))
}

// revoke revokes the agent's grant on the agents page.
func revoke(agent string) {
	GinkgoHelper()
	must(page.Open(herald.Site()))
	site := web.Site{Page: page, URL: herald.Site()}
	must(site.Agents())
	must(site.RevokeAgent(agent))
}
