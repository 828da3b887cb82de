// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postschedule_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/postschedule"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/suite"
)

func TestPostScheduleController(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "PostSchedule controller")
}

const (
	// managed is watched by the manager. In byHand, specs call Reconcile step by step.
	managed = "managed"
	byHand  = "by-hand"
)

var (
	env    *envtest.Environment
	k8s    client.WithWatch
	serial atomic.Int64
)

var _ = BeforeSuite(func(ctx SpecContext) {
	env = suite.Start()
	k8s = suite.Must(client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme}))
	Expect(env.Team(ctx, managed)).To(Succeed())
	Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: byHand}})).To(Succeed())
	mgr := suite.Manager(env, env.Config, managed)
	teams := suite.Must(quota.NewTeams(ctx, mgr.GetCache(), mgr.GetFieldIndexer()))
	r := suite.Must(postschedule.New(postschedule.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Owner: teams.Owner, Owned: teams.Owned, StartingDeadline: time.Hour,
	}))
	Expect(r.SetupWithManager(mgr)).To(Succeed())
	suite.Run(mgr)
})

type edit func(*v1alpha1.PostSchedule)

// schedule is an hourly schedule that was just applied, with a controller of its own.
type schedule struct {
	*v1alpha1.PostSchedule

	// first is its first occurrence.
	first  time.Time
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
	team   *v1alpha1.Team
	client client.Client
}

func hourly(ctx context.Context, edits ...edit) *schedule {
	GinkgoHelper()
	s := &v1alpha1.PostSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: byHand, Name: fmt.Sprintf("hourly-%d", serial.Add(1))},
		Spec: v1alpha1.PostScheduleSpec{
			Schedule: "0 * * * *", TimeZone: "UTC", Texts: []string{"one", "two"},
			Template: v1alpha1.PostTemplate{
				Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "page"}}},
			},
		},
	}
	for _, edit := range edits {
		edit(s)
	}
	return follow(ctx, s)
}

// follow applies a schedule.
func follow(ctx context.Context, s *v1alpha1.PostSchedule) *schedule {
	GinkgoHelper()
	s.Status = v1alpha1.PostScheduleStatus{}
	Expect(k8s.Create(ctx, s)).To(Succeed())
	return &schedule{
		PostSchedule: s, first: s.CreationTimestamp.UTC().Truncate(time.Hour).Add(time.Hour),
		clock: clocktesting.NewFakePassiveClock(s.CreationTimestamp.Time), events: events.NewFakeRecorder(100), client: k8s,
		team: &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TeamSpec{Namespace: byHand}},
	}
}

// tryAt reconciles the schedule at a time after, or before, its first occurrence, in a process that has just started.
func (s *schedule) tryAt(ctx context.Context, after time.Duration) (ctrl.Result, error) {
	GinkgoHelper()
	s.clock.SetTime(s.first.Add(after))
	r := suite.Must(postschedule.New(postschedule.Options{
		Client: s.client, APIReader: k8s, Clock: s.clock, Events: s.events, StartingDeadline: time.Hour,
		Owner: func(context.Context, string) (*v1alpha1.Team, error) { return s.team, nil },
		Owned: func(context.Context, string) (bool, error) { return s.team != nil, nil },
	}))
	result, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.PostSchedule)})
	var stored v1alpha1.PostSchedule
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(s.PostSchedule), &stored)).To(Succeed())
	*s.PostSchedule = stored
	return result, err
}

// at is like tryAt, but must succeed. It returns the requeue delay.
func (s *schedule) at(ctx context.Context, after time.Duration) time.Duration {
	GinkgoHelper()
	return suite.Must(s.tryAt(ctx, after)).RequeueAfter
}

// posts returns the schedule's posts, each as the hours since the first occurrence and the caption, such as "0 one".
func (s *schedule) posts(ctx context.Context) []string {
	GinkgoHelper()
	var list v1alpha1.PostList
	Expect(k8s.List(ctx, &list, client.InNamespace(s.Namespace), client.MatchingLabels{v1alpha1.ScheduleLabel: s.Name})).To(Succeed())
	found := []string{}
	for i := range list.Items {
		p := &list.Items[i]
		Expect(p.Name).To(Equal(s.Name + "-" + p.Spec.ScheduledAt.UTC().Format("20060102-1504")))
		found = append(found, fmt.Sprintf("%d %s", int(p.Spec.ScheduledAt.Sub(s.first)/time.Hour), p.Spec.Targets[0].Caption))
	}
	slices.Sort(found)
	return found
}

func (s *schedule) state() string {
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || s.Status.ObservedGeneration != s.Generation {
		return ""
	}
	return string(ready.Status) + " " + ready.Reason
}

func (s *schedule) message() string {
	return meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady).Message
}

// update changes the spec.
func (s *schedule) update(ctx context.Context, change func(*v1alpha1.PostScheduleSpec)) {
	GinkgoHelper()
	change(&s.Spec)
	Expect(k8s.Update(ctx, s.PostSchedule)).To(Succeed())
}

// drain returns the events so far.
func (s *schedule) drain() (all []string) {
	for {
		select {
		case e := <-s.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}
