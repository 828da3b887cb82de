// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
)

// events returns the events of each of the team's posts so far, in order.
func (t *team) events(ctx context.Context, wasUndecided ...*sent) map[string][]v1alpha1.NotifierEvent {
	GinkgoHelper()
	all, err := t.all(ctx)
	Expect(err).NotTo(HaveOccurred())
	want := map[string][]v1alpha1.NotifierEvent{}
	for _, p := range wasUndecided {
		want[p.Name] = append(want[p.Name], v1alpha1.EventPostNeedsAttention)
	}
	for name, p := range all {
		switch {
		case p.Status.Finished && p.Status.Phase == v1alpha1.PhasePosted:
			want[name] = append(want[name], v1alpha1.EventPostPosted)
		case p.Status.Finished && p.Status.Phase == v1alpha1.PhaseFailed:
			want[name] = append(want[name], v1alpha1.EventPostFailed)
		}
	}
	return want
}

// answer settles a post whose outcome is unknown: it was not published.
func (t *team) answer(ctx context.Context, p *sent) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.SettleAnnotation: "0=not-sent"}}})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error { return k8s.Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, patch)) }).Should(Succeed())
}

// notifying is a run with receivers.
type notifying struct {
	manager   *process
	kills     int
	team      *team
	receivers []*webhooks
}

func (n *notifying) kill() { n.manager.kill() }

// killed waits for a kill and starts the next manager.
func (n *notifying) killed(dead <-chan struct{}, reason string) {
	GinkgoHelper()
	Eventually(dead).Should(BeClosed(), reason)
	n.kills++
	n.manager = startManager()
}

// killBetween kills the manager between the steps from a post to the Notifier's status.
func (n *notifying) killBetween(ctx SpecContext, rounds int) {
	GinkgoHelper()
	steady := n.receivers[0]
	for round := range rounds {
		for _, point := range []string{post.PointAfterAnswer, post.PointAfterRecord} {
			dead := points.once(point, n.kill)
			n.team.post(ctx, aText, "killed "+point, v1alpha1.PlatformX)
			n.killed(dead, point)
		}
		// The receiver accepts the notification, but its response is lost.
		dead := steady.before(1+round, n.kill)
		for range 1 + round {
			n.team.post(ctx, aText, "killed before the receiver's answer", v1alpha1.PlatformX)
		}
		n.killed(dead, "before the receiver's answer")
		// The status contains the notification, as delivered or as pending.
		p := n.team.post(ctx, aText, "killed after the Notifier's status", v1alpha1.PlatformX)
		Eventually(func(g Gomega) {
			var stored v1alpha1.Notifier
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: n.team.namespace, Name: n.receivers[round%len(n.receivers)].name}, &stored)).To(Succeed())
			names := []string{}
			for i := range stored.Status.Deliveries {
				names = append(names, stored.Status.Deliveries[i].Name)
			}
			g.Expect(names).To(ContainElement(p.Name))
		}).Should(Succeed(), "the Notifier's status has the notification")
		n.kill()
		n.killed(n.manager.done, "after the Notifier's status")
	}
}

// undecided creates a post that looks like a copy restored from a backup, so a user must settle it.
func (n *notifying) undecided(ctx SpecContext) *sent {
	GinkgoHelper()
	p := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("p%d", serial.Add(1)), Namespace: n.team.namespace, Finalizers: []string{v1alpha1.DeliveryFinalizer},
			Annotations: map[string]string{v1alpha1.BornAnnotation: time.Now().Add(-24 * time.Hour).Format(time.RFC3339)},
		},
		Spec: v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: string(v1alpha1.PlatformX)}}}},
	}
	aText.fill(p, "undecided "+p.Name)
	create(ctx, p)
	return &sent{Post: p, kind: aText}
}

var _ = Describe("Notifications", func() {
	It("arrive at least once and in order for each post, whatever is killed and cut, at receivers that fail, hang and redirect", func(ctx SpecContext) {
		n := &notifying{manager: startManager()}
		DeferCleanup(func() { n.kill() })
		inside := newHidden()
		n.team = newTeamOn(ctx, v1alpha1.PlatformX)
		others := newTeamOn(ctx, v1alpha1.PlatformX)
		DeferCleanup(n.team.suspend)
		DeferCleanup(others.suspend)
		bad := 2
		if long {
			bad = 12
		}
		n.receivers = []*webhooks{
			n.team.notified(ctx, "steady", 0, nil),
			n.team.notified(ctx, "answers-500", bad, failsWith500),
			n.team.notified(ctx, "hangs", bad, hangs),
			n.team.notified(ctx, "redirects", bad, inside.redirects),
		}
		other := others.notified(ctx, "other-team", 0, nil)
		// Its address is private, so nothing must be sent to it.
		createNotifier(ctx, &v1alpha1.Notifier{ObjectMeta: metav1.ObjectMeta{Namespace: n.team.namespace, Name: "private"}, Spec: v1alpha1.NotifierSpec{
			URL: inside.URL, SecretRef: &v1alpha1.LocalReference{Name: "steady"}, Events: []v1alpha1.NotifierEvent{v1alpha1.EventPostPosted},
		}})
		n.team.probed(ctx, v1alpha1.PlatformX)
		others.probed(ctx, v1alpha1.PlatformX)

		question := n.undecided(ctx)
		Expect(platform.Fault(ctx, sandboxtest.Fault{
			Platform: "x", Account: n.team.accounts[v1alpha1.PlatformX].ID, Operation: "publish", Kind: "status", Status: http.StatusForbidden, Times: 1,
		})).To(Succeed())
		n.team.post(ctx, aText, "refused", v1alpha1.PlatformX)
		others.post(ctx, aText, "another team's", v1alpha1.PlatformX)
		rounds := 1
		if long {
			rounds = 8
		}
		n.killBetween(ctx, rounds)

		toKubernetes.set(answersLost)
		n.team.post(ctx, aText, "posted while answers of the API server are lost", v1alpha1.PlatformX)
		wait(time.Second)
		toKubernetes.set(open)
		apiServer.restart(ctx)
		n.team.post(ctx, aText, "posted after the API server was killed", v1alpha1.PlatformX)

		for _, r := range n.receivers {
			Eventually(func() []v1alpha1.NotifierEvent { return r.accepted(question.Name) }).Should(ContainElement(v1alpha1.EventPostNeedsAttention), r.name)
		}
		dead := points.once(post.PointAfterRecord, n.kill)
		n.team.answer(ctx, question)
		n.killed(dead, "when an answered post is published")

		n.manager.terminate()
		n.killed(n.manager.done, "stopped as in a roll-out")
		// Do not kill the manager after this: a call would be lost, and its lookups take most of a minute.
		n.team.post(ctx, aText, "posted after a roll-out", v1alpha1.PlatformX)
		others.post(ctx, aText, "another team's, after a roll-out", v1alpha1.PlatformX)

		settle(ctx, n.team, others)
		want, events, again := n.team.events(ctx, question), 0, 0
		for _, r := range n.receivers {
			Eventually(func() []string { return r.missing(want) }).Should(BeEmpty(), r.name)
		}
		Eventually(func() []string { return other.missing(others.events(ctx)) }).Should(BeEmpty(), other.name)
		for _, r := range n.receivers {
			all, repeated := r.verifyAll(want)
			events, again = events+all, again+repeated
			Expect(r.bad).To(BeZero(), "%s has misbehaved", r.name)
		}
		all, repeated := other.verifyAll(others.events(ctx))
		fmt.Printf("notifications: %d of %d posts to %d receivers, %d kills: 0 lost, 0 out of order, %d repeated\n",
			events+all, len(n.team.posts)+len(others.posts), len(n.receivers)+1, n.kills, again+repeated)
		Expect(inside.requests.Load()).To(BeZero(), "requests to a private address")
	})
})
