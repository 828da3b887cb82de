// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agents tests Herald's interfaces for agents with clients from other vendors. The whole stack runs as with
// `make run`, and the requests are approved in headless Chromium. foreign/ contains the clients and their scripts.
package agents

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/stack"
)

var (
	checkout string
	browser  *chrome.Browser
	herald   *stack.Stack
	// installDir is the test installation's temporary directory. The examples run there instead of in a user's checkout.
	installDir string
	// mcpURL is the URL of the MCP endpoint; key is the demo team's API key.
	mcpURL, key string
)

func TestAgents(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "Agents")
}

var _ = BeforeSuite(func() {
	var err error
	checkout, err = filepath.Abs(filepath.Join("..", ".."))
	must(err)
	Expect(filepath.Join(modules(), "oauth4webapi")).To(BeADirectory(), "run `make test-agents`, which fetches it")
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(checkout, "bin")
	}
	installDir, err = os.MkdirTemp("", "agents")
	must(err)
	DeferCleanup(os.RemoveAll, installDir)
	browser, err = chrome.Start(context.Background())
	must(err)
	DeferCleanup(browser.Close)
	herald, err = stack.Start(context.Background(), stack.Options{Checkout: checkout, Assets: assets, Dir: installDir, Out: GinkgoWriter})
	must(err)
	DeferCleanup(herald.Stop)
	mcpURL, key = herald.Variable("HERALD_MCP_URL"), herald.Variable("HERALD_API_KEY")
	signIn()
})

func must(err error) {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
}
