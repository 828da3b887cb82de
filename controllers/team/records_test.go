// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/team"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/storetest"
	"github.com/herald-social/herald/test/suite"
)

// archives are the two archives of the suite: one in a bucket, and one whose bucket was removed, for teams with that
// name. The archives of teams named "slow" are cleared once answers is closed; asked receives a value for each attempt.
type archives struct {
	there, lost    *archive.Archive
	asked, answers chan struct{}
}

const (
	withoutBucket = "lost"
	slowBucket    = "slow"
)

func startArchives() archives {
	GinkgoHelper()
	config := storetest.Start(GinkgoTB())
	there := suite.Must(store.New(config))
	config.Bucket = "no-such-bucket"
	lost := suite.Must(store.New(config))
	return archives{archive.New(there), archive.New(lost), make(chan struct{}, 1), make(chan struct{})}
}

// Clear implements team.Records.
func (a archives) Clear(ctx context.Context, namespace, name string) (bool, error) {
	of := a.there
	if strings.HasPrefix(name, withoutBucket) {
		of = a.lost
	}
	if strings.HasPrefix(name, slowBucket) {
		select {
		case a.asked <- struct{}{}:
		default:
		}
		select {
		case <-a.answers:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return of.Clear(ctx, archive.Team{Namespace: namespace, Name: name})
}

// heard stores the notes of events.
type heard struct {
	events.EventRecorder
	said []string
}

func (h *heard) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	h.said = append(h.said, fmt.Sprintf("%s %s: ", kind, reason)+fmt.Sprintf(note, args...))
}

var _ = Describe("A team's archive", func() {
	hasFinalizer := func(ctx context.Context, t *v1alpha1.Team) func() ([]string, error) {
		return func() ([]string, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(t), t)
			return t.Finalizers, err
		}
	}
	kept := func(ctx context.Context, t *v1alpha1.Team) (names []string) {
		for entry, err := range held.there.Entries(ctx, archive.Team{Namespace: t.Spec.Namespace, Name: t.Name}) {
			Expect(err).NotTo(HaveOccurred())
			names = append(names, entry.Post)
		}
		return names
	}
	put := func(ctx context.Context, t *v1alpha1.Team) {
		GinkgoHelper()
		Expect(held.there.Put(ctx, archive.Team{Namespace: t.Spec.Namespace, Name: t.Name}, "launch", func([]byte) ([]byte, error) { return []byte("x"), nil })).To(Succeed())
	}

	It("is deleted with the Team, without affecting a team with a similar name", func(ctx SpecContext) {
		base := name("held")
		t, other := create(ctx, base, name("ns")), create(ctx, base+"-two", name("ns"))
		for _, team := range []*v1alpha1.Team{t, other} {
			Eventually(hasFinalizer(ctx, team)).Should(ContainElement(v1alpha1.RecordsFinalizer))
			put(ctx, team)
		}
		Expect(k8s.Delete(ctx, t)).To(Succeed())
		Eventually(func() bool { return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(t), t)) }).Should(BeTrue())
		Expect(kept(ctx, t)).To(BeEmpty())
		Expect(kept(ctx, other)).To(ConsistOf("launch"))
	})

	It("keeps a Team for an hour if the store does not delete it, and an event names the remaining files", func(ctx SpecContext) {
		t := create(ctx, name(withoutBucket), name("ns"))
		Eventually(hasFinalizer(ctx, t)).Should(ContainElement(v1alpha1.RecordsFinalizer))
		Expect(k8s.Delete(ctx, t)).To(Succeed())
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(t), t)).To(Succeed())

		clock, told := clocktesting.NewFakePassiveClock(t.DeletionTimestamp.Add(time.Hour-time.Second)), &heard{}
		r := suite.Must(team.New(team.Options{
			Client: asManager, APIReader: asManager, Clock: clock, Events: told, Records: held,
			Manager: manager, APIServer: apiserver, ManagerNamespace: manager.Namespace, Names: names, Claimants: claimants,
		}))
		request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(t)}
		again := suite.Must(r.Reconcile(ctx, request))
		Expect(again.RequeueAfter).To(BeNumerically(">", 0))
		Expect(told.said).To(BeEmpty())

		clock.SetTime(t.DeletionTimestamp.Add(time.Hour))
		Expect(r.Reconcile(ctx, request)).Error().NotTo(HaveOccurred())
		Expect(apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(t), t))).To(BeTrue())
		Expect(told.said).To(ConsistOf(And(
			HavePrefix("Warning RecordsAbandoned: "), ContainSubstring("below _herald/archive/"+t.Spec.Namespace+"/"+t.Name+"/ in the bucket"))))
	})
})
