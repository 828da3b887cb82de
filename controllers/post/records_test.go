// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/posting/record"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/storetest"
	"github.com/herald-social/herald/test/suite"
)

// keeping is an archive in a real store, whose connection can be cut.
type keeping struct {
	*archive.Archive
	bucket *store.Store
	wire   http.Transport
	cut    atomic.Bool
	// If full is set, the store accepts no writes.
	full atomic.Bool
	// If stalls is set, the store does not respond to requests until they are cancelled. asked counts requests.
	stalls atomic.Bool
	asked  atomic.Int64
	// refuses responds to requests in place of the store, unless it returns neither a response nor an error.
	refuses atomic.Pointer[func(*http.Request) (*http.Response, error)]
	// ahead is the offset of the manager's clock.
	ahead atomic.Int64
}

// errCut is the error for requests over a cut connection, and errFull is the error for writes to a full store.
var (
	errCut  = errors.New("the link to the store is cut")
	errFull = errors.New("the store is full")
)

func (k *keeping) RoundTrip(req *http.Request) (*http.Response, error) {
	k.asked.Add(1)
	if k.cut.Load() {
		return nil, errCut
	}
	if k.full.Load() && req.Method == http.MethodPut {
		return nil, errFull
	}
	if k.stalls.Load() {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	if refuses := k.refuses.Load(); refuses != nil {
		if response, err := (*refuses)(req); response != nil || err != nil {
			return response, err
		}
	}
	return k.wire.RoundTrip(req)
}

func newKeeping() *keeping {
	GinkgoHelper()
	k := &keeping{}
	config := storetest.Start(GinkgoT())
	config.Transport = k
	k.bucket = suite.Must(store.New(config))
	k.Archive = archive.New(k.bucket)
	return k
}

// later is the real clock with an offset.
type later struct {
	clock.WithTicker
	k *keeping
}

func (l later) Now() time.Time { return l.WithTicker.Now().Add(time.Duration(l.k.ahead.Load())) }

func (l later) Since(t time.Time) time.Duration { return l.Now().Sub(t) }

// createTeam creates the Team that ownerOf returns.
func (t team) createTeam(ctx context.Context) {
	GinkgoHelper()
	owner, _ := ownerOf(ctx, t.namespace)
	owner.Spec.DisplayName = "Acme"
	Expect(k8s.Create(ctx, owner)).To(Succeed())
}

// throughAPI marks a post as one that came through the REST API just now.
func throughAPI(p *v1alpha1.Post) {
	p.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
	p.Annotations = map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(time.Now()).String()}
}

// ownerOf returns the Team of a namespace in these specs.
func ownerOf(_ context.Context, namespace string) (*v1alpha1.Team, error) {
	return &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "of-" + namespace}, Spec: v1alpha1.TeamSpec{Namespace: namespace}}, nil
}

func (k *keeping) options(o *post.Options) {
	o.Records = &post.Records{Archive: k.Archive, Owner: ownerOf, RetryPause: 200 * time.Millisecond}
	o.Clock = later{clock.RealClock{}, k}
}

// of returns a post's record, or nil if there is none.
func (k *keeping) of(ctx context.Context, namespace, name string) *record.Record {
	GinkgoHelper()
	data, err := k.Get(ctx, archive.Team{Namespace: namespace, Name: "of-" + namespace}, name)
	if errors.Is(err, archive.ErrNotFound) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return suite.Must(record.Decode(data))
}

// apply creates a post as GitOps tools do: with a chosen name and without a finalizer.
func (t team) apply(ctx context.Context, name, text string, change ...func(*v1alpha1.Post)) *v1alpha1.Post {
	GinkgoHelper()
	return t.post(ctx, text, append([]func(*v1alpha1.Post){func(p *v1alpha1.Post) { p.Name, p.Finalizers = name, nil }}, change...)...)
}

func again(uid types.UID) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.PublishAgainAnnotation, string(uid))
	}
}

// remove deletes a post and waits until it is gone, like tools that replace a post.
func remove(ctx context.Context, p *v1alpha1.Post) {
	GinkgoHelper()
	Expect(k8s.Delete(ctx, p)).To(Succeed())
	Eventually(gone(ctx, p)).Should(BeTrue())
}

func gone(ctx context.Context, p *v1alpha1.Post) func() bool {
	return func() bool {
		return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(p), &v1alpha1.Post{}))
	}
}

// warned returns the notes of events with the given reason about an object.
func warned(ctx context.Context, namespace, name, reason string) func() []string {
	return func() (notes []string) {
		var list eventsv1.EventList
		Expect(k8s.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
		for i := range list.Items {
			if e := &list.Items[i]; e.Regarding.Name == name && e.Reason == reason {
				notes = append(notes, e.Note)
			}
		}
		return notes
	}
}

var _ = Describe("A post's record outlives it", func() {
	var m *manager
	var k *keeping
	var acme team
	BeforeEach(func(ctx SpecContext) {
		k = newKeeping()
		m = startManager(k.options)
		DeferCleanup(func() { m.stop() })
		acme = newTeam(ctx)
	})

	It("is written when the post finishes, with its external ids", func(ctx SpecContext) {
		p := posted(ctx, acme.apply(ctx, "launch", "hello"))
		Eventually(func() *record.Record { return k.of(ctx, acme.namespace, "launch") }).ShouldNot(BeNil())
		kept, now := k.of(ctx, acme.namespace, "launch"), read(ctx, p)
		Expect(kept.UID).To(Equal(now.UID))
		Expect(kept.Targets).To(HaveLen(1))
		Expect(kept.Targets[0].ExternalID).To(Equal(now.Status.Targets[0].ExternalID))
		Expect(kept.Targets[0].AccountID).To(Equal(acme.account.ID))
		Expect(kept.FinishedAt).To(Equal(now.Status.FinishedAt))
		Expect(now.Annotations).To(HaveKeyWithValue(v1alpha1.ArmedAnnotation, "launch/"+string(now.UID)))
	})

	DescribeTable("prevents a second publication:", func(ctx SpecContext, back func(ctx context.Context, p *v1alpha1.Post) *v1alpha1.Post) {
		p := posted(ctx, acme.apply(ctx, "launch", "hello"))
		first := read(ctx, p)
		second := back(ctx, first)
		Eventually(phase(ctx, second)).Should(Equal(v1alpha1.PhasePosted))
		now := read(ctx, second)
		Expect(now.UID).NotTo(Equal(first.UID))
		Expect(now.Status.Targets[0].ExternalID).To(Equal(first.Status.Targets[0].ExternalID))
		Expect(now.Status.Targets[0].ExternalURL).To(Equal(first.Status.Targets[0].ExternalURL))
		Expect(publishesBy(acme.account)).To(Equal(1))
		Expect(acme.published(ctx)).To(HaveLen(1))
		adopted := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionAdopted)
		Expect(adopted).NotTo(BeNil())
		Expect(adopted.Message).To(ContainSubstring(v1alpha1.PublishAgainAnnotation + ": " + string(now.UID)))
		Eventually(warned(ctx, acme.namespace, "launch", v1alpha1.ReasonAlreadyPublished)).ShouldNot(BeEmpty())
		Eventually(func() types.UID { return k.of(ctx, acme.namespace, "launch").UID }).Should(Equal(now.UID))
		Expect(k.of(ctx, acme.namespace, "launch").Earlier).To(ContainElement(first.UID))
	},
		Entry("deleted and applied again", func(ctx context.Context, p *v1alpha1.Post) *v1alpha1.Post {
			remove(ctx, p)
			return acme.apply(ctx, "launch", "hello")
		}),
		Entry("with other content", func(ctx context.Context, p *v1alpha1.Post) *v1alpha1.Post {
			remove(ctx, p)
			return acme.apply(ctx, "launch", "hello, with the typo mended")
		}),
		Entry("with a future time", func(ctx context.Context, p *v1alpha1.Post) *v1alpha1.Post {
			remove(ctx, p)
			return acme.apply(ctx, "launch", "hello", at(time.Hour))
		}),
		Entry("restored from a backup, without its status", func(ctx context.Context, p *v1alpha1.Post) *v1alpha1.Post {
			remove(ctx, p)
			return acme.restore(ctx, p)
		}),
		Entry("restored from a backup, created through the API", func(ctx context.Context, p *v1alpha1.Post) *v1alpha1.Post {
			remove(ctx, p)
			p.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
			p.Annotations = map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(time.Now().Add(-time.Hour)).String()}
			return acme.restore(ctx, p)
		}),
		Entry("by a retried Idempotency-Key", func(ctx context.Context, p *v1alpha1.Post) *v1alpha1.Post {
			remove(ctx, p)
			p.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
			p.Annotations = map[string]string{
				v1alpha1.BornAnnotation: v1alpha1.NewTime(time.Now()).String(), v1alpha1.RequestAnnotation: "v1:abc",
			}
			return acme.restore(ctx, p)
		}),
		Entry("after it was restored once already", func(ctx context.Context, p *v1alpha1.Post) *v1alpha1.Post {
			remove(ctx, p)
			next := posted(ctx, acme.apply(ctx, "launch", "hello"))
			remove(ctx, next)
			return acme.apply(ctx, "launch", "hello")
		}),
		Entry("after its connection was recreated with another name", func(ctx context.Context, p *v1alpha1.Post) *v1alpha1.Post {
			remove(ctx, p)
			acme.rename(ctx, "x", "x-renamed")
			return acme.apply(ctx, "launch", "hello", func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "x-renamed" })
		}),
	)

	It("is adopted by an API post that is deleted and applied again within seconds, with its original request", func(ctx SpecContext) {
		p := posted(ctx, acme.post(ctx, "hello", throughAPI))
		first := read(ctx, p)
		remove(ctx, p)
		p = posted(ctx, acme.restore(ctx, first))
		Expect(publishesBy(acme.account)).To(Equal(1))
		Expect(read(ctx, p).Status.Targets[0].ExternalID).To(Equal(first.Status.Targets[0].ExternalID))
	})

	It("allows one more publication at a user's request", func(ctx SpecContext) {
		p := posted(ctx, acme.apply(ctx, "launch", "hello"))
		first := read(ctx, p)
		remove(ctx, p)
		p = posted(ctx, acme.apply(ctx, "launch", "hello again", again(first.UID)))
		Expect(acme.published(ctx)).To(ConsistOf("hello", "hello again"))
		Expect(meta.FindStatusCondition(read(ctx, p).Status.Conditions, v1alpha1.ConditionAdopted)).To(BeNil())

		By("keeping the annotation, as GitOps tools do")
		second := read(ctx, p)
		remove(ctx, p)
		p = posted(ctx, acme.apply(ctx, "launch", "hello again and again", again(first.UID)))
		Expect(publishesBy(acme.account)).To(Equal(2))
		now := read(ctx, p)
		Expect(now.Status.Targets[0].ExternalID).To(Equal(second.Status.Targets[0].ExternalID))
		Expect(meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionAdopted).Message).To(ContainSubstring("not the latest record"))
	})

	It("leaves unknown outcomes to a user, and retries rejected targets", func(ctx SpecContext) {
		acme.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 400})
		p := acme.apply(ctx, "refused", "hello")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		remove(ctx, p)
		posted(ctx, acme.apply(ctx, "refused", "hello"))

		doubt := acme.apply(ctx, "doubt", "was it?", at(time.Hour))
		Eventually(phase(ctx, doubt)).Should(Equal(v1alpha1.PhaseScheduled))
		undecided := read(ctx, doubt)
		remove(ctx, doubt)
		was := record.New(undecided, "of-"+acme.namespace, func(string) (v1alpha1.Platform, string, bool) { return v1alpha1.PlatformX, acme.account.ID, true })
		was.Targets = []record.Target{{AccountID: acme.account.ID, Connection: "x", TargetStatus: v1alpha1.TargetStatus{
			Platform: v1alpha1.PlatformX, State: v1alpha1.TargetUndecided, Phase: v1alpha1.PhaseFailed, Attempt: &v1alpha1.Attempt{
				Number: 1, ID: "lost", AccountID: acme.account.ID, Outcome: v1alpha1.OutcomeUnknown,
				StartedAt: v1alpha1.NewTime(time.Now()), SendBefore: v1alpha1.NewTime(time.Now()),
			},
		}}}
		Expect(k.Put(ctx, archive.Team{Namespace: acme.namespace, Name: "of-" + acme.namespace}, "doubt", func([]byte) ([]byte, error) { return was.Encode() })).To(Succeed())
		doubt = acme.apply(ctx, "doubt", "was it?")
		Eventually(awaitsResolution(ctx, doubt)).Should(BeTrue())
		Expect(acme.published(ctx)).NotTo(ContainElement("was it?"))

		By("the user declares it not sent")
		Expect(k8s.Patch(ctx, doubt, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"social.herald.dev/settle":"0=not-sent"}}}`)))).To(Succeed())
		Eventually(phase(ctx, doubt)).Should(Equal(v1alpha1.PhasePosted))
		Expect(acme.published(ctx)).To(ContainElement("was it?"))
	})

	It("sends to a new account only", func(ctx SpecContext) {
		p := posted(ctx, acme.apply(ctx, "launch", "hello"))
		remove(ctx, p)
		second := acme.connect(ctx, "second")
		p = acme.apply(ctx, "launch", "hello", func(p *v1alpha1.Post) {
			p.Spec.Targets = append([]v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "second"}, Caption: "hello"}}, p.Spec.Targets...)
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(publishesBy(acme.account)).To(Equal(1))
		Expect(publishesBy(second)).To(Equal(1))
	})

	It("asks a user about a copy without a record", func(ctx SpecContext) {
		p := acme.apply(ctx, "copy", "hello", func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.ArmedAnnotation: "copy/00000000-0000-0000-0000-000000000000"}
		})
		Eventually(awaitsResolution(ctx, p)).Should(BeTrue())
		Expect(publishesBy(acme.account)).To(BeZero())
	})

	It("sends nothing unasked while the store is unavailable, and continues afterwards", func(ctx SpecContext) {
		k.cut.Store(true)
		applied := acme.apply(ctx, "waits", "hello")
		posted(ctx, acme.post(ctx, "from the API", throughAPI))
		Eventually(func() string { return acceptedReason(ctx, applied) }).Should(Equal(v1alpha1.ReasonRecordUnavailable))
		Expect(acme.published(ctx)).To(ConsistOf("from the API"))
		k.cut.Store(false)
		Eventually(phase(ctx, applied)).WithTimeout(time.Minute).Should(Equal(v1alpha1.PhasePosted))
	})

	It("keeps a deleted post until its record is stored", func(ctx SpecContext) {
		p := posted(ctx, acme.post(ctx, "hello"))
		k.cut.Store(true)
		Expect(k8s.Delete(ctx, p)).To(Succeed())
		Eventually(warned(ctx, acme.namespace, p.Name, v1alpha1.ReasonRecordUnavailable)).ShouldNot(BeEmpty())
		Expect(gone(ctx, p)()).To(BeFalse())
		k.cut.Store(false)
		Eventually(gone(ctx, p)).Should(BeTrue())
		Expect(k.of(ctx, acme.namespace, p.Name)).NotTo(BeNil())
	})

	It("releases a deleted post without a record after the store was unavailable for an hour, with an event", func(ctx SpecContext) {
		p := posted(ctx, acme.post(ctx, "hello"))
		k.cut.Store(true)
		Expect(k8s.Delete(ctx, p)).To(Succeed())
		Eventually(warned(ctx, acme.namespace, p.Name, v1alpha1.ReasonRecordUnavailable)).ShouldNot(BeEmpty())
		k.ahead.Store(int64(59 * time.Minute))
		Consistently(gone(ctx, p), time.Second).Should(BeFalse())
		k.ahead.Store(int64(62 * time.Minute))
		Eventually(gone(ctx, p)).Should(BeTrue())
		Eventually(warned(ctx, acme.namespace, p.Name, v1alpha1.ReasonRecordAbandoned)).ShouldNot(BeEmpty())
	})

	It("releases a deleted post after that hour if the store responds but rejects writes", func(ctx SpecContext) {
		k.full.Store(true)
		p := posted(ctx, acme.post(ctx, "hello"))
		Expect(k8s.Delete(ctx, p)).To(Succeed())
		Eventually(warned(ctx, acme.namespace, p.Name, v1alpha1.ReasonRecordUnavailable)).ShouldNot(BeEmpty())
		k.ahead.Store(int64(62 * time.Minute))
		other := acme.apply(ctx, "other", "hello, other one") // is looked up, and the store responds
		// The store is probed every 15 seconds, unless a record of another spec has just failed.
		Eventually(phase(ctx, other)).WithTimeout(2 * time.Minute).Should(Equal(v1alpha1.PhasePosted))
		Eventually(gone(ctx, p)).Should(BeTrue())
		Eventually(warned(ctx, acme.namespace, p.Name, v1alpha1.ReasonRecordAbandoned)).ShouldNot(BeEmpty())
	})

	It("releases many posts after that hour without a request to a stalled store for each", func(ctx SpecContext) {
		var posts []*v1alpha1.Post
		for range 48 {
			posts = append(posts, acme.post(ctx, "one of many "+time.Now().String()))
		}
		for _, p := range posts {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
			Eventually(func() *record.Record { return k.of(ctx, acme.namespace, p.Name) }).ShouldNot(BeNil())
		}
		k.cut.Store(true)
		for _, p := range posts[:2] {
			Expect(k8s.Delete(ctx, p)).To(Succeed())
			Eventually(warned(ctx, acme.namespace, p.Name, v1alpha1.ReasonRecordUnavailable)).ShouldNot(BeEmpty())
		}
		k.ahead.Store(int64(62 * time.Minute))
		for _, p := range posts[:2] {
			Eventually(gone(ctx, p)).Should(BeTrue())
		}

		k.stalls.Store(true)
		k.cut.Store(false)
		before := k.asked.Load()
		for _, p := range posts[2:] {
			Expect(k8s.Delete(ctx, p)).To(Succeed())
		}
		for _, p := range posts[2:] {
			Eventually(gone(ctx, p)).Should(BeTrue())
		}
		Expect(k.asked.Load()-before).To(BeNumerically("<", len(posts)/4), "one request probes the store for all posts")
	})

	It("releases a post of a terminating namespace, whether or not the store is available", func(ctx SpecContext) {
		p := posted(ctx, acme.post(ctx, "hello"))
		Eventually(func() *record.Record { return k.of(ctx, acme.namespace, p.Name) }).ShouldNot(BeNil())
		k.cut.Store(true)
		Expect(k8s.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: acme.namespace}})).To(Succeed())
		Expect(k8s.Delete(ctx, p)).To(Succeed()) // there is no namespace controller here
		Eventually(gone(ctx, p)).Should(BeTrue())
		Eventually(warned(ctx, metav1.NamespaceDefault, acme.namespace, v1alpha1.ReasonRecordAbandoned)).ShouldNot(BeEmpty())
	})

	DescribeTable("keeps the request of a post that was deleted before it was sent, while its key is valid:",
		func(ctx SpecContext, annotations map[string]string, age time.Duration, kept bool) {
			p := acme.post(ctx, "hello", at(48*time.Hour), func(p *v1alpha1.Post) { p.Annotations = annotations })
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
			k.ahead.Store(int64(age))
			remove(ctx, p)
			Expect(k.of(ctx, acme.namespace, p.Name)).To(BeNil(), "the manager had no call to adopt")
			request, err := k.Request(ctx, archive.Team{Namespace: acme.namespace, Name: "of-" + acme.namespace}, p.Name)
			if !kept {
				Expect(err).To(MatchError(archive.ErrNotFound))
				return
			}
			Expect(err).NotTo(HaveOccurred())
			Expect(request).To(Equal(archive.Request{Version: 1, UID: p.UID, Fingerprint: "v1:abc"}))
		},
		Entry("within a day", map[string]string{v1alpha1.RequestAnnotation: "v1:abc"}, time.Hour, true),
		Entry("not later", map[string]string{v1alpha1.RequestAnnotation: "v1:abc"}, 25*time.Hour, false),
		Entry("but not one without a key", nil, time.Hour, false),
	)

	DescribeTable("is stored, without a second publication, when the manager is killed", func(ctx SpecContext, point string) {
		m.stop()
		var dead atomic.Bool
		m = startManager(k.options, func(o *post.Options) {
			o.Failpoint = func(at string) {
				if at == point {
					dead.Store(true)
				}
				if dead.Load() && (at == post.PointBeforeKeep || at == post.PointAfterKeep || at == post.PointBeforeRelease) {
					runtime.Goexit() // this manager executes nothing after this point
				}
			}
		})
		p := posted(ctx, acme.apply(ctx, "launch", "hello"))
		Expect(k8s.Delete(ctx, p)).To(Succeed())
		Eventually(dead.Load).Should(BeTrue())
		Expect(gone(ctx, p)()).To(BeFalse())
		m.stop()
		m = startManager(k.options)
		Eventually(gone(ctx, p)).Should(BeTrue())
		Expect(k.of(ctx, acme.namespace, "launch")).NotTo(BeNil())
		posted(ctx, acme.apply(ctx, "launch", "hello"))
		Expect(publishesBy(acme.account)).To(Equal(1))
	},
		Entry("before the record is written", post.PointBeforeKeep),
		Entry("after the record is written", post.PointAfterKeep),
		Entry("before the finalizer is removed", post.PointBeforeRelease),
	)

	It("is backfilled by the next leader", func(ctx SpecContext) {
		m.stop()
		m = startManager() // a manager without records
		p := posted(ctx, acme.post(ctx, "hello"))
		acme.createTeam(ctx)
		m.stop()
		m = startManager(k.options)
		Eventually(func() *record.Record { return k.of(ctx, acme.namespace, p.Name) }).ShouldNot(BeNil())
		Expect(k.of(ctx, acme.namespace, p.Name).Targets[0].ExternalID).To(Equal(read(ctx, p).Status.Targets[0].ExternalID))
	})
})

// restore creates an object again as backup tools do: with the metadata that people and Herald have set, but without
// its status.
func (t team) restore(ctx context.Context, was *v1alpha1.Post) *v1alpha1.Post {
	GinkgoHelper()
	p := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Name: was.Name, Namespace: was.Namespace, Labels: was.Labels, Annotations: was.Annotations, Finalizers: []string{v1alpha1.DeliveryFinalizer},
		},
		Spec: was.Spec,
	}
	Expect(k8s.Create(ctx, p)).To(Succeed())
	return p
}

// rename replaces a connection with one to the same account under another name.
func (t team) rename(ctx context.Context, from, to string) {
	GinkgoHelper()
	var conn v1alpha1.Connection
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: from}, &conn)).To(Succeed())
	Expect(k8s.Delete(ctx, &conn)).To(Succeed())
	spec := conn.Spec
	Expect(k8s.Create(ctx, &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Name: to, Namespace: t.namespace}, Spec: spec})).To(Succeed())
	t.setReady(ctx, to, metav1.ConditionTrue, v1alpha1.ReasonConnected, t.account.Username)
}
