// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/oauth2"

	"github.com/herald-social/herald/test/browser/web"
)

// back is a client's redirect URI on loopback, and the answers that it receives.
type back struct {
	address string
	answers chan url.Values
}

func newBack() *back {
	b := &back{answers: make(chan url.Values, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Back</title><h1>Back</h1>`)) // the browser may have closed the connection
		if r.URL.Path == "/callback" {
			b.answers <- r.URL.Query()
		}
	}))
	DeferCleanup(server.Close)
	b.address = server.URL + "/callback"
	return b
}

// connectGo connects a Go SDK client; decide acts for the user on the consent page.
func connectGo(ctx context.Context, name string, decide func(authorize string)) *mcp.ClientSession {
	GinkgoHelper()
	b := newBack()
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL: b.address,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: name, RedirectURIs: []string{b.address}, GrantTypes: []string{"authorization_code", "refresh_token"},
			TokenEndpointAuthMethod: "none",
		}},
		AuthorizationCodeFetcher: func(_ context.Context, asked *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			defer GinkgoRecover()
			decide(asked.URL)
			answer := <-b.answers
			return &auth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state"), Iss: answer.Get("iss")}, nil
		},
	})
	must(err)
	client := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: mcpURL, OAuthHandler: handler}, nil)
	must(err)
	DeferCleanup(session.Close)
	return session
}

// publish publishes a text post as an agent and returns the post.
func publish(ctx context.Context, session *mcp.ClientSession, caption string) post {
	GinkgoHelper()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "create_post", Arguments: map[string]any{
		"category": "text", "targets": []any{map[string]any{"connection_id": "demo-x", "caption": caption}},
	}})
	must(err)
	answer, err := json.Marshal(result.StructuredContent)
	must(err)
	Expect(result.IsError).To(BeFalse(), string(answer))
	var created struct {
		Data post `json:"data"`
	}
	must(json.Unmarshal(answer, &created))
	return created.Data
}

var _ = Describe("A client of the Go SDK", func() {
	It("gets from a 401 to a published post with its own OAuth handler", func(ctx context.Context) {
		const text = "From the Go SDK"
		publish(ctx, connectGo(ctx, "Go SDK", allow), text)
		Eventually(onPlatform).WithArguments(ctx, "x", text).Should(HaveLen(1))
	})

	It("requests consent for more scopes, and keeps unapproved posts as drafts", func(ctx context.Context) {
		const text = "More than reading"
		levels := []string{web.MayRead, web.MayDraft}
		session := connectGo(ctx, "Step by step", func(authorize string) {
			Expect(levels).NotTo(BeEmpty(), "not every consent page was shown")
			must(page.Open(authorize))
			must(web.ChooseLevel(page, levels[0]))
			levels = levels[1:]
			must(web.AllowAgent(page))
		})
		Expect(levels).To(HaveLen(1), "the first consent page requests read access")
		Expect(publish(ctx, session, text).Status).To(Equal("draft"))
		Expect(levels).To(BeEmpty(), "the rejection named the missing scope")
		Expect(onPlatform(ctx, "x", text)).To(BeEmpty())
	})
})

var _ = Describe("golang.org/x/oauth2", func() {
	It("completes the flow, refreshes, and is rejected after revocation", func(ctx context.Context) {
		b := newBack()
		config := &oauth2.Config{
			ClientID: register(ctx, "x/oauth2", b.address), RedirectURL: b.address, Scopes: []string{"read"},
			Endpoint: oauth2.Endpoint{AuthURL: herald.Site() + "/oauth/authorize", TokenURL: herald.Site() + "/oauth/token", AuthStyle: oauth2.AuthStyleInParams},
		}
		verifier, resource := oauth2.GenerateVerifier(), oauth2.SetAuthURLParam("resource", mcpURL)
		allow(config.AuthCodeURL("s-1", oauth2.S256ChallengeOption(verifier), resource))
		answer := <-b.answers
		Expect(answer.Get("state")).To(Equal("s-1"))
		Expect(answer.Get("iss")).To(Equal(herald.Site()))
		token, err := config.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(verifier), resource)
		must(err)
		Expect(status(ctx, token)).To(Equal(http.StatusOK))

		refreshed, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
		must(err)
		Expect(refreshed.AccessToken).NotTo(Equal(token.AccessToken))
		Expect(refreshed.RefreshToken).NotTo(Equal(token.RefreshToken))
		Expect(status(ctx, refreshed)).To(Equal(http.StatusOK))

		revoke("x/oauth2")
		Eventually(status).WithArguments(ctx, refreshed).Should(Equal(http.StatusUnauthorized))
		_, err = config.TokenSource(ctx, &oauth2.Token{RefreshToken: refreshed.RefreshToken}).Token()
		var refused *oauth2.RetrieveError
		Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
		Expect(refused.ErrorCode).To(Equal("invalid_grant"))
	})
})

// status returns the HTTP status of an MCP call with the token.
func status(ctx context.Context, token *oauth2.Token) int {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, mcpURL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	must(err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	token.SetAuthHeader(request)
	response, err := http.DefaultClient.Do(request)
	must(err)
	must(response.Body.Close())
	return response.StatusCode
}

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
			Expect(after.Unauthorized).To(BeTrue(), "the refresh token has expired too, and the client requests consent again")
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
