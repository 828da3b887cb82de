// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/suite"
)

// budget limits what the delivery of one kind of post costs the API server. Unlike times, counts are the same on every
// machine. A change that costs more must find a cheaper way, or raise the limit and explain that in the row's name.
type budget struct {
	// writes is the number of the manager's writes to the post. atInstant counts those from the post's due time on, which
	// a crowd makes all at once.
	writes, atInstant int
	// events is the number of the post's watch events, including its creation and users' changes. Every watcher of posts
	// receives them.
	events int
	// bytes holds the stored object's size in each of its phases.
	bytes sizes
}

// sizes are sizes in bytes by phase. The phase of a post that was just created is empty.
type sizes map[v1alpha1.PostPhase]int

// where names the code that determines each cost.
var where = map[string]string{
	"writes":                   "each Write, Claim and Record that posting/delivery/decide.go and targets.go return is one",
	"writes at the instant":    "controllers/post/internal/publish/publish.go claims all targets by one write, and records results that come together by another",
	"watch events":             "every write of the post is one; see the budget for writes, and the clients that change posts",
	"bytes of the stored post": "api/v1alpha1/poststatus_types.go, posting/delivery/describe.go, and metadata.managedFields",
}

// within expects that a cost is within its budget.
func within(what string, measured, most int) {
	GinkgoHelper()
	Expect(measured).To(BeNumerically("<=", most), "the budget for %s is %d, but this delivery needed %d; check: %s", what, most, measured, where[what])
}

// cost is the cost of a delivery so far.
type cost struct {
	atInstant, events int
	bytes             sizes
	finished          bool
}

// add counts a watch event.
func (c *cost) add(event watch.Event) {
	GinkgoHelper()
	object, ok := event.Object.(*unstructured.Unstructured)
	Expect(ok).To(BeTrue(), "got %v", event)
	var post v1alpha1.Post
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &post)).To(Succeed())
	c.events++
	phase := post.Status.Phase
	if phase == v1alpha1.PhaseProcessing || phase == v1alpha1.PhasePosted {
		c.atInstant++
	}
	c.bytes[phase] = max(c.bytes[phase], len(suite.Must(json.Marshal(object.Object))))
	c.finished = post.Status.Finished
}

// fromREST gives a post the metadata of a post that was created through the REST API.
func fromREST(p *v1alpha1.Post) {
	p.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
	p.Annotations = map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(time.Now()).String()}
}

// anyPhase is passed if the user does nothing.
const anyPhase v1alpha1.PostPhase = ""

func drafted(p *v1alpha1.Post) { p.Spec.Draft = true }

var _ = Describe("A delivery's write budget", Ordered, func() {
	var (
		m       *manager
		writes  writeCount
		watcher client.WithWatch
	)
	BeforeAll(func() {
		m = startDisturbed(interceptWrites(&writes), withThreads)
		watcher = suite.Must(client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme}))
	})
	AfterAll(func() { m.stop() })

	// deliver creates a post, lets a user act when it reaches a phase, and returns its cost when it is finished.
	deliver := func(ctx context.Context, t team, when v1alpha1.PostPhase, act func(context.Context, *v1alpha1.Post), change []func(*v1alpha1.Post)) cost {
		GinkgoHelper()
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PostList"))
		events := suite.Must(watcher.Watch(ctx, list, client.InNamespace(t.namespace)))
		defer events.Stop()
		writes.of(t.namespace)
		p := t.post(ctx, "We launched. Thank you to everyone who helped.", append(change, fromREST)...)
		c := cost{bytes: sizes{}}
		for !c.finished {
			var event watch.Event
			Eventually(events.ResultChan()).WithContext(ctx).Should(Receive(&event), "the post is not finished")
			c.add(event)
			if _, reached := c.bytes[when]; reached && act != nil {
				act(ctx, p)
				act = nil
			}
		}
		return c
	}

	DescribeTable("is not exceeded by a post", func(ctx SpecContext, b budget, when v1alpha1.PostPhase, act func(context.Context, *v1alpha1.Post), change ...func(*v1alpha1.Post)) {
		t := newTeam(ctx)
		t.onThreads(ctx, 0)
		file(ctx, t, "picture", "picture.jpg", v1alpha1.MimeJPEG)
		c := deliver(ctx, t, when, act, change)
		made := int(writes.n.Load())
		AddReportEntry("cost", fmt.Sprintf("%d writes, %d at the instant, %d events, bytes %v", made, c.atInstant, c.events, c.bytes))
		within("writes", made, b.writes)
		within("writes at the instant", c.atInstant, b.atInstant)
		within("watch events", c.events, b.events)
		for phase, bytes := range c.bytes {
			within("bytes of the stored post", bytes, b.bytes[phase])
		}
	},
		Entry("with a text, published immediately: a claim and a record",
			budget{writes: 2, atInstant: 2, events: 3, bytes: sizes{"": 1050, v1alpha1.PhaseProcessing: 2300, v1alpha1.PhasePosted: 2400}}, anyPhase, nil),
		Entry("with a text, scheduled: one more write, its acceptance, before its time",
			budget{writes: 3, atInstant: 2, events: 4, bytes: sizes{"": 1100, v1alpha1.PhaseScheduled: 2000, v1alpha1.PhaseProcessing: 2350, v1alpha1.PhasePosted: 2450}}, anyPhase, nil, at(2*time.Second)),
		Entry("to two accounts: one claim for both; simultaneous results share a record, or need two on a busy machine",
			budget{writes: 4, atInstant: 3, events: 5, bytes: sizes{"": 1200, v1alpha1.PhaseScheduled: 2150, v1alpha1.PhaseProcessing: 2850, v1alpha1.PhasePosted: 3150}}, anyPhase, nil, at(2*time.Second), toBoth),
		Entry("with a picture, scheduled: one more write for its preparation, or two on a busy machine",
			budget{writes: 5, atInstant: 2, events: 6, bytes: sizes{"": 1200, v1alpha1.PhaseScheduled: 2400, v1alpha1.PhaseProcessing: 2500, v1alpha1.PhasePosted: 2600}}, anyPhase, nil, at(4*time.Second), showing("picture"), toThreads),
		Entry("that is a draft, and then promoted: the draft's acceptance, and the user's change",
			budget{writes: 3, atInstant: 2, events: 5, bytes: sizes{"": 1100, v1alpha1.PhaseDraft: 1950, v1alpha1.PhaseProcessing: 2300, v1alpha1.PhasePosted: 2400}}, v1alpha1.PhaseDraft,
			func(ctx context.Context, p *v1alpha1.Post) {
				edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Draft = false })
			}, drafted),
		Entry("that is cancelled before its time: no claim",
			budget{writes: 2, atInstant: 0, events: 4, bytes: sizes{"": 1100, v1alpha1.PhaseScheduled: 2000, v1alpha1.PhaseCancelled: 2150}}, v1alpha1.PhaseScheduled,
			func(ctx context.Context, p *v1alpha1.Post) { Expect(cancelPost(ctx, p)).To(Succeed()) }, at(time.Hour)),
		Entry("that is a tree of three cards: each record claims the next card, if it is prepared in time",
			budget{writes: 5, atInstant: 5, events: 6, bytes: sizes{"": 1100, v1alpha1.PhaseProcessing: 2700, v1alpha1.PhasePosted: 2750}}, anyPhase, nil, cards("one", "two", "three")),
	)
})
