// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// twins holds two posts to one account with the same text.
type twins struct {
	team
	a, b *v1alpha1.Post
}

var _ = Describe("An unknown outcome", Ordered, func() {
	var (
		m     *manager
		twice team
		both  *v1alpha1.Post
	)
	BeforeAll(func(ctx SpecContext) {
		m = startManager(func(o *post.Options) { o.StartingDeadline = 8 * time.Second })
		twice = newTeam(ctx)
		both = twice.post(ctx, "same words twice", func(p *v1alpha1.Post) { p.Spec.Targets = append(p.Spec.Targets, p.Spec.Targets[0]) })
	})
	AfterAll(func() { m.stop() })

	It("never assigns one publication to two posts that are looked up concurrently", func(ctx SpecContext) {
		settled := Or(Equal(v1alpha1.PhasePosted), Equal(v1alpha1.PhaseFailed))
		var pairs []twins
		for range 3 {
			t := newTeam(ctx)
			t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
			words := fmt.Sprintf("resent %d", serial.Add(1))
			pairs = append(pairs, twins{t, t.post(ctx, words), t.post(ctx, words)})
		}
		for _, pair := range pairs {
			Eventually(phase(ctx, pair.a)).Should(settled)
			Eventually(phase(ctx, pair.b)).Should(settled)
			idA, idB := read(ctx, pair.a).Status.Targets[0].ExternalID, read(ctx, pair.b).Status.Targets[0].ExternalID
			Expect(idA + idB).NotTo(BeEmpty())
			Expect(idA).NotTo(Equal(idB))
			Expect(pair.team.published(ctx)).To(HaveLen(1))
		}
	})

	It("never assigns one publication to two targets", func(ctx SpecContext) {
		Eventually(phase(ctx, both)).Should(Equal(v1alpha1.PhaseFailed))
		now := read(ctx, both)
		ids := map[string]int{}
		for _, target := range now.Status.Targets {
			if target.ExternalID != "" {
				ids[target.ExternalID]++
			}
		}
		Expect(ids).To(HaveLen(1))
		Expect(ids).To(HaveEach(1))
		Expect(twice.published(ctx)).To(HaveLen(1))
	})

	It("does not retry after the starting deadline", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 4})
		p := t.post(ctx, "too late")
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonRateLimited))
		Eventually(func() error {
			now := read(ctx, p)
			now.Status.Targets[0].TryUntil = v1alpha1.NewTimePtr(time.Now().Add(-time.Hour))
			return k8s.Status().Update(ctx, now)
		}).Should(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		target := read(ctx, p).Status.Targets[0]
		Expect(target.Reason).To(Equal(v1alpha1.ReasonRateLimited), "the platform's reason is preserved")
		Expect(target.Message).To(ContainSubstring("this account has reached X's rate limit"))
		Expect(target.Message).To(ContainSubstring("post again"))
		Expect(target.Message).NotTo(ContainSubstring("Herald tries again"), "no further attempt")
		Expect(t.published(ctx)).To(BeEmpty())
	})

	It("needs a user if it is too late for another call", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 4})
		p := t.post(ctx, "in doubt and too late")
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonRateLimited))
		since := v1alpha1.NewTime(time.Now().Add(-2 * time.Hour))
		Eventually(func() error {
			now := read(ctx, p)
			now.Status.Targets[0].TryUntil = v1alpha1.NewTimePtr(time.Now().Add(-time.Hour))
			now.Status.Targets[0].Attempt.UnknownSince = &since
			return k8s.Status().Update(ctx, now)
		}).Should(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		target := read(ctx, p).Status.Targets[0]
		Expect(target.Reason).To(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(target.Message).To(And(ContainSubstring("it is unknown whether"), ContainSubstring("this account has reached X's rate limit")), "the message contains both")
		Expect(target.Message).NotTo(ContainSubstring("post again"), "another call might publish the post twice")
		Expect(question(ctx, p)()).To(ContainSubstring("sent after "+since.String()), "the first call is unknown")
		Expect(read(ctx, p).Status.Finished).To(BeFalse(), "the post waits for a user")
		settle(ctx, p, "0=not-sent")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"in doubt and too late"}))
	})

	It("accepts a restored post with a future time", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "restored in time", at(6*time.Second), func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.BornAnnotation: time.Now().Add(-24 * time.Hour).Format(time.RFC3339)}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
	})
})

var _ = Describe("The end of the starting deadline", Ordered, func() {
	var (
		m               *manager
		lonely          team
		nobody          *v1alpha1.Post
		called, instead team
		moved           *v1alpha1.Post
		silent          team
		again           *v1alpha1.Post
	)
	// moveAway makes a call that gets no response, and then gives the connection's name to another account.
	moveAway := func(ctx SpecContext) {
		called = newTeam(ctx)
		called.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		called.fault(ctx, sandboxtest.Fault{Operation: "list", Kind: "status", Status: 503, Times: 50})
		moved = called.post(ctx, "moved away")
		Eventually(func() []string { return called.published(ctx) }).Should(HaveLen(1))

		key := client.ObjectKey{Namespace: called.namespace, Name: "x"}
		Expect(k8s.Delete(ctx, &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}})).To(Succeed())
		Expect(k8s.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}})).To(Succeed())
		Eventually(func() bool { return apierrors.IsNotFound(k8s.Get(ctx, key, &v1alpha1.Connection{})) }).Should(BeTrue())
		instead = team{namespace: called.namespace, account: called.connect(ctx, "x")}
	}
	BeforeAll(func(ctx SpecContext) {
		m = startManager(func(o *post.Options) { o.StartingDeadline = 5 * time.Second })
		// Their deadlines pass while the first spec waits for its own.
		moveAway(ctx)
		lonely = newTeam(ctx)
		nobody = lonely.post(ctx, "nobody", func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "never" })
		silent = newTeam(ctx)
		silent.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		silent.fault(ctx, sandboxtest.Fault{Operation: "list", Kind: "status", Status: 503, Times: 50})
		again = silent.post(ctx, "again, please", func(p *v1alpha1.Post) { p.Spec.OnUnknownOutcome = v1alpha1.OnUnknownRetry })
	})
	AfterAll(func() { m.stop() })

	It("moves when a waiting post is rescheduled", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.setReady(ctx, "x", metav1.ConditionFalse, v1alpha1.ReasonRevoked, t.account.Username)
		p := t.post(ctx, "postponed", at(time.Second))
		Eventually(func() *v1alpha1.Time {
			targets := read(ctx, p).Status.Targets
			if len(targets) == 0 || targets[0].Reason != v1alpha1.ReasonConnectionNotReady {
				return nil
			}
			return targets[0].TryUntil
		}).ShouldNot(BeNil())
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(7 * time.Second)) })
		Eventually(func() *v1alpha1.Time { return read(ctx, p).Status.Targets[0].TryUntil }).Should(BeNil())
		t.setReady(ctx, "x", metav1.ConditionTrue, v1alpha1.ReasonConnected, t.account.Username)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
	})

	It("leaves the unknown outcome to the account that was called", func(ctx SpecContext) {
		Eventually(func() string { return readyReason(ctx, moved) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(read(ctx, moved).Status.Targets[0].Message).To(ContainSubstring(called.account.ID), "the message names the account to check")
		Expect(instead.published(ctx)).To(BeEmpty())
		settle(ctx, moved, "0=posted:42")
		Eventually(phase(ctx, moved)).Should(Equal(v1alpha1.PhasePosted))
		Expect(instead.published(ctx)).To(BeEmpty())
	})

	It("needs a user for a target that was to be retried", func(ctx SpecContext) {
		Eventually(func() string { return readyReason(ctx, again) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(commands(question(ctx, again)())).To(HaveLen(2))
		Expect(read(ctx, again).Status.Targets[0].Attempt.Number).To(BeEquivalentTo(1))
		settle(ctx, again, "0=posted:42")
		Eventually(phase(ctx, again)).Should(Equal(v1alpha1.PhasePosted))
		Expect(silent.published(ctx)).To(HaveLen(1))
	})

	It("fails a post whose connection is never created", func(ctx SpecContext) {
		Eventually(func() bool { return read(ctx, nobody).Status.Finished }).Should(BeTrue())
		Expect(readyReason(ctx, nobody)).To(Equal(v1alpha1.ReasonMissedSchedule))
		lonely.connect(ctx, "never")
		Consistently(phase(ctx, nobody), time.Second).Should(Equal(v1alpha1.PhaseFailed))
	})
})

// byHand publishes on X without Herald, through the account's own app, and returns the id.
func (t team) byHand(ctx context.Context, text string) string {
	GinkgoHelper()
	body := suite.Must(json.Marshal(map[string]string{"text": text}))
	return published(ctx, t.account, "/x/2/tweets", "application/json", string(body))
}

// published makes a call to the sandbox as an account, and returns the id in the response.
func published(ctx context.Context, account sandboxtest.Account, path, kind, body string) string {
	GinkgoHelper()
	request := suite.Must(http.NewRequestWithContext(ctx, http.MethodPost, platform.URL+path, strings.NewReader(body)))
	request.Header.Set("Authorization", "Bearer "+account.AccessToken)
	request.Header.Set("Content-Type", kind)
	answer, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(answer.Body.Close()).To(Succeed()) }()
	var created struct {
		ID   string `json:"id"`
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	Expect(json.NewDecoder(answer.Body).Decode(&created)).To(Succeed())
	Expect(created.ID+created.Data.ID).NotTo(BeEmpty(), answer.Status)
	return created.ID + created.Data.ID
}

// refreshCandidates requests a new list of candidates.
func refreshCandidates(ctx context.Context, p *v1alpha1.Post) {
	GinkgoHelper()
	now := read(ctx, p)
	base := now.DeepCopy()
	metav1.SetMetaDataAnnotation(&now.ObjectMeta, v1alpha1.ListCandidatesAnnotation, "now")
	Expect(k8s.Patch(ctx, now, client.MergeFrom(base))).To(Succeed())
	Eventually(func() map[string]string { return read(ctx, p).Annotations }).ShouldNot(HaveKey(v1alpha1.ListCandidatesAnnotation))
}

// offered returns the ids of the first target's candidates.
func offered(ctx context.Context, p *v1alpha1.Post) (ids []string) {
	for _, c := range read(ctx, p).Status.Targets[0].Candidates {
		ids = append(ids, c.ExternalID)
	}
	return ids
}

var _ = Describe("The candidates for an undecided target", Ordered, func() {
	BeforeAll(func() {
		runManager(func(o *post.Options) {
			o.StartingDeadline = 8 * time.Second
			o.Platforms[v1alpha1.PlatformThreads] = threads.New(threads.Config{Config: platforms.Config{APIURL: platform.URL + "/threads"}}, transport.New(transport.Options{Registerer: prometheus.NewRegistry()}))
		})
	})

	It("are stored at the end of the lookup, without other posts' publications, until the answer", func(ctx SpecContext) {
		t := newTeam(ctx)
		posted(ctx, t.post(ctx, "another one of Herald"))
		twin := t.byHand(ctx, "twin  words") // with two spaces X accepts both, and a lookup finds both
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		p := t.post(ctx, "twin words")
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))

		target := read(ctx, p).Status.Targets[0]
		Expect(target.Candidates).To(HaveLen(2))
		Expect(target.Candidates[1].ExternalID).To(Equal(twin), "candidates are sorted by time")
		own := target.Candidates[0]
		Expect(own.Text).To(Equal("twin words"))
		Expect(own.PostedAt).NotTo(BeNil())
		Expect(own.ExternalURL).To(ContainSubstring("/status/" + own.ExternalID))

		settle(ctx, p, "0=posted:"+own.ExternalURL+"?s=20")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		target = read(ctx, p).Status.Targets[0]
		Expect(target.ExternalID).To(Equal(own.ExternalID))
		Expect(target.ExternalURL).To(Equal(own.ExternalURL))
		Expect(target.PostedAt.Time).To(BeTemporally("==", own.PostedAt.Time))
		Expect(target.Unconfirmed).To(BeFalse(), "X confirms the author")
		Expect(target.Candidates).To(BeEmpty())
		Expect(publishesBy(t.account)).To(Equal(3), "the user's own post is among them")
	})

	It("are listed again on request", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "in doubt", restored)
		Eventually(question(ctx, p)).ShouldNot(BeEmpty())
		refreshCandidates(ctx, p)
		Expect(offered(ctx, p)).To(BeEmpty(), "the account has no posts")
		id := t.byHand(ctx, "in doubt")
		refreshCandidates(ctx, p)
		Expect(offered(ctx, p)).To(Equal([]string{id}))
		By("the platform being unavailable")
		t.fault(ctx, sandboxtest.Fault{Operation: "list", Kind: "status", Status: 503, Times: 100})
		refreshCandidates(ctx, p)
		Expect(offered(ctx, p)).To(Equal([]string{id}), "known candidates remain")
		settle(ctx, p, "0=posted:"+id)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(read(ctx, p).Status.Targets[0].ExternalURL).To(ContainSubstring("/status/"+id), "the list has the address")
	})

	It("are not needed for a post with known outcomes", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "waits", at(time.Hour))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		refreshCandidates(ctx, p)
		Expect(offered(ctx, p)).To(BeEmpty())
		Expect(phase(ctx, p)()).To(Equal(v1alpha1.PhaseScheduled))
	})

	It("are not required for an answer: the publication suffices", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "seen by somebody", restored)
		Eventually(question(ctx, p)).ShouldNot(BeEmpty())
		settle(ctx, p, "0=posted")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		now := read(ctx, p)
		Expect(now.Status.Targets[0].ExternalID + now.Status.Targets[0].ExternalURL).To(BeEmpty())
		Expect(now.Status.Targets[0].Unconfirmed).To(BeTrue())
		Expect(now.Status.Finished).To(BeTrue())
		Expect(t.published(ctx)).To(BeEmpty())
	})

	It("resolve the id of a URL with a short code", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.connectTo(ctx, v1alpha1.PlatformThreads, "threads", fmt.Sprintf("17%08d", serial.Add(1)), map[string]any{"processing_ms": 0, "listing_lag_ms": 0})
		p := t.post(ctx, "on Threads", restored, func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "threads" })
		Eventually(question(ctx, p)).ShouldNot(BeEmpty())
		const form = "application/x-www-form-urlencoded"
		container := published(ctx, account, "/threads/v1.0/"+account.ID+"/threads", form, url.Values{"media_type": {"TEXT"}, "text": {"on Threads"}}.Encode())
		id := published(ctx, account, "/threads/v1.0/"+account.ID+"/threads_publish", form, url.Values{"creation_id": {container}}.Encode())
		posts := suite.Must(platform.Posts(ctx, "threads", account.ID))
		Expect(posts).To(HaveLen(1))

		By("a URL that does not belong to the account")
		settle(ctx, p, "0=posted:https://www.threads.com/@acme/post/NoSuchPost1")
		Eventually(saidWrong(ctx, p)).Should(ContainSubstring("none of the account's latest posts has this URL"))
		// The event is emitted before the status is written.
		Eventually(func() string { return read(ctx, p).Status.Targets[0].AnswerProblem }).Should(ContainSubstring("has this URL"))
		Expect(readyReason(ctx, p)).To(Equal(v1alpha1.ReasonOutcomeUnknown))

		By("the post's own URL")
		settle(ctx, p, "0=posted:"+posts[0].URL)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		target := read(ctx, p).Status.Targets[0]
		Expect(target.ExternalID).To(Equal(id))
		Expect(target.ExternalURL).To(Equal(posts[0].URL))
		Expect(target.AnswerProblem).To(BeEmpty())
	})
})
