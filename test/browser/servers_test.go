// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"

	. "github.com/onsi/ginkgo/v2"

	"github.com/herald-social/herald/test/browser/web"
	"github.com/herald-social/herald/test/sandboxtest"
)

// The sandbox responds in place of every server.
var _ = Describe("An account on a server that the user chooses", func() {
	It("is connected, publishes, and is disconnected", func(ctx context.Context) {
		sandbox := sandboxtest.Client{URL: herald().Sandbox()}
		_, err := sandbox.Account(ctx, "mastodon", "109300000000009011", map[string]any{"username": "toot_bakery", "display_name": "Toot bakery"})
		must(err)
		page, site := signedInPage()
		says := func(text string) { GinkgoHelper(); must(page.WaitText(text)) }

		must(site.Accounts())
		must(page.GetByPartialName("button", "Connect Mastodon").Follow())
		inEveryLook(page, "connect-server")
		must(page.Get("textbox", "Server").Fill("bakery"))
		must(page.Get("button", "Continue").Follow())
		says("this is not the name of a server")
		page.Forget() // the response has the status 400
		must(page.Get("textbox", "Server").Fill("@toot_bakery@Bakery.Example"))
		must(page.Get("button", "Continue").Click())
		says("Herald asks for: read:accounts")
		must(page.Settle())
		must(page.Follow(func() error { return web.Allow(page, "@toot_bakery") }))
		says("The account is connected")

		must(site.Compose(web.Draft{Kind: web.Text, Targets: []web.Target{{Account: "Mastodon, @toot_bakery@bakery.example"}}, Text: "Fresh from the bakery"}))
		must(site.Publish())
		says("Posted")

		must(site.Accounts())
		must(site.Disconnect("Toot bakery"))
		says("Herald asks bakery.example once to revoke its access")
	})
})
