// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// everyFive is the interval of the schedules in these specs, the shortest that is allowed: twelve posts are created as
// soon as a schedule is applied.
const everyFive = 5 * time.Minute

// recurring is a schedule with two texts.
type recurring struct{ *v1alpha1.PostSchedule }

func (t *team) recurring(name string) recurring {
	return recurring{&v1alpha1.PostSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name},
		Spec: v1alpha1.PostScheduleSpec{Schedule: "*/5 * * * *", TimeZone: "UTC", Texts: []string{name + ", one", name + ", two"}, Template: v1alpha1.PostTemplate{
			Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: string(v1alpha1.PlatformX)}}},
		}},
	}}
}

// suspend stops the team's deliveries, so later specs count only their own calls.
func (t *team) suspend(ctx SpecContext) {
	var stored v1alpha1.Team
	Expect(k8s.Get(ctx, client.ObjectKey{Name: t.namespace}, &stored)).To(Succeed())
	stored.Spec.Suspend = true
	Expect(k8s.Update(ctx, &stored)).To(Succeed())
}

// posts returns the schedule's posts by time.
func (r recurring) posts(ctx SpecContext) ([]v1alpha1.Post, error) {
	var list v1alpha1.PostList
	err := k8s.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.ScheduleLabel: r.Name})
	slices.SortFunc(list.Items, func(a, b v1alpha1.Post) int { return a.Spec.ScheduledAt.Compare(b.Spec.ScheduledAt.Time) })
	return list.Items, err
}

// complete expects one post for each scheduled time in the next hour, with alternating texts.
func (r recurring) complete(ctx SpecContext) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(r.PostSchedule), r.PostSchedule)).To(Succeed())
		posts, err := r.posts(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(posts)).To(BeNumerically(">=", 11))
		g.Expect(r.Status.Posts).To(BeEquivalentTo(len(posts)), "each post is counted once")
		g.Expect(r.Status.LastScheduledTime.Time).To(BeTemporally("==", posts[len(posts)-1].Spec.ScheduledAt.Time))
		g.Expect(r.Status.NextScheduledTime).NotTo(BeNil())
		g.Expect(r.Status.NextScheduledTime.Time).To(BeTemporally("==", r.Status.LastScheduledTime.Add(everyFive)))
		for i := range posts {
			g.Expect(posts[i].Spec.ScheduledAt.Time).To(BeTemporally("==", posts[0].Spec.ScheduledAt.Add(time.Duration(i)*everyFive)), "no time is left out")
			g.Expect(posts[i].Spec.Targets[0].Caption).To(Equal(r.Spec.Texts[i%2]), "no text is left out")
		}
	}).Should(Succeed())
	first, _ := r.posts(ctx) // read above
	Expect(first[0].Spec.ScheduledAt.Sub(r.CreationTimestamp.Time)).To(BeNumerically("<=", everyFive), "the first time is not left out")
}

var _ = Describe("A schedule", func() {
	It("has one post for each of its times, whenever the manager is killed", func(ctx SpecContext) {
		m := startManager()
		DeferCleanup(func() { m.kill() })
		tm := newTeamOn(ctx, v1alpha1.PlatformX)
		DeferCleanup(tm.suspend)
		tm.probed(ctx, v1alpha1.PlatformX)
		rounds := 6
		if long {
			rounds = 24
		}
		kills := 0
		for round := range rounds {
			r := tm.recurring(fmt.Sprintf("often-%d", round))
			create(ctx, r.PostSchedule)
			for _, after := range []int{1 + round%12, 12} { // while the posts are created, and while the status is written
				Eventually(func() (int, error) {
					posts, err := r.posts(ctx)
					return len(posts), err
				}).WithPolling(time.Millisecond).Should(BeNumerically(">=", min(after, 11)))
				m.kill()
				kills++
				m = startManager()
			}
			r.complete(ctx)
		}
		fmt.Printf("schedules: %d, each with one post for each time after %d kills\n", rounds, kills)
	})

	It("has one post for each of its times when responses of the API server are lost", func(ctx SpecContext) {
		m := startManager()
		DeferCleanup(func() { m.kill() })
		tm := newTeamOn(ctx, v1alpha1.PlatformX)
		DeferCleanup(tm.suspend)
		tm.probed(ctx, v1alpha1.PlatformX)
		r := tm.recurring("cut")
		create(ctx, r.PostSchedule)
		Eventually(func() (int, error) {
			posts, err := r.posts(ctx)
			return len(posts), err
		}).WithPolling(time.Millisecond).Should(BeNumerically(">=", 1))
		toKubernetes.set(answersLost)
		wait(2 * time.Second)
		toKubernetes.set(open)
		r.complete(ctx)
	})
})
