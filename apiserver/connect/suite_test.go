// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/facebook"
	"github.com/herald-social/herald/platforms/instagram"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/platforms/tiktok"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/platforms/youtube"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/sandboxtest"
)

func TestConnect(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Connecting accounts")
}

const appSecret = "the-secret-of-the-app"

var (
	env *envtest.Environment
	// site is the sandbox.
	site sandboxtest.Client
	// connections and secrets are the apiserver's clients for the Kubernetes API.
	connections *kube.Connections
	secrets     kube.Credentials
	// registry has the sandbox's platforms.
	registry platforms.Registry

	serial atomic.Int64
)

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	var err error
	env, err = envtest.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)

	own, err := kube.NewClient(env.Config, "connect-test")
	Expect(err).NotTo(HaveOccurred())
	connections = kube.NewConnections(own, nil, clock.RealClock{})
	secrets, err = kube.NewCredentials(env.Config, "connect-test")
	Expect(err).NotTo(HaveOccurred())
	watching, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	go connections.RunWithContext(watching)
	Expect(cache.WaitForCacheSync(ctx.Done(), connections.HasSynced)).To(BeTrue())

	site = sandboxtest.Start(GinkgoT())
	registry = newRegistry(site.URL)
})

func newRegistry(at string) platforms.Registry {
	way := transport.New(transport.Options{})
	id, secret := "herald", func() string { return appSecret }
	return platforms.Registry{
		v1alpha1.PlatformX:         x.New(x.Config{APIURL: at + "/x", AuthorizeURL: at + "/x", ClientID: id, ClientSecret: secret}, way),
		v1alpha1.PlatformThreads:   threads.New(threads.Config{Config: platforms.Config{APIURL: at + "/threads", AuthorizeURL: at + "/threads", ClientID: id, ClientSecret: secret}}, way),
		v1alpha1.PlatformInstagram: instagram.New(instagram.Config{Config: platforms.Config{APIURL: at + "/instagram", AuthorizeURL: at + "/instagram", ClientID: id, ClientSecret: secret}}, way),
		v1alpha1.PlatformFacebook:  facebook.New(facebook.Config{Config: platforms.Config{APIURL: at + "/facebook", AuthorizeURL: at + "/facebook", ClientID: id, ClientSecret: secret}}, way),
		v1alpha1.PlatformTikTok:    tiktok.New(tiktok.Config{APIURL: at + "/tiktok", AuthorizeURL: at + "/tiktok", ClientID: id, ClientSecret: secret}, way),
		v1alpha1.PlatformYouTube:   youtube.New(youtube.Config{APIURL: at + "/youtube", AuthorizeURL: at + "/youtube", ClientID: id, ClientSecret: secret}, way),
	}
}

// vault is a Sealer that stores the sealed values itself, so a browser can neither read nor forge them.
type vault struct {
	clock *clocktesting.FakeClock
	mu    sync.Mutex
	kept  map[string]sealed
}

type sealed struct {
	purpose string
	content []byte
	until   time.Time
}

func (v *vault) Seal(purpose string, value any, life time.Duration) string {
	content, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	v.mu.Lock()
	defer v.mu.Unlock()
	name := rand.Text()
	v.kept[name] = sealed{purpose, content, v.clock.Now().Add(life)}
	return name
}

func (v *vault) Open(purpose, text string, into any) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, ok := v.kept[text]
	if !ok || found.purpose != purpose || !v.clock.Now().Before(found.until) {
		return errors.New("sealed by another key, for another purpose, or expired")
	}
	return json.Unmarshal(found.content, into)
}

// desk is a Service with its own namespace, and the state that a test inspects.
type desk struct {
	*connect.Service
	namespace string
	clock     *clocktesting.FakeClock
	log       *bytes.Buffer
	team      *v1alpha1.Team
}

func newDesk(ctx context.Context, edits ...func(*connect.Config)) *desk {
	GinkgoHelper()
	d := &desk{namespace: fmt.Sprint("team-", serial.Add(1)), clock: clocktesting.NewFakeClock(time.Now()), log: &bytes.Buffer{}}
	Expect(env.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}})).To(Succeed())
	config := connect.Config{
		SiteURL: "https://herald.example.com", Platforms: registry, Apps: apps(), Connections: connections, Secrets: secrets,
		Owner:  func(string) *v1alpha1.Team { return d.team },
		Sealer: &vault{clock: d.clock, kept: map[string]sealed{}}, Clock: d.clock, Log: slog.New(slog.NewTextHandler(d.log, nil)),
	}
	for _, edit := range edits {
		edit(&config)
	}
	d.Service = connect.New(config)
	return d
}

// apps returns the installation's app on each platform.
func apps() credentials.Apps {
	all := credentials.Apps{}
	for platform := range registry {
		all[platform] = credentials.App{ID: "herald", Secret: func() string { return appSecret }}
	}
	return all
}

// visitor returns a user with all permissions, in a new session.
func visitor(person string) connect.Visitor {
	return connect.Visitor{Session: rand.Text(), Person: person, May: func(context.Context, string, connect.Verb) error { return nil }}
}

// trip is a user's journey from Herald to a platform and back.
type trip struct {
	desk     *desk
	who      connect.Visitor
	platform v1alpha1.Platform
	started  connect.Started
	cookies  map[string]string
	// server is the server's host, and back contains the parameters of the redirect back.
	server string
	back   url.Values
}

// startFlow starts a flow.
func (d *desk) startFlow(ctx context.Context, who connect.Visitor, platform v1alpha1.Platform, reconnect string) *trip {
	GinkgoHelper()
	started, err := d.Start(ctx, who, d.namespace, connect.Wanted{Platform: platform, Reconnect: reconnect})
	Expect(err).NotTo(HaveOccurred())
	return &trip{desk: d, who: who, platform: platform, started: started, cookies: map[string]string{started.Cookie.Name: started.Cookie.Value}}
}

// agree grants the app access to an account on the platform's page.
func (t *trip) agree(ctx context.Context, accountID string) *trip {
	GinkgoHelper()
	address, err := url.Parse(t.started.Address)
	Expect(err).NotTo(HaveOccurred())
	query := address.Query()
	query.Set("account", accountID)
	address.RawQuery = query.Encode()
	status, header, body := get(ctx, address.String())
	Expect(status).To(Equal(http.StatusFound), body)
	back, err := url.Parse(header.Get("Location"))
	Expect(err).NotTo(HaveOccurred())
	path := "/connect/" + string(t.platform) + "/callback"
	if t.server != "" {
		path += "/" + t.server
	}
	Expect(back.Scheme + "://" + back.Host + back.Path).To(Equal("https://herald.example.com" + path))
	t.back = back.Query()
	return t
}

func get(ctx context.Context, address string) (int, http.Header, string) {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := stay.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	return resp.StatusCode, resp.Header, string(body)
}

// arrive completes the flow.
func (t *trip) arrive(ctx context.Context) (connect.Outcome, error) {
	return t.desk.Callback(ctx, t.who, connect.Return{Platform: t.platform, Server: t.server, Query: t.back}, func(name string) string { return t.cookies[name] })
}

// connect runs a complete flow.
func (d *desk) connect(ctx context.Context, who connect.Visitor, platform v1alpha1.Platform, accountID string) connect.Outcome {
	GinkgoHelper()
	out, err := d.startFlow(ctx, who, platform, "").agree(ctx, accountID).arrive(ctx)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// newAccount creates an account in the sandbox, and returns its id.
func newAccount(ctx context.Context, platform v1alpha1.Platform) string {
	GinkgoHelper()
	made, err := site.Account(ctx, string(platform), fmt.Sprint(5000+serial.Add(1)), nil)
	Expect(err).NotTo(HaveOccurred())
	return made.ID
}

// stored reads a connection and its Secret.
func (d *desk) stored(ctx context.Context, name string) (*v1alpha1.Connection, *corev1.Secret) {
	GinkgoHelper()
	connection, secret := &v1alpha1.Connection{}, &corev1.Secret{}
	connection.Name, connection.Namespace, secret.Namespace = name, d.namespace, d.namespace
	Expect(env.Client.Get(ctx, objectKey(d.namespace, name), connection)).To(Succeed())
	Expect(env.Client.Get(ctx, objectKey(d.namespace, connection.Spec.CredentialsSecretRef.Name), secret)).To(Succeed())
	return connection, secret
}

// all lists the connections and Secrets of the namespace.
func (d *desk) all(ctx context.Context) ([]v1alpha1.Connection, []corev1.Secret) {
	GinkgoHelper()
	var found v1alpha1.ConnectionList
	var kept corev1.SecretList
	Expect(env.Client.List(ctx, &found, inNamespace(d.namespace))).To(Succeed())
	Expect(env.Client.List(ctx, &kept, inNamespace(d.namespace))).To(Succeed())
	return found.Items, kept.Items
}
