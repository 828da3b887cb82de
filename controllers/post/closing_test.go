// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/posting/record"
)

var _ = Describe("A post that is finished while its Team is being deleted", func() {
	DescribeTable("leaves no record behind", func(ctx SpecContext, deletedAt string) {
		var going atomic.Bool
		acme, k, kept := newTeam(ctx), newKeeping(), make(chan error, 100)
		of := archive.Team{Namespace: acme.namespace, Name: "of-" + acme.namespace}
		runManager(k.options, func(o *post.Options) {
			o.Records.Owner = func(ctx context.Context, namespace string) (*v1alpha1.Team, error) {
				if namespace != acme.namespace {
					return nil, nil // posts of other specs have no team, and reach no failpoint
				}
				owner, err := ownerOf(ctx, namespace)
				if going.Load() {
					owner.DeletionTimestamp = new(metav1.Now())
				}
				return owner, err
			}
			o.Failpoint = func(at string) {
				if at == deletedAt {
					going.Store(true)
				}
				if at == post.PointAfterKeep {
					ended, cancel := context.WithCancel(ctx)
					cancel()
					_, err := o.Records.Archive.Clear(ended, of)
					kept <- err
				}
			}
		})
		p := posted(ctx, acme.apply(ctx, "launch", "hello"))
		if deletedAt != post.PointAfterRecord {
			Eventually(kept).Should(Receive(MatchError(ContainSubstring("still being written"))), "who clears the archive waits for the write")
		}
		left := func() *record.Record { return k.of(ctx, acme.namespace, "launch") }
		Eventually(left).Should(BeNil())
		Consistently(left, time.Second).Should(BeNil())

		By("letting the post go, as what deletes the namespace wants")
		remove(ctx, p)
		Expect(left()).To(BeNil())
	},
		Entry("that was deleted before", post.PointAfterRecord),
		Entry("that is deleted before the record is written", post.PointBeforeKeep),
		Entry("that is deleted when the record is written", post.PointAfterKeep),
	)
})
