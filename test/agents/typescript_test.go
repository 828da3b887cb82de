// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A client of the TypeScript SDK", func() {
	DescribeTable("gets from a 401 to a published post with an image, until a user revokes its grant",
		func(ctx context.Context, release string) {
			name := "TypeScript SDK " + release
			client := script(ctx, "sdk.mjs", release, mcpURL, "demo-instagram", picture())
			allow(client.consentURL())

			var listed struct{ Tools []string }
			client.decodeNext("tools", &listed)
			Expect(listed.Tools).To(ConsistOf(tools))

			var made struct{ Posted post }
			client.decodeNext("posted", &made)
			Expect(made.Posted.Status).To(Equal("posted"))
			there := onPlatform(ctx, "instagram", "From the "+name)
			Expect(there).To(HaveLen(1))
			Expect(there[0].Media).To(HaveLen(1))
			Expect(there[0].Media[0].Bytes).To(BeNumerically(">", 0))

			var waits struct{ Wait string }
			client.decodeNext("wait", &waits)
			revoke(name)
			client.goOn()
			var after struct {
				Status       int
				Challenge    string
				Unauthorized bool
				Asked        int
			}
			client.decodeNext("status", &after)
			Expect(after.Status).To(Equal(401))
			Expect(after.Challenge).To(ContainSubstring(`resource_metadata="` + herald.Site() + `/.well-known/oauth-protected-resource/mcp"`))
			Expect(after.Unauthorized).To(BeTrue(), "the token to refresh by is over too, and the client asks a person again")
			Expect(after.Asked).To(Equal(2))
			client.end()
		},
		Entry("1.x", "1"),
		Entry("2.x", "2"),
	)
})

var _ = Describe("oauth4webapi", func() {
	It("completes every flow, strictly", func(ctx context.Context) {
		client := script(ctx, "oauth.mjs", mcpURL)
		allow(client.consentURL())
		var first struct {
			Scope   string
			Expires int
		}
		client.decodeNext("scope", &first)
		Expect(first.Scope).To(Equal("read draft publish"))
		Expect(first.Expires).To(BeNumerically("~", 3600, 60))
		var revoked struct{ Revoked int }
		client.decodeNext("revoked", &revoked)
		Expect(revoked.Revoked).To(Equal(401))
		var refused struct{ Refused string }
		client.decodeNext("refused", &refused)
		Expect(refused.Refused).To(Equal("invalid_grant"))
		client.end()
	})
})
