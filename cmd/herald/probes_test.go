// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/cluster"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/test/must"
)

// leases is a Kubernetes API with the kinds in the manager's cache and one lease. The first process that requests the
// lease gets it. While hangs is set, renewals get no response.
type leases struct {
	hangs atomic.Bool

	mu          sync.Mutex
	contentType string
	held        []byte
}

func (l *leases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	group := func(name, version string) metav1.APIGroup {
		served := metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version}
		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served}
	}
	kind := func(name, plural string) metav1.APIResourceList {
		return metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: plural, Kind: name, Namespaced: true}}}
	}
	switch {
	case r.URL.Path == "/api":
		_ = json.NewEncoder(w).Encode(metav1.APIVersions{Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		_ = json.NewEncoder(w).Encode(metav1.APIGroupList{Groups: []metav1.APIGroup{
			group("social.herald.dev", "v1alpha1"), group("rbac.authorization.k8s.io", "v1"),
		}})
	case r.URL.Path == "/apis/social.herald.dev/v1alpha1":
		_ = json.NewEncoder(w).Encode(kind("Post", "posts"))
	case r.URL.Path == "/api/v1":
		_ = json.NewEncoder(w).Encode(kind("ResourceQuota", "resourcequotas"))
	case r.URL.Path == "/apis/rbac.authorization.k8s.io/v1":
		_ = json.NewEncoder(w).Encode(kind("RoleBinding", "rolebindings"))
	case r.Method == http.MethodPut && l.hangs.Load():
		<-r.Context().Done()
	case r.Method == http.MethodPost || r.Method == http.MethodPut:
		l.set(r.Header.Get("Content-Type"), body)
		l.give(w)
	case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/leases/") && l.give(w):
	default:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
		})
	}
}

func (l *leases) set(contentType string, lease []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.contentType, l.held = contentType, lease
}

// give responds with the lease. It returns false if there is none.
func (l *leases) give(w http.ResponseWriter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		return false
	}
	w.Header().Set("Content-Type", l.contentType)
	_, _ = w.Write(l.held)
	return true
}

// overdue is how long a leader may outlive its lease.
const overdue = 20 * time.Second

// hungTimers is the clock of a process that hangs: its timers do not fire, so the lock does not stop a leader that
// cannot renew its lease.
type hungTimers struct{ *clocktesting.FakeClock }

func (c hungTimers) AfterFunc(time.Duration, func()) clock.Timer {
	return c.NewTimer(365 * 24 * time.Hour)
}

// TestManagerProbes calls a manager's probes before and after it becomes the leader, when its election hangs until
// after the lease has expired, and during shutdown.
func TestManagerProbes(t *testing.T) {
	held := &leases{}
	server := httptest.NewServer(held)
	defer server.Close()
	c := configv1alpha1.DefaultManager()
	c.Health.BindAddress, c.Metrics.BindAddress, c.Webhook.BindAddress = ports.ForTest(t), "0", "0"
	c.LeaderElection.RetryPeriod.Duration = 100 * time.Millisecond
	fake := hungTimers{clocktesting.NewFakeClock(time.Now())}
	api := &cluster.API{Config: &rest.Config{Host: server.URL}, Namespace: "herald-system"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	mgr, err := newManager(ctx, func(error) {}, api, &managerFlags{leaderElect: true}, c, "us", &admissionWebhook{Webhook: c.Webhook}, fake)
	must.Succeed(t, err)
	// The leader's work finishes only when the test allows it, like a running call.
	leading, finish := make(chan struct{}), make(chan struct{})
	if err := mgr.Add(leader(func(context.Context) error {
		close(leading)
		<-finish
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	answers := func(path string, want int, reason string) {
		t.Helper()
		var got int
		if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
			resp, err := http.Get("http://" + c.Health.BindAddress + path)
			if err != nil {
				return false, nil //nolint:nilerr // it does not listen yet
			}
			got = resp.StatusCode
			return got == want, resp.Body.Close()
		}); err != nil {
			t.Errorf("%s returned %d, want %d: %s", path, got, want, reason)
		}
	}
	select {
	case <-leading:
	case err := <-ended:
		t.Fatalf("the manager ended: %v", err)
	case <-time.After(30 * time.Second):
		t.Fatal("the manager does not lead")
	}
	answers("/readyz", http.StatusOK, "the caches are filled")
	answers("/livez", http.StatusOK, "the manager leads")
	answers("/readyz/started", http.StatusNotFound, "the reasons require a token")
	held.hangs.Store(true)
	fake.SetTime(fake.Now().Add(c.LeaderElection.LeaseDuration.Duration + overdue + time.Second))
	answers("/livez", http.StatusServiceUnavailable, "the lease expired, and the manager still leads")
	held.hangs.Store(false)
	cancel()
	answers("/readyz", http.StatusServiceUnavailable, "the manager is stopping")
	close(finish)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// leader is work that only the leader does.
type leader func(context.Context) error

func (l leader) Start(ctx context.Context) error { return l(ctx) }
func (leader) NeedLeaderElection() bool          { return true }
