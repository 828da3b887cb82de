// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// preparedReason returns the status and the reason of a post's Prepared condition, or "" if there is none.
func preparedReason(ctx context.Context, p *v1alpha1.Post) func() string {
	return func() string {
		c := meta.FindStatusCondition(read(ctx, p).Status.Conditions, v1alpha1.ConditionPrepared)
		if c == nil {
			return ""
		}
		return string(c.Status) + " " + c.Reason
	}
}

// arrivedAtX counts the calls to one of X's operations.
func arrivedAtX(ctx context.Context, operation string) int {
	GinkgoHelper()
	calls := suite.Must(platform.Calls(ctx, "x"))
	return calls[operation]
}

var _ = Describe("A scheduled post with files", Ordered, func() {
	const isReady = "True Prepared"
	BeforeAll(func() { runManager() })

	It("is prepared before its time, but not published", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, "later", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
		now := read(ctx, p)
		Expect(now.Status.Phase).To(Equal(v1alpha1.PhaseScheduled))
		Expect(now.Status.Targets[0].Attempt).To(BeNil(), "no target is claimed")
		Expect(now.Status.Targets[0].Prepared.Checkpoint).NotTo(BeEmpty())
		Expect(t.published(ctx)).To(BeEmpty())
	})

	It("can be cancelled after its preparation", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, "never", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
		Expect(cancelPost(ctx, read(ctx, p))).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseCancelled))
		Expect(preparedReason(ctx, p)()).To(BeEmpty(), "the preparation is deleted")
	})

	It("is not prepared long before its time", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		before := arrivedAtX(ctx, "upload")
		p := t.post(ctx, "far", showing("a"), at(10*time.Hour))
		near := t.post(ctx, "near", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, near)).Should(Equal(isReady))
		Expect(phase(ctx, p)()).To(Equal(v1alpha1.PhaseScheduled))
		Expect(preparedReason(ctx, p)()).To(BeEmpty())
		Expect(arrivedAtX(ctx, "upload") - before).To(Equal(1))
	})

	It("is prepared again after an edit", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		png := file(ctx, t, "b", "picture.png", v1alpha1.MimePNG)
		p := t.post(ctx, "changes", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
		first := read(ctx, p).Status.Targets[0].Prepared.ContentHash
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Image.MediaRefs[0].Name = "b" })
		Eventually(func() *v1alpha1.Prepared { return read(ctx, p).Status.Targets[0].Prepared }).Should(
			And(Not(BeNil()), HaveField("ContentHash", Not(Equal(first)))), "a preparation of the new file replaces the old one")
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Second)) })
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		posts := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		Expect(posts).To(HaveLen(1))
		Expect(posts[0].Media[0].SHA256).To(Equal(png))
	})

	It("reports early that its preparation fails, and is published once it succeeds", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		t.fault(ctx, sandboxtest.Fault{Operation: "upload", Kind: "status", Status: 503, Times: 1})
		p := t.post(ctx, "troubled", showing("a"), at(3*time.Second))
		Eventually(preparedReason(ctx, p)).Should(Equal("False PreparationFailed"))
		c := meta.FindStatusCondition(read(ctx, p).Status.Conditions, v1alpha1.ConditionPrepared)
		Expect(c.Message).To(ContainSubstring("target 0 (x): "))
		Expect(phase(ctx, p)()).To(Equal(v1alpha1.PhaseScheduled), "the post has not failed")
		Eventually(func() []string { return t.events(ctx, p) }).Should(ContainElement(HavePrefix("PreparationFailed: target 0 (x)")))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(preparedReason(ctx, p)()).To(BeEmpty())
	})

	It("waits for its connection before its preparation", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		t.setReady(ctx, "x", metav1.ConditionFalse, v1alpha1.ReasonRevoked, t.account.Username)
		p := t.post(ctx, "waits", showing("a"), at(10*time.Minute))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		Expect(preparedReason(ctx, p)()).To(BeEmpty())
		t.setReady(ctx, "x", metav1.ConditionTrue, v1alpha1.ReasonConnected, t.account.Username)
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
	})
})

var _ = Describe("A prepared checkpoint", func() {
	It("is used after a restart, so only the publishing call is made at the scheduled time", func(ctx SpecContext) {
		m := startManager()
		t := newTeam(ctx)
		jpeg := file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, "kept", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		m.stop()
		before := map[string]int{}
		for _, operation := range []string{"upload", "status"} {
			before[operation] = arrivedAtX(ctx, operation)
		}
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Second)) })

		runManager()
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(arrivedAtX(ctx, "upload")).To(Equal(before["upload"]), "the file is not uploaded again")
		Expect(arrivedAtX(ctx, "status")).To(Equal(before["status"]), "the upload's state is not requested")
		// The counts are for the whole platform, where other specs' posts may be published at any time, but those posts have
		// no files.
		posts := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		Expect(posts).To(HaveLen(1))
		Expect(posts[0].Media[0].SHA256).To(Equal(jpeg))
		Expect(read(ctx, p).Status.Targets[0].Prepared).To(BeNil(), "the attempt remembers it")
	})

	It("is prepared again if the platform no longer has it", func(ctx SpecContext) {
		m := startManager()
		t := newTeam(ctx)
		jpeg := file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, "gone", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		m.stop()
		now := read(ctx, p)
		now.Status.Targets[0].Prepared.Checkpoint = "1404404404404404404" // X knows no such file
		Expect(k8s.Status().Update(ctx, now)).To(Succeed())
		now.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now())
		Expect(k8s.Update(ctx, now)).To(Succeed())
		runManager()
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		posts := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		Expect(posts).To(HaveLen(1))
		Expect(posts[0].Media[0].SHA256).To(Equal(jpeg))
		Expect(read(ctx, p).Status.Targets[0].Attempt.Number).To(BeEquivalentTo(2), "X rejected the unknown media id")
	})

	It("fails permanently if the platform rejects it right after its preparation", func(ctx SpecContext) {
		runManager()
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, "refused", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 400, Times: 3})
		now := read(ctx, p)
		now.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now())
		Expect(k8s.Update(ctx, now)).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Status.Targets[0].Attempt.Number).To(BeEquivalentTo(2), "a new upload is tried once")
	})
})

// events returns the reasons and notes of the events about an object.
func (t team) events(ctx context.Context, about client.Object) (told []string) {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(k8s.List(ctx, &list, client.InNamespace(t.namespace))).To(Succeed())
	for i := range list.Items {
		if list.Items[i].Regarding.UID == about.GetUID() {
			told = append(told, list.Items[i].Reason+": "+list.Items[i].Note)
		}
	}
	return told
}

// holding is a variant of X whose uploads for posts with certain captions block until they are released or cancelled.
type holding struct {
	fast

	mu    sync.Mutex
	gates map[string]chan struct{}
	// underWay counts the running uploads by the text of their posts.
	underWay map[string]int
}

func (h *holding) block(words string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gates[words] = make(chan struct{})
}

func (h *holding) letGo(words string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.gates[words])
	delete(h.gates, words)
}

// count returns the number of running uploads for a caption.
func (h *holding) count(words string) func() int {
	return func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.underWay[words]
	}
}

func (h *holding) enter(words string, n int) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.underWay[words] += n
	return h.gates[words]
}

func (h *holding) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	gate := h.enter(job.Content.Text, 1)
	defer h.enter(job.Content.Text, -1)
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return "", platforms.Errorf(platforms.ClassTransient, "cut off")
		}
	}
	return h.fast.Prepare(ctx, job)
}

var _ = Describe("A preparation in progress", func() {
	var (
		m *manager
		h *holding
	)
	start := func(change ...func(*post.Options)) {
		m = startManager(append(change, func(o *post.Options) {
			inner, _ := o.Platforms[v1alpha1.PlatformX].(fast)
			h = &holding{fast: inner, gates: map[string]chan struct{}{}, underWay: map[string]int{}}
			o.Platforms[v1alpha1.PlatformX] = h
		})...)
	}
	AfterEach(func() { m.stop() })

	It("is cancelled by an edit, and the new content is prepared", func(ctx SpecContext) {
		start()
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		h.block("before")
		p := t.post(ctx, "before", showing("a"), at(10*time.Minute))
		Eventually(h.count("before")).Should(Equal(1))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Targets[0].Caption = "after" })
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		Expect(h.count("before")()).To(BeZero())
	})

	It("is not recorded as complete for the content before an edit", func(ctx SpecContext) {
		start()
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, "first", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		h.block("second")
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Targets[0].Caption = "second" })
		Eventually(h.count("second")).Should(Equal(1))
		Eventually(preparedReason(ctx, p)).ShouldNot(Equal("True Prepared"))
		h.letGo("second")
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
	})

	It("releases its slot if its target is removed from the post while it waits for one", func(ctx SpecContext) {
		start()
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		// The maximum number of one team's concurrent uploads.
		const places = 16
		times := func(n int) func(*v1alpha1.Post) {
			return func(p *v1alpha1.Post) {
				for len(p.Spec.Targets) < n {
					p.Spec.Targets = append(p.Spec.Targets, p.Spec.Targets[0])
				}
			}
		}
		h.block("full")
		t.post(ctx, "full", showing("a"), times(places), at(10*time.Minute))
		Eventually(h.count("full")).Should(Equal(places))
		p := t.post(ctx, "shrinks", showing("a"), times(3), at(9*time.Minute))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		edited := edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Targets = p.Spec.Targets[:1] })
		Eventually(func() int64 { return read(ctx, p).Status.ObservedGeneration }).Should(Equal(edited.Generation))
		h.letGo("full")
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		h.block("full again")
		t.post(ctx, "full again", showing("a"), times(places), at(10*time.Minute))
		Eventually(h.count("full again")).Should(Equal(places))
	})

	It("is named as the reason if a post is published late", func(ctx SpecContext) {
		start(func(o *post.Options) { o.StartingDeadline = time.Second })
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		h.block("too slow")
		p := t.post(ctx, "too slow", showing("a"))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Status.Targets[0].Message).To(ContainSubstring("upload"))
		Eventually(h.count("too slow")).Should(BeZero(), "no upload is waiting")
	})
})

// inStep is a variant of X that prepares every card. The calls for one card on both accounts wait for each other, and
// so do the preparations.
type inStep struct {
	fast

	mu      sync.Mutex
	arrived map[string]int
	both    map[string]chan struct{}
}

func (*inStep) Prepares(platforms.Content) bool { return true }

func (i *inStep) meet(ctx context.Context, where string) {
	i.mu.Lock()
	if i.both[where] == nil {
		i.both[where] = make(chan struct{})
	}
	i.arrived[where]++
	if i.arrived[where] == 2 {
		close(i.both[where])
	}
	both := i.both[where]
	i.mu.Unlock()
	select {
	case <-both:
	case <-ctx.Done():
	}
}

func (i *inStep) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	i.meet(ctx, "prepare "+job.Content.Text)
	return "", nil
}

func (i *inStep) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	i.meet(ctx, "publish "+job.Content.Text)
	return i.fast.Publish(ctx, job)
}

var _ = Describe("The cards of a tree", func() {
	It("are prepared concurrently for all accounts, before the preceding cards are recorded", func(ctx SpecContext) {
		runManager(func(o *post.Options) {
			inner, _ := o.Platforms[v1alpha1.PlatformX].(fast)
			o.Platforms[v1alpha1.PlatformX] = &inStep{fast: inner, arrived: map[string]int{}, both: map[string]chan struct{}{}}
		})
		t := newTeam(ctx)
		t.connect(ctx, "second")
		p := t.post(ctx, "", func(p *v1alpha1.Post) {
			other := p.Spec.Targets[0]
			other.ConnectionRef.Name = "second"
			p.Spec.Targets = append(p.Spec.Targets, other)
		}, cards("one", "two"))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		targets := read(ctx, p).Status.Targets
		Expect(targets[0].Attempt.StartedAt).To(Equal(targets[1].Attempt.StartedAt), "one write claims the second cards of both")
	})
})
