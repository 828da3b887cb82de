// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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
	client := mcp.NewClient(&mcp.Implementation{Name: "scout", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: to.site + "/mcp", HTTPClient: &http.Client{Transport: withToken(t.token)}}, nil)
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

var _ = Describe("Agents, by MCP", func() {
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

	It("go the whole way from the list of accounts to a post with an image", func(ctx context.Context) {
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
		Expect(post.MediaIDs).To(Equal([]string{media.MediaID}), "it came through the API, not from the web application")
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

	It("are told while nothing of their team is published, beside what REST answers", func(ctx context.Context) {
		setUp(ctx)
		said := func(tool, arguments string) func() string {
			return func() string {
				_, result := use(ctx, session, tool, arguments)
				if len(result.Content) == 1 {
					return ""
				}
				return result.Content[1].(*mcp.TextContent).Text
			}
		}
		Expect(said("list_posts", `{}`)()).To(BeEmpty())
		began := v1alpha1.NewTime(time.Now())
		brake := func(of ...v1alpha1.Suspension) {
			GinkgoHelper()
			Expect(admin.Get(ctx, clientKey(t.resource), t.resource)).To(Succeed())
			t.resource.Status.Suspensions = of
			Expect(admin.Status().Update(ctx, t.resource)).To(Succeed())
		}
		brake(v1alpha1.Suspension{From: began})
		Eventually(said("list_posts", `{}`)).Should(HavePrefix("Publishing is suspended for this team since " + began.UTC().Format(time.RFC3339)))
		created, result := use(ctx, session, "create_post", fmt.Sprintf(`{"category":"text","targets":[{"connection_id":"acme-x","caption":"Hello"}]%s}`, inAnHour()))
		Expect(result.IsError).To(BeFalse(), created.body)
		Expect(result.Content).To(HaveLen(2), "posts are taken")
		brake(v1alpha1.Suspension{From: began, Until: &began})
		Eventually(said("list_connections", `{}`)).Should(BeEmpty())
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
		Entry("of what is wrong", nil, "create_post", text("nowhere", "a"), "POST", "/posts", "VALIDATION_ERROR"),
		Entry("of a query", nil, "list_posts", `{"status":"x"}`, "GET", "/posts?status=x", "VALIDATION_ERROR"),
		Entry("of an upload", nil, "create_media_upload_url", `{"mime_type":"image/png","size_bytes":0,"name":"a.gif"}`, "POST", "/media/upload-url", "VALIDATION_ERROR"),
		Entry("of a broken account", nil, "create_post", text("expired-x", "a"), "POST", "/posts", "POSTING_READINESS_RECONNECT_REQUIRED"),
		Entry("of a platform that is down", nil, "create_post", text("down-x", "a"), "POST", "/posts", "POSTING_READINESS_UNAVAILABLE"),
		Entry("of a post that there is not", nil, "get_post", `{"id":"p1"}`, "GET", "/posts/p1", "NOT_FOUND"),
		Entry("of a cancel", nil, "cancel_post", `{"id":"p1"}`, "DELETE", "/posts/p1", "NOT_FOUND"),
		Entry("of a subscription", func(t *v1alpha1.Team) { t.Spec.Subscription.State = v1alpha1.SubscriptionPastDue }, "create_post", `{}`, "POST", "/posts", "SUBSCRIPTION_REQUIRED"),
	)

	It("see nothing of other teams", func(ctx context.Context) {
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

	It("have their posts wait where the team looks first, and REST does not", func(ctx context.Context) {
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

	It("are counted, logged and limited like everybody", func(ctx context.Context) {
		setUp(ctx)
		Expect(do(ctx, instance, "POST", "/mcp/", "{}", nil).status).To(Equal(http.StatusUnauthorized), "people paste the address with a slash")
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

	It("find nothing where the server is not wanted", func(ctx context.Context) {
		t := newTeam(ctx)
		own := start(restricted, func(c *apiserver.Config) { c.MCP = false })
		defer own.stop()
		do(ctx, own, "POST", "/mcp", "{}", map[string]string{"Authorization": "Bearer " + t.token}).mustFail(404, "NOT_FOUND", "/mcp")
	})

	It("are finished while the server stops", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "silent-x", v1alpha1.PlatformX)
		own := start(restricted)
		Eventually(func() int {
			return do(ctx, own, "GET", base+"/posts", "", map[string]string{"Authorization": "Bearer " + t.token}).status
		}).Should(Equal(200))
		session := t.agent(ctx, own)
		done := make(chan string, 1)
		go func() {
			defer GinkgoRecover()
			got, _ := use(ctx, session, "create_post", text("silent-x", "a"))
			done <- got.body
		}()
		connection := &v1alpha1.Connection{}
		connection.Namespace, connection.Name = t.namespace, "silent-x"
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, clientKey(connection), connection)).To(Succeed())
			g.Expect(connection.Annotations).To(HaveKey(v1alpha1.ProbeAnnotation))
		}).Should(Succeed())
		own.cancel()
		Eventually(func() int { return statusOf(own.site + "/health") }).Should(BeZero())
		Expect(answer(ctx, connection, connection.Annotations[v1alpha1.ProbeAnnotation])).To(Succeed())
		Eventually(done, 10*time.Second).Should(Receive(ContainSubstring(`"status":"processing"`)))
		Eventually(own.done).Should(Receive(Succeed()))
	})
})

// metricsOf returns the metrics of a server as text.
func metricsOf(r *running) string {
	GinkgoHelper()
	families, err := r.metrics.Gather()
	Expect(err).NotTo(HaveOccurred())
	var b strings.Builder
	for _, family := range families {
		for _, m := range family.GetMetric() {
			fmt.Fprint(&b, family.GetName(), "{")
			for i, label := range m.GetLabel() {
				if i > 0 {
					fmt.Fprint(&b, ",")
				}
				fmt.Fprintf(&b, "%s=%q", label.GetName(), label.GetValue())
			}
			fmt.Fprintln(&b, "}")
		}
	}
	return b.String()
}
