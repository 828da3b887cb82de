// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/oauth2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/oauth"
)

// agentsNamespace is the installation's namespace in these tests.
const agentsNamespace = "herald-agents"

// callback is the redirect URI of an agent on this machine.
const callback = "http://127.0.0.1:33418/callback"

var _ = Describe("Agents", Ordered, func() {
	var (
		server  *running
		b       *browser
		t       *team
		log     output
		binding *rbacv1.RoleBinding
	)

	BeforeAll(func(ctx SpecContext) {
		grantWeb(ctx, agentsNamespace)
		Expect(admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentsNamespace, Name: webSecret}})).To(Succeed())
		t = newTeam(ctx)
		binding = t.bindLink(ctx, "admin")
		server = start(restricted, withWeb(&log), func(c *apiserver.Config) {
			c.MCP, c.Web.Namespace, c.Web.Agents = true, agentsNamespace, &apiserver.AgentsConfig{LoopbackClients: true}
		})
		DeferCleanup(func() { server.stop() })
		b = &browser{site: server.site}
		Eventually(func() int { return b.get(ctx, "/signin").status }).WithTimeout(15 * time.Second).Should(Equal(http.StatusOK))
		b.cookies = visit(http.MethodPost, server.site+linkIn(ctx, agentsNamespace)).cookies
		Eventually(func() int { return b.get(ctx, "/teams/"+t.namespace+"/agents").status }).WithTimeout(40 * time.Second).Should(Equal(http.StatusOK))
	}, NodeTimeout(2*time.Minute))

	// register registers a new client.
	register := func(ctx context.Context) *oauth2.Config {
		GinkgoHelper()
		body := `{"client_name":"An inspector","redirect_uris":["` + callback + `"],"grant_types":["authorization_code","refresh_token"]}`
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.site+oauth.RegisterPath, strings.NewReader(body))
		Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Content-Type", "application/json")
		answer := b.send(request)
		Expect(answer.status).To(Equal(http.StatusCreated), answer.body)
		var made struct {
			ID string `json:"client_id"`
		}
		Expect(json.Unmarshal([]byte(answer.body), &made)).To(Succeed())
		return &oauth2.Config{
			ClientID: made.ID, RedirectURL: callback, Scopes: []string{"read", "draft", "publish"},
			Endpoint: oauth2.Endpoint{AuthURL: server.site + oauth.AuthorizePath, TokenURL: server.site + oauth.TokenPath, AuthStyle: oauth2.AuthStyleAutoDetect},
		}
	}

	// allow authorizes a client as the user, and returns the redirect's query.
	allow := func(ctx context.Context, config *oauth2.Config, verifier, level string) url.Values {
		GinkgoHelper()
		address := config.AuthCodeURL("the state", oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", server.site+"/mcp"),
			oauth2.SetAuthURLParam("team", t.namespace))
		page := b.get(ctx, strings.TrimPrefix(address, server.site))
		Expect(page.status).To(Equal(http.StatusOK), page.body)
		answer := b.post(ctx, oauth.AuthorizePath, url.Values{"consent": {page.field("consent")}, "level": {level}, "decision": {"allow"}})
		Expect(answer.status).To(Equal(http.StatusSeeOther), answer.body)
		to, err := url.Parse(answer.header.Get("Location"))
		Expect(err).NotTo(HaveOccurred())
		Expect(to.Host).To(Equal("127.0.0.1:33418"))
		Expect(to.Query().Get("state")).To(Equal("the state"))
		Expect(to.Query().Get("iss")).To(Equal(server.site))
		return to.Query()
	}

	// connect runs the whole authorization flow.
	connect := func(ctx context.Context, level string) (*oauth2.Config, *oauth2.Token) {
		GinkgoHelper()
		config, verifier := register(ctx), oauth2.GenerateVerifier()
		token, err := config.Exchange(ctx, allow(ctx, config, verifier, level).Get("code"), oauth2.VerifierOption(verifier))
		Expect(err).NotTo(HaveOccurred())
		return config, token
	}

	refresh := func(ctx context.Context, config *oauth2.Config, token *oauth2.Token) (*oauth2.Token, error) {
		return config.TokenSource(ctx, &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	}

	caller := func(ctx context.Context, token *oauth2.Token) (bridge.Caller, error) {
		return server.server.CallerOf(ctx, token.AccessToken)
	}

	grants := func(ctx context.Context) []v1alpha1.OAuthGrant {
		GinkgoHelper()
		var list v1alpha1.OAuthGrantList
		Expect(admin.List(ctx, &list, client.InNamespace(t.namespace))).To(Succeed())
		return list.Items
	}

	It("act for the team within the permissions that a user granted", func(ctx SpecContext) {
		config, token := connect(ctx, "draft")
		Expect(token.AccessToken).To(HavePrefix(oauth.TokenPrefix))
		Expect(token.TokenType).To(Equal("Bearer"))
		Expect(token.Extra("scope")).To(Equal("read draft"))
		Expect(caller(ctx, token)).To(Equal(bridge.Caller{
			Namespace: t.namespace, Key: grants(ctx)[0].Name, Author: access.LinkPerson, Agent: "An inspector",
			Scopes: []bridge.Scope{bridge.ScopeRead, bridge.ScopeDraft},
		}))
		next, err := refresh(ctx, config, token)
		Expect(err).NotTo(HaveOccurred())
		Expect(next.RefreshToken).NotTo(Equal(token.RefreshToken))
		_, err = caller(ctx, next)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() *v1alpha1.Time { return grants(ctx)[0].Status.LastUsedAt }).ShouldNot(BeNil())
		page := b.get(ctx, "/teams/"+t.namespace+"/agents")
		Expect(page.body).To(And(ContainSubstring("An inspector"), ContainSubstring("127.0.0.1:33418, not verified"), ContainSubstring("Read and write drafts")))
	})

	It("receive secrets that are neither stored in Kubernetes nor logged", func(ctx SpecContext) {
		config, token := connect(ctx, "publish")
		next, err := refresh(ctx, config, token)
		Expect(err).NotTo(HaveOccurred())
		stored, err := json.Marshal(grants(ctx))
		Expect(err).NotTo(HaveOccurred())
		for _, secret := range []string{token.AccessToken, token.RefreshToken, next.AccessToken, next.RefreshToken} {
			Expect(bytes.Contains(stored, []byte(secret))).To(BeFalse())
			Expect(log.String()).NotTo(ContainSubstring(secret))
			Expect(log.String()).NotTo(ContainSubstring(secret[len(secret)-20:]))
		}
	})

	It("discover the authorization server from the MCP server, and are admitted with its tokens", func(ctx SpecContext) {
		initialize := func(token *oauth2.Token) shown {
			body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.site+oauth.MCPPath, strings.NewReader(body))
			Expect(err).NotTo(HaveOccurred())
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Accept", "application/json, text/event-stream")
			if token != nil {
				token.SetAuthHeader(request)
			}
			return b.send(request)
		}
		refused := initialize(nil)
		Expect(refused.status).To(Equal(http.StatusUnauthorized))
		Expect(refused.header.Get("WWW-Authenticate")).To(ContainSubstring(`resource_metadata="` + server.site + `/.well-known/oauth-protected-resource/mcp"`))
		var metadata struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
		}
		Expect(json.Unmarshal([]byte(b.get(ctx, "/.well-known/oauth-protected-resource/mcp").body), &metadata)).To(Succeed())
		Expect(metadata.Resource).To(Equal(server.site + "/mcp"))
		Expect(metadata.Servers).To(Equal([]string{server.site}))
		_, token := connect(ctx, "read")
		Expect(initialize(token).status).To(Equal(http.StatusOK))
		token.AccessToken += "x"
		Expect(initialize(token).status).To(Equal(http.StatusUnauthorized))
	})

	It("complete the flow without configuration, as the official client does", func(ctx SpecContext) {
		handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
			DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
				Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "The official client", RedirectURIs: []string{callback}},
			},
			AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
				page := b.get(ctx, strings.TrimPrefix(args.URL, server.site)+"&team="+t.namespace)
				answer := b.post(ctx, oauth.AuthorizePath, url.Values{"consent": {page.field("consent")}, "level": {"publish"}, "decision": {"allow"}})
				to, err := url.Parse(answer.header.Get("Location"))
				if err != nil {
					return nil, err
				}
				query := to.Query()
				return &auth.AuthorizationResult{Code: query.Get("code"), State: query.Get("state"), Iss: query.Get("iss")}, nil
			},
		})
		Expect(err).NotTo(HaveOccurred())
		agent := sdk.NewClient(&sdk.Implementation{Name: "official", Version: "1"}, nil)
		connected, err := agent.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: server.site + oauth.MCPPath, OAuthHandler: handler}, nil)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(connected.Close)
		t.connect(ctx, "acme-threads", v1alpha1.PlatformThreads)
		Eventually(func(g Gomega) {
			result, err := connected.CallTool(ctx, &sdk.CallToolParams{Name: "create_post", Arguments: json.RawMessage(text("acme-threads", "By an agent", draft))})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.IsError).To(BeFalse(), "%v", result.StructuredContent)
		}).Should(Succeed())
		var posts v1alpha1.PostList
		Expect(admin.List(ctx, &posts, client.InNamespace(t.namespace))).To(Succeed())
		Expect(posts.Items).To(HaveLen(1))
		Expect(posts.Items[0].Annotations).To(And(
			HaveKeyWithValue(v1alpha1.AgentAnnotation, "The official client"), HaveKeyWithValue(v1alpha1.AuthorAnnotation, access.LinkPerson)))
	})

	It("are refused by the REST API", func(ctx SpecContext) {
		_, token := connect(ctx, "publish")
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.site+"/api/v1/posts", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		token.SetAuthHeader(request)
		Expect(b.send(request).status).To(Equal(http.StatusUnauthorized))
	})

	It("are revoked on the page, with immediate effect", func(ctx SpecContext) {
		config, token := connect(ctx, "read")
		found, err := caller(ctx, token)
		Expect(err).NotTo(HaveOccurred())
		answer := b.post(ctx, "/teams/"+t.namespace+"/agents/"+found.Key+"/revoke", url.Values{})
		Expect(answer.status).To(Equal(http.StatusSeeOther), answer.body)
		Eventually(func() error { _, err := caller(ctx, token); return err }).Should(MatchError(ContainSubstring("was revoked")))
		_, err = refresh(ctx, config, token)
		Expect(err).To(MatchError(ContainSubstring("invalid_grant")))
	})

	It("are rejected once their grant is deleted, and so is its code", func(ctx SpecContext) {
		config, verifier := register(ctx), oauth2.GenerateVerifier()
		before := grants(ctx)
		code := allow(ctx, config, verifier, "read").Get("code")
		for _, grant := range grants(ctx) {
			if !slices.ContainsFunc(before, func(g v1alpha1.OAuthGrant) bool { return g.Name == grant.Name }) {
				Expect(admin.Delete(ctx, &grant)).To(Succeed())
			}
		}
		_, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
		Expect(err).To(MatchError(ContainSubstring("invalid_grant")), "deleting a grant does not open its code again")

		config, token := connect(ctx, "read")
		found, err := caller(ctx, token)
		Expect(err).NotTo(HaveOccurred())
		Expect(admin.Delete(ctx, &v1alpha1.OAuthGrant{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: found.Key}})).To(Succeed())
		Eventually(func() error { _, err := caller(ctx, token); return err }).Should(HaveOccurred())
		_, err = refresh(ctx, config, token)
		Expect(err).To(MatchError(ContainSubstring("invalid_grant")))
	})

	It("lose their grant when a code is used a second time", func(ctx SpecContext) {
		config, verifier := register(ctx), oauth2.GenerateVerifier()
		code := allow(ctx, config, verifier, "read").Get("code")
		token, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
		Expect(err).NotTo(HaveOccurred())
		_, err = config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
		Expect(err).To(MatchError(ContainSubstring("invalid_grant")))
		Eventually(func() error { _, err := caller(ctx, token); return err }).Should(HaveOccurred())
		Expect(log.String()).To(ContainSubstring(v1alpha1.GrantReplay))
	})

	It("exchange a code only once under concurrent requests", func(ctx SpecContext) {
		config, verifier := register(ctx), oauth2.GenerateVerifier()
		code := allow(ctx, config, verifier, "read").Get("code")
		results := make(chan error)
		for range 8 {
			go func() {
				_, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
				results <- err
			}()
		}
		succeeded := 0
		for range 8 {
			if <-results == nil {
				succeeded++
			}
		}
		Expect(succeeded).To(Equal(1))
	})

	It("lose the permissions that their user loses", func(ctx SpecContext) {
		_, token := connect(ctx, "publish")
		Expect(admin.Delete(ctx, binding)).To(Succeed())
		Eventually(func() error { _, err := caller(ctx, token); return err }).WithTimeout(10*time.Second).
			Should(MatchError(ContainSubstring("no longer has the required rights")), "access decisions are cached for five seconds here, and longer by the API server")
	})

	It("do not cause errors in the log", func() {
		Expect(log.String()).NotTo(ContainSubstring("level=ERROR"))
	})
})
