// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// fastPreparer is a variant of Threads with delays that are short enough for tests.
type fastPreparer struct {
	platforms.Publisher
	platforms.Preparer
}

func (f fastPreparer) Capabilities() platforms.Capabilities {
	limits := f.Publisher.Capabilities()
	limits.CallTimeout = 2 * time.Second
	return limits
}

// withThreads adds Threads to a manager.
func withThreads(o *post.Options) {
	p := threads.New(threads.Config{Config: platforms.Config{APIURL: platform.URL + "/threads", ListingLag: 500 * time.Millisecond}}, transport.New(transport.Options{}))
	o.Platforms[v1alpha1.PlatformThreads] = fastPreparer{p, p}
}

// onThreads creates a Threads account and a ready connection to it. processing is the time that its containers take.
func (t team) onThreads(ctx context.Context, processing time.Duration) sandboxtest.Account {
	GinkgoHelper()
	settings := map[string]any{"processing_ms": processing.Milliseconds()}
	return t.connectTo(ctx, v1alpha1.PlatformThreads, "threads", fmt.Sprintf("24%08d", serial.Add(1)), settings)
}

func toThreads(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "threads" }

func toBoth(p *v1alpha1.Post) {
	second := p.Spec.Targets[0]
	second.ConnectionRef.Name = "threads"
	p.Spec.Targets = append(p.Spec.Targets, second)
}

// shown returns the captions that a Threads account has published.
func shown(ctx context.Context, account sandboxtest.Account) []string {
	posts := suite.Must(platform.Posts(ctx, "threads", account.ID))
	texts := []string{}
	for _, p := range posts {
		texts = append(texts, p.Text)
	}
	return texts
}

// made returns the number of created containers.
func made(ctx context.Context) int {
	calls := suite.Must(platform.Calls(ctx, "threads"))
	return calls["create"]
}

func disturb(ctx context.Context, account sandboxtest.Account, f sandboxtest.Fault) {
	f.Platform, f.Account, f.Times = "threads", account.ID, 1
	Expect(platform.Fault(ctx, f)).To(Succeed())
}

// publishManually publishes a text post without Herald, and returns its container.
func publishManually(ctx context.Context, account sandboxtest.Account, text string) string {
	p := threads.New(threads.Config{Config: platforms.Config{APIURL: platform.URL + "/threads"}}, transport.New(transport.Options{}))
	job := platforms.Job{
		Account: platforms.Account{ID: account.ID, Token: platforms.Token{Access: account.AccessToken}},
		Content: platforms.Content{Category: v1alpha1.CategoryText, Text: text},
	}
	var failed *platforms.Error
	job.Checkpoint, failed = p.Prepare(ctx, job)
	Expect(failed).NotTo(HaveOccurred())
	Expect(p.Publish(ctx, job).Outcome).To(Equal(platforms.Posted))
	return job.Checkpoint
}

var _ = Describe("A platform that publishes in two steps", Ordered, func() {
	var (
		m      *manager
		writes writeCount
		// One post takes a long time on Threads. Two specs check it, and others run in between.
		slow        *v1alpha1.Post
		slowAccount sandboxtest.Account
		slowMade    int
	)
	BeforeAll(func() { m = startDisturbed(interceptWrites(&writes), withThreads) })
	AfterAll(func() { m.stop() })

	It("needs as many writes as a single-step publication", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.onThreads(ctx, 300*time.Millisecond)
		writes.of(t.namespace)
		p := posted(ctx, t.post(ctx, "two steps", toThreads))
		Expect(writes.n.Load()).To(BeEquivalentTo(2), "a claim with the preparation, and a record")
		Expect(shown(ctx, account)).To(Equal([]string{"two steps"}))
		target := read(ctx, p).Status.Targets[0]
		Expect(target.Attempt.Checkpoint).NotTo(BeEmpty())
		Expect(target.Attempt.Checkpoint).NotTo(Equal(target.ExternalID))
		Expect(target.ExternalURL).To(ContainSubstring("/@" + account.Username + "/post/"))
	})

	It("is claimed together with the other targets", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.onThreads(ctx, 300*time.Millisecond)
		writes.of(t.namespace)
		posted(ctx, t.post(ctx, "both", toBoth))
		Expect(shown(ctx, account)).To(Equal([]string{"both"}))
		Expect(t.published(ctx)).To(Equal([]string{"both"}))
		Expect(writes.n.Load()).To(BeNumerically("<=", 3), "a claim, and a record for each target")
	})

	It("does not delay the other targets for long", func(ctx SpecContext) {
		t := newTeam(ctx)
		slowAccount = t.onThreads(ctx, 5*time.Second)
		slow = t.post(ctx, "slow and fast", toBoth)
		Eventually(func() []string { return t.published(ctx) }).WithTimeout(5 * time.Second).Should(Equal([]string{"slow and fast"}))
		Expect(shown(ctx, slowAccount)).To(BeEmpty())
		slowMade = containersOf(slowAccount)
	})

	It("reports its progress while a preparation takes long", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.onThreads(ctx, time.Hour)
		p := t.post(ctx, "takes an hour", toThreads)
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonPreparing))
		now := read(ctx, p)
		Expect(now.Status.Phase).To(Equal(v1alpha1.PhaseProcessing))
		Expect(now.Status.Platforms).To(Equal("threads"))
		Expect(now.Status.Targets[0].Message).To(ContainSubstring("threads"))
	})

	It("prepares each post once, however long it waits for its turn", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.onThreads(ctx, 0)
		before := made(ctx)
		var posts []*v1alpha1.Post
		for i := range 12 {
			posts = append(posts, t.post(ctx, fmt.Sprintf("in line %d", i), toThreads, at(time.Second)))
		}
		for _, p := range posts {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
		Expect(shown(ctx, account)).To(HaveLen(12))
		Expect(made(ctx) - before).To(Equal(12))
	})

	// All posts are sent concurrently, each on its own account.
	Context("ends every fault in one publication, or in a failure with a reason", func() {
		type row struct {
			reason         string
			fault          sandboxtest.Fault
			phase          v1alpha1.PostPhase
			attempts, made int
		}
		rows := []row{
			{"published, response lost: the container reports it", sandboxtest.Fault{Operation: "publish", Kind: "drop_after"}, v1alpha1.PhasePosted, 1, 1},
			{"published, responded with 500: found by a lookup", sandboxtest.Fault{Operation: "publish", Kind: "error_after", Status: 500}, v1alpha1.PhasePosted, 1, 1},
			{"not published, response lost: the container proves it, and a second call publishes it", sandboxtest.Fault{Operation: "publish", Kind: "drop_before"}, v1alpha1.PhasePosted, 2, 1},
			{"503 without effect: proved absent, sent again", sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 503}, v1alpha1.PhasePosted, 2, 1},
			{"slower than the call's timeout, but published", sandboxtest.Fault{Operation: "publish", Kind: "delay", DelayMS: 2300}, v1alpha1.PhasePosted, 1, 1},
			{"rejected permanently", sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 400}, v1alpha1.PhaseFailed, 1, 1},
			{"container not created: retried without an attempt", sandboxtest.Fault{Operation: "create", Kind: "status", Status: 503}, v1alpha1.PhasePosted, 1, 2},
			{"container created, response lost: another one is created", sandboxtest.Fault{Operation: "create", Kind: "drop_after"}, v1alpha1.PhasePosted, 1, 2},
			{"container rejected permanently: the target is not claimed", sandboxtest.Fault{Operation: "create", Kind: "status", Status: 400}, v1alpha1.PhaseFailed, 0, 1},
			{"state of the container unknown: retried", sandboxtest.Fault{Operation: "status", Kind: "status", Status: 500}, v1alpha1.PhasePosted, 1, 2},
		}
		type begun struct {
			account sandboxtest.Account
			post    *v1alpha1.Post
		}
		posts := make([]begun, len(rows))
		BeforeAll(func(ctx SpecContext) {
			for i, row := range rows {
				t := newTeam(ctx)
				account := t.onThreads(ctx, 0)
				disturb(ctx, account, row.fault)
				posts[i] = begun{account, t.post(ctx, "disturbed", toThreads)}
			}
		})
		for i, row := range rows {
			It(row.reason, func(ctx SpecContext) {
				account, p := posts[i].account, posts[i].post
				Eventually(phase(ctx, p)).Should(Equal(row.phase))
				target := read(ctx, p).Status.Targets[0]
				attempts := 0
				if target.Attempt != nil {
					attempts = int(target.Attempt.Number)
				}
				Expect(attempts).To(Equal(row.attempts))
				Expect(containersOf(account)).To(Equal(row.made), "created containers")
				if row.phase == v1alpha1.PhasePosted {
					Expect(shown(ctx, account)).To(Equal([]string{"disturbed"}))
					Expect(target.ExternalID).NotTo(BeEmpty())
					return
				}
				Expect(shown(ctx, account)).To(BeEmpty())
				Expect(target.Message).To(ContainSubstring("Threads"))
			})
		}
	})

	It("requests a check of the connection if the token is rejected during preparation", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.onThreads(ctx, 0)
		disturb(ctx, account, sandboxtest.Fault{Operation: "create", Kind: "token_expired"})
		p := t.post(ctx, "renewed before", toThreads)
		Eventually(func() string {
			var conn v1alpha1.Connection
			Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "threads"}, &conn)).To(Succeed())
			return conn.Annotations[v1alpha1.ProbeAnnotation]
		}).ShouldNot(BeEmpty())
		t.setReady(ctx, "threads", metav1.ConditionTrue, v1alpha1.ReasonConnected, account.Username)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(shown(ctx, account)).To(Equal([]string{"renewed before"}))
	})

	It("waits for a preparation that started concurrently with a faster target", func(ctx SpecContext) {
		Eventually(phase(ctx, slow)).Should(Equal(v1alpha1.PhasePosted))
		Expect(shown(ctx, slowAccount)).To(Equal([]string{"slow and fast"}))
		Expect(containersOf(slowAccount)).To(Equal(slowMade), "no further container was created")
	})

	It("detects, before it sends again, that an earlier call has succeeded after all", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.onThreads(ctx, 0)
		var conn v1alpha1.Connection
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "threads"}, &conn)).To(Succeed())
		const text = "said not to be there"
		start := v1alpha1.NewTime(time.Now())
		checkpoint := publishManually(ctx, account, text)

		// The status after a response was lost and a user resolved that nothing was published.
		p := t.post(ctx, text, toThreads, at(time.Hour))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		now := read(ctx, p)
		target := &now.Status.Targets[0]
		target.Phase, target.Reason = v1alpha1.PhaseProcessing, v1alpha1.ReasonProcessing
		target.TryUntil = v1alpha1.NewTimePtr(time.Now().Add(time.Hour))
		target.Attempt = &v1alpha1.Attempt{
			Number: 1, ID: "lost", StartedAt: start, SendBefore: start, EndedAt: &start, Outcome: v1alpha1.OutcomeNotSent, AccountID: account.ID,
			ContentHash: attempt.ContentHash(string(conn.UID), account.ID, text), Checkpoint: checkpoint,
		}
		Expect(k8s.Status().Update(ctx, now)).To(Succeed())

		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(read(ctx, p).Status.Targets[0].Attempt.Number).To(BeEquivalentTo(2), "an attempt was opened, to look")
		Expect(shown(ctx, account)).To(HaveLen(1), "the visible post was not published again")
	})
})
