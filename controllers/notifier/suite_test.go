// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/notifier"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/receiver"
	"github.com/herald-social/herald/posting/notify"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/suite"
)

func TestNotifierController(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Notifier controller")
}

// callTimeout is the timeout of calls to receivers that hang.
const callTimeout = 300 * time.Millisecond

var (
	env    *envtest.Environment
	k8s    client.WithWatch
	serial atomic.Int64
	secret = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 32)))
)

var _ = BeforeSuite(func() {
	env = suite.Start()
	k8s = suite.Must(client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme}))
})

// request is a request that a receiver got.
type request struct {
	ID   string
	body notify.Payload
}

// server is a receiver. answer handles each verified request; nil answers with 204.
type server struct {
	*httptest.Server

	mu     sync.Mutex
	got    []request
	answer func(w http.ResponseWriter, r *http.Request)
}

func newServer() *server {
	s := &server{}
	s.Server = httptest.NewTLSServer(s)
	DeferCleanup(s.CloseClientConnections)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer GinkgoRecover()
	body := suite.Must(io.ReadAll(r.Body))
	var p notify.Payload
	Expect(json.Unmarshal(body, &p)).To(Succeed())
	// The library would compare the request's timestamp with the real clock, but specs set their own clock ahead.
	Expect(suite.Must(standardwebhooks.NewWebhook(secret)).VerifyIgnoringTimestamp(body, r.Header)).To(Succeed())
	s.mu.Lock()
	s.got = append(s.got, request{ID: r.Header.Get("webhook-id"), body: p})
	answer := s.answer
	s.mu.Unlock()
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w, r)
}

// answers sets the response to subsequent requests.
func (s *server) answers(answer func(w http.ResponseWriter, r *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// received returns the requests as "post.posted name".
func (s *server) received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []string{}
	for _, r := range s.got {
		list = append(list, string(r.body.Type)+" "+r.body.Data.ID)
	}
	return list
}

func (s *server) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request{}, s.got...)
}

// team is the namespace of a spec, with a clock of its own.
type team struct {
	namespace string
	clock     *clocktesting.FakeClock
	events    *events.FakeRecorder
	owned     atomic.Bool
	// client replaces the manager's client, if it is set. mailer is the mail server, or nil.
	client client.Client
	mailer notifier.Mailer
	// metrics are those of the latest manager.
	metrics *prometheus.Registry
}

func newTeam(ctx context.Context) *team {
	GinkgoHelper()
	t := &team{namespace: fmt.Sprintf("team-%d", serial.Add(1)), clock: clocktesting.NewFakeClock(time.Now()), events: events.NewFakeRecorder(1000)}
	t.owned.Store(true)
	Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}})).To(Succeed())
	Expect(k8s.Create(ctx, t.signing("signing", secret))).To(Succeed())
	return t
}

// run starts a manager that is configured as in the program, and returns the function that stops it.
func (t *team) run(receivers ...*server) (stop func()) {
	GinkgoHelper()
	mgr := suite.Must(ctrl.NewManager(env.Config, ctrl.Options{
		Scheme: env.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{t.namespace: {}},
			ByObject: map[client.Object]cache.ByObject{
				&v1alpha1.Post{}: {Field: kubeclient.UnfinishedPosts()},
				&v1alpha1.Team{}: {},
			},
		},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}))
	roots := x509.NewCertPool()
	for _, s := range receivers {
		roots.AddCert(s.Certificate())
	}
	t.metrics = prometheus.NewRegistry()
	cached := mgr.GetClient()
	if t.client != nil {
		cached = t.client
	}
	r := suite.Must(notifier.New(notifier.Options{
		Client: cached, APIReader: mgr.GetAPIReader(), Watcher: k8s, Cache: mgr.GetCache(), Clock: t.clock, Events: t.events,
		Owned:   func(context.Context, string) (bool, error) { return t.owned.Load(), nil },
		Sender:  receiver.New(receiver.Options{Timeout: callTimeout, Allow: func(netip.Addr) error { return nil }, Roots: roots}),
		Mailer:  t.mailer,
		Metrics: notifier.NewMetrics(t.metrics),
		SiteURL: "https://herald.example.com",
	}))
	Expect(r.SetupWithManager(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		Eventually(stopped).Should(Receive(Succeed()))
	})
	DeferCleanup(stop)
	return stop
}

// eventually polls, and advances the clock by step each time.
func (t *team) eventually(get func() any, step time.Duration) AsyncAssertion {
	GinkgoHelper()
	return Eventually(func() any {
		t.clock.Step(step)
		return get()
	})
}

func (t *team) receives(s *server) AsyncAssertion {
	GinkgoHelper()
	return t.eventually(func() any { return s.received() }, time.Second)
}

// metric returns the sum of a metric's series whose labels have this value; "" stands for all.
func (t *team) metric(name, label string) (sum float64) {
	GinkgoHelper()
	for _, family := range suite.Must(t.metrics.Gather()) {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if label == "" || slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == label }) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
