// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
)

// slowed lets status writes for posts through one by one at a limited rate, like an API server with a long queue. Like
// an API server, it also stores writes after the client's timeout.
func slowed(perSecond rate.Limit) interceptor.Funcs {
	turns := rate.NewLimiter(perSecond, 1)
	return interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
		if _, isPost := obj.(*v1alpha1.Post); !isPost {
			return c.SubResource(sub).Update(ctx, obj, opts...)
		}
		stored := make(chan error, 1)
		copied := obj.DeepCopyObject().(client.Object)
		go func() {
			if err := turns.Wait(context.WithoutCancel(ctx)); err != nil {
				stored <- err
				return
			}
			stored <- c.SubResource(sub).Update(context.WithoutCancel(ctx), copied, opts...)
		}()
		select {
		case err := <-stored:
			if err == nil {
				*obj.(*v1alpha1.Post) = *copied.(*v1alpha1.Post)
			}
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

var _ = Describe("An API server that stores 30 writes a second", func() {
	It("stores every claim in time for its call", func(ctx SpecContext) {
		const posts = 200
		registry := prometheus.NewRegistry()
		m := startDisturbed(slowed(30), func(o *post.Options) {
			o.Metrics = post.NewMetrics(registry)
			o.MaxConcurrentReconciles = 2 * posts // enough for all posts of one team at once
			o.SendWindow = 5 * time.Second        // the default: 200 writes at once would take 6.7 s
		})
		DeferCleanup(m.stop)
		t := newTeam(ctx)
		for i := range posts {
			t.connect(ctx, fmt.Sprintf("account-%d", i))
		}
		due := time.Now().Add(20 * time.Second) // all posts are created, and stored as scheduled, by then
		var all []*v1alpha1.Post
		for i := range posts {
			all = append(all, t.post(ctx, "at the full hour", func(p *v1alpha1.Post) {
				p.Spec.ScheduledAt = v1alpha1.NewTimePtr(due)
				p.Spec.Targets[0].ConnectionRef.Name = fmt.Sprintf("account-%d", i)
			}))
		}
		for _, p := range all {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
		Expect(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP herald_expired_claims_total Claims that the Kubernetes API did not store within delivery.sendWindow, so that nothing was sent for them. They cost a second write and are made again.
# TYPE herald_expired_claims_total counter
herald_expired_claims_total 0
`), "herald_expired_claims_total")).To(Succeed())
	})
})
