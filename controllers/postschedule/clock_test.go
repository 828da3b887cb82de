// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postschedule_test

import (
	"context"
	"errors"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/suite"
)

// changeOf returns the next time that clocks in a zone are put forward, or back.
func changeOf(zone *time.Location, forward bool) time.Time {
	for at := time.Now().In(zone); ; {
		_, change := at.ZoneBounds()
		_, before := change.Add(-time.Second).Zone()
		_, after := change.Zone()
		if after > before == forward {
			return change
		}
		at = change
	}
}

var _ = Describe("The clock", func() {
	DescribeTable("changes, and each day has one post, also if the process ends before every third write of the status", func(ctx SpecContext, forward bool, want []string) {
		zone := suite.Must(time.LoadLocation("Europe/Berlin"))
		change := changeOf(zone, forward)
		start := change.Add(-36 * time.Hour)
		s := hourly(ctx, func(s *v1alpha1.PostSchedule) {
			s.Spec.Schedule, s.Spec.TimeZone, s.Spec.StartAt = "30 2 * * *", zone.String(), v1alpha1.NewTimePtr(start)
		})
		s.first = start
		boom, writes := errors.New("boom"), 0
		s.client = interceptor.NewClient(k8s, interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, to client.Client, name string, object client.Object, opts ...client.SubResourceUpdateOption) error {
				if writes++; writes%3 == 0 {
					return boom
				}
				return to.SubResource(name).Update(ctx, object, opts...)
			},
		})
		for after := time.Duration(0); after < 72*time.Hour; after += 20 * time.Minute {
			_, err := s.tryAt(ctx, after)
			Expect(err).To(Or(Succeed(), MatchError(boom)))
		}
		var list v1alpha1.PostList
		Expect(k8s.List(ctx, &list, client.InNamespace(s.Namespace), client.MatchingLabels{v1alpha1.ScheduleLabel: s.Name})).To(Succeed())
		slices.SortFunc(list.Items, func(a, b v1alpha1.Post) int { return a.Spec.ScheduledAt.Compare(b.Spec.ScheduledAt.Time) })
		var got []string
		for i := range list.Items {
			got = append(got, list.Items[i].Spec.ScheduledAt.In(zone).Format("Mon 15:04 -07:00"))
		}
		Expect(got).To(Equal(want))
		Expect(s.Status.Posts).To(BeEquivalentTo(len(want)))
	},
		Entry("in spring, when 02:30 is skipped", true, []string{"Sat 02:30 +01:00", "Sun 03:30 +02:00", "Mon 02:30 +02:00"}),
		Entry("in autumn, when 02:30 occurs twice", false, []string{"Sat 02:30 +02:00", "Sun 02:30 +02:00", "Mon 02:30 +01:00"}),
	)

	It("jumps ahead and back, and no post is created twice", func(ctx SpecContext) {
		s := hourly(ctx)
		s.at(ctx, -half)
		s.at(ctx, 5*time.Hour+half)
		Expect(s.posts(ctx)).To(Equal([]string{"0 one", "5 two", "6 one"}), "only the latest missed time is published")
		s.at(ctx, half)
		s.at(ctx, 3*time.Hour)
		Expect(s.posts(ctx)).To(HaveLen(3), "each time is decided once")
		s.at(ctx, 6*time.Hour+half)
		Expect(s.posts(ctx)).To(Equal([]string{"0 one", "5 two", "6 one", "7 two"}))
	})
})
