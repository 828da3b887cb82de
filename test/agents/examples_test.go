// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/web"
)

func read(path ...string) string {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join(append([]string{checkout}, path...)...))
	must(err)
	return string(data)
}

// block returns the code block in the given language under a heading of the page.
func block(page, heading, language string) string {
	GinkgoHelper()
	_, below, found := strings.Cut(page, "\n"+heading+"\n")
	Expect(found).To(BeTrue(), "the page has no heading %s", heading)
	_, code, found := strings.Cut(below, "\n```"+language+"\n")
	Expect(found).To(BeTrue(), "the section %s has no block of %s", heading, language)
	code, _, _ = strings.Cut(code, "\n```")
	return code + "\n"
}

// npmFolder links the packages installed by npm into a directory.
func npmFolder(dir string) string {
	GinkgoHelper()
	for _, name := range []string{"node_modules", "package.json"} {
		must(os.Symlink(filepath.Join(checkout, "test", "agents", "foreign", name), filepath.Join(dir, name)))
	}
	return dir
}

var _ = Describe("The README", func() {
	It("posts with one command of a third-party client", func(ctx context.Context) {
		command := block(read("README.md"), "### The first post, by an agent", "sh")
		pinned := regexp.MustCompile(`"@modelcontextprotocol/inspector": "([^"]+)"`).FindStringSubmatch(read("test", "agents", "foreign", "package.json"))
		Expect(command).To(ContainSubstring("@modelcontextprotocol/inspector@"+pinned[1]), "the documented version is the tested one")
		printed := start(ctx, npmFolder(installDir), "bash", "-euc", command).end()
		Expect(printed).To(ContainSubstring("processing"))
		Eventually(onPlatform).WithArguments(ctx, "x", "Hello from an agent").Should(HaveLen(1))
	})
})

var _ = Describe("docs/agents.md", func() {
	It("shows the tested agents", func() {
		page := read("docs", "agents.md")
		Expect(block(page, "### In Go", "go")).To(Equal(shown(read("docs", "examples", "agent-go", "main.go"))))
		Expect(block(page, "### In TypeScript", "ts")).To(Equal(shown(read("docs", "examples", "agent-ts", "agent.ts"))))
	})

	It("has a Go agent that publishes an image", func(ctx context.Context) {
		program := filepath.Join(GinkgoT().TempDir(), "agent-go")
		start(ctx, checkout, "go", "build", "-o", program, "./docs/examples/agent-go").end()
		printed := start(ctx, GinkgoT().TempDir(), program, "x", picture(), "It is out").end()
		there := onPlatform(ctx, "x", "It is out")
		Expect(there).To(HaveLen(1))
		Expect(there[0].Media).To(HaveLen(1))
		Expect(strings.TrimSpace(printed)).To(HavePrefix("posted http"))
	})

	It("has a TypeScript agent limited to drafts", func(ctx context.Context) {
		dir := npmFolder(GinkgoT().TempDir())
		must(os.WriteFile(filepath.Join(dir, "agent.ts"), []byte(read("docs", "examples", "agent-ts", "agent.ts")), 0o600))
		const text = "Is this how we say it?"
		agent := start(ctx, dir, node(), "agent.ts", "x", text)
		must(page.Open(agent.consentURL()))
		must(web.ChooseLevel(page, web.MayDraft))
		must(web.AllowAgent(page))
		Expect(agent.end()).To(ContainSubstring("Created draft"))
		Expect(onPlatform(ctx, "x", text)).To(BeEmpty())
		must(page.Open(herald.Site()))
		must(web.Site{Page: page, URL: herald.Site()}.Posts())
		must(page.WaitText(text))
	})
})

// shown returns a program as the page shows it, without the licence header.
func shown(program string) string {
	_, rest, _ := strings.Cut(program, "SPDX-License-Identifier: Apache-2.0\n\n")
	return rest
}
