// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
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

// end ends the watch. expired determines whether the next watch is told that its resourceVersion has expired.
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

	It("is watched from where the last watch ended, and all are read again only if the API server has forgotten that", func(ctx SpecContext) {
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
		Expect(lists).To(Equal(1), "at the start, for what was deleted before")

		requests.end(false)
		Expect(k8s.Delete(ctx, posts[1])).To(Succeed())
		Eventually(gone(ctx, posts[1])).Should(BeTrue())
		again, resumed := requests.seen()
		Expect(again).To(Equal(lists), "nothing is listed when a watch goes on")
		Expect(resumed).To(Equal(watches + 1))

		requests.end(true)
		Expect(k8s.Delete(ctx, posts[2])).To(Succeed())
		Eventually(gone(ctx, posts[2])).Should(BeTrue())
		again, _ = requests.seen()
		Expect(again).To(Equal(lists+1), "what happened since is not known otherwise")
	})

	It("releases many at once, and tries again what fails", func(ctx SpecContext) {
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
