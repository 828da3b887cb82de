// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/storetest"
	"github.com/herald-social/herald/test/suite"
)

func TestMediaController(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Media controller")
}

// One manager watches the namespace "managed". In "by-hand", the specs control the steps and the time.
const (
	managed = "managed"
	byHand  = "by-hand"
	// homeless has no team until a spec creates one. The manager watches it too.
	homeless = "homeless"
	// bounded is the namespace for specs about budgets, which count its objects.
	bounded = "bounded"
)

var (
	k8s    client.Client
	hand   ctrl.Manager
	bucket *store.Store
	web    *httptest.Server
	serial atomic.Int64
	passes *envtest.Passes
)

var _ = BeforeSuite(func(ctx SpecContext) {
	env := suite.Start()
	k8s = env.Client
	Expect(env.Team(ctx, managed)).To(Succeed())
	for _, namespace := range []string{byHand, homeless, bounded} {
		Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	}
	bucket = suite.Must(store.New(storetest.Start(GinkgoT())))
	web = httptest.NewTLSServer(http.FileServer(http.Dir(files(map[string]string{"a.png": "0123456789"}))))
	DeferCleanup(web.Close)

	limited := suite.Must(env.Installed(ctx, envtest.ManagerAccount))
	mgr := suite.Manager(env, limited, managed, homeless)
	teams := suite.Must(quota.NewTeams(ctx, mgr.GetCache(), mgr.GetFieldIndexer()))
	o := options(mgr, loose(), clock.RealClock{})
	passes = &envtest.Passes{Owned: teams.Owned}
	o.Owned = passes.IsOwned
	r := suite.Must(New(o))
	Expect(kubeclient.IndexMedia(ctx, mgr.GetFieldIndexer())).To(Succeed())
	Expect(r.SetupWithManager(mgr)).To(Succeed())
	hand = suite.Manager(env, limited, byHand, bounded)
	Expect(kubeclient.IndexMedia(ctx, hand.GetFieldIndexer())).To(Succeed())
	Expect(hand.GetFieldIndexer().IndexField(ctx, &v1alpha1.Media{}, pendingIndex, pending)).To(Succeed())
	Expect(hand.GetFieldIndexer().IndexField(ctx, &v1alpha1.Media{}, fileIndex, fileKeys)).To(Succeed())
	suite.Run(mgr)
	suite.Run(hand)
	Expect(hand.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
})

// loose returns a client that fetches from the test's own server.
func loose() *fetch.Client {
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	return fetch.New(fetch.Options{Roots: roots, Allow: func(netip.Addr) error { return nil }})
}

func files(contents map[string]string) string {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	for name, content := range contents {
		Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed())
	}
	return folder
}

// options verifies files only by size, because their contents are not tested here.
func options(mgr ctrl.Manager, source Source, now clock.WithTicker) Options {
	o := Options{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: now, Events: mgr.GetEventRecorder("herald-media"), Store: bucket, Source: source, UnusedAfter: 24 * time.Hour}
	o.Owned = envtest.EveryNamespace
	o.Verify = func(ctx context.Context, m *v1alpha1.Media) (v1alpha1.MediaStatus, error) {
		object, err := bucket.Stat(ctx, store.Key(m))
		if err != nil {
			return v1alpha1.MediaStatus{}, err
		}
		s := m.Status
		s.SizeBytes, s.Phase, s.ETag = object.Size, v1alpha1.MediaUploaded, object.ETag
		summary := conditions.Summary{Ready: true, Reason: v1alpha1.ReasonUploaded, Progress: conditions.Settled}
		if m.Spec.SizeBytes != 0 && m.Spec.SizeBytes != object.Size {
			s.Phase, s.ETag = v1alpha1.MediaRejected, ""
			summary = conditions.Summary{Reason: "SizeMismatch", Progress: conditions.Stuck}
		}
		conditions.Apply(&s.Conditions, summary, m.Generation, time.Now())
		return s, nil
	}
	return o
}

// desk is the environment of a spec that controls each step.
type desk struct {
	*sweeper
	clock *clocktesting.FakeClock
}

// sweepAfter steps the clock and runs a sweep, which must succeed.
func (d *desk) sweepAfter(ctx context.Context, pause time.Duration) {
	GinkgoHelper()
	d.clock.Step(pause)
	Expect(d.sweep(ctx)).To(Succeed())
}

func newDesk(source Source) *desk {
	GinkgoHelper()
	now := clocktesting.NewFakeClock(time.Now())
	r := suite.Must(New(options(hand, source, now)))
	return &desk{&sweeper{Reconciler: r}, now}
}

// setStore replaces the store.
func (d *desk) setStore(s Store) { d.Store, d.files.store = s, s }

// setMayDelete replaces the check of the bucket's owner.
func (d *desk) setMayDelete(check func(context.Context) error) {
	d.MayDelete, d.files.mayDelete = check, check
}

func newMedia(namespace string, change func(*v1alpha1.Media)) *v1alpha1.Media {
	m := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("m-%d", serial.Add(1))},
		Spec:       v1alpha1.MediaSpec{FileName: "a.png", MimeType: v1alpha1.MimePNG, SizeBytes: 10},
	}
	change(m)
	return m
}

// created creates a Media with the changes.
func created(ctx context.Context, namespace string, changes ...func(*v1alpha1.Media)) *v1alpha1.Media {
	GinkgoHelper()
	m := newMedia(namespace, func(m *v1alpha1.Media) {
		for _, change := range changes {
			change(m)
		}
	})
	Expect(k8s.Create(ctx, m)).To(Succeed())
	return m
}

// removed reconciles a deleted Media until it is gone.
func (d *desk) removed(ctx context.Context, m *v1alpha1.Media) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		_, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}).Should(Succeed())
}

func fromTheAPI(m *v1alpha1.Media) {
	m.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
}

func fromSource(url string) func(*v1alpha1.Media) {
	return func(m *v1alpha1.Media) { m.Spec.Source, m.Spec.SizeBytes = &v1alpha1.MediaSource{URL: url}, 0 }
}

// step reconciles until the Media matches; the cache may lag.
func (d *desk) step(ctx context.Context, m *v1alpha1.Media, want func(Gomega, *v1alpha1.Media)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		_, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		want(g, m)
		// The next reconciliation must see the current state.
		var cached v1alpha1.Media
		g.Expect(d.Client.Get(ctx, client.ObjectKeyFromObject(m), &cached)).To(Succeed())
		g.Expect(cached.ResourceVersion).To(Equal(m.ResourceVersion))
	}).Should(Succeed())
}

func is(phase v1alpha1.MediaPhase, reason string) func(Gomega, *v1alpha1.Media) {
	return func(g Gomega, m *v1alpha1.Media) {
		g.Expect(m.Status.Phase).To(Equal(phase))
		g.Expect(conditions.Reason(m.Status.Conditions)).To(Equal(reason))
		g.Expect(m.Finalizers).To(ContainElement(v1alpha1.MediaFileFinalizer))
	}
}

func put(ctx context.Context, m *v1alpha1.Media, content string) {
	GinkgoHelper()
	_, err := bucket.Put(ctx, store.Key(m), string(m.Spec.MimeType), int64(len(content)), strings.NewReader(content))
	Expect(err).NotTo(HaveOccurred())
}

func hasFile(ctx context.Context, key string) error {
	_, err := bucket.Stat(ctx, key)
	return err
}

// uploaded creates a Media with a verified file.
func (d *desk) uploaded(ctx context.Context, change func(*v1alpha1.Media)) *v1alpha1.Media {
	GinkgoHelper()
	m := created(ctx, byHand, change)
	put(ctx, m, "0123456789")
	d.step(ctx, m, is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded))
	return m
}
