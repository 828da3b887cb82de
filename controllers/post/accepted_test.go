// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/platforms"
)

// working is X, as if it worked on posts after it has taken them and told nothing
// but a ticket, under which it can be asked. Its posts are in no listing.
type working struct {
	fast

	done, asked *atomic.Bool
	refused     *platforms.Error
}

func (w working) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	result := w.fast.Publish(ctx, job)
	return platforms.Result{Verdict: platforms.Accepted, Handle: "ticket~" + result.ExternalID}
}

func (w working) Lookup(_ context.Context, job platforms.Job) (platforms.Finding, error) {
	w.asked.Store(true)
	switch {
	case job.Handle == "":
		return platforms.Finding{}, platforms.Errorf(platforms.ClassPermanent, "nobody knows the post without its ticket")
	case !w.done.Load():
		return platforms.Finding{}, platforms.Errorf(platforms.ClassTransient, "it is being processed")
	case w.refused != nil:
		return platforms.Finding{Refused: w.refused}, nil //nolint:nilerr // the refusal is what was found
	}
	return platforms.Finding{Matches: 1, ExternalID: job.Handle, ExternalURL: "https://x.example/" + job.Handle}, nil
}

var _ = Describe("What a platform works on after it has taken it", func() {
	var (
		m           *manager
		done, asked atomic.Bool
	)
	disturbed := func(refused *platforms.Error, writes interceptor.Funcs) {
		done.Store(false)
		asked.Store(false)
		m = startManager(writes, func(o *post.Options) {
			o.RecordFor = time.Second
			inner, _ := o.Platforms[v1alpha1.PlatformX].(fast)
			o.Platforms[v1alpha1.PlatformX] = working{inner, &done, &asked, refused}
		})
	}
	start := func(refused *platforms.Error) { disturbed(refused, interceptor.Funcs{}) }
	AfterEach(func() { m.stop() })
	target := func(ctx context.Context, p *v1alpha1.Post) v1alpha1.TargetStatus {
		if targets := read(ctx, p).Status.Targets; len(targets) > 0 {
			return targets[0]
		}
		return v1alpha1.TargetStatus{}
	}

	It("is asked for by its ticket, also by the next process, and sent once", func(ctx SpecContext) {
		start(nil)
		t := newTeam(ctx)
		p := t.post(ctx, "taken")
		Eventually(func() string { return target(ctx, p).Message }).Should(Equal("it is being processed"))
		Expect(target(ctx, p).Reason).To(Equal(v1alpha1.ReasonProcessing), "no answer was lost")
		Expect(target(ctx, p).Attempt.Handle).To(HavePrefix("ticket~"))

		m.stop()
		start(nil)
		Eventually(asked.Load).Should(BeTrue())
		Expect(target(ctx, p).Phase).To(Equal(v1alpha1.PhaseProcessing))
		done.Store(true)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(target(ctx, p).ExternalURL).To(HavePrefix("https://x.example/ticket~"))
		Expect(t.published(ctx)).To(Equal([]string{"taken"}))
		Eventually(func() []string { return t.events(ctx, p) }).Should(ConsistOf(HavePrefix("Posted: target 0: published to x as https://x.example/ticket~")),
			"what goes as it should is no warning")
	})

	It("fails with the platform's reason if it is given up", func(ctx SpecContext) {
		start(platforms.Errorf(platforms.ClassPermanent, "the picture is too large"))
		done.Store(true)
		p := newTeam(ctx).post(ctx, "given up")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(target(ctx, p).Message).To(ContainSubstring("the picture is too large"))
	})

	It("is asked for by its ticket also if the API server refuses the status that tells of it", func(ctx SpecContext) {
		var writes atomic.Int32
		disturbed(nil, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if writes.Add(1) == 2 { // the first is the claim
				return apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "Post"}, obj.GetName(), nil)
			}
			return c.SubResource(sub).Update(ctx, obj, opts...)
		}})
		done.Store(true)
		p := newTeam(ctx).post(ctx, "named alone")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(target(ctx, p).Attempt.Handle).To(HavePrefix("ticket~"))
	})

	It("is asked for by its ticket also if that is told when a person was to be asked already", func(ctx SpecContext) {
		var held atomic.Bool
		var writes atomic.Int32
		disturbed(nil, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if writes.Add(1) > 1 && held.Load() {
				return apierrors.NewInternalError(context.DeadlineExceeded)
			}
			return c.SubResource(sub).Update(ctx, obj, opts...)
		}})
		held.Store(true)
		t := newTeam(ctx)
		p := t.post(ctx, "told late")
		Eventually(func() []string { return t.published(ctx) }).Should(HaveLen(1))
		// Another manager gives up meanwhile: it has no ticket to ask by.
		now := read(ctx, p)
		now.Status.Targets[0].Attempt.Outcome = v1alpha1.OutcomeUnknown
		now.Status.Targets[0].Phase, now.Status.Targets[0].Reason = v1alpha1.PhaseFailed, v1alpha1.ReasonOutcomeUnknown
		Expect(k8s.Status().Update(ctx, now)).To(Succeed())
		// What is held in memory is tried again with the next pass.
		Eventually(writes.Load).Should(BeNumerically(">", 6))
		held.Store(false)
		done.Store(true)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(target(ctx, p).Attempt.Handle).To(HavePrefix("ticket~"))
		Expect(t.published(ctx)).To(Equal([]string{"told late"}))
	})
})
