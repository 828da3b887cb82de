// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// agentCallback is the agent's redirect URI. Nothing listens there: the visitor reads the code from the redirect.
const agentCallback = "http://127.0.0.1:9/callback"

// consentField matches the sealed field of the consent page.
var consentField = regexp.MustCompile(`name="consent" value="([^"]+)"`)

// allow approves an agent's request and returns the agent's response.
func (v *visitor) allow(ctx context.Context, address, level string) url.Values {
	GinkgoHelper()
	asked := v.open(ctx, address)
	Expect(asked.status).To(Equal(http.StatusOK), asked.body)
	found := consentField.FindStringSubmatch(asked.body)
	Expect(found).NotTo(BeNil(), asked.body)
	var to *url.URL
	v.client.CheckRedirect = func(next *http.Request, _ []*http.Request) error {
		to = next.URL
		return http.ErrUseLastResponse
	}
	defer func() { v.client.CheckRedirect = nil }()
	v.send(ctx, site+"/oauth/authorize", url.Values{"consent": {html.UnescapeString(found[1])}, "level": {level}, "decision": {"allow"}})
	Expect(to).NotTo(BeNil(), "consent leads back to the agent")
	Expect(to.String()).To(HavePrefix(agentCallback + "?"))
	return to.Query()
}

// byAnAgent acts as an agent that knows only Herald's URL: it asks the signed-in user for consent, then creates a post.
func byAnAgent(ctx context.Context, v *visitor) {
	GinkgoHelper()
	// Programs do not have the user's cookies.
	agent := http.Client{Transport: v.client.Transport}
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL: agentCallback, Client: &agent,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Agent of the e2e tests", RedirectURIs: []string{agentCallback}, TokenEndpointAuthMethod: "none",
		}},
		AuthorizationCodeFetcher: func(ctx context.Context, asked *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			defer GinkgoRecover()
			answer := v.allow(ctx, asked.URL, "publish")
			return &auth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state"), Iss: answer.Get("iss")}, nil
		},
	})
	Expect(err).NotTo(HaveOccurred())
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: site + "/mcp", HTTPClient: &agent, OAuthHandler: handler}, nil)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(session.Close()).To(Succeed()) }()
	const text = "written by an agent"
	Eventually(func(g Gomega) {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{
			Name: "create_post", Meta: mcp.Meta{"social.herald.dev/idempotency-key": "an-agent-of-the-e2e-tests"},
			Arguments: map[string]any{"category": "text", "targets": []any{map[string]any{"connection_id": "demo-x", "caption": text}}},
		})
		g.Expect(err).NotTo(HaveOccurred())
		answer, err := json.Marshal(result.StructuredContent)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.IsError).To(BeFalse(), string(answer))
	}).WithContext(ctx).Should(Succeed())
	Eventually(func(g Gomega) {
		published, err := platforms(ctx).Posts(ctx, "x", "")
		g.Expect(err).NotTo(HaveOccurred())
		count := 0
		for i := range published {
			if published[i].Text == text {
				count++
			}
		}
		g.Expect(count).To(Equal(1))
	}).WithContext(ctx).Should(Succeed())
}
