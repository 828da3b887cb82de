// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/must"
)

// onePostCache is the cache of a team with one scheduled post. Each read returns a copy, as the cache does.
type onePostCache struct {
	client.Client

	post *v1alpha1.Post
	conn *v1alpha1.Connection
}

func (h *onePostCache) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch obj := obj.(type) {
	case *v1alpha1.Post:
		h.post.DeepCopyInto(obj)
	case *v1alpha1.Connection:
		h.conn.DeepCopyInto(obj)
	default:
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return nil
}

func (h *onePostCache) Status() client.SubResourceWriter { return status{held: h} }

// status stores the manager's writes as the API server does.
type status struct {
	client.SubResourceWriter

	held *onePostCache
}

func (s status) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	if post, ok := obj.(*v1alpha1.Post); ok {
		s.held.post = post.DeepCopy()
	}
	return nil
}

// handedOut is the resync period of the cache: the default in controller-runtime.
const handedOut = 10 * time.Hour

// BenchmarkIdle measures what a post costs per day while it waits for a time in the distant future: ns/op and B/op are
// per day, and passes/day is the number of reconciliations of one scheduled post.
func BenchmarkIdle(b *testing.B) {
	now := clocktesting.NewFakeClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	h := &onePostCache{
		post: &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "team", UID: "uid", Generation: 1, CreationTimestamp: metav1.NewTime(now.Now())},
			Spec: v1alpha1.PostSpec{
				Category: v1alpha1.CategoryText, ScheduledAt: v1alpha1.NewTimePtr(now.Now().AddDate(200, 0, 0)),
				Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello"}, {ConnectionRef: v1alpha1.LocalReference{Name: "y"}, Caption: "hello"}},
			},
		},
		conn: &v1alpha1.Connection{
			ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "team", UID: "conn"},
			Spec:       v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: "1"},
		},
	}
	meta.SetStatusCondition(&h.conn.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected})
	r, err := post.New(post.Options{
		Client: h, APIReader: h, Platforms: platforms.Registry{v1alpha1.PlatformX: x.New(x.Config{}, transport.New(transport.Options{Registerer: prometheus.NewRegistry()}))},
		Tokens: tokens{live: h}, Files: bucket, Renditions: rendition.NewRenderer(bucket), Owned: envtest.EveryNamespace, Clock: now, NewID: rand.Text,
	})
	must.Succeed(b, err)
	pass := func() time.Duration {
		result, err := r.Reconcile(b.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(h.post)})
		must.Succeed(b, err)
		return result.RequeueAfter
	}
	pass() // it is accepted
	if !meta.IsStatusConditionTrue(h.post.Status.Conditions, v1alpha1.ConditionAccepted) {
		b.Fatalf("the post is not accepted: %+v", h.post.Status.Conditions)
	}
	again := pass()
	passes := 0
	left := min(again, handedOut)
	b.ReportAllocs()
	for b.Loop() {
		day := 24 * time.Hour
		for ; left <= day; passes++ {
			now.Step(left)
			day -= left
			left = min(pass(), handedOut)
		}
		now.Step(day)
		left -= day
	}
	b.ReportMetric(float64(passes)/float64(b.N), "passes/day")
}
