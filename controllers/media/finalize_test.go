// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/pacing"
)

// lost is a store whose bucket is gone.
type lost struct {
	Store
	tries int
}

var errLost = errors.New("the specified bucket does not exist")

func (l *lost) DeleteAll(context.Context, string) error {
	l.tries++
	return errLost
}

// heard stores the notes of events and the kinds of their objects.
type heard struct {
	events.EventRecorder
	said []string
}

func (h *heard) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	h.said = append(h.said, fmt.Sprintf("%T %s %s: ", regarding, kind, reason)+fmt.Sprintf(note, args...))
}

var _ = Describe("A Media that is deleted while its store does not delete its file", func() {
	var (
		d      *desk
		broken *lost
		told   *heard
	)
	BeforeEach(func() {
		d, told = newDesk(loose()), &heard{}
		broken = &lost{Store: d.Store}
	})
	deleted := func(ctx context.Context) *v1alpha1.Media {
		GinkgoHelper()
		m := d.uploaded(ctx, fromTheAPI)
		Expect(k8s.Delete(ctx, m)).To(Succeed())
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		Eventually(func() (bool, error) {
			var cached v1alpha1.Media
			err := d.Client.Get(ctx, client.ObjectKeyFromObject(m), &cached)
			return !cached.DeletionTimestamp.IsZero(), err
		}).Should(BeTrue())
		d.setStore(broken)
		d.finalizer.events = told
		d.clock.SetTime(m.DeletionTimestamp.Time)
		return m
	}
	pass := func(ctx context.Context, m *v1alpha1.Media) time.Duration {
		GinkgoHelper()
		again, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		Expect(err).NotTo(HaveOccurred())
		return again.RequeueAfter
	}
	isGone := func(ctx context.Context, m *v1alpha1.Media) bool {
		return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(m), m))
	}

	It("is retried for an hour and then deleted; the sweep deletes the file", func(ctx SpecContext) {
		m := deleted(ctx)
		key := store.Key(m)
		for elapsed := time.Duration(0); elapsed < abandonAfter; {
			pause := pass(ctx, m)
			Expect(isGone(ctx, m)).To(BeFalse(), "after %s", elapsed)
			Expect(pause).To(And(BeNumerically(">", 0), BeNumerically("<=", abandonAfter-elapsed)))
			elapsed += pause
			d.clock.Step(pause)
		}
		Expect(told.said).To(BeEmpty())
		Expect(pass(ctx, m)).To(BeZero())
		Expect(isGone(ctx, m)).To(BeTrue())
		Expect(told.said).To(HaveExactElements(And(HavePrefix("*v1alpha1.Media Warning FileAbandoned: "), ContainSubstring(key), ContainSubstring("sweep"))))
		Expect(broken.tries).To(BeNumerically("<", 100), "the pauses grow")

		By("restoring the bucket")
		d.setStore(broken.Store)
		d.clock.SetTime(time.Now().Add(orphanAfter + time.Minute))
		Expect(d.sweepFiles(ctx, map[string][]*v1alpha1.Media{byHand: {}})).To(Succeed())
		Expect(hasFile(ctx, key)).To(MatchError(store.ErrNotFound))
	})

	It("is deleted after the first successful attempt", func(ctx SpecContext) {
		m := deleted(ctx)
		pass(ctx, m)
		d.setStore(broken.Store)
		Expect(pass(ctx, m)).To(BeZero())
		Expect(isGone(ctx, m)).To(BeTrue())
		Expect(told.said).To(BeEmpty())
		Expect(hasFile(ctx, store.Key(m))).To(MatchError(store.ErrNotFound))
	})

	It("is deleted immediately if the store was removed, with an event about the file", func(ctx SpecContext) {
		m := deleted(ctx)
		d.setStore(store.None())
		Expect(pass(ctx, m)).To(BeZero())
		Expect(isGone(ctx, m)).To(BeTrue())
		Expect(told.said).To(HaveExactElements(ContainSubstring(store.Key(m))))
	})

	It("is deleted after one failed attempt in a namespace that is being deleted, with an event about the namespace", func(ctx SpecContext) {
		m := deleted(ctx)
		d.finalizer.apiReader = ending{d.APIReader}
		Expect(pass(ctx, m)).To(BeZero())
		Expect(isGone(ctx, m)).To(BeTrue())
		Expect(broken.tries).To(Equal(1))
		Expect(told.said).To(HaveExactElements(And(HavePrefix("*v1.Namespace Warning FileAbandoned: "), ContainSubstring(store.Key(m)))))
	})
})

// ending reads namespaces as terminating.
type ending struct{ client.Reader }

func (e ending) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := e.Reader.Get(ctx, key, obj, opts...)
	if obj.GetObjectKind().GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Namespace") {
		obj.SetDeletionTimestamp(new(metav1.Now()))
	}
	return err
}

var _ = Describe("A store that stalls", func() {
	It("blocks a file's verification for a few minutes, and its deletion for a minute", func(ctx SpecContext) {
		d := newDesk(loose())
		var ends []time.Duration
		d.Verify = func(ctx context.Context, _ *v1alpha1.Media) (v1alpha1.MediaStatus, error) {
			ends = append(ends, remaining(ctx))
			return v1alpha1.MediaStatus{}, context.DeadlineExceeded
		}
		m := created(ctx, byHand, fromTheAPI)
		Eventually(func(g Gomega) {
			_, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			g.Expect(err).To(MatchError(context.DeadlineExceeded))
		}).Should(Succeed())
		Expect(ends).To(HaveEach(And(BeNumerically(">", 0), BeNumerically("<=", pacing.VerificationTimeout))))

		stalled := &stalling{Store: d.Store}
		d.setStore(stalled)
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		Expect(k8s.Delete(ctx, m)).To(Succeed())
		Eventually(func() (int, error) {
			_, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			return len(stalled.ends), client.IgnoreNotFound(err)
		}).WithTimeout(10 * time.Second).Should(BeNumerically(">", 0))
		Expect(stalled.ends).To(HaveEach(And(BeNumerically(">", 0), BeNumerically("<=", dropTimeout))))
	})
})

// stalling is a store that does not respond.
type stalling struct {
	Store
	ends []time.Duration
}

func (s *stalling) DeleteAll(ctx context.Context, _ string) error {
	s.ends = append(s.ends, remaining(ctx))
	return context.DeadlineExceeded
}

// remaining returns how much time a context has left, or zero if it has no deadline.
func remaining(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return time.Until(end)
}

var _ = Describe("A deleted Media with an Idempotency-Key", func() {
	const fingerprint = "v1:abc"
	team := archive.Team{Namespace: byHand, Name: "acme"}
	created := func(ctx context.Context, annotations map[string]string) *v1alpha1.Media {
		GinkgoHelper()
		m := newMedia(byHand, func(m *v1alpha1.Media) {
			fromTheAPI(m)
			m.Annotations, m.Finalizers = annotations, []string{v1alpha1.MediaFileFinalizer}
		})
		Expect(k8s.Create(ctx, m)).To(Succeed())
		Expect(k8s.Delete(ctx, m)).To(Succeed())
		return m
	}

	DescribeTable("leaves its request in the bucket while the key is valid",
		func(ctx SpecContext, annotations map[string]string, age time.Duration, owner *v1alpha1.Team, kept bool) {
			d := newDesk(loose())
			requests := archive.New(bucket)
			d.finalizer.requests, d.finalizer.owner = requests, func(context.Context, string) (*v1alpha1.Team, error) { return owner, nil }
			m := created(ctx, annotations)
			d.clock.SetTime(m.CreationTimestamp.Add(age))
			Eventually(func(g Gomega) {
				_, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(m), &v1alpha1.Media{}))).To(BeTrue())
			}).Should(Succeed())
			got, err := requests.Request(ctx, team, m.Name)
			if !kept {
				Expect(err).To(MatchError(archive.ErrNotFound))
				return
			}
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(archive.Request{Version: 1, UID: m.UID, Fingerprint: fingerprint}))
		},
		Entry("its key is an hour old", map[string]string{v1alpha1.RequestAnnotation: fingerprint}, time.Hour, &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, true),
		Entry("its key is older than a day", map[string]string{v1alpha1.RequestAnnotation: fingerprint}, 25*time.Hour, &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, false),
		Entry("without a key", nil, time.Hour, &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, false),
		Entry("no team owns its namespace", map[string]string{v1alpha1.RequestAnnotation: fingerprint}, time.Hour, nil, false),
	)
})
