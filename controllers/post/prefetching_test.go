// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
)

// prefetch describes a token that was read ahead: when, and until when it must be valid.
type prefetch struct{ at, until time.Time }

// watchedTokens sends the prefetches for one namespace.
type watchedTokens struct {
	post.Tokens

	namespace string
	ahead     chan<- prefetch
}

func (w watchedTokens) Prefetch(ctx context.Context, conn *v1alpha1.Connection, until time.Time) error {
	if conn.Namespace == w.namespace {
		w.ahead <- prefetch{time.Now(), until}
	}
	return w.Tokens.Prefetch(ctx, conn, until)
}

var _ = Describe("Tokens", func() {
	It("are read before a scheduled post is due", func(ctx SpecContext) {
		t := newTeam(ctx)
		ahead := make(chan prefetch, 10)
		m := startManager(func(o *post.Options) { o.Tokens = watchedTokens{o.Tokens, t.namespace, ahead} })
		DeferCleanup(m.stop)
		p := t.post(ctx, "ahead", at(10*time.Second)) // the manager starts within this time, even on a busy machine
		var read prefetch
		Eventually(ahead).Should(Receive(&read))
		due := p.Spec.ScheduledAt.Time
		Expect(read.at).To(BeTemporally("<", due))
		Expect(read.until).To(BeTemporally(">", due), "the token must not expire before its use")
		Expect(read.until).To(BeTemporally("<=", due.Add(time.Second)))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
	})
})
