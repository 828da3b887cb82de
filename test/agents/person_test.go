// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	. "github.com/onsi/ginkgo/v2"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
)

// page is where the person is, signed in.
var page *chrome.Page

func signIn() {
	GinkgoHelper()
	var err error
	page, err = browser.NewPage(chrome.Options{})
	must(err)
	DeferCleanup(page.Close)
	must(web.Site{Page: page, URL: herald.Site()}.SignIn(herald.Variable("HERALD_SIGNIN_URL")))
}

// allow lets the agent do what it asks for, and waits until the answer has arrived there.
func allow(authorize string) {
	GinkgoHelper()
	must(page.Open(authorize))
	must(web.AllowAgent(page))
}

// revoke ends what the agent of that name was allowed, on the page of agents.
func revoke(agent string) {
	GinkgoHelper()
	must(page.Open(herald.Site()))
	site := web.Site{Page: page, URL: herald.Site()}
	must(site.Agents())
	must(site.RevokeAgent(agent))
}
