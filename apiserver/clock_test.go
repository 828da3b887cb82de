// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/posting"
)

// behind is a machine whose clock is slow by the given time.
type behind struct {
	clock.WithTickerAndDelayedExecution

	by time.Duration
}

func (b behind) Now() time.Time                  { return b.WithTickerAndDelayedExecution.Now().Add(-b.by) }
func (b behind) Since(t time.Time) time.Duration { return b.Now().Sub(t) }

var _ = Describe("A replica whose clock is 61 seconds behind", func() {
	It("goes by that of the Kubernetes API, so that its posts are not taken for restored ones", func(ctx SpecContext) {
		now := apiclock.New(apiclock.Options{Base: behind{clock.RealClock{}, 61 * time.Second}})
		config := rest.CopyConfig(restricted)
		config.Wrap(now.Wrap)
		r := start(config, func(c *apiserver.Config) { c.Clock, c.Check = now, now.Check })
		DeferCleanup(r.stop)
		Expect(now.Skew()).To(BeNumerically("~", -61*time.Second, time.Second), "its answers at the start told")
		Expect(time.Until(now.Now())).To(BeNumerically("~", 0, 1500*time.Millisecond))

		t := newTeam(ctx)
		t.connect(ctx, "x", v1alpha1.PlatformX)
		post := func() reply {
			return do(ctx, r, "POST", base+"/posts", text("x", "now"), map[string]string{"Authorization": "Bearer " + t.token})
		}
		var made reply
		Eventually(func() int { made = post(); return made.status }).Should(Equal(http.StatusCreated))
		stored := t.stored(ctx, as[postBody](made).Data.ID)
		Expect(posting.Restored(stored)).To(BeFalse())
		Expect(posting.Created(stored)).To(BeTemporally("~", stored.CreationTimestamp.Time, 2*time.Second))
	})

	It("is not ready while it cannot tell the time", func(ctx SpecContext) {
		now := apiclock.New(apiclock.Options{Base: clock.RealClock{}})
		r := run(configure(restricted, func(c *apiserver.Config) { c.Clock, c.Check = now, now.Check }))
		DeferCleanup(r.stop)
		Eventually(func() int { return statusOf(r.site + "/health") }).Should(Equal(http.StatusOK))
		Expect(statusOf(r.private + "/readyz")).To(Equal(http.StatusServiceUnavailable))

		config := rest.CopyConfig(restricted)
		config.Wrap(now.Wrap)
		asking, err := client.New(config, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(asking.List(ctx, &corev1.NodeList{})).NotTo(Succeed(), "a refusal has a date as well")
		Eventually(func() int { return statusOf(r.private + "/readyz") }).Should(Equal(http.StatusOK))
	})
})
