// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"encoding/json"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/hack/local/ports"
)

var _ = Describe("The inspector", func() {
	// Exit codes of the inspector: 5 for a tool that returns an error, 6 for a schema that clients may reject.
	const toolError = 5

	inspect := func(ctx context.Context, era string, arguments ...string) (int, string) {
		GinkgoHelper()
		all := append([]string{"--cli", mcpURL, "--protocol-era", era, "--header", "Authorization: Bearer " + key, "--format", "json"}, arguments...)
		code, printed, complaints := run(ctx, "mcp-inspector", all...)
		GinkgoWriter.Println(printed, complaints)
		return code, printed
	}

	for _, era := range []string{"legacy", "modern"} {
		It("accepts the tool schemas, era "+era, func(ctx context.Context) {
			code, printed := inspect(ctx, era, "--method", "tools/list", "--strict")
			Expect(code).To(BeZero(), printed)
			var listed struct {
				Result struct {
					Tools []struct {
						Name string `json:"name"`
					} `json:"tools"`
				} `json:"result"`
			}
			must(json.Unmarshal([]byte(printed), &listed))
			names := []string{}
			for _, tool := range listed.Result.Tools {
				names = append(names, tool.Name)
			}
			Expect(names).To(ConsistOf(tools))
		})

		It("posts, era "+era, func(ctx context.Context) {
			text := "From the inspector, era " + era
			code, printed := inspect(ctx, era, "--method", "tools/call", "--tool-name", "create_post", "--tool-args-json",
				`{"category":"text","targets":[{"connection_id":"demo-x","caption":"`+text+`"}]}`)
			Expect(code).To(BeZero(), printed)
			Eventually(onPlatform).WithArguments(ctx, "x", text).Should(HaveLen(1))
		})

		It("receives tool errors, era "+era, func(ctx context.Context) {
			code, printed := inspect(ctx, era, "--method", "tools/call", "--tool-name", "get_post", "--tool-args-json", `{"id":"there-is-none"}`)
			Expect(code).To(Equal(toolError), printed)
			Expect(printed).To(ContainSubstring("NOT_FOUND"))
		})
	}

	It("posts without a key after a user's consent", func(ctx context.Context) {
		address, err := ports.Free()
		must(err)
		inspector := start(ctx, GinkgoT().TempDir(), filepath.Join(modules(), ".bin", "mcp-inspector"), "--cli", mcpURL,
			"--callback-url", "http://"+address+"/oauth/callback", "--method", "tools/call", "--tool-name", "create_post",
			"--tool-args-json", `{"category":"text","targets":[{"connection_id":"demo-x","caption":"Allowed in a browser"}]}`)
		allow(inspector.consentURL())
		inspector.end()
		Eventually(onPlatform).WithArguments(ctx, "x", "Allowed in a browser").Should(HaveLen(1))
	})

	It("reads resources and prompts", func(ctx context.Context) {
		for _, method := range []string{"resources/list", "prompts/list"} {
			code, printed := inspect(ctx, "modern", "--method", method)
			Expect(code).To(BeZero(), printed)
		}
	})
})
