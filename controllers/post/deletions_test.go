// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/posting/record"
)

// finishedRequests is a RoundTripper that counts the lists and watches of finished posts, and ends watches as the API
// server does.
type finishedRequests struct {
	next http.RoundTripper

	mu             sync.Mutex
	lists, watches int
	// If expired is set, the response to the next watch is that its resourceVersion has expired.
	expired bool
	current io.Closer
}

func (f *finishedRequests) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if !strings.HasSuffix(r.URL.Path, "/posts") || query.Get("fieldSelector") != "status.finished=true" {
		return f.next.RoundTrip(r)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case query.Get("watch") == "":
		if query.Get("continue") == "" {
			f.lists++
		}
		return f.next.RoundTrip(r)
	case f.expired:
		f.expired = false
		status := apierrors.NewResourceExpired("too old resource version").Status()
		body, err := json.Marshal(&status)
		return &http.Response{
			StatusCode: http.StatusGone, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(string(body))), Request: r,
		}, err
	}
	f.watches++
	resp, err := f.next.RoundTrip(r)
	if err == nil {
		f.current = resp.Body
	}
	return resp, err
}

func (f *finishedRequests) seen() (lists, watches int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists, f.watches
}

// end ends the watch. expired determines whether the next watch gets the error that its resourceVersion has expired.
func (f *finishedRequests) end(expired bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expired = expired
	Expect(f.current.Close()).To(Succeed())
}

var _ = Describe("The deletion of finished posts", func() {
	gone := func(ctx context.Context, p *v1alpha1.Post) func() bool {
		return func() bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(p), &v1alpha1.Post{}))
		}
	}

	It("is watched from the last resourceVersion, and listed again only if the API server has expired that", func(ctx SpecContext) {
		requests := &finishedRequests{}
		config := rest.CopyConfig(env.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			requests.next = next
			return requests
		})
		m := startManagerBy(config, GinkgoLogr, interceptor.Funcs{})
		DeferCleanup(m.stop)
		t := newTeam(ctx)
		var posts []*v1alpha1.Post
		for _, text := range []string{"one", "two", "three"} {
			p := t.post(ctx, text)
			posts = append(posts, p)
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
		Expect(k8s.Delete(ctx, posts[0])).To(Succeed())
		Eventually(gone(ctx, posts[0])).Should(BeTrue())
		lists, watches := requests.seen()
		Expect(lists).To(Equal(1), "the initial list covers earlier deletions")

		requests.end(false)
		Expect(k8s.Delete(ctx, posts[1])).To(Succeed())
		Eventually(gone(ctx, posts[1])).Should(BeTrue())
		again, resumed := requests.seen()
		Expect(again).To(Equal(lists), "a resumed watch needs no list")
		Expect(resumed).To(Equal(watches + 1))

		requests.end(true)
		Expect(k8s.Delete(ctx, posts[2])).To(Succeed())
		Eventually(gone(ctx, posts[2])).Should(BeTrue())
		again, _ = requests.seen()
		Expect(again).To(Equal(lists+1), "only a list shows deletions since")
	})

	It("releases many finalizers concurrently, and retries failures", func(ctx SpecContext) {
		const together, failing = 8, 3
		var mu sync.Mutex
		failed, waiting, all := 0, 0, make(chan struct{})
		m := startDisturbed(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, isPost := obj.(*v1alpha1.Post); !isPost || obj.GetDeletionTimestamp().IsZero() {
				return c.Patch(ctx, obj, patch, opts...)
			}
			mu.Lock()
			if failed < failing {
				failed++
				mu.Unlock()
				return apierrors.NewServiceUnavailable("as the test says")
			}
			if waiting++; waiting == together {
				close(all)
			}
			mu.Unlock()
			select {
			case <-all:
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Second): // sequential releases would time out here
				return apierrors.NewTimeoutError("no other post is released meanwhile", 0)
			}
			return c.Patch(ctx, obj, patch, opts...)
		}})
		DeferCleanup(m.stop)
		t := newTeam(ctx)
		var posts []*v1alpha1.Post
		for range together {
			posts = append(posts, t.post(ctx, "one of many "+time.Now().String()))
		}
		for _, p := range posts {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
		for _, p := range posts {
			Expect(k8s.Delete(ctx, p)).To(Succeed())
		}
		for _, p := range posts {
			Eventually(gone(ctx, p)).Should(BeTrue())
		}
		Expect(failed).To(Equal(failing))
	})
})

// entries records the posts that were added to their teams' lists.
type entries struct {
	mu    sync.Mutex
	names []string
}

func (s *entries) options(o *post.Options) {
	o.Records.List = func(_ context.Context, p *v1alpha1.Post) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.names = append(s.names, p.Name)
		return nil
	}
}

func (s *entries) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.names, name)
}

// unheld records the posts that a manager writes as finished while they have no finalizer.
type unheld struct {
	mu    sync.Mutex
	names []string
}

func (u *unheld) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, part string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if p, ok := obj.(*v1alpha1.Post); ok && p.Status.Finished && !slices.Contains(p.Finalizers, v1alpha1.DeliveryFinalizer) {
				u.mu.Lock()
				u.names = append(u.names, p.Name)
				u.mu.Unlock()
			}
			return c.SubResource(part).Update(ctx, obj, opts...)
		},
	}
}

func (u *unheld) all() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.names)
}

var _ = Describe("An applied post without any sent target", func() {
	DescribeTable("leaves a record when it is deleted after it finished:", func(ctx SpecContext, phaseThen v1alpha1.PostPhase, change func(*v1alpha1.Post)) {
		k, lists, loose := newKeeping(), &entries{}, &unheld{}
		m := startDisturbed(loose.funcs(), k.options, lists.options)
		DeferCleanup(m.stop)
		acme := newTeam(ctx)
		p := acme.apply(ctx, "ended", "hello", change)
		Eventually(phase(ctx, p)).Should(Equal(phaseThen))
		Expect(read(ctx, p).Status.Finished).To(BeTrue())
		Expect(loose.all()).To(BeEmpty(), "the post might disappear as soon as it is finished")
		remove(ctx, p)
		Expect(k.of(ctx, acme.namespace, p.Name)).NotTo(BeNil(), "the record is read by its id")
		Expect(lists.has(p.Name)).To(BeTrue(), "the record is in the lists")
		Expect(publishesBy(acme.account)).To(BeZero())
	},
		Entry("its starting deadline passed", v1alpha1.PhaseFailed, at(-2*time.Hour)),
		Entry("the post was cancelled", v1alpha1.PhaseCancelled, func(p *v1alpha1.Post) { p.Spec.Draft, p.Spec.Cancelled = true, true }),
	)

	It("is deleted immediately without a bucket or a Team", func(ctx SpecContext) {
		k := newKeeping()
		runManager(k.options, func(o *post.Options) {
			o.Records.Owner = func(context.Context, string) (*v1alpha1.Team, error) { return nil, nil }
		})
		acme := newTeam(ctx)
		p := acme.apply(ctx, "ended", "hello", at(-2*time.Hour))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Finalizers).To(BeEmpty())
	})
})

var _ = Describe("A finished post whose finalizer was removed", func() {
	It("gets it again from the next manager, so its deletion is recorded in the lists", func(ctx SpecContext) {
		k, lists := newKeeping(), &entries{}
		m := startManager(k.options, lists.options)
		acme := newTeam(ctx)
		acme.createTeam(ctx)
		p := posted(ctx, acme.post(ctx, "hello"))
		Eventually(func() *record.Record { return k.of(ctx, acme.namespace, p.Name) }).ShouldNot(BeNil())
		m.stop()

		By("releasing it, as before an uninstall")
		edit(ctx, p, func(p *v1alpha1.Post) { p.Finalizers = nil })
		runManager(k.options, lists.options)
		Eventually(func() []string { return read(ctx, p).Finalizers }).Should(ConsistOf(v1alpha1.DeliveryFinalizer))
		remove(ctx, p)
		Expect(lists.has(p.Name)).To(BeTrue())
	})
})

var _ = Describe("A post that finishes while its Team is being deleted", func() {
	DescribeTable("does not leave a record", func(ctx SpecContext, deletedAt string) {
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
			Eventually(kept).Should(Receive(MatchError(ContainSubstring("still being written"))), "the cleanup of the archive waits for the write")
		}
		left := func() *record.Record { return k.of(ctx, acme.namespace, "launch") }
		Eventually(left).Should(BeNil())
		Consistently(left, time.Second).Should(BeNil())

		By("releasing the finalizer, as the namespace deletion requires")
		remove(ctx, p)
		Expect(left()).To(BeNil())
	},
		Entry("that was deleted before", post.PointAfterRecord),
		Entry("that is deleted before the record is written", post.PointBeforeKeep),
		Entry("that is deleted while the record is written", post.PointAfterKeep),
	)
})
