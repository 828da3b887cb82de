// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/mcp"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/test/agents/fixtures"
)

// withKey starts a proxy that adds the API key, because the suite cannot send one.
func withKey(target string) string {
	GinkgoHelper()
	to, err := url.Parse(target)
	must(err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.Path = to.Scheme, to.Host, to.Path
		// Keep the Host header, as a reverse proxy does: the suite also sends other hosts.
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+key)
		// The response may arrive while the transport is still reading the request body, which the proxy's server then
		// closes.
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			return // the suite has closed the connection
		}
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
	}})
	DeferCleanup(proxy.Close)
	return proxy.URL + mcp.Path
}

// withFixtures serves the suite's fixtures behind Herald's MCP handler.
func withFixtures() string {
	GinkgoHelper()
	limiter := limits.NewRateLimiter(0, clock.RealClock{})
	site := httptest.NewUnstartedServer(nil)
	siteURL := "http://" + site.Listener.Addr().String()
	handler, err := mcp.New(mcp.Options{
		REST: rest.NewHandler(nil, rest.Limits{Teams: limiter}), SiteURL: siteURL, Server: fixtures.NewServer(),
		Tokens: func(context.Context, string) (bridge.Caller, error) {
			return bridge.Caller{Namespace: "team", Key: "key"}, nil
		},
	})
	must(err)
	site.Config.Handler = handler
	site.Start()
	DeferCleanup(site.Close)
	return siteURL + mcp.Path
}

var _ = Describe("The conformance suite of MCP", func() {
	conform := func(ctx context.Context, address, revision, baseline string) {
		GinkgoHelper()
		results := GinkgoT().TempDir()
		code, printed, complaints := run(ctx, "conformance", "server", "--url", address, "--requirements", revision, "--output-dir", results,
			"--expected-failures", filepath.Join(checkout, "test", "agents", "conformance", baseline))
		_, summary, _ := strings.Cut(printed, "SUMMARY")
		Expect(code).To(BeZero(), "%s\n%s\nFailed checks:\n%s", summary, complaints, notPassed(results))
		Expect(summary).To(ContainSubstring("tools-list"), "the suite tried a call")
	}

	DescribeTable("passes Herald's own server, except for checks that need fixtures",
		func(ctx context.Context, revision string) {
			conform(ctx, withKey(mcpURL), revision, "product-"+revision+".yaml")
		},
		Entry("of 2026-07-28", "2026-07-28"),
		Entry("of 2025-11-25", "2025-11-25"),
	)

	DescribeTable("passes its fixtures behind Herald's handler",
		func(ctx context.Context, revision string) {
			conform(ctx, withKey(withFixtures()), revision, "fixtures-"+revision+".yaml")
		},
		Entry("of 2026-07-28", "2026-07-28"),
		Entry("of 2025-11-25", "2025-11-25"),
	)

	It("passes the authorization server", func(ctx context.Context) {
		const port = "3917"
		client := register(ctx, "Conformance suite", "http://127.0.0.1:"+port+"/callback")
		suite := start(ctx, GinkgoT().TempDir(), filepath.Join(modules(), ".bin", "conformance"), "authorization",
			"--url", herald.Site(), "--client-id", client, "--resource", mcpURL, "--port", port)
		allow(suite.consentURL())
		printed := suite.end()
		for _, scenario := range []string{"authorization-server-metadata-endpoint", "authorization-code-grant"} {
			Expect(printed).To(ContainSubstring(scenario))
		}
		Expect(strings.ToLower(printed)).NotTo(ContainSubstring("skipped:"), printed)
	})
})

// notPassed returns the failed checks with their messages, which the suite's summary leaves out.
func notPassed(results string) string {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
	must(err)
	var text strings.Builder
	for _, file := range files {
		var checks []struct {
			ID           string `json:"id"`
			Status       string `json:"status"`
			ErrorMessage string `json:"errorMessage"`
		}
		data, err := os.ReadFile(file)
		must(err)
		must(json.Unmarshal(data, &checks))
		for _, check := range checks {
			if check.Status != "SUCCESS" && check.Status != "INFO" {
				fmt.Fprintf(&text, "%s %s: %s: %s\n", check.Status, filepath.Base(filepath.Dir(file)), check.ID, check.ErrorMessage)
			}
		}
	}
	return text.String()
}

// register registers a client without credentials, and returns its ID.
func register(ctx context.Context, name, redirect string) string {
	GinkgoHelper()
	var answer struct {
		ID string `json:"client_id"`
	}
	sendJSON(ctx, http.MethodPost, herald.Site()+"/oauth/register", map[string]any{
		"client_name": name, "redirect_uris": []string{redirect}, "grant_types": []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_method": "none",
	}, http.StatusCreated, &answer)
	return answer.ID
}

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
