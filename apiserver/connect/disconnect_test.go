// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
)

// busy writes the connection before each of the first `times` deletions, which then end in a conflict.
type busy struct {
	connect.ConnectionClient

	times int
}

func (b *busy) DeleteFor(ctx context.Context, of *v1alpha1.Connection, person string, now time.Time) error {
	if b.times > 0 {
		b.times--
		if err := b.Annotate(ctx, of, map[string]string{v1alpha1.ProbeAnnotation: string(rune('a' + b.times))}); err != nil {
			return err
		}
	}
	return b.ConnectionClient.DeleteFor(ctx, of, person, now)
}

var _ = Describe("Disconnecting an account for a person", func() {
	const kept = "example.com/kept"
	var (
		d      *desk
		others *busy
		name   string
	)
	BeforeEach(func(ctx SpecContext) {
		others = &busy{ConnectionClient: connections}
		d = newDesk(ctx, func(c *connect.Config) { c.Connections = others })
		name = d.connect(ctx, visitor("ann"), v1alpha1.PlatformX, newAccount(ctx, v1alpha1.PlatformX)).Connection.Name
		// A finalizer keeps the connection so that it can be inspected.
		found, _ := d.stored(ctx, name)
		base := found.DeepCopy()
		found.Finalizers = []string{kept}
		Expect(env.Client.Patch(ctx, found, client.MergeFrom(base))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			found, _ := d.stored(ctx, name)
			found.Finalizers = nil
			Expect(env.Client.Update(ctx, found)).To(Succeed())
		})
	})

	It("leaves the person's name on what is removed, whoever writes it at the same time", func(ctx SpecContext) {
		others.times = 2
		_, err := d.Disconnect(ctx, visitor("bob"), d.namespace, name)
		Expect(err).NotTo(HaveOccurred())
		found, _ := d.stored(ctx, name)
		Expect(found.DeletionTimestamp).NotTo(BeNil())
		Expect(found.Annotations).To(And(HaveKeyWithValue(v1alpha1.LastAuthorAnnotation, "bob"), HaveKeyWithValue(v1alpha1.AuthorAnnotation, "ann"),
			HaveKeyWithValue(v1alpha1.DisconnectedAnnotation, d.clock.Now().UTC().Format(time.RFC3339))), "the manager goes by the time")
	})

	It("removes nothing that others change all the time, and says so", func(ctx SpecContext) {
		others.times = 100
		_, err := d.Disconnect(ctx, visitor("bob"), d.namespace, name)
		refuses(err, bridge.CodeConflict, "changed all the time")
		found, _ := d.stored(ctx, name)
		Expect(found.DeletionTimestamp).To(BeNil())
	})
})
