// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
)

// agentTransport is the agents' transport in these tests.
var agentTransport = &http.Transport{}

// withToken sends a token with each request.
type withToken string

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(t))
	return agentTransport.RoundTrip(r)
}

// agent returns the SDK's own client with the team's key.
func (t *team) agent(ctx context.Context, to *running) *mcp.ClientSession {
	GinkgoHelper()
	return t.agentAt(ctx, to.site+"/mcp")
}

// agentAt is like agent, but for the MCP server at an address.
func (t *team) agentAt(ctx context.Context, endpoint string) *mcp.ClientSession {
	GinkgoHelper()
	client := mcp.NewClient(&mcp.Implementation{Name: "scout", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: withToken(t.token)}}, nil)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(session.Close)
	return session
}

// use calls a tool and returns its envelope, both as a reply and as a tool result.
func use(ctx context.Context, session *mcp.ClientSession, tool, arguments string) (reply, *mcp.CallToolResult) {
	GinkgoHelper()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	Expect(err).NotTo(HaveOccurred())
	body, err := json.Marshal(result.StructuredContent)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.Content[0].(*mcp.TextContent).Text).To(MatchJSON(body))
	return reply{body: string(body)}, result
}

var _ = Describe("Agents using MCP", func() {
	var (
		t       *team
		session *mcp.ClientSession
	)
	setUp := func(ctx context.Context, edits ...func(*v1alpha1.Team)) {
		GinkgoHelper()
		t = newTeam(ctx, edits...)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "acme-threads", v1alpha1.PlatformThreads)
		Eventually(func() []string { return as[listBody](t.call(ctx, "GET", "/connections", "")).ids() }).Should(HaveLen(2))
		session = t.agent(ctx, instance)
	}

	It("can do everything from the list of accounts to a post with an image", func(ctx context.Context) {
		setUp(ctx)
		connections, _ := use(ctx, session, "list_connections", `{"platform":"x"}`)
		Expect(connections.body).To(MatchJSON(t.call(ctx, "GET", "/connections?platform=x", "").body))

		file := sample("picture.png")
		made, _ := use(ctx, session, "create_media_upload_url", upload("a.png", "image/png", len(file)))
		media := as[uploadBody](made).Data
		Expect(put(ctx, media.UploadURL, "image/png", file)).To(Equal(http.StatusOK))

		created, result := use(ctx, session, "create_post", fmt.Sprintf(
			`{"category":"image","media_ids":[%q],"targets":[{"connection_id":"acme-x","caption":"Hello"}]%s}`, media.MediaID, inAnHour()))
		Expect(result.IsError).To(BeFalse(), created.body)
		post := as[postBody](created).Data
		Expect(post.Status).To(Equal("scheduled"))
		Expect(post.MediaIDs).To(Equal([]string{media.MediaID}), "media uploaded through the API has its id there")
		stored := t.stored(ctx, post.ID)
		Expect(stored.Annotations).To(And(HaveKeyWithValue(v1alpha1.AgentAnnotation, "scout"), Not(HaveKey(v1alpha1.AuthorAnnotation))))

		got, _ := use(ctx, session, "get_post", fmt.Sprintf(`{"id":%q}`, post.ID))
		Expect(got.body).To(MatchJSON(t.call(ctx, "GET", "/posts/"+post.ID, "").body))
		list, _ := use(ctx, session, "list_posts", `{"status":"scheduled","limit":1}`)
		Expect(list.body).To(MatchJSON(t.call(ctx, "GET", "/posts?status=scheduled&limit=1", "").body))
		cancelled, _ := use(ctx, session, "cancel_post", fmt.Sprintf(`{"id":%q}`, post.ID))
		Expect(cancelled.body).To(MatchJSON(fmt.Sprintf(`{"data":{"id":%q,"status":"cancelled"}}`, post.ID)))
		again, result := use(ctx, session, "cancel_post", fmt.Sprintf(`{"id":%q}`, post.ID))
		Expect(result.IsError).To(BeTrue())
		Expect(again.body).To(ContainSubstring(`"CONFLICT"`))
	})

	DescribeTable("get every error of REST, word for word", func(ctx context.Context, edit func(*v1alpha1.Team), tool, arguments, method, path, code string) {
		setUp(ctx)
		t.connect(ctx, "expired-x", v1alpha1.PlatformX)
		t.connect(ctx, "down-x", v1alpha1.PlatformX)
		t.connect(ctx, "private-tiktok", v1alpha1.PlatformTikTok)
		if edit != nil {
			Expect(admin.Get(ctx, clientKey(t.resource), t.resource)).To(Succeed())
			edit(t.resource)
			Expect(admin.Update(ctx, t.resource)).To(Succeed())
			Eventually(func() int { return t.call(ctx, "POST", "/posts", "{}").status }).Should(Equal(403))
		}
		body := arguments
		if method != http.MethodPost {
			body = ""
		}
		want := t.call(ctx, method, path, body)
		got, result := use(ctx, session, tool, arguments)
		Expect(result.IsError).To(BeTrue())
		Expect(got.body).To(MatchJSON(want.body))
		Expect(got.body).To(ContainSubstring(code))
	},
		Entry("of validation", nil, "create_post", text("nowhere", "a"), "POST", "/posts", "VALIDATION_ERROR"),
		Entry("of an account to reconnect", nil, "create_post", text("expired-x", "a"), "POST", "/posts", "POSTING_READINESS_RECONNECT_REQUIRED"),
		Entry("of an unavailable platform", nil, "create_post", text("down-x", "a"), "POST", "/posts", "POSTING_READINESS_UNAVAILABLE"),
		Entry("of a missing post", nil, "get_post", `{"id":"p1"}`, "GET", "/posts/p1", "NOT_FOUND"),
		Entry("of a subscription", func(t *v1alpha1.Team) { t.Spec.Subscription.State = v1alpha1.SubscriptionPastDue }, "create_post", `{}`, "POST", "/posts", "SUBSCRIPTION_REQUIRED"),
	)

	It("do not see other teams", func(ctx context.Context) {
		setUp(ctx)
		other := newTeam(ctx)
		other.connect(ctx, "theirs", v1alpha1.PlatformX)
		theirs := other.create(ctx, text("theirs", "secret", inAnHour()))
		got, result := use(ctx, session, "get_post", fmt.Sprintf(`{"id":%q}`, theirs.ID))
		Expect(result.IsError).To(BeTrue())
		Expect(got.body).To(ContainSubstring("NOT_FOUND"))
		list, _ := use(ctx, session, "list_posts", `{}`)
		Expect(list.body).NotTo(ContainSubstring("secret"))
		accounts, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "herald://accounts"})
		Expect(err).NotTo(HaveOccurred())
		Expect(accounts.Contents[0].Text).To(And(ContainSubstring("acme-x"), Not(ContainSubstring("theirs"))))
	})

	It("create drafts if the team requires reviews, unlike REST", func(ctx context.Context) {
		setUp(ctx, func(team *v1alpha1.Team) { team.Spec.Agents.Publishing = v1alpha1.AgentsDraft })
		created, result := use(ctx, session, "create_post", text("acme-x", "Hello", `,"scheduled_at":"2199-01-01T00:00:00.123Z"`))
		Expect(result.IsError).To(BeFalse(), created.body)
		post := as[postBody](created).Data
		Expect(post.Status).To(Equal("draft"))
		Expect(post.ScheduledAt).To(BeNil())
		Expect(result.Content).To(HaveLen(2))
		Expect(t.stored(ctx, post.ID).Annotations).To(HaveKeyWithValue(v1alpha1.WantedAtAnnotation, "2199-01-01T00:00:00.123Z"))
		Expect(as[postBody](t.call(ctx, "POST", "/posts", text("acme-x", "Hello", inAnHour()))).Data.Status).To(Equal("scheduled"))
	})

	It("are counted, logged and limited like other clients", func(ctx context.Context) {
		setUp(ctx)
		Expect(do(ctx, instance, "POST", "/mcp/", "{}", nil).status).To(Equal(http.StatusUnauthorized), "users paste the address with a slash")
		use(ctx, session, "list_posts", `{}`)
		Expect(metricsOf(instance)).To(ContainSubstring(`herald_http_requests_total{code="200",operation="mcp list_posts"}`))
		limited := start(restricted, func(c *apiserver.Config) { c.RequestsPerMinute = 2 })
		defer limited.stop()
		header := map[string]string{"Authorization": "Bearer " + t.token}
		Eventually(func() int { return do(ctx, limited, "GET", base+"/posts", "", header).status }).Should(Equal(http.StatusOK))
		Eventually(func() int {
			return do(ctx, limited, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header).status
		}).Should(Equal(http.StatusTooManyRequests), "REST and MCP share the limit of a key")
	})

	It("get 404 if the server is disabled", func(ctx context.Context) {
		t := newTeam(ctx)
		own := start(restricted, func(c *apiserver.Config) { c.MCP = false })
		defer own.stop()
		do(ctx, own, "POST", "/mcp", "{}", map[string]string{"Authorization": "Bearer " + t.token}).mustFail(404, "NOT_FOUND", "/mcp")
	})
})

// metricsOf scrapes a server's metrics.
func metricsOf(r *running) string {
	GinkgoHelper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(r.metrics, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return answer.Body.String()
}
