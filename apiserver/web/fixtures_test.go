// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/apiserver/person"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/web/session"
	"github.com/herald-social/herald/apiserver/web/signin"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/facebook"
	"github.com/herald-social/herald/platforms/instagram"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/platforms/tiktok"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/platforms/youtube"
	"github.com/herald-social/herald/test/sessiontest"
)

// acme and beta are namespaces of teams.
const acme, beta = "team-acme", "team-beta"

// now is when tests run whose clock stands still.
var now = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// The people of the tests, by their roles in acme. The stranger has one in beta.
var (
	viewer        = person.Person{Name: "oidc:vera"}
	editor        = person.Person{Name: "oidc:edith", DisplayName: "Edith"}
	administrator = person.Person{Name: person.Link}
	stranger      = person.Person{Name: "oidc:sam"}
)

// cluster is a Kubernetes API in memory, with what the pages need of one.
type cluster struct {
	mu          sync.Mutex
	posts       map[string]*v1alpha1.Post
	keys        map[string]*v1alpha1.APIKey
	media       map[string]*v1alpha1.Media
	connections map[string][]*v1alpha1.Connection
	teams       []*v1alpha1.Team
	versions    int
	// writes counts everything that was written.
	writes int
	// signals are those of the pages that follow a post, and followed counts them.
	signals  map[string]chan struct{}
	followed int
}

func missing(kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

func (c *cluster) stamp(o *metav1.ObjectMeta) {
	c.versions++
	c.writes++
	o.ResourceVersion = strconv.Itoa(c.versions)
	o.UID = types.UID(o.Namespace + "-" + o.Name)
}

type postsOf struct{ *cluster }

func (c postsOf) Create(_ context.Context, post *v1alpha1.Post) (*v1alpha1.Post, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.posts[post.Namespace+"/"+post.Name]; ok {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "posts"}, post.Name)
	}
	stored := post.DeepCopy()
	stored.Generation, stored.CreationTimestamp = 1, metav1.NewTime(now)
	c.stamp(&stored.ObjectMeta)
	c.posts[stored.Namespace+"/"+stored.Name] = stored
	return stored.DeepCopy(), nil
}

func (c postsOf) Get(_ context.Context, namespace, name string) (*v1alpha1.Post, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if post, ok := c.posts[namespace+"/"+name]; ok {
		return post.DeepCopy(), nil
	}
	return nil, missing("posts", name)
}

func (c postsOf) Update(_ context.Context, before, after *v1alpha1.Post) (*v1alpha1.Post, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := after.Namespace + "/" + after.Name
	stored, ok := c.posts[key]
	if !ok {
		return nil, missing("posts", after.Name)
	}
	if stored.ResourceVersion != before.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "posts"}, after.Name, nil)
	}
	next := after.DeepCopy()
	if !v1alpha1.SemanticEqual(stored.Spec, next.Spec) {
		next.Generation++
	}
	c.stamp(&next.ObjectMeta)
	c.posts[key] = next
	return next.DeepCopy(), nil
}

type keysOf struct{ *cluster }

func (c keysOf) List(_ context.Context, namespace string) ([]v1alpha1.APIKey, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []v1alpha1.APIKey
	for _, name := range slices.Sorted(maps.Keys(c.keys)) {
		if strings.HasPrefix(name, namespace+"/") {
			all = append(all, *c.keys[name].DeepCopy())
		}
	}
	return all, nil
}

func (c keysOf) Get(_ context.Context, namespace, name string) (*v1alpha1.APIKey, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if key, ok := c.keys[namespace+"/"+name]; ok {
		return key.DeepCopy(), nil
	}
	return nil, missing("apikeys", name)
}

func (c keysOf) Create(_ context.Context, key *v1alpha1.APIKey) (*v1alpha1.APIKey, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored := key.DeepCopy()
	c.stamp(&stored.ObjectMeta)
	c.keys[key.Namespace+"/"+key.Name] = stored
	return stored.DeepCopy(), nil
}

func (c keysOf) Update(ctx context.Context, _, after *v1alpha1.APIKey) (*v1alpha1.APIKey, error) {
	return c.Create(ctx, after)
}

type mediaOf struct{ *cluster }

func (c mediaOf) Create(_ context.Context, media *v1alpha1.Media) (*v1alpha1.Media, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored := media.DeepCopy()
	c.stamp(&stored.ObjectMeta)
	c.media[media.Namespace+"/"+media.Name] = stored
	return stored.DeepCopy(), nil
}

func (c mediaOf) Get(_ context.Context, namespace, name string) (*v1alpha1.Media, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if media, ok := c.media[namespace+"/"+name]; ok {
		return media.DeepCopy(), nil
	}
	return nil, missing("media", name)
}

func (c mediaOf) UpdateStatus(_ context.Context, media *v1alpha1.Media) (*v1alpha1.Media, error) {
	return media, nil
}

func (c mediaOf) AwaitUntil(context.Context, string, string, time.Time) error { return nil }

type connectionsOf struct{ *cluster }

func (c connectionsOf) Get(namespace, name string) *v1alpha1.Connection {
	for _, connection := range c.connections[namespace] {
		if connection.Name == name {
			return connection
		}
	}
	return nil
}

func (c connectionsOf) List(namespace string) []*v1alpha1.Connection {
	return slices.Clone(c.connections[namespace])
}

func (c connectionsOf) Live(_ context.Context, namespace, name string) (*v1alpha1.Connection, error) {
	if connection := c.Get(namespace, name); connection != nil {
		return connection, nil
	}
	return nil, missing("connections", name)
}

func (connectionsOf) Create(context.Context, *v1alpha1.Connection) (*v1alpha1.Connection, error) {
	return nil, missing("connections", "new")
}

func (connectionsOf) Annotate(context.Context, *v1alpha1.Connection, map[string]string) error {
	return nil
}

func (connectionsOf) UseSecret(context.Context, *v1alpha1.Connection, string, map[string]string) (*v1alpha1.Connection, error) {
	return nil, missing("connections", "new")
}

func (c connectionsOf) Delete(context.Context, *v1alpha1.Connection) error {
	c.writes++
	return nil
}

func (c connectionsOf) DeleteUnchanged(ctx context.Context, of *v1alpha1.Connection) error {
	return c.Delete(ctx, of)
}

// store signs addresses of a store that there is not.
type store struct{}

func (store) PresignPut(_ context.Context, key, _ string) (string, time.Time, error) {
	return "https://store.example/" + key + "?put", now.Add(time.Hour), nil
}

func (store) PresignGet(_ context.Context, key string, _ time.Duration) (string, error) {
	return "https://store.example/" + key + "?get", nil
}

type events struct{}

func (events) Write(context.Context, *corev1.ObjectReference, string, string) error { return nil }

type quota struct{}

func (quota) Read(context.Context, string, v1alpha1.UsageSpec) (*v1alpha1.Usage, error) {
	return &v1alpha1.Usage{}, nil
}

func (quota) Amend(_ context.Context, _ string, _ v1alpha1.UsageSpec, change func(*v1alpha1.Usage) error) error {
	return change(&v1alpha1.Usage{})
}

// roles are Kubernetes' RBAC as docs/people.md has it.
type roles struct{ *cluster }

func (r roles) May(_ context.Context, who person.Person, namespace, verb, resource string, _ ...string) (bool, error) {
	if who.Name == stranger.Name {
		return namespace == beta, nil
	}
	read := verb == "list" && resource != "apikeys"
	write := verb == "list" || verb == "create" && (resource == "posts" || resource == "media") || verb == "update" && resource == "posts"
	switch who.Name {
	case viewer.Name:
		return namespace == acme && read, nil
	case editor.Name:
		return namespace == acme && write, nil
	case administrator.Name:
		return namespace == acme, nil
	default:
		return false, nil
	}
}

func (r roles) Teams(ctx context.Context, who person.Person) (mine []*v1alpha1.Team, err error) {
	for _, team := range r.teams {
		if may, _ := r.May(ctx, who, team.Spec.Namespace, "list", "posts"); may {
			mine = append(mine, team)
		}
	}
	return mine, nil
}

// all has every platform, as it is shipped. None of them is called.
func all() platforms.Registry {
	client := transport.New(transport.Options{})
	return platforms.Registry{
		v1alpha1.PlatformX:         x.New(x.Config{}, client),
		v1alpha1.PlatformThreads:   threads.New(threads.Config{}, client),
		v1alpha1.PlatformInstagram: instagram.New(instagram.Config{}, client),
		v1alpha1.PlatformFacebook:  facebook.New(facebook.Config{}, client),
		v1alpha1.PlatformTikTok:    tiktok.New(tiktok.Config{}, client),
		v1alpha1.PlatformYouTube:   youtube.New(youtube.Config{}, client),
	}
}

// account is a connection that is good.
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

// world is a Site and what it stands on.
type world struct {
	*cluster

	site  *Site
	index *postindex.Index
}

// newWorld has the teams acme, with an account on each platform, and beta.
func newWorld(clk clock.Clock, edits ...func(*Config)) *world {
	c := &cluster{
		posts: map[string]*v1alpha1.Post{}, keys: map[string]*v1alpha1.APIKey{}, media: map[string]*v1alpha1.Media{},
		connections: map[string][]*v1alpha1.Connection{}, signals: map[string]chan struct{}{},
	}
	for _, name := range []string{acme, beta} {
		c.teams = append(c.teams, &v1alpha1.Team{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.TeamSpec{Namespace: name, Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited, State: v1alpha1.SubscriptionActive}},
		})
	}
	for _, platform := range platformOrder {
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
		Owner: owner, Connections: connectionsOf{c}, Posts: postsOf{c}, Quota: quota{}, Media: mediaOf{c}, Files: store{},
		Verify: func(_ context.Context, m *v1alpha1.Media) (v1alpha1.MediaStatus, error) { return m.Status, nil },
		Readiness: func(context.Context, *v1alpha1.Connection) readiness.Result {
			return readiness.Result{State: readiness.Ready}
		},
		Index: w.index, Keys: keysOf{c}, Events: events{}, Follow: w.follow, Capabilities: all().Capabilities, Clock: clk, Log: log,
	})
	sessions := session.NewManager(session.Options{
		Secrets: sessiontest.New(), Namespace: sessiontest.Namespace, Name: sessiontest.Name, Secure: true, Clock: clk, Log: log,
	})
	config := Config{
		Service: service, Sessions: sessions, Access: roles{c},
		SignIn:       signin.Options{Sessions: sessions, SiteURL: "https://herald.example", LinkCommand: "herald signin-link", Clock: clk, Log: log},
		Connect:      connect.New(connect.Config{SiteURL: "https://herald.example", Platforms: platforms.Registry{}, Owner: owner, Connections: connectionsOf{c}, Sealer: sessions, Clock: clk, Log: log}),
		StoreOrigins: "https://store.example", ConsentOrigins: []string{"https://consent.example"}, Clock: clk, Log: log,
	}
	for _, edit := range edits {
		edit(&config)
	}
	w.site = New(config)
	return w
}

// follow lets a test say when a post changed.
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

// put stores a post as it is, and lists it.
func (w *world) put(post *v1alpha1.Post) {
	w.mu.Lock()
	if post.Generation == 0 {
		post.Generation = 1
	}
	post.CreationTimestamp = metav1.NewTime(now)
	w.stamp(&post.ObjectMeta)
	w.writes--
	w.posts[post.Namespace+"/"+post.Name] = post.DeepCopy()
	version := uint64(w.versions)
	w.mu.Unlock()
	w.index.Upsert(post.Namespace, w.site.Service.Summarise(post), version)
}

// written is how much was written so far.
func (w *world) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// textPost is one to X.
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

func at(when time.Time) func(*v1alpha1.Post) {
	return func(post *v1alpha1.Post) { post.Spec.ScheduledAt = v1alpha1.NewTimePtr(when) }
}

// ask is a request of a person; nil is one who is signed out. A form makes it a POST.
func ask(who *person.Person, path string, form url.Values) *http.Request {
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

// serve answers a request.
func (w *world) serve(r *http.Request) *httptest.ResponseRecorder {
	out := httptest.NewRecorder()
	w.site.Guard(out.Header())
	w.site.ServeHTTP(out, r)
	return out
}

// get is the page of a path, which must be there.
func (w *world) get(tb testing.TB, who person.Person, path string) *html.Node {
	tb.Helper()
	answer := w.serve(ask(&who, path, nil))
	if answer.Code != http.StatusOK {
		tb.Fatalf("GET %s: %d\n%s", path, answer.Code, answer.Body)
	}
	return parsed(tb, answer.Body.String())
}

func parsed(tb testing.TB, page string) *html.Node {
	tb.Helper()
	document, err := html.Parse(strings.NewReader(page))
	if err != nil {
		tb.Fatal(err)
	}
	return document
}

// attribute is one of an element, and whether it has it.
func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// elements are those of a name below a node.
func elements(of *html.Node, name string) (found []*html.Node) {
	for n := range of.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			found = append(found, n)
		}
	}
	return found
}

// textOf is what a person reads.
func textOf(n *html.Node) string {
	var out strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			out.WriteString(d.Data)
		}
	}
	return out.String()
}

// sent is what a browser sends for a form when nothing is touched (HTML, "constructing the entry list"): ticked boxes, chosen
// options, and texts whose line breaks are two characters.
func sent(form *html.Node) url.Values {
	values := url.Values{}
	for n := range form.Descendants() {
		name, ok := attribute(n, "name")
		_, disabled := attribute(n, "disabled")
		if n.Type != html.ElementNode || !ok || disabled {
			continue
		}
		value, _ := attribute(n, "value")
		kind, _ := attribute(n, "type")
		_, ticked := attribute(n, "checked")
		switch {
		case n.Data == "textarea":
			value = strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n").Replace(textOf(n))
		case n.Data == "select":
			value = chosen(n)
		case n.Data == "button", kind == "file", (kind == "checkbox" || kind == "radio") && !ticked:
			continue
		}
		values.Add(name, value)
	}
	return values
}

// chosen is the value of a list: that of the option that is selected, or of the first.
func chosen(list *html.Node) string {
	value := ""
	for i, option := range elements(list, "option") {
		of, _ := attribute(option, "value")
		if _, selected := attribute(option, "selected"); selected || i == 0 {
			value = of
		}
	}
	return value
}

// withID is the element of an id.
func withID(tb testing.TB, document *html.Node, id string) *html.Node {
	tb.Helper()
	for n := range document.Descendants() {
		if got, ok := attribute(n, "id"); ok && got == id {
			return n
		}
	}
	tb.Fatalf("the page has no element #%s", id)
	return nil
}

// serveFailure is the page of an error.
func (w *world) serveFailure(err error) string {
	out := httptest.NewRecorder()
	w.site.failure(out, ask(&viewer, "/", nil), nil, err)
	return out.Body.String()
}
