// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/realplatforms"
)

// world is one team with its accounts and posts, in memory.
type world struct {
	bridge.PostClient
	bridge.Quota

	team        v1alpha1.Team
	connections []*v1alpha1.Connection
	// v2 selects version 2.
	v2 bool
	// pages reports that there is a web application.
	pages bool
	// failing is the error when a post is written.
	failing error

	mu    sync.Mutex
	posts map[string]*v1alpha1.Post
	// info is the Info of the last request.
	info *request.Info
}

const namespace = "team-acme"

func newWorld() *world {
	w := &world{posts: map[string]*v1alpha1.Post{}}
	w.team.Spec.Subscription.State = v1alpha1.SubscriptionActive
	for _, platform := range []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformTikTok} {
		w.connections = append(w.connections, &v1alpha1.Connection{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "acme-" + string(platform)},
			Spec:       v1alpha1.ConnectionSpec{Platform: platform},
			Status: v1alpha1.ConnectionStatus{
				AccountName: "Acme", Username: "acme_" + string(platform), TikTok: &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{"SELF_ONLY"}, DuetDisabled: true},
				Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected}},
			},
		})
	}
	return w
}

func (w *world) Create(_ context.Context, post *v1alpha1.Post) (*v1alpha1.Post, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing != nil {
		return nil, w.failing
	}
	if w.posts[post.Name] != nil {
		return nil, apierrors.NewAlreadyExists(kubeschema.GroupResource{Resource: "posts"}, post.Name)
	}
	stored := post.DeepCopy()
	stored.ResourceVersion, stored.CreationTimestamp = "1", metav1.Now()
	w.posts[post.Name] = stored
	return stored, nil
}

func (w *world) Get(_ context.Context, _, name string) (*v1alpha1.Post, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name == "panic" {
		panic("this post is haunted")
	}
	if post := w.posts[name]; post != nil {
		return post.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(kubeschema.GroupResource{Resource: "posts"}, name)
}

func (w *world) Update(_ context.Context, _, after *v1alpha1.Post) (*v1alpha1.Post, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.posts[after.Name] = after.DeepCopy()
	return after, nil
}

// only returns the only post.
func (w *world) only(t *testing.T) *v1alpha1.Post {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.posts) != 1 {
		t.Fatalf("got %d posts", len(w.posts))
	}
	for _, post := range w.posts {
		return post
	}
	return nil
}

// noFiles are the files of a team without uploads.
type noFiles struct{ bridge.Media }

func (noFiles) Get(_ context.Context, _, name string) (*v1alpha1.Media, error) {
	return nil, apierrors.NewNotFound(kubeschema.GroupResource{Resource: "media"}, name)
}

type connections struct{ of *world }

func (c connections) List(string) []*v1alpha1.Connection { return c.of.connections }

func (c connections) Get(_, name string) *v1alpha1.Connection {
	for _, connection := range c.of.connections {
		if connection.Name == name {
			return connection
		}
	}
	return nil
}

func (c connections) Live(_ context.Context, _, name string) (*v1alpha1.Connection, error) {
	return nil, apierrors.NewNotFound(kubeschema.GroupResource{Resource: "connections"}, name)
}

// capabilities are those of the real platforms, except for Instagram and Facebook.
func capabilities(platform v1alpha1.Platform) (platforms.Capabilities, bool) {
	found, ok := realplatforms.All().Capabilities(platform)
	return found, ok && platform != v1alpha1.PlatformInstagram && platform != v1alpha1.PlatformFacebook
}

// callers maps tokens to callers.
var callers = map[string]bridge.Caller{
	"key":     {Namespace: namespace, Key: "deploy"},
	"read":    {Namespace: namespace, Key: "grant-r", Author: "oidc:ada@example.com", Agent: "Claude", Scopes: []bridge.Scope{bridge.ScopeRead}},
	"draft":   {Namespace: namespace, Key: "grant-d", Author: "oidc:ada@example.com", Agent: "Claude", Scopes: []bridge.Scope{bridge.ScopeRead, bridge.ScopeDraft}},
	"publish": {Namespace: namespace, Key: "grant-p", Author: "oidc:ada@example.com", Agent: "Claude", Scopes: []bridge.Scope{bridge.ScopePublish}},
	"nothing": {Namespace: namespace, Key: "grant-n", Author: "oidc:ada@example.com", Agent: "Claude", Scopes: []bridge.Scope{}},
}

// serve serves a world until the test ends, and returns the handler's URL.
func (w *world) serve(t *testing.T, edits ...func(*Options)) string {
	t.Helper()
	server := httptest.NewServer(w.handler(t, edits...))
	t.Cleanup(server.Close)
	return server.URL + Path
}

// handler returns a world's handler.
func (w *world) handler(tb testing.TB, edits ...func(*Options)) http.Handler {
	tb.Helper()
	var pageOf func(namespace, id string) string
	if w.pages {
		pageOf = func(namespace, id string) string {
			return "https://herald.example.com/teams/" + namespace + "/posts/" + id
		}
	}
	service := bridge.New(bridge.Config{
		PageOf: pageOf,
		Owner:  func(string) *v1alpha1.Team { return &w.team }, Connections: connections{w}, Posts: w, Media: noFiles{}, Quota: w.Quota,
		Readiness: func(context.Context, *v1alpha1.Connection) readiness.Result {
			return readiness.Result{State: readiness.Ready}
		},
		Index:        postindex.New(),
		Capabilities: capabilities, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	})
	options := Options{
		Service: service, REST: rest.NewHandler(service, rest.Limits{Teams: limits.NewRateLimiter(1000, clock.RealClock{})}), SiteURL: "https://herald.example.com", Capabilities: capabilities, Version: "v0",
		ResourceMetadata: func(path string) string {
			return "https://herald.example.com/.well-known/oauth-protected-resource" + path
		},
		Tokens: func(_ context.Context, token string) (bridge.Caller, error) {
			caller, ok := callers[token]
			if !ok {
				return caller, &bridge.Error{Code: bridge.CodeUnauthorized, Message: "the token is not known"}
			}
			return caller, nil
		},
	}
	for _, edit := range edits {
		edit(&options)
	}
	newHandler := New
	if w.v2 {
		newHandler = NewV2
	}
	handler, err := newHandler(options)
	if err != nil {
		tb.Fatal(err)
	}
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		info := &request.Info{ID: "r-17", Header: out.Header()}
		handler.ServeHTTP(out, r.WithContext(request.With(r.Context(), info)))
		w.mu.Lock()
		w.info = info
		w.mu.Unlock()
	})
}

// plain is the transport in these tests.
var plain = &http.Transport{}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return plain.RoundTrip(r)
}

// connect connects the SDK's client and returns its session. An empty version means the latest protocol version.
func connect(t *testing.T, address, token, version string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "inspector", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: address, HTTPClient: &http.Client{Transport: bearer(token)},
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// reply is an HTTP response.
type reply struct {
	status int
	header http.Header
	body   string
}

// send sends one request. header has alternating names and values.
func send(t *testing.T, method, address, token, body string, header ...string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, string(text)}
}

// callTool returns the message that calls a tool.
func callTool(name, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`
}

// resultOf decodes a tool's result.
func resultOf(t *testing.T, r reply) (structured string, texts []string, isError bool) {
	t.Helper()
	var answer struct {
		Result struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
			StructuredContent json.RawMessage `json:"structuredContent"`
			IsError           bool            `json:"isError"`
		} `json:"result"`
		Error any `json:"error"`
	}
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || answer.Error != nil || r.status != http.StatusOK {
		t.Fatalf("got %d %s (%v)", r.status, r.body, err)
	}
	for _, c := range answer.Result.Content {
		texts = append(texts, c.Text)
	}
	return string(answer.Result.StructuredContent), texts, answer.Result.IsError
}
