// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/tiktok"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/storetest"
	"github.com/herald-social/herald/test/suite"
)

// TestMain lets the test binary also serve as the child process that decodes an image.
func TestMain(m *testing.M) {
	if rendition.IsChild(os.Args[1:]) {
		os.Exit(rendition.DecodeMain(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func TestPostController(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Post controller")
}

var (
	env      *envtest.Environment
	k8s      client.Client
	platform sandboxtest.Client
	arrivals *counter
	serial   atomic.Int64 // numbers the created objects
	bucket   *store.Store
)

var _ = BeforeSuite(func() {
	env = suite.Start()
	k8s = env.Client
	bucket = suite.Must(store.New(storetest.Start(GinkgoT())))
	server := suite.Must(sandbox.New(sandbox.Options{}))
	arrivals = &counter{next: server, seen: map[string]int{}}
	site := httptest.NewServer(arrivals)
	DeferCleanup(func() { site.Close(); Expect(server.Close()).To(Succeed()) })
	platform = sandboxtest.Client{URL: site.URL}
})

// counter counts the requests to the platforms by account, so that concurrent specs can count their own.
type counter struct {
	next http.Handler
	mu   sync.Mutex
	seen map[string]int
}

const (
	tweets     = "/x/2/tweets"
	images     = "/x/2/media/upload"
	containers = "/threads"
	// thumbnailsSet is the path for setting a video's thumbnail.
	thumbnailsSet = "/youtube/upload/youtube/v3/thumbnails/set"
)

// ServeHTTP implements http.Handler.
func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := ""
	switch {
	case r.Method == http.MethodPost && (r.URL.Path == tweets || r.URL.Path == images):
		key = r.URL.Path + r.Header.Get("Authorization")
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, containers):
		key = r.URL.Path
	case r.Method == http.MethodPost && r.URL.Path == thumbnailsSet:
		key = thumbnailsSet
	}
	c.mu.Lock()
	c.seen[key]++
	c.mu.Unlock()
	c.next.ServeHTTP(w, r)
}

func (c *counter) of(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[key]
}

// publishesBy returns the number of calls for one account that could publish on X.
func publishesBy(account sandboxtest.Account) int {
	return arrivals.of(tweets + "Bearer " + account.AccessToken)
}

// imagesBy returns the number of images that were uploaded to X for one account.
func imagesBy(account sandboxtest.Account) int {
	return arrivals.of(images + "Bearer " + account.AccessToken)
}

// containersOf returns the number of containers created on Threads for one account.
func containersOf(account sandboxtest.Account) int {
	return arrivals.of("/threads/v1.0/" + account.ID + containers)
}

// fast is a variant of X with delays that are short enough for tests.
type fast struct{ *x.Platform }

func (f fast) Capabilities() platforms.Capabilities {
	limits := f.Platform.Capabilities()
	limits.CallTimeout = 2 * time.Second
	return limits
}

// app is the client id of Herald's app on X, and apps signs its tokens.
const app = "herald"

var apps = credentials.Apps{v1alpha1.PlatformX: {ID: app, Secret: func() string { return "the app's secret" }}}

// tokens returns the tokens from Secrets, and recognizes the tokens of Herald's app by their signatures.
type tokens struct{ live client.Reader }

func (t tokens) Token(ctx context.Context, conn *v1alpha1.Connection) (platforms.Token, error) {
	var secret corev1.Secret
	if err := t.live.Get(ctx, client.ObjectKey{Namespace: conn.Namespace, Name: conn.Spec.CredentialsSecretRef.Name}, &secret); err != nil {
		return platforms.Token{}, err
	}
	access := string(secret.Data[v1alpha1.CredentialsAccessToken])
	return platforms.Token{
		Access: access, App: apps.Identify(conn.Spec.Platform, secret.Annotations[credentials.AppMarkAnnotation], access, ""),
	}, nil
}

func (t tokens) Prefetch(ctx context.Context, conn *v1alpha1.Connection, _ time.Time) error {
	_, err := t.Token(ctx, conn)
	return err
}

func (tokens) Forget(*v1alpha1.Connection) {}

// manager is a running manager with only the post controller.
type manager struct {
	cancel context.CancelFunc
	done   chan error
}

// startManager starts a manager.
func startManager(change ...func(*post.Options)) *manager {
	return startManagerWithLog(GinkgoLogr, change...)
}

// runManager runs a manager until the end of the spec or container.
func runManager(change ...func(*post.Options)) { DeferCleanup(startManager(change...).stop) }

// startDisturbed starts a manager whose writes are disturbed.
func startDisturbed(intercept interceptor.Funcs, change ...func(*post.Options)) *manager {
	return startManagerBy(env.Config, GinkgoLogr, intercept, change...)
}

func startManagerWithLog(log logr.Logger, change ...func(*post.Options)) *manager {
	return startManagerBy(env.Config, log, interceptor.Funcs{}, change...)
}

// startManagerBy starts a manager with a configuration for the API server.
func startManagerBy(config *rest.Config, log logr.Logger, intercept interceptor.Funcs, change ...func(*post.Options)) *manager {
	return startManagerWith(func(*ctrl.Options) {}, config, log, intercept, change...)
}

// startManagerWith starts a manager with changed options of the manager itself.
func startManagerWith(changeManager func(*ctrl.Options), config *rest.Config, log logr.Logger, intercept interceptor.Funcs, change ...func(*post.Options)) *manager {
	mgr := newManager(changeManager, config, log, intercept)
	r := newReconciler(mgr, change...)
	Expect(r.SetupWithManager(mgr)).To(Succeed())
	return run(mgr)
}

func newManager(changeManager func(*ctrl.Options), config *rest.Config, log logr.Logger, intercept interceptor.Funcs) ctrl.Manager {
	managing := ctrl.Options{
		Scheme:  env.Scheme,
		Logger:  log,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultTransform: kubeclient.TransformForCache, ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Post{}: {Field: kubeclient.UnfinishedPosts()},
		}},
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			inner, err := client.NewWithWatch(config, options)
			if err != nil {
				return nil, err
			}
			return interceptor.NewClient(inner, intercept), nil
		},
		// Several managers in this process have controllers of the same name.
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}
	changeManager(&managing)
	return suite.Must(ctrl.NewManager(config, managing))
}

func newReconciler(mgr ctrl.Manager, change ...func(*post.Options)) *post.Reconciler {
	out := transport.New(transport.Options{Registerer: prometheus.NewRegistry()})
	options := post.Options{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Platforms: platforms.Registry{
			v1alpha1.PlatformX: fast{x.New(x.Config{
				APIURL: platform.URL + "/x", WebURL: platform.URL + "/x", ListingLag: 500 * time.Millisecond,
			}, out)},
			v1alpha1.PlatformTikTok: tiktok.New(tiktok.Config{APIURL: platform.URL + "/tiktok"}, out),
		},
		Tokens:                  tokens{live: mgr.GetAPIReader()},
		Apps:                    apps,
		Files:                   bucket,
		Renditions:              rendition.NewRenderer(bucket),
		Owned:                   envtest.EveryNamespace,
		Clock:                   clock.RealClock{},
		NewID:                   rand.Text,
		Events:                  mgr.GetEventRecorder("herald-post"),
		MaxConcurrentReconciles: 32,
		SendWindow:              2 * time.Second,
		ClockMargin:             500 * time.Millisecond,
	}
	for _, c := range change {
		c(&options)
	}
	Expect(kubeclient.IndexMedia(context.Background(), mgr.GetFieldIndexer())).To(Succeed())
	return suite.Must(post.New(options))
}

func run(mgr ctrlmanager.Runnable) *manager {
	ctx, cancel := context.WithCancel(context.Background())
	m := &manager{cancel: cancel, done: make(chan error, 1)}
	go func() { m.done <- mgr.Start(ctx) }()
	return m
}

func (m *manager) stop() {
	m.cancel()
	Eventually(m.done).Should(Receive(BeNil()))
}

// team is a namespace with one connected account.
type team struct {
	namespace string
	account   sandboxtest.Account
}

func newTeam(ctx context.Context) team {
	t := team{namespace: fmt.Sprintf("team-%d", serial.Add(1))}
	Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}})).To(Succeed())
	t.account = t.connect(ctx, "x")
	return t
}

// connect creates an account of X and a ready connection to it.
func (t team) connect(ctx context.Context, name string) sandboxtest.Account {
	GinkgoHelper()
	return t.connectTo(ctx, v1alpha1.PlatformX, name, fmt.Sprintf("17%08d", serial.Add(1)), nil)
}

// connectTo creates an account of a platform, with settings, and a ready connection to it.
func (t team) connectTo(ctx context.Context, to v1alpha1.Platform, name, id string, settings map[string]any) sandboxtest.Account {
	GinkgoHelper()
	account := suite.Must(platform.Account(ctx, string(to), id, settings))
	t.share(ctx, to, name, account)
	return account
}

// share creates a ready connection to an existing account.
func (t team) share(ctx context.Context, to v1alpha1.Platform, name string, account sandboxtest.Account) {
	GinkgoHelper()
	Expect(k8s.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: t.namespace},
		StringData: map[string]string{v1alpha1.CredentialsAccessToken: account.AccessToken},
	})).To(Succeed())
	conn := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: t.namespace},
		Spec: v1alpha1.ConnectionSpec{
			Platform: to, AccountID: account.ID, CredentialsSecretRef: v1alpha1.LocalReference{Name: name},
		},
	}
	Expect(k8s.Create(ctx, conn)).To(Succeed())
	t.setReady(ctx, name, metav1.ConditionTrue, v1alpha1.ReasonConnected, account.Username)
}

// connection reads the team's first connection.
func (t team) connection(ctx context.Context) *v1alpha1.Connection {
	GinkgoHelper()
	var conn v1alpha1.Connection
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "x"}, &conn)).To(Succeed())
	return &conn
}

// byOAuth connects a connection's account through Herald's app: its Secret has the app's signature, and the Connection
// has the app's id.
func (t team) byOAuth(ctx context.Context, name string) {
	GinkgoHelper()
	var secret corev1.Secret
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, &secret)).To(Succeed())
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, credentials.AppMarkAnnotation, apps.Sign(v1alpha1.PlatformX, string(secret.Data[v1alpha1.CredentialsAccessToken]), ""))
	Expect(k8s.Update(ctx, &secret)).To(Succeed())
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var conn v1alpha1.Connection
		if err := k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, &conn); err != nil {
			return err
		}
		conn.Status.App = app
		return k8s.Status().Update(ctx, &conn)
	})).To(Succeed())
}

func (t team) setReady(ctx context.Context, name string, status metav1.ConditionStatus, reason, username string) {
	GinkgoHelper()
	// The manager writes to connections, too: rate limits and probe requests.
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var conn v1alpha1.Connection
		if err := k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, &conn); err != nil {
			return err
		}
		meta.SetStatusCondition(&conn.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "as the test says"})
		conn.Status.Username = username
		if status == metav1.ConditionTrue {
			conn.Status.CredentialsVersion, conn.Status.VerifiedVersion = "1", "1"
		}
		conn.Status.LastHandledProbe = conn.Annotations[v1alpha1.ProbeAnnotation]
		return k8s.Status().Update(ctx, &conn)
	})).To(Succeed())
}

// post creates a post as the apiserver does.
func (t team) post(ctx context.Context, text string, change ...func(*v1alpha1.Post)) *v1alpha1.Post {
	p := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("p%d", serial.Add(1)), Namespace: t.namespace, Finalizers: []string{v1alpha1.DeliveryFinalizer},
		},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText,
			Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: text}},
		},
	}
	for _, c := range change {
		c(p)
	}
	Expect(k8s.Create(ctx, p)).To(Succeed())
	return p
}

func at(d time.Duration) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(d)) }
}

// read returns the current post.
func read(ctx context.Context, p *v1alpha1.Post) *v1alpha1.Post {
	var now v1alpha1.Post
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(p), &now)).To(Succeed())
	return &now
}

// edit changes a post, with retries after conflicts with the manager, and returns the stored post.
func edit(ctx context.Context, p *v1alpha1.Post, change func(*v1alpha1.Post)) *v1alpha1.Post {
	GinkgoHelper()
	return suite.Must(tryEdit(ctx, p, change))
}

// tryEdit is like edit, for a change that the API server may reject.
func tryEdit(ctx context.Context, p *v1alpha1.Post, change func(*v1alpha1.Post)) (*v1alpha1.Post, error) {
	GinkgoHelper()
	var stored *v1alpha1.Post
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stored = read(ctx, p)
		change(stored)
		return k8s.Update(ctx, stored)
	})
	return stored, err
}

func phase(ctx context.Context, p *v1alpha1.Post) func() v1alpha1.PostPhase {
	return func() v1alpha1.PostPhase { return read(ctx, p).Status.Phase }
}

// messageOf returns the message of a post's first target, or "" if there is none.
func messageOf(ctx context.Context, p *v1alpha1.Post) func() string {
	return func() string {
		if targets := read(ctx, p).Status.Targets; len(targets) > 0 {
			return targets[0].Message
		}
		return ""
	}
}

// conditionOf returns a post's condition as "reason: message", or "" if it is absent.
func conditionOf(ctx context.Context, p *v1alpha1.Post, kind string) func() string {
	return func() string {
		if c := meta.FindStatusCondition(read(ctx, p).Status.Conditions, kind); c != nil {
			return c.Reason + ": " + c.Message
		}
		return ""
	}
}

// posted waits until a post is published, and returns it.
func posted(ctx context.Context, p *v1alpha1.Post) *v1alpha1.Post {
	GinkgoHelper()
	Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
	return p
}

// published returns the captions that an account has published.
func (t team) published(ctx context.Context) []string {
	posts := suite.Must(platform.Posts(ctx, "x", t.account.ID))
	texts := []string{}
	for _, p := range posts {
		texts = append(texts, p.Text)
	}
	return texts
}

// publishCalls returns the number of calls that could publish, for all accounts. The sandbox refuses duplicate text, so
// the published posts alone would not reveal a duplicate call.
func publishCalls(ctx context.Context) int {
	calls := suite.Must(platform.Calls(ctx, "x"))
	return calls["publish"]
}

func (t team) fault(ctx context.Context, f sandboxtest.Fault) {
	f.Platform, f.Account = "x", t.account.ID
	if f.Times == 0 {
		f.Times = 1
	}
	Expect(platform.Fault(ctx, f)).To(Succeed())
}
