// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/platforms"
)

// holding is X with uploads that block until they are released or cancelled, for posts with certain texts.
type holding struct {
	fast

	mu    sync.Mutex
	gates map[string]chan struct{}
	// underWay counts the running uploads by the text of their posts.
	underWay map[string]int
}

func (h *holding) hold(words string) {
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

// count returns the number of running uploads for a text.
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

var _ = Describe("What is being prepared", func() {
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

	It("is cut off by an edit, and what the post says now is prepared", func(ctx SpecContext) {
		start()
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		h.hold("before")
		p := t.post(ctx, "before", showing("a"), at(10*time.Minute))
		Eventually(h.count("before")).Should(Equal(1))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Targets[0].Caption = "after" })
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		Expect(h.count("before")()).To(BeZero())
	})

	It("is not said to be done for what a post said before an edit", func(ctx SpecContext) {
		start()
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, "first", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		h.hold("second")
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Targets[0].Caption = "second" })
		Eventually(h.count("second")).Should(Equal(1))
		Eventually(preparedReason(ctx, p)).ShouldNot(Equal("True Prepared"))
		h.letGo("second")
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
	})

	It("leaves its place to others if its target is taken out of the post while it waits for one", func(ctx SpecContext) {
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
		h.hold("full")
		t.post(ctx, "full", showing("a"), times(places), at(10*time.Minute))
		Eventually(h.count("full")).Should(Equal(places))
		p := t.post(ctx, "shrinks", showing("a"), times(3), at(9*time.Minute))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		edited := edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Targets = p.Spec.Targets[:1] })
		Eventually(func() int64 { return read(ctx, p).Status.ObservedGeneration }).Should(Equal(edited.Generation))
		h.letGo("full")
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		h.hold("full again")
		t.post(ctx, "full again", showing("a"), times(places), at(10*time.Minute))
		Eventually(h.count("full again")).Should(Equal(places))
	})

	It("is named as what kept a post from being published in time", func(ctx SpecContext) {
		start(func(o *post.Options) { o.StartingDeadline = time.Second })
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		h.hold("too slow")
		p := t.post(ctx, "too slow", showing("a"))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Status.Targets[0].Message).To(ContainSubstring("upload"))
		Eventually(h.count("too slow")).Should(BeZero(), "nothing is left to upload for")
	})
})

// inStep is X with a preparation for every card. The calls for one card on both accounts wait for each other, and so do
// the preparations.
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
	It("are prepared side by side for all accounts, before those in front of them are recorded", func(ctx SpecContext) {
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
