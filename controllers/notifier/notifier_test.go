// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/suite"
)

const (
	delivering = "True Delivering pending=0"
	failing    = " failing=the receiver does not accept notifications: "
)

var _ = Describe("A Notifier", func() {
	It("reports posts, accounts and files, and nothing from before its creation", func(ctx SpecContext) {
		t, s := newTeam(ctx), newServer()
		t.clock.SetTime(time.Now().Add(-time.Hour))
		t.post(ctx, "earlier", v1alpha1.PhasePosted)
		t.notifier(ctx, "all", s)
		t.run(s)
		t.eventually(t.state(ctx, "all"), time.Second).Should(Equal(delivering))

		t.post(ctx, "good", v1alpha1.PhasePosted)
		t.post(ctx, "bad", v1alpha1.PhaseFailed)
		t.post(ctx, "cancelled", v1alpha1.PhaseCancelled)
		t.undecided(ctx, "lost")
		t.broken(ctx, "acme-x")
		t.rejected(ctx, "cat")
		t.receives(s).Should(ConsistOf("post.posted good", "post.failed bad", "post.needs_attention lost", "connection.broken acme-x", "media.rejected cat"))
		i := slices.IndexFunc(s.requests(), func(r request) bool { return r.body.Data.ID == "good" })
		Expect(s.requests()[i].body.Data.URL).To(Equal("https://herald.example.com/teams/" + t.namespace + "/posts/good"))
		t.eventually(func() any { return t.stored(ctx, "all").Status.Deliveries }, time.Second).Should(HaveLen(5))
		Expect(t.state(ctx, "all")()).To(Equal(delivering))
	})

	It("reports only the events that its spec names", func(ctx SpecContext) {
		t, s := newTeam(ctx), newServer()
		t.notifier(ctx, "failures", s, func(n *v1alpha1.NotifierSpec) { n.Events = []v1alpha1.NotifierEvent{v1alpha1.EventPostFailed} })
		t.run(s)
		t.post(ctx, "good", v1alpha1.PhasePosted)
		t.post(ctx, "bad", v1alpha1.PhaseFailed)
		t.receives(s).Should(Equal([]string{"post.failed bad"}))
	})

	It("does not wait for another receiver that hangs", func(ctx SpecContext) {
		t, slow, quick := newTeam(ctx), newServer(), newServer()
		slow.answers(hangs)
		t.notifier(ctx, "slow", slow)
		t.notifier(ctx, "quick", quick)
		t.run(slow, quick)
		t.post(ctx, "one", v1alpha1.PhasePosted)
		t.post(ctx, "two", v1alpha1.PhasePosted)
		t.receives(quick).Should(ConsistOf("post.posted one", "post.posted two"))
		t.eventually(t.state(ctx, "slow"), time.Second).Should(Equal("True Delivering pending=2" + failing + "it took too long to respond"))
	})

	It("retries a receiver that fails for an hour with pauses, and then sends in order", func(ctx SpecContext) {
		t, s := newTeam(ctx), newServer()
		s.answers(status(http.StatusInternalServerError))
		t.notifier(ctx, "hour", s)
		t.run(s)
		p := t.undecided(ctx, "first")
		t.receives(s).ShouldNot(BeEmpty())
		t.eventually(t.state(ctx, "hour"), time.Second).Should(Equal("True Delivering pending=1" + failing + "it responded with status 500"))
		begun := t.clock.Now()
		t.clock.Step(2 * time.Second)
		t.finish(ctx, p, v1alpha1.PhasePosted)
		t.eventually(func() any { return t.clock.Since(begun) }, time.Minute).Should(BeNumerically(">", time.Hour))
		attempts := len(s.requests())
		Expect(attempts).To(BeNumerically("<", 20), "the receiver is not called all the time")
		Expect(s.received()).To(HaveEach("post.needs_attention first"), "later events of the post wait")

		s.answers(nil)
		t.eventually(func() any { return s.received()[attempts:] }, time.Minute).Should(HaveLen(2))
		Expect(s.received()[attempts:]).To(Equal([]string{"post.needs_attention first", "post.posted first"}))
		t.eventually(t.state(ctx, "hour"), time.Second).Should(Equal(delivering))
	})

	It("stops if the receiver is gone, until its address changes", func(ctx SpecContext) {
		t, s := newTeam(ctx), newServer()
		s.answers(status(http.StatusGone))
		t.notifier(ctx, "gone", s)
		stop := t.run(s)
		t.post(ctx, "one", v1alpha1.PhasePosted)
		t.eventually(t.state(ctx, "gone"), time.Second).Should(HavePrefix("False ReceiverGone pending=1"))
		s.answers(nil)
		stop()
		t.run(s)
		t.eventually(func() any { return t.clock.Since(t.stored(ctx, "gone").CreationTimestamp.Time) }, 10*time.Minute).Should(BeNumerically(">", 3*time.Hour))
		Expect(s.received()).To(HaveLen(1), "a new manager does not call it more often than the previous one")
		t.edit(ctx, "gone", func(n *v1alpha1.Notifier) { n.Spec.URL = s.URL + "/again" })
		t.receives(s).Should(Equal([]string{"post.posted one", "post.posted one"}))
	})

	It("repeats a notification whose response was lost, with the same id", func(ctx SpecContext) {
		t, s := newTeam(ctx), newServer()
		s.answers(func(w http.ResponseWriter, r *http.Request) {
			s.answers(nil)
			hangs(w, r)
		})
		t.notifier(ctx, "lost", s)
		t.run(s)
		t.post(ctx, "one", v1alpha1.PhasePosted)
		t.receives(s).Should(HaveLen(2))
		got := s.requests()
		Expect(got[0].ID).To(Equal(got[1].ID))
		Expect(got[0].body).To(Equal(got[1].body))
	})

	It("waits for its Secret, its team and the end of its suspension", func(ctx SpecContext) {
		t, s := newTeam(ctx), newServer()
		t.owned.Store(false)
		t.notifier(ctx, "waits", s, func(n *v1alpha1.NotifierSpec) { n.Suspend, n.SecretRef.Name = true, "later" })
		t.run(s)
		t.eventually(t.state(ctx, "waits"), time.Second).Should(Equal("False NoTeam pending=0"))
		t.post(ctx, "one", v1alpha1.PhasePosted)
		t.owned.Store(true)
		t.eventually(t.state(ctx, "waits"), time.Second).Should(Equal("True Suspended pending=1"))
		t.edit(ctx, "waits", func(n *v1alpha1.Notifier) { n.Spec.Suspend = false })
		t.eventually(t.state(ctx, "waits"), time.Second).Should(Equal("False SecretNotFound pending=1"))
		Expect(k8s.Create(ctx, t.signing("later", "whsec_short"))).To(Succeed())
		t.eventually(t.state(ctx, "waits"), time.Second).Should(Equal("False SecretInvalid pending=1"))
		Expect(s.received()).To(BeEmpty())
		Expect(k8s.Update(ctx, t.signing("later", secret))).To(Succeed())
		t.receives(s).Should(Equal([]string{"post.posted one"}))
	})

	It("is counted as failing until it is suspended, and as given up after a day", func(ctx SpecContext) {
		t, s := newTeam(ctx), newServer()
		s.answers(status(http.StatusInternalServerError))
		t.notifier(ctx, "counted", s)
		t.run(s)
		t.post(ctx, "one", v1alpha1.PhasePosted)
		failing := func() any { return t.metric("herald_notifiers_failing", "") }
		t.eventually(failing, time.Second).Should(Equal(1.0))
		Expect(t.metric("herald_notification_oldest_seconds", "")).To(BeNumerically(">=", 1))
		Expect(t.metric("herald_notifications_total", "failed")).To(BeNumerically(">=", 1))
		t.edit(ctx, "counted", func(n *v1alpha1.Notifier) { n.Spec.Suspend = true })
		t.eventually(failing, 0).Should(BeZero())
		Expect(t.metric("herald_notification_oldest_seconds", "")).To(BeZero())
		Expect(t.metric("herald_notifications_total", "expired")).To(BeZero())
		t.eventually(func() any { return t.metric("herald_notifications_total", "expired") }, time.Hour).Should(Equal(1.0))
	})

	It("sends text to an address of Slack, which is in a Secret", func(ctx SpecContext) {
		t, s, bodies := newTeam(ctx), newServer(), make(chan string, 10)
		slack := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			defer GinkgoRecover()
			bodies <- string(suite.Must(io.ReadAll(r.Body)))
		}))
		DeferCleanup(slack.Close)
		address := t.signing("slack", "")
		address.StringData = map[string]string{v1alpha1.NotifierURLKey: slack.URL}
		Expect(k8s.Create(ctx, address)).To(Succeed())
		t.notifier(ctx, "slack", s, func(n *v1alpha1.NotifierSpec) { n.Format, n.URL, n.SecretRef.Name = v1alpha1.FormatSlack, "", "slack" })
		t.run(s)
		t.post(ctx, "one", v1alpha1.PhasePosted)
		t.eventually(func() any { return len(bodies) }, time.Second).Should(Equal(1))
		Expect(<-bodies).To(ContainSubstring("Published: hello"))
	})

	It("sends emails once the installation has a mail server", func(ctx SpecContext) {
		t, s, box := newTeam(ctx), newServer(), make(mailbox, 10)
		t.notifier(ctx, "mail", s, func(n *v1alpha1.NotifierSpec) {
			n.Format, n.URL, n.SecretRef, n.Email = v1alpha1.FormatEmail, "", nil, &v1alpha1.NotifierEmail{To: []string{"ada@example.com"}}
		})
		stop := t.run()
		t.post(ctx, "one", v1alpha1.PhasePosted)
		t.eventually(t.state(ctx, "mail"), time.Second).Should(Equal("False EmailNotConfigured pending=1"))
		stop()
		t.mailer = box
		t.run()
		t.eventually(func() any { return len(box) }, time.Second).Should(Equal(1))
		Expect(<-box).To(Equal("to [ada@example.com]: Published: hello"))
		Expect(t.stored(ctx, "mail").Status.Deliveries[0].Event).To(Equal(v1alpha1.EventPostPosted))
	})

	It("sends a notification again on request", func(ctx SpecContext) {
		t, s := newTeam(ctx), newServer()
		t.notifier(ctx, "again", s)
		t.run(s)
		t.post(ctx, "one", v1alpha1.PhasePosted)
		t.receives(s).Should(HaveLen(1))
		id := s.requests()[0].ID
		request := func(value string) {
			t.edit(ctx, "again", func(n *v1alpha1.Notifier) { n.Annotations = map[string]string{v1alpha1.ResendAnnotation: value} })
			t.eventually(func() any { return t.stored(ctx, "again").Status.LastHandledResend }, time.Second).Should(Equal(value))
		}
		request(id)
		t.receives(s).Should(HaveLen(2))
		request("msg_unknown")
		request(id + " once more")
		t.receives(s).Should(HaveLen(3))
		Expect(s.requests()).To(HaveEach(HaveField("ID", id)))
	})
})

var _ = Describe("A restart of the manager", func() {
	It("loses no event of its downtime", func(ctx SpecContext) {
		t, s := newTeam(ctx), newServer()
		t.notifier(ctx, "n", s)
		stop := t.run(s)
		t.post(ctx, "before", v1alpha1.PhasePosted)
		t.receives(s).Should(HaveLen(1))
		stop()
		p := t.post(ctx, "meanwhile", v1alpha1.PhaseFailed)
		t.undecided(ctx, "lost")
		Expect(p.Status.Finished).To(BeTrue())
		t.run(s)
		t.receives(s).Should(ConsistOf("post.posted before", "post.failed meanwhile", "post.needs_attention lost"))
	})

	It("repeats a sent but unrecorded notification, with the same id", func(ctx SpecContext) {
		t, s := newTeam(ctx), newServer()
		t.notifier(ctx, "n", s)
		t.client = interceptor.NewClient(k8s, interceptor.Funcs{
			SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
				return errors.New("the process ended")
			},
		})
		stop := t.run(s)
		t.post(ctx, "one", v1alpha1.PhasePosted)
		t.receives(s).Should(HaveLen(1))
		stop()
		t.client = nil
		t.run(s)
		t.receives(s).Should(HaveLen(2))
		Expect(s.requests()[0].ID).To(Equal(s.requests()[1].ID))
	})

	It("reports a post that was deleted before the receiver responded", func(ctx SpecContext) {
		t, s := newTeam(ctx), newServer()
		s.answers(status(http.StatusBadGateway))
		t.notifier(ctx, "n", s)
		stop := t.run(s)
		p := t.post(ctx, "one", v1alpha1.PhasePosted)
		t.eventually(t.state(ctx, "n"), time.Second).Should(HavePrefix("True Delivering pending=1" + failing))
		stop()
		Expect(k8s.Delete(ctx, p)).To(Succeed())
		s.answers(nil)
		t.run(s)
		t.eventually(t.state(ctx, "n"), time.Second).Should(Equal(delivering))
		got := s.requests()
		last := got[len(got)-1]
		Expect(last.ID).To(Equal(got[0].ID))
		Expect(last.body.Data.Deleted).To(BeTrue())
		Expect(last.body.Data.ID).To(Equal("one"))
	})

	It("writes the status rarely, even for many posts", func(ctx SpecContext) {
		t, s := newTeam(ctx), newServer()
		t.notifier(ctx, "n", s)
		writes := 0
		t.client = interceptor.NewClient(k8s, interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, o ...client.SubResourceUpdateOption) error {
				writes++
				return c.SubResource(sub).Update(ctx, obj, o...)
			},
		})
		stop := t.run(s)
		t.eventually(t.state(ctx, "n"), time.Second).Should(Equal(delivering))
		for i := range 40 {
			t.post(ctx, fmt.Sprint("p", i), v1alpha1.PhasePosted)
		}
		Eventually(s.received).Should(HaveLen(40))
		stop()
		Expect(writes).To(BeNumerically("<=", 3))
	})
})
