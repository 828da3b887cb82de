// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/test/logtest"
	"github.com/herald-social/herald/test/sandboxtest"
)

// settable is a machine's clock that is set while the machine is running. Its timers do not notice.
type settable struct {
	clock.RealClock

	mu sync.Mutex
	by time.Duration
}

// Now returns the set time without a monotonic clock reading.
func (s *settable) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.RealClock.Now().Round(0).Add(s.by)
}

func (s *settable) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

func (s *settable) set(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by += by
}

// sleeper is a manager on a machine with a settable clock. It counts its reconciliations of posts in a namespace.
type sleeper struct {
	settable

	namespace string
	passes    atomic.Int32
}

func (s *sleeper) start() {
	leaps := apiclock.NewJumps(s, nil)
	runManager(func(o *post.Options) {
		o.Clock, o.Jumps = s, leaps
		o.Owned = func(_ context.Context, namespace string) (bool, error) {
			if namespace == s.namespace {
				s.passes.Add(1)
			}
			return true, nil
		}
	})
	watching, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- leaps.Start(watching) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended).Should(Receive(BeNil()))
	})
}

// atTime sets the scheduled time of a post.
func atTime(t time.Time) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(t) }
}

var _ = Describe("A post that waits for its time", func() {
	var t team
	var s *sleeper
	BeforeEach(func(ctx SpecContext) {
		t = newTeam(ctx)
		s = &sleeper{namespace: t.namespace}
		s.start()
	})

	It("wakes when the clock is set forward", func(ctx SpecContext) {
		due, later := t.post(ctx, "in an hour", at(time.Hour)), t.post(ctx, "in a month", at(31*24*time.Hour))
		for _, p := range []*v1alpha1.Post{due, later} {
			Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonScheduled))
		}

		By("suspending the machine for an hour")
		s.set(time.Hour)
		Eventually(phase(ctx, due)).Should(Equal(v1alpha1.PhasePosted))
		Expect(read(ctx, due).Status.Targets[0].Attempt.StartedAt.Time).NotTo(BeTemporally("<", due.Spec.ScheduledAt.Time))
		Expect(read(ctx, later).Status.Phase).To(Equal(v1alpha1.PhaseScheduled))
		Expect(publishesBy(t.account)).To(Equal(1))

		By("suspending it for the rest of the month")
		s.set(31*24*time.Hour - time.Hour)
		Eventually(phase(ctx, later)).Should(Equal(v1alpha1.PhasePosted))
		Expect(publishesBy(t.account)).To(Equal(2))
	})

	It("is not published early when the clock is set back", func(ctx SpecContext) {
		p := t.post(ctx, "soon", atTime(s.Now().Add(3*time.Second)))
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonScheduled))

		By("firing its timer, with a clock that shows a quarter of an hour earlier")
		s.set(-15 * time.Minute)
		before := s.passes.Load()
		Eventually(s.passes.Load).Should(BeNumerically(">", before), "its timer ends")
		Eventually(time.Now).Should(BeTemporally(">", p.Spec.ScheduledAt.Time))
		Expect(read(ctx, p).Status.Phase).To(Equal(v1alpha1.PhaseScheduled))
		Expect(publishesBy(t.account)).To(BeZero())

		By("correcting the clock")
		s.set(15 * time.Minute)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted), "its new timer would end in a quarter of an hour")
		Expect(publishesBy(t.account)).To(Equal(1))
	})

	DescribeTable("is requeued immediately when an object that it refers to is deleted",
		func(ctx SpecContext, change func(*v1alpha1.Post), lose func(ctx SpecContext, p *v1alpha1.Post), reason string) {
			p := t.post(ctx, "next month", at(31*24*time.Hour), change)
			Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonScheduled))
			lose(ctx, p)
			Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(reason))
		},
		Entry("its connection", func(*v1alpha1.Post) {}, func(ctx SpecContext, p *v1alpha1.Post) {
			conn := &v1alpha1.Connection{}
			conn.Name, conn.Namespace = "x", p.Namespace
			Expect(k8s.Delete(ctx, conn)).To(Succeed())
		}, v1alpha1.ReasonConnectionNotFound),
		Entry("its file", func(p *v1alpha1.Post) {
			uploaded(p.Namespace, "picture")
			p.Spec.Category = v1alpha1.CategoryImage
			p.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "picture"}}}
		}, func(ctx SpecContext, p *v1alpha1.Post) {
			file := &v1alpha1.Media{}
			file.Name, file.Namespace = "picture", p.Namespace
			Expect(k8s.Delete(ctx, file)).To(Succeed())
		}, v1alpha1.ReasonMediaNotFound),
	)
})

// uploaded creates a Media with an uploaded file.
func uploaded(namespace, name string) {
	GinkgoHelper()
	ctx := context.Background()
	file := &v1alpha1.Media{Spec: v1alpha1.MediaSpec{FileName: name, MimeType: v1alpha1.MimePNG, SizeBytes: 100}}
	file.Name, file.Namespace = name, namespace
	Expect(k8s.Create(ctx, file)).To(Succeed())
	file.Status = v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: 100, ETag: "e"}
	Expect(k8s.Status().Update(ctx, file)).To(Succeed())
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(file), file)).To(Succeed())
}

// behind is a clock that is 61 seconds behind.
type behind struct{ clock.RealClock }

func (b behind) Now() time.Time                  { return b.RealClock.Now().Add(-61 * time.Second) }
func (b behind) Since(t time.Time) time.Duration { return b.Now().Sub(t) }

var _ = Describe("A manager whose clock is 61 seconds behind", func() {
	It("publishes immediate posts, and scheduled posts at their time by the API's clock", func(ctx SpecContext) {
		now := apiclock.New(apiclock.Options{Base: behind{}})
		config := rest.CopyConfig(env.Config)
		config.Wrap(now.Wrap)
		watching, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- now.Watch(watching, config) }()
		DeferCleanup(func() {
			stop()
			Eventually(ended).Should(Receive(BeNil()))
		})
		Eventually(func() error { return now.Check(nil) }).Should(Succeed())

		t := newTeam(ctx)
		runManager(func(o *post.Options) { o.Clock = now })
		due, later := t.post(ctx, "now"), t.post(ctx, "in a moment", at(3*time.Second))
		for _, p := range []*v1alpha1.Post{due, later} {
			Eventually(phase(ctx, p), 20*time.Second).Should(Equal(v1alpha1.PhasePosted), "an uncorrected manager would wait for a minute")
		}
		started := read(ctx, later).Status.Targets[0].Attempt.StartedAt
		Expect(started.Time).To(BeTemporally("~", later.Spec.ScheduledAt.Time, 10*time.Second), "the attempt is dated by the API's clock")
		Expect(publishesBy(t.account)).To(Equal(2))
	})
})

var _ = Describe("The log at level info", func() {
	It("contains a post's reason for waiting once, over many passes and a restart, and its publication", func(ctx SpecContext) {
		t, out := newTeam(ctx), &logtest.Log{}
		start := func() *manager {
			return startManagerWithLog(logr.FromSlogHandler(slog.NewJSONHandler(out, nil)))
		}
		m := start()
		DeferCleanup(func() { m.stop() })
		t.setReady(ctx, "x", metav1.ConditionFalse, v1alpha1.ReasonRevoked, t.account.Username)
		p := t.post(ctx, "hello")
		Eventually(func() []logtest.Line { return out.In(t.namespace, "a target waits") }).Should(HaveLen(1))
		for i := range 3 {
			edit(ctx, p, func(p *v1alpha1.Post) { p.Labels = map[string]string{"woken": strconv.Itoa(i)} })
		}
		m.stop()
		m = start()
		t.setReady(ctx, "x", metav1.ConditionTrue, v1alpha1.ReasonConnected, t.account.Username)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Eventually(func() int { return len(out.In(t.namespace, "published")) + len(out.In(t.namespace, "published late")) }).Should(Equal(1))

		waits := out.In(t.namespace, "a target waits")
		Expect(waits).To(HaveLen(1))
		Expect(waits[0]).To(And(
			HaveKeyWithValue("namespace", p.Namespace), HaveKeyWithValue("name", p.Name), HaveKeyWithValue("platform", "x"), HaveKeyWithValue("connection", "x"),
			HaveKeyWithValue("reason", v1alpha1.ReasonConnectionNotReady), HaveKeyWithValue("problem", ContainSubstring(`connection "x" is not ready`)),
		))
		lines, err := out.Lines()
		Expect(err).NotTo(HaveOccurred(), "no line has a duplicate field")
		for _, line := range lines {
			Expect(line.Message()).NotTo(HavePrefix("Starting"), "a start is no news")
		}
	})
})

var _ = Describe("A post whose account has reached a limit", func() {
	It("sets the Connection's condition immediately, with one event and one log line", func(ctx SpecContext) {
		t, out := newTeam(ctx), &logtest.Log{}
		m := startManagerWithLog(logr.FromSlogHandler(slog.NewJSONHandler(out, nil)))
		DeferCleanup(m.stop)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", Times: 1, RetryAfterS: 900})
		p := t.post(ctx, "hello")
		limited := func() *metav1.Condition {
			conn := t.connection(ctx)
			return meta.FindStatusCondition(conn.Status.Conditions, v1alpha1.ConditionRateLimited)
		}
		Eventually(limited).Should(HaveValue(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonQuotaUsedUp), HaveField("Message", HavePrefix("nothing is sent before ")),
		)))
		Eventually(func() (notes []string) {
			var list eventsv1.EventList
			Expect(k8s.List(ctx, &list, client.InNamespace(t.namespace))).To(Succeed())
			for i := range list.Items {
				if e := &list.Items[i]; e.Regarding.Kind == "Connection" {
					notes = append(notes, e.Reason+" "+e.Note)
				}
			}
			return notes
		}).Should(HaveExactElements(HavePrefix("RateLimited QuotaUsedUp: nothing is sent before ")))
		Expect(out.In(t.namespace, "the limit of an account has changed")).To(HaveExactElements(And(
			HaveKeyWithValue("namespace", p.Namespace), HaveKeyWithValue("connection", "x"), HaveKeyWithValue("limited", true), HaveKeyWithValue("reason", v1alpha1.ReasonQuotaUsedUp),
		)))
	})
})
