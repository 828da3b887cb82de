// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/suite"
)

const (
	hour = time.Hour
	day  = 24 * hour
)

var _ = Describe("A finished post", func() {
	It("leaves the cluster when its retention there expires, not before, and can still be read", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.post(ctx, "old", 5*day)
		d.post(ctx, "due", 2*day+time.Second)
		d.post(ctx, "soon", 2*day-time.Minute)
		d.post(ctx, "young", hour)
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(ConsistOf("soon", "young"))
		Expect(d.listed(ctx)).To(ConsistOf("old", "due"))
		Expect(d.recorded(ctx, "old", "due", "soon", "young")).To(ConsistOf("old", "due"))

		d.sweepAfter(ctx, time.Minute)
		Expect(d.stored(ctx)).To(ConsistOf("young"))
		Expect(d.listed(ctx)).To(ConsistOf("old", "due", "soon"))

		d.sweepAfter(ctx, 2*day)
		Expect(d.stored(ctx)).To(BeEmpty())
	})

	It("leaves immediately if the team's retention is zero, even if it finishes during the sweep", func(ctx SpecContext) {
		d := newDesk(ctx, func(s *v1alpha1.TeamSpec) { s.Retention.InCluster = &v1alpha1.Duration{} })
		d.post(ctx, "first", 0)
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(BeEmpty())
		d.clock.Step(sweepEvery)
		d.post(ctx, "second", time.Second)
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(BeEmpty())
		Expect(d.listed(ctx)).To(ConsistOf("first", "second"))
	})

	It("remains while a post with the same name could be mistaken for it", func(ctx SpecContext) {
		d := newDesk(ctx, func(s *v1alpha1.TeamSpec) { s.Retention.InCluster = &v1alpha1.Duration{} })
		// The API server's clock sets the creation time of posts.
		d.clock.SetTime(time.Now())
		d.post(ctx, "young", 0, func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(d.clock.Now()).String()}
		})
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(ConsistOf("young"))
		Expect(d.late()).To(BeZero())
		d.sweepAfter(ctx, sweepEvery)
		Expect(d.stored(ctx)).To(BeEmpty())
	})

	It("leaves although earlier posts are still leaving, because a sweep checks again after a minute", func(ctx SpecContext) {
		d := newDesk(ctx, func(s *v1alpha1.TeamSpec) { s.Retention.InCluster = &v1alpha1.Duration{} })
		d.post(ctx, "first", 0)
		again := false
		d.Failpoint = func(at string) {
			if at == PointAfterDelete && !again {
				again = true
				d.clock.Step(roundFor)
				d.post(ctx, "second", time.Second)
			}
		}
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(BeEmpty())
		Expect(d.listed(ctx)).To(ConsistOf("first", "second"))
	})

	It("remains for up to a day while a lookup may need it to identify a publication", func(ctx SpecContext) {
		d := newDesk(ctx, func(s *v1alpha1.TeamSpec) { s.Retention.InCluster = &v1alpha1.Duration{} })
		lost := d.post(ctx, "lost", 0, withLostResponse(d.clock.Now(), 10*time.Minute))
		d.post(ctx, "before", 20*time.Minute)
		d.post(ctx, "since", 5*time.Minute)
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(ConsistOf("lost", "since"))
		Expect(d.late()).To(BeZero(), "the record is not overdue before the next sweep")

		By("looking up the outcome of the call")
		lost.Status.Targets[0].Attempt.Outcome = v1alpha1.OutcomeAbsent
		Expect(k8s.Status().Update(ctx, lost)).To(Succeed())
		d.sweepAfter(ctx, retryAfter)
		Expect(d.stored(ctx)).To(ConsistOf("lost"))

		By("not finding it")
		d.post(ctx, "unknown", 0, withLostResponse(d.clock.Now(), time.Minute))
		d.post(ctx, "next", 0)
		Expect(d.sweep(ctx)).To(Succeed())
		d.sweepAfter(ctx, 23*hour)
		Expect(d.stored(ctx)).To(ConsistOf("lost", "unknown", "next"))
		d.sweepAfter(ctx, hour+time.Minute)
		Expect(d.stored(ctx)).To(ConsistOf("lost", "unknown"))
	})

	It("remains if it was applied, unless the team archives applied posts", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.post(ctx, "in-git", 5*day, applied)
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(ConsistOf("in-git"))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d.team), d.team)).To(Succeed())
		d.team.Spec.Retention.Applied = true
		Expect(k8s.Update(ctx, d.team)).To(Succeed())
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(BeEmpty())
		Expect(d.listed(ctx)).To(ConsistOf("in-git"))
	})

	It("leaves if a schedule created it, although no client requested it by REST", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.post(ctx, "weekly-20261124-0900", 8*day, func(p *v1alpha1.Post) { p.Labels = map[string]string{v1alpha1.ScheduleLabel: "weekly"} })
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(BeEmpty())
		Expect(d.listed(ctx)).To(ConsistOf("weekly-20261124-0900"))
	})

	It("has a record and is listed even if it was never sent", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.post(ctx, "withdrawn", 5*day, cancelled)
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(BeEmpty())
		Expect(d.listed(ctx)).To(BeEmpty(), "no list shows cancelled posts")
		Expect(d.recorded(ctx, "withdrawn")).To(ConsistOf("withdrawn"))
		d.sweepAfter(ctx, 5*day+hour)
		Expect(d.recorded(ctx, "withdrawn")).To(BeEmpty(), "cancelled posts expire like others")
	})

	It("is listed as a post that version 1 of the API lacks if a connection that never existed presumes its platform", func(ctx SpecContext) {
		d := newDesk(ctx)
		for name, connection := range map[string]string{"later": "acme-bluesky", "unknown": "acme"} {
			d.post(ctx, name, 5*day, func(p *v1alpha1.Post) {
				p.Spec.Targets[0].ConnectionRef.Name, p.Status.Phase = connection, v1alpha1.PhaseFailed
				p.Status.Targets = []v1alpha1.TargetStatus{{Phase: v1alpha1.PhaseFailed, State: v1alpha1.TargetFailed, Reason: v1alpha1.ReasonMissedSchedule}}
			})
		}
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.listed(ctx)).To(ConsistOf("later", "unknown"))
		Expect(d.listedIn(ctx, lists.Filter{Platform: lists.BeyondVersion1})).To(ConsistOf("later"))
	})

	It("gets a finish time if an older version did not record one, and leaves accordingly", func(ctx SpecContext) {
		d := newDesk(ctx)
		// The desk's clock is ahead of the API server's, which sets the creation time of the post.
		d.clock.SetTime(time.Now().Add(hour))
		post := d.post(ctx, "of-old", 0, undated)
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(post), post)).To(Succeed())
		Expect(post.Status.FinishedAt).NotTo(BeNil())
		Expect(post.Status.FinishedOn).To(Equal(dayOf(post.Status.FinishedAt.Time)))
		d.sweepAfter(ctx, 2*day+hour)
		Expect(d.stored(ctx)).To(BeEmpty())
	})

	It("remains while the store is unavailable, and leaves afterwards", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.post(ctx, "old", 5*day)
		d.files = gone
		d.restart()
		Expect(d.sweep(ctx)).To(MatchError(ContainSubstring("cannot archive posts of team")))
		Expect(d.stored(ctx)).To(ConsistOf("old"))
		d.files = bucket
		d.restart()
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(BeEmpty())
	})

	It("is retried after a minute by the process that failed to archive it", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.post(ctx, "old", 5*day)
		d.shelf.Archive = archive.New(gone)
		record := d.shelf.Record
		d.shelf.Record = func(ctx context.Context, post *v1alpha1.Post) error { return fmt.Errorf("the store is unavailable") }
		Expect(d.sweep(ctx)).NotTo(Succeed())
		d.shelf.Archive, d.shelf.Record = archive.New(bucket), record
		Expect(d.late()).To(Equal(3*day), "the record is due all the while, although the sweep does not retry it earlier")
		d.sweepAfter(ctx, retryAfter)
		Expect(d.stored(ctx)).To(BeEmpty())
	})

	DescribeTable("remains if the archive rejects its record, and does not block others:", func(ctx SpecContext, why error, sweeps int, odd ...string) {
		d := newDesk(ctx)
		d.post(ctx, "a-first", 5*day)
		for _, name := range odd {
			d.post(ctx, name, 5*day)
		}
		d.post(ctx, "z-last", 4*day)
		record := d.shelf.Record
		d.shelf.Record = func(ctx context.Context, post *v1alpha1.Post) error {
			if slices.Contains(odd, post.Name) {
				return why
			}
			return record(ctx, post)
		}
		Expect(d.sweep(ctx)).To(MatchError(why))
		for range sweeps - 1 {
			Expect(d.sweep(ctx)).To(Succeed())
		}
		Expect(d.stored(ctx)).To(ConsistOf(odd))
		Expect(d.listed(ctx)).To(ConsistOf("a-first", "z-last"))
		Expect(d.late()).To(Equal(3*day), "the lag includes the rejected post")

		d.shelf.Record = record
		d.sweepAfter(ctx, retryAfter)
		Expect(d.stored(ctx)).To(BeEmpty())
	},
		Entry("one", errors.New("the store refuses it"), 1, "b-odd"),
		Entry("two adjacent ones; the rest follows in the next sweep", errors.New("the store refuses it"), 2, "b-odd", "c-odd"),
		Entry("adjacent ones with separate faults", archive.ErrNotFound, 1, "b-odd", "c-odd", "d-odd"),
	)

	It("remains for the longer retention without a bucket", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.files = store.None()
		d.restart()
		d.post(ctx, "young", 9*day)
		d.post(ctx, "old", 11*day)
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(ConsistOf("young"))
		d.sweepAfter(ctx, day+time.Second)
		Expect(d.stored(ctx)).To(BeEmpty())
	})

	It("is ignored in a team that is being deleted", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.post(ctx, "old", 5*day)
		d.team.Finalizers = []string{v1alpha1.RecordsFinalizer}
		Expect(k8s.Update(ctx, d.team)).To(Succeed())
		Expect(k8s.Delete(ctx, d.team)).To(Succeed())
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(ConsistOf("old"))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d.team), d.team)).To(Succeed())
		d.team.Finalizers = nil
		Expect(k8s.Update(ctx, d.team)).To(Succeed())
	})
})

var _ = DescribeTable("A finished post remains if its Team is deleted during a sweep", func(ctx SpecContext, point string, stay int) {
	d := newDesk(ctx)
	d.post(ctx, "first", 5*day)
	d.post(ctx, "second", 5*day)
	d.team.Finalizers = []string{v1alpha1.RecordsFinalizer}
	Expect(k8s.Update(ctx, d.team)).To(Succeed())
	d.Failpoint = func(at string) {
		if at == point {
			Expect(k8s.Delete(ctx, d.team)).To(Succeed())
		}
	}
	Expect(d.sweep(ctx)).To(Succeed())
	Expect(d.stored(ctx)).To(HaveLen(stay))
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d.team), d.team)).To(Succeed())
	d.team.Finalizers = nil
	Expect(k8s.Update(ctx, d.team)).To(Succeed())
},
	Entry("before its record, which is then not written", PointBeforeArchive, 2),
	Entry("after its record, which is deleted with the Team", PointAfterRecord, 2),
	Entry("after its list entry, which is deleted too", PointAfterArchive, 2),
	Entry("after another one left", PointAfterDelete, 1),
)

var _ = DescribeTable("The cleared archive of a deleted Team is not recreated", func(ctx SpecContext, write func(ctx context.Context, d *desk, post *v1alpha1.Post) error) {
	d := newDesk(ctx)
	post := d.post(ctx, "old", 5*day)
	d.post(ctx, "other", 5*day)
	Expect(d.sweep(ctx)).To(Succeed())
	Expect(d.listed(ctx)).To(ConsistOf("old", "other"))
	before := d.team.DeepCopy()
	Expect(k8s.Delete(ctx, d.team)).To(Succeed())
	Expect(archive.New(bucket).Clear(ctx, d.of())).Error().NotTo(HaveOccurred())
	d.restart()
	d.team = before // the view of a process that started before
	Expect(write(ctx, d, post)).To(Succeed())
	for object, err := range bucket.List(ctx, d.of().Prefix()) {
		Expect(err).NotTo(HaveOccurred())
		Expect(object.Key).To(BeEmpty(), "the key must be empty, because no list refers to it")
	}
},
	Entry("by a late entry of a post", func(ctx context.Context, d *desk, post *v1alpha1.Post) error {
		return d.shelf.List(ctx, d.team, post)
	}),
	Entry("by rebuilding lists", func(ctx context.Context, d *desk, _ *v1alpha1.Post) error {
		_, err := bucket.PutDocument(ctx, d.of().Prefix()+"index", "application/octet-stream", []byte("half of it"), store.Any)
		Expect(err).NotTo(HaveOccurred())
		_, err = d.shelf.Expire(ctx, d.team, d.Policy.Of(d.team))
		return err
	}),
)

var _ = It("clears a Team's archive once all writes have finished", func(ctx SpecContext) {
	d := newDesk(ctx)
	d.post(ctx, "old", 5*day)
	Expect(d.sweep(ctx)).To(Succeed())
	ended, cancel := context.WithCancel(ctx)
	cancel()
	may := d.shelf.MayDelete
	d.shelf.MayDelete = func(ctx context.Context) error {
		_, err := d.shelf.Archive.Clear(ended, d.of())
		Expect(err).To(MatchError(ContainSubstring("still being written")), "a kill now would leave the written objects in the bucket")
		return may(ctx)
	}
	Expect(d.shelf.Expire(ctx, d.team, d.Policy.Of(d.team))).Error().NotTo(HaveOccurred())
	Expect(d.shelf.Archive.Clear(ctx, d.of())).To(BeFalse(), "no write is pending")
})

var _ = Describe("The sweep", func() {
	It("does not read posts while none can be due", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.post(ctx, "young", hour)
		Expect(d.sweep(ctx)).To(Succeed())
		d.reads.lists = 0
		for range 100 {
			d.sweepAfter(ctx, sweepEvery)
		}
		Expect(d.reads.lists).To(BeZero(), "50 minutes within a day")
		d.sweepAfter(ctx, hour)
		Expect(d.reads.lists).To(Equal(2), "older days are read once an hour, for clients and for schedules")
	})

	DescribeTable("continues wherever the previous process was killed", func(ctx SpecContext, point string) {
		d := newDesk(ctx)
		names := []string{}
		for i := range 5 {
			names = append(names, d.post(ctx, fmt.Sprintf("p%d", i), 5*day).Name)
		}
		reached := false
		d.Failpoint = func(at string) {
			if at == point && !reached {
				reached = true
				panic(killed{})
			}
		}
		Expect(func() { _ = d.sweep(ctx) }).To(PanicWith(killed{}))
		Expect(reached).To(BeTrue())
		for _, name := range names {
			stored, recorded := d.stored(ctx), d.recorded(ctx, name)
			Expect(append(stored, recorded...)).To(ContainElement(name), "a post can be read at every moment")
		}
		d.restart()
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(BeEmpty())
		Expect(d.listed(ctx)).To(ConsistOf(names), "each once")
		Expect(d.recorded(ctx, names...)).To(ConsistOf(names))
	},
		Entry("before the archive", PointBeforeArchive),
		Entry("after the record", PointAfterRecord),
		Entry("after the lists", PointAfterArchive),
		Entry("after the finalizer", PointAfterRelease),
		Entry("after the deletion", PointAfterDelete),
	)
})

// refusing fails to read one object.
type refusing struct {
	client.Reader
	name string
}

func (r refusing) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if key.Name == r.name {
		return errors.New("no record")
	}
	return r.Reader.Get(ctx, key, obj, options...)
}

// killed is the panic value that ends a process.
type killed struct{}

var _ = Describe("The archive", func() {
	It("deletes all of a post's data when its retention expires", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.post(ctx, "old", 5*day)
		d.post(ctx, "older", 9*day)
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.listed(ctx)).To(ConsistOf("old", "older"))
		d.sweepAfter(ctx, day+hour)
		Expect(d.listed(ctx)).To(ConsistOf("old"))
		Expect(d.recorded(ctx, "old", "older")).To(ConsistOf("old"))
	})

	It("keeps only the post that it cannot delete", func(ctx SpecContext) {
		d := newDesk(ctx)
		for _, name := range []string{"a", "b", "c"} {
			d.post(ctx, name, 9*day)
		}
		Expect(d.sweep(ctx)).To(Succeed())
		d.clock.Step(day + hour)
		reader := d.shelf.APIReader
		d.shelf.APIReader = refusing{reader, "b"}
		Expect(d.sweep(ctx)).To(MatchError(ContainSubstring("1 posts remain")))
		Expect(d.listed(ctx)).To(ConsistOf("b"))
		Expect(d.recorded(ctx, "a", "b", "c")).To(ConsistOf("b"))
		d.shelf.APIReader = reader
		d.sweepAfter(ctx, hour)
		Expect(d.listed(ctx)).To(BeEmpty())
	})

	It("keeps a post with an Idempotency-Key for a day after its creation, and an applied one for a day after it left the cluster", func(ctx SpecContext) {
		d := newDesk(ctx, func(s *v1alpha1.TeamSpec) {
			s.Retention = v1alpha1.TeamRetention{InCluster: &v1alpha1.Duration{}, Archived: &v1alpha1.Duration{}, Applied: true}
		})
		d.clock.SetTime(time.Now().Add(time.Second))
		d.post(ctx, "plain", 0)
		d.post(ctx, "with-key", 0, withRequest)
		d.post(ctx, "applied", 0, applied)
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(BeEmpty())
		d.sweepAfter(ctx, 23*hour)
		Expect(d.listed(ctx)).To(ConsistOf("with-key", "applied"))
		d.sweepAfter(ctx, 2*hour)
		Expect(d.listed(ctx)).To(BeEmpty())
		Expect(d.recorded(ctx, "plain", "with-key", "applied")).To(ConsistOf("applied"), "a tool may apply the post again")
		d.sweepAfter(ctx, 2*day)
		Expect(d.recorded(ctx, "applied")).To(BeEmpty(), "two days after the first sweep without a reference")
	})

	It("keeps a post while its Idempotency-Key is valid, even if its team shortens the retention", func(ctx SpecContext) {
		d := newDesk(ctx, func(s *v1alpha1.TeamSpec) {
			s.Retention = v1alpha1.TeamRetention{InCluster: &v1alpha1.Duration{}, Archived: &v1alpha1.Duration{Duration: 10 * day}}
		})
		d.clock.SetTime(time.Now().Add(time.Second))
		d.post(ctx, "plain", 0)
		d.post(ctx, "with-key", 0, withRequest)
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.listed(ctx)).To(ConsistOf("plain", "with-key"))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d.team), d.team)).To(Succeed())
		d.team.Spec.Retention.Archived = &v1alpha1.Duration{Duration: hour}
		Expect(k8s.Update(ctx, d.team)).To(Succeed())
		d.sweepAfter(ctx, 23*hour)
		Expect(d.recorded(ctx, "plain", "with-key")).To(ConsistOf("with-key"))
		d.sweepAfter(ctx, day)
		d.sweepAfter(ctx, 2*day)
		Expect(d.recorded(ctx, "with-key")).To(BeEmpty())
	})

	DescribeTable("rebuilds its lists from the records if a list file is damaged", func(ctx SpecContext, doing func(SpecContext, *desk), posts int) {
		d := newDesk(ctx)
		d.shelf.Lists.Shrink(2, 2, 4)
		for i := range 5 {
			d.post(ctx, fmt.Sprint("old-", i), 5*day)
		}
		Expect(d.sweep(ctx)).To(Succeed())
		d.restart()
		d.shelf.Lists.Shrink(2, 2, 4)
		d.damage(ctx)
		_, err := lists.NewReader(bucket, 1<<20).Open(ctx, lists.Team(d.of()), nil)
		Expect(err).To(MatchError(lists.ErrDamaged))
		doing(ctx, d)
		Expect(d.sweep(ctx)).To(Succeed())
		view := suite.Must(lists.NewReader(bucket, 1<<20).Open(ctx, lists.Team(d.of()), nil))
		Expect(view.Posts()).To(Equal(posts))
		Expect(d.stored(ctx)).To(BeEmpty())
	},
		Entry("when a post is archived", func(ctx SpecContext, d *desk) { d.post(ctx, "next", 5*day) }, 6),
		Entry("when it looks for expired posts", func(ctx SpecContext, d *desk) {
			d.sweepAfter(ctx, 5*day+hour)
		}, 0),
	)

	It("does not delete anything in another cluster's bucket", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.post(ctx, "older", 9*day)
		Expect(d.sweep(ctx)).To(Succeed())
		d.clock.Step(day + hour)
		d.foreign = errors.New("the bucket is marked as another cluster's")
		Expect(d.sweep(ctx)).To(MatchError(d.foreign))
		Expect(d.listed(ctx)).To(ConsistOf("older"))
		Expect(d.recorded(ctx, "older")).To(ConsistOf("older"))
		d.foreign = nil
		d.sweepAfter(ctx, hour)
		Expect(d.recorded(ctx, "older")).To(BeEmpty())
	})

	It("deletes requests when their keys expire", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.clock.SetTime(time.Now())
		Expect(d.shelf.Archive.PutRequest(ctx, d.of(), "draft", archive.Request{UID: "u", Fingerprint: "v1:abc"})).To(Succeed())
		request := func() error {
			_, err := d.shelf.Archive.Request(ctx, d.of(), "draft")
			return err
		}
		d.sweepAfter(ctx, 23*hour)
		Expect(request()).To(Succeed())
		d.sweepAfter(ctx, 25*hour)
		Expect(request()).To(MatchError(archive.ErrNotFound))
	})

	It("keeps the record of a post that is in the cluster again", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.post(ctx, "back", 9*day)
		Expect(d.sweep(ctx)).To(Succeed())
		d.post(ctx, "back", 0)
		d.sweepAfter(ctx, day+hour)
		Expect(d.listed(ctx)).To(BeEmpty())
		Expect(d.recorded(ctx, "back")).To(ConsistOf("back"))
	})

	It("keeps the record of a later post with the same name, which was deleted before it finished, for its own retention", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.clock.SetTime(time.Now())
		first := d.post(ctx, "launch", 9*day)
		Expect(d.sweep(ctx)).To(Succeed())
		second := first.DeepCopy()
		second.UID, second.Status.Finished, second.Status.FinishedAt = "of-the-second", false, nil
		Expect(d.shelf.Record(ctx, second)).To(Succeed())
		d.sweepAfter(ctx, day+hour)
		Expect(d.listed(ctx)).To(BeEmpty())
		Expect(d.recorded(ctx, "launch")).To(ConsistOf("launch"))
		d.sweepAfter(ctx, 10*day)
		Expect(d.recorded(ctx, "launch")).To(ConsistOf("launch"))
		d.sweepAfter(ctx, 2*day)
		Expect(d.recorded(ctx, "launch")).To(BeEmpty(), "the daily sweep deletes the record")
	})

	It("deletes records without list entries, except those that a post needs", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.clock.SetTime(time.Now())
		there := d.post(ctx, "there", 0, applied)
		never := there.DeepCopy()
		never.Name = "deleted-before-its-end"
		for _, post := range []*v1alpha1.Post{there, never} {
			Expect(d.shelf.Record(ctx, post)).To(Succeed())
		}
		d.sweepAfter(ctx, 11*day)
		Expect(d.recorded(ctx, "there", never.Name)).To(ConsistOf("there", never.Name))
		d.sweepAfter(ctx, 2*day)
		Expect(d.recorded(ctx, "there", never.Name)).To(ConsistOf("there"))
	})

	It("reports the number of archived posts in the Team's status", func(ctx SpecContext) {
		d := newDesk(ctx)
		d.post(ctx, "a", 5*day)
		d.post(ctx, "b", 9*day)
		teller := &ListReporter{Archiver: d.shelf, Metrics: NewMetrics(nil)}
		archived := func() *v1alpha1.TeamArchive {
			GinkgoHelper()
			for of := range d.shelf.drainChanged() {
				Expect(teller.report(ctx, of)).To(Succeed())
			}
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d.team), d.team)).To(Succeed())
			return d.team.Status.Archive
		}
		Expect(archived()).To(BeNil())
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(archived()).To(HaveValue(HaveField("Posts", int64(2))))
		before, version := d.team.Status.Archive.Revision, d.team.ResourceVersion
		d.sweepAfter(ctx, time.Minute)
		archived()
		Expect(d.team.ResourceVersion).To(Equal(version), "an unchanged status is not written")
		d.sweepAfter(ctx, day+hour)
		Expect(archived()).To(HaveValue(And(HaveField("Posts", int64(1)), HaveField("Revision", BeNumerically(">", before)))))
	})
})
