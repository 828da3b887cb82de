// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/apiserver/oauth"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/realplatforms"
	"github.com/herald-social/herald/test/sessiontest"
)

// acme and beta are namespaces of teams.
const acme, beta = "team-acme", "team-beta"

// now is the time of tests with a fixed clock.
var now = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// The people in these tests, by their roles in acme. The stranger has a role in beta.
var (
	viewer        = access.Person{Name: "oidc:vera"}
	editor        = access.Person{Name: "oidc:edith", DisplayName: "Edith"}
	administrator = access.Person{Name: access.LinkPerson}
	stranger      = access.Person{Name: "oidc:sam"}
)

// roles implements Access with the shipped roles.
type roles struct {
	*cluster

	// lacks are permissions, such as "list connections", that are denied to everyone.
	lacks []string
	// has are additional permissions that everyone in acme has.
	has []string
}

func (r roles) May(_ context.Context, who access.Person, namespace, verb, resource string, _ ...string) (bool, error) {
	if slices.Contains(r.lacks, verb+" "+resource) {
		return false, nil
	}
	if slices.Contains(r.has, verb+" "+resource) {
		return namespace == acme, nil
	}
	if who.Name == stranger.Name {
		return namespace == beta, nil
	}
	group := v1alpha1.GroupVersion.Group
	if plural, other, found := strings.Cut(resource, "."); found {
		resource, group = plural, other
	}
	role := map[string]string{viewer.Name: "viewer", editor.Name: "editor", administrator.Name: "admin"}[who.Name]
	return namespace == acme && slices.ContainsFunc(shippedRoles()[role], func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb)
	}), nil
}

// shippedRoles returns the rules in config/rbac/users/people_roles.yaml by role name, such as "viewer".
var shippedRoles = sync.OnceValue(func() map[string][]rbacv1.PolicyRule {
	manifest, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "users", "people_roles.yaml"))
	if err != nil {
		panic(err)
	}
	found := map[string][]rbacv1.PolicyRule{}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			panic(err)
		}
		found[strings.TrimPrefix(role.Name, "herald-")] = role.Rules
	}
	return found
})

// without denies a permission to everyone.
func without(right string) func(*Config) {
	return func(c *Config) {
		r, _ := c.Access.(roles)
		r.lacks = append(slices.Clone(r.lacks), right)
		c.Access = r
	}
}

func (r roles) Teams(ctx context.Context, who access.Person) (mine []*v1alpha1.Team, err error) {
	for _, team := range r.teams {
		if may, _ := r.May(ctx, who, team.Spec.Namespace, "list", "posts"); may {
			mine = append(mine, team)
		}
	}
	return mine, nil
}

// account returns a ready connection.
func account(namespace, name string, platform v1alpha1.Platform) *v1alpha1.Connection {
	c := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
		Spec:       v1alpha1.ConnectionSpec{Platform: platform, AccountID: "id-of-" + name},
	}
	c.Status.AccountName, c.Status.Username = "Account "+name, name
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected}}
	if platform == v1alpha1.PlatformTikTok {
		c.Status.TikTok = &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{"PUBLIC_TO_EVERYONE", "FOLLOWER_OF_CREATOR"}}
	}
	return c
}

// world is a Site with its dependencies.
type world struct {
	*cluster

	site  *Site
	index *postindex.Index
}

// newWorld returns a world with the teams acme, which has an account on each platform, and beta.
func newWorld(clk clock.Clock, edits ...func(*Config)) *world {
	c := &cluster{
		posts: map[string]*v1alpha1.Post{}, keys: map[string]*v1alpha1.APIKey{}, grants: map[string]*v1alpha1.OAuthGrant{}, media: map[string]*v1alpha1.Media{}, schedules: map[string]*v1alpha1.PostSchedule{},
		notifiers:   map[string]*v1alpha1.Notifier{},
		connections: map[string][]*v1alpha1.Connection{}, signals: map[string]chan struct{}{},
	}
	for _, name := range []string{acme, beta} {
		c.teams = append(c.teams, &v1alpha1.Team{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.TeamSpec{Namespace: name, Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited, State: v1alpha1.SubscriptionActive}},
		})
	}
	for _, platform := range v1alpha1.Platforms() {
		c.connections[acme] = append(c.connections[acme], account(acme, "our-"+string(platform), platform))
	}
	w := &world{cluster: c, index: postindex.New()}
	owner := func(namespace string) *v1alpha1.Team {
		for _, team := range c.teams {
			if team.Spec.Namespace == namespace {
				return team
			}
		}
		return nil
	}
	log := slog.New(slog.DiscardHandler)
	service := bridge.New(bridge.Config{
		Owner: owner, Connections: connectionsOf{c}, Posts: postsOf{c}, Quota: quota{}, Media: mediaOf{c}, Uploaded: mediaOf{c}.uploaded, Files: store{}, Parts: store{},
		Verify: func(_ context.Context, m *v1alpha1.Media) (v1alpha1.MediaStatus, error) { return m.Status, nil },
		Readiness: func(context.Context, *v1alpha1.Connection) readiness.Result {
			return readiness.Result{State: readiness.Ready}
		},
		Pending:   func(string, []string) (files, bytes int64, known []bool) { return 7, 1<<30 + 1<<29, nil },
		CountKeys: func(string) int { return 4 },
		Index:     w.index, Keys: keysOf{c}, Schedules: schedulesOf{c}, Notifiers: notifiersOf{c}, Secrets: secretsOf{c}, Events: events{}, Subscribe: w.follow, Capabilities: realplatforms.All().Capabilities, Clock: clk, Log: log,
	})
	sessions := session.NewManager(session.Options{
		Secrets: sessiontest.New(), Namespace: sessiontest.Namespace, Name: sessiontest.Name, Secure: true, Clock: clk, Log: log,
	})
	config := Config{
		Service: service, Sessions: sessions, Access: roles{cluster: c}, Members: bindingsOf{c}, RolePrefix: "herald",
		SignIn:  signin.Options{Sessions: sessions, SiteURL: "https://herald.example", LinkCommand: "herald signin-link", Clock: clk, Log: log},
		Connect: connect.New(connect.Config{SiteURL: "https://herald.example", Platforms: platforms.Registry{}, Owner: owner, Connections: connectionsOf{c}, Sealer: sessions, Clock: clk, Log: log}),
		Agents: oauth.New(oauth.Config{
			SiteURL: "https://herald.example", Keys: agentKeys{session.NewSealer(clk, session.NewSealingKey(now.Add(-time.Hour)))}, Grants: grantsOf{c}, Access: roles{cluster: c},
			AuditLog: service, Served: func(namespace string) bool { return owner(namespace) != nil }, Used: func(*v1alpha1.OAuthGrant) {}, Clock: clk, Log: log,
		}),
		PostReader: realplatforms.All().PostParser, StoreOrigins: "https://store.example", ConsentOrigins: []string{"https://consent.example"}, Clock: clk, Log: log,
	}
	for _, edit := range edits {
		edit(&config)
	}
	w.site = New(config)
	return w
}

// agentKeys are the keys for agents.
type agentKeys struct{ *session.Sealer }

func (agentKeys) Ready() error { return nil }

func (agentKeys) Sign(purpose, text string) []byte {
	sum := sha256.Sum256([]byte("a lasting key" + purpose + text))
	return sum[:]
}

// follow returns a channel that a test uses to signal a change to a post.
func (w *world) follow(namespace, name string) (<-chan struct{}, func(), bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.followed++
	signal := make(chan struct{}, 1)
	w.signals[namespace+"/"+name] = signal
	return signal, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.followed--
	}, true
}

// put stores a post unchanged, and adds it to the index.
func (w *world) put(post *v1alpha1.Post) {
	w.mu.Lock()
	if post.Generation == 0 {
		post.Generation = 1
	}
	post.CreationTimestamp = metav1.NewTime(now)
	w.stamp(post)
	w.writes--
	w.posts[post.Namespace+"/"+post.Name] = post.DeepCopy()
	version := uint64(w.versions)
	w.mu.Unlock()
	w.index.Upsert(post.Namespace, w.site.Service.Summarise(post), version)
}

// written returns the number of writes.
func (w *world) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// textPost returns a post to X.
func textPost(name, caption string, edits ...func(*v1alpha1.Post)) *v1alpha1.Post {
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: acme, Name: name},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText,
			Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "our-x"}, Caption: caption}},
		},
	}
	for _, edit := range edits {
		edit(post)
	}
	return post
}

func asDraft(post *v1alpha1.Post) { post.Spec.Draft = true }

func asScheduled(post *v1alpha1.Post) {
	post.Spec.ScheduledAt = v1alpha1.NewTimePtr(now.Add(time.Hour))
}

func at(when time.Time) func(*v1alpha1.Post) {
	return func(post *v1alpha1.Post) { post.Spec.ScheduledAt = v1alpha1.NewTimePtr(when) }
}

// newRequest returns a user's request; nil is a visitor without a session. A form makes it a POST.
func newRequest(who *access.Person, path string, form url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "https://herald.example"+path, http.NoBody)
	if form != nil {
		r = httptest.NewRequest(http.MethodPost, "https://herald.example"+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	ctx := request.With(r.Context(), &request.Info{ID: "request-1", Header: http.Header{}})
	if who != nil {
		ctx = session.With(ctx, session.Session{ID: "session-of-" + who.Name, Person: *who, SignedIn: now})
	}
	return r.WithContext(ctx)
}

// serve returns the response to a request.
func (w *world) serve(r *http.Request) *httptest.ResponseRecorder {
	out := httptest.NewRecorder()
	w.site.Guard(out.Header())
	w.site.ServeHTTP(out, r)
	return out
}

// get returns the page at a path, which must exist.
func (w *world) get(tb testing.TB, who access.Person, path string) *html.Node {
	tb.Helper()
	answer := w.serve(newRequest(&who, path, nil))
	if answer.Code != http.StatusOK {
		tb.Fatalf("GET %s: %d\n%s", path, answer.Code, answer.Body)
	}
	return parsed(tb, answer.Body.String())
}

// serveFailure returns an error's page.
func (w *world) serveFailure(err error) string {
	out := httptest.NewRecorder()
	w.site.failure(out, newRequest(&viewer, "/", nil), nil, err)
	return out.Body.String()
}

// references returns references to files, without alt texts.
func references(names []string) []v1alpha1.MediaReference {
	return fileFields{}.references("image", names)
}
