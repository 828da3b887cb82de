// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
)

var _ = Describe("Two posts with the same words on one account of X", func() {
	DescribeTable("are not taken for one, of which X refuses the second", func(ctx SpecContext, ofTwoTeams, restart bool) {
		t := newTeam(ctx)
		other := t
		if ofTwoTeams {
			other = newTeam(ctx)
			other.share(ctx, v1alpha1.PlatformX, "too", t.account)
		}
		m := startManager()
		DeferCleanup(func() { m.stop() })
		posted(ctx, t.post(ctx, "the same words"))
		if restart {
			m.stop()
			m = startManager()
		}
		second := other.post(ctx, "the same words", func(p *v1alpha1.Post) {
			if ofTwoTeams {
				p.Spec.Targets[0].ConnectionRef.Name = "too"
			}
		})
		Eventually(phase(ctx, second), 90*time.Second).Should(Equal(v1alpha1.PhaseFailed))
		target := read(ctx, second).Status.Targets[0]
		Expect(target.ExternalID).To(BeEmpty())
		Expect(target.Blocked).To(HaveValue(And(
			HaveField("Reason", v1alpha1.ReasonRefused), HaveField("Problem", ContainSubstring("has published the same content before")),
		)))
		Expect(publishesBy(t.account)).To(Equal(2), "it was sent once, and is not sent again")
	},
		Entry("by one team", false, false),
		Entry("by one team, in another process", false, true),
		Entry("by two teams", true, false),
		Entry("by two teams, in another process", true, true),
	)
})
