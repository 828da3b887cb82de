// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/suite"
)

// inspected is X with inspections that the spec controls.
type inspected struct {
	platforms.Platform

	asked atomic.Int64
	tells func() (platforms.AccountInfo, error)
}

func (s *inspected) Inspect(context.Context, platforms.Account) (platforms.AccountInfo, error) {
	s.asked.Add(1)
	return s.tells()
}

var _ = Describe("A survey", func() {
	var (
		a     *account
		x     *inspected
		again func(ctx SpecContext) string
	)
	BeforeEach(func(ctx SpecContext) {
		a = newAccount(ctx, byHand, nil).create(ctx)
		x = &inspected{Platform: platform}
		again = func(ctx SpecContext) string {
			GinkgoHelper()
			a.probe(ctx)
			Expect(newManager("one", k8s, x).Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
			a.read(ctx)
			for _, c := range a.conn.Status.Conditions {
				if c.Type == v1alpha1.ConditionReady {
					return c.Reason
				}
			}
			return ""
		}
	})

	It("tells what an account may choose, each time anew", func(ctx SpecContext) {
		levels := []string{"PUBLIC_TO_EVERYONE", "SELF_ONLY"}
		x.tells = func() (platforms.AccountInfo, error) {
			return platforms.AccountInfo{TikTok: &v1alpha1.TikTokAccount{PrivacyLevelOptions: levels, MaxVideoPostDurationSeconds: 600}}, nil
		}
		Expect(again(ctx)).To(Equal(v1alpha1.ReasonConnected))
		Expect(a.conn.Status.TikTok.PrivacyLevelOptions).To(Equal(levels))
		Expect(a.conn.Status.TikTok.MaxVideoPostDurationSeconds).To(BeEquivalentTo(600))
		levels = []string{"FOLLOWER_OF_CREATOR", "SELF_ONLY"}
		Expect(again(ctx)).To(Equal(v1alpha1.ReasonConnected))
		Expect(a.conn.Status.TikTok.PrivacyLevelOptions).To(Equal(levels), "the account was made private")
	})

	It("holds an account that has no posts left, over a restart, until it has", func(ctx SpecContext) {
		left := 0
		x.tells = func() (platforms.AccountInfo, error) {
			told := platforms.RateLimit{Name: platforms.PostsPerDay, Limit: 50, Remaining: left}
			if left == 0 {
				told.BlockedUntil = time.Now().Add(30 * time.Minute)
			}
			return platforms.AccountInfo{RateLimits: []platforms.RateLimit{told}}, nil
		}
		Expect(again(ctx)).To(Equal(v1alpha1.ReasonConnected), "an account at its limit is not disconnected")
		Expect(a.conn.Status.RateLimitedUntil.Time).To(BeTemporally("~", time.Now().Add(30*time.Minute), time.Minute))
		Expect(a.conn.Status.RateLimitedMessage).To(ContainSubstring("postsPerDay"))
		until := a.conn.Status.RateLimitedUntil.Time

		asked, identified := x.asked.Load(), calls(ctx, "identity")
		next := suite.Must(newManager("the next manager", k8s, x).Reconcile(ctx, a.request()))
		Expect(x.asked.Load()).To(Equal(asked), "it was asked a moment ago")
		Expect(calls(ctx, "identity")).To(Equal(identified))
		Expect(time.Now().Add(next.RequeueAfter)).To(BeTemporally("<", until), "it is asked again before posts go out")

		left = 7
		Expect(again(ctx)).To(Equal(v1alpha1.ReasonConnected))
		Expect(a.conn.Status.RateLimits).To(ConsistOf(HaveField("Remaining", BeEquivalentTo(7))))

		a.conn.Status.RateLimitedUntil = nil // the block is over
		Expect(k8s.Status().Update(ctx, a.conn)).To(Succeed())
		asked = x.asked.Load()
		Expect(again(ctx)).To(Equal(v1alpha1.ReasonConnected))
		Expect(x.asked.Load()).To(Equal(asked), "enough is left, and it was told a moment ago")
	})

	DescribeTable("that fails", func(ctx SpecContext, class platforms.Class, known bool, want string) {
		x.tells = func() (platforms.AccountInfo, error) {
			return platforms.AccountInfo{TikTok: &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{"SELF_ONLY"}}}, nil
		}
		if known {
			Expect(again(ctx)).To(Equal(v1alpha1.ReasonConnected))
		}
		x.tells = func() (platforms.AccountInfo, error) {
			return platforms.AccountInfo{}, platforms.Errorf(class, "what it says")
		}
		Expect(again(ctx)).To(Equal(want))
		if known {
			Expect(a.conn.Status.TikTok.PrivacyLevelOptions).To(Equal([]string{"SELF_ONLY"}), "what was known stays")
		}
	},
		Entry("for lack of a permission needs a person", platforms.ClassReconnect, true, v1alpha1.ReasonRevoked),
		Entry("for an outage passes", platforms.ClassTransient, true, v1alpha1.ReasonPlatformUnavailable),
		Entry("for a token that ended just then passes", platforms.ClassRefresh, true, v1alpha1.ReasonPlatformUnavailable),
		Entry("because it was asked too often does not matter", platforms.ClassRateLimited, true, v1alpha1.ReasonConnected),
		Entry("so the first time leaves the account unknown", platforms.ClassRateLimited, false, v1alpha1.ReasonPlatformUnavailable),
	)
})
