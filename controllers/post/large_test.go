// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
)

// counted counts the posts that are read from the API server.
type counted struct {
	client.Reader
	posts atomic.Int64
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*v1alpha1.Post); ok {
		c.posts.Add(1)
	}
	return c.Reader.Get(ctx, key, obj, opts...)
}

var _ = Describe("A large post, of which the cache keeps no texts", func() {
	var live *counted
	BeforeEach(func() {
		live = &counted{}
		runManager(func(o *post.Options) {
			live.Reader = o.APIReader
			o.APIReader = live
		})
	})
	// to creates a post with a different text for each of the accounts.
	to := func(ctx context.Context, t team, accounts, characters int) (change func(*v1alpha1.Post), says []string) {
		names := []string{"x"}
		for i := range accounts - 1 {
			name := fmt.Sprintf("x-%d", i)
			t.connect(ctx, name)
			names = append(names, name)
		}
		for i := range accounts {
			says = append(says, strings.Repeat(string(rune('a'+i)), characters))
		}
		return func(p *v1alpha1.Post) {
			p.Spec.Targets = nil
			for i, name := range names {
				p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}, Caption: says[i]})
			}
		}, says
	}
	// texts returns the stored texts of a post.
	texts := func(ctx context.Context, p *v1alpha1.Post) (all []string) {
		for _, target := range read(ctx, p).Spec.Targets {
			all = append(all, target.Caption)
		}
		return all
	}

	It("goes out with every text, and keeps them", func(ctx SpecContext) {
		t := newTeam(ctx)
		change, says := to(ctx, t, 20, 270)
		p := posted(ctx, t.post(ctx, "large", change, at(3*time.Second)))
		Expect(texts(ctx, p)).To(Equal(says))
		Expect(t.published(ctx)).To(Equal(says[:1]))
		Expect(live.posts.Load()).To(BeNumerically(">", 0), "it was read from the API server")
		for i := range read(ctx, p).Status.Targets {
			Expect(read(ctx, p).Status.Targets[i].ExternalID).NotTo(BeEmpty())
		}
	})

	It("waits, is changed, cancelled and deleted", func(ctx SpecContext) {
		t := newTeam(ctx)
		change, says := to(ctx, t, 20, 270)
		p := t.post(ctx, "large", change, at(time.Hour))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		Expect(texts(ctx, p)).To(Equal(says))
		before := read(ctx, p)
		now := before.DeepCopy()
		now.Spec.Cancelled = true
		Expect(k8s.Patch(ctx, now, client.MergeFrom(before))).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseCancelled))
		Expect(texts(ctx, p)).To(Equal(says))
		Expect(k8s.Delete(ctx, p)).To(Succeed())
		Eventually(func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(p), &v1alpha1.Post{}) }).ShouldNot(Succeed())
	})

	It("gets its finalizer where it came without, and keeps its texts", func(ctx SpecContext) {
		t := newTeam(ctx)
		change, says := to(ctx, t, 20, 270)
		p := posted(ctx, t.post(ctx, "large", change, func(p *v1alpha1.Post) { p.Finalizers = nil }))
		Expect(texts(ctx, p)).To(Equal(says))
		Expect(t.published(ctx)).To(Equal(says[:1]))
	})

	It("of ordinary size costs no read", func(ctx SpecContext) {
		t := newTeam(ctx)
		change, _ := to(ctx, t, 10, 270)
		posted(ctx, t.post(ctx, "ordinary", change))
		Expect(live.posts.Load()).To(BeZero())
	})
})
