// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/test/must"
)

type noOwners struct{}

func (noOwners) Record(*v1alpha1.Post) {}

func (noOwners) Reserve(v1alpha1.Platform, string, string, types.UID, int32) bool { return true }

// TestRecordTurns covers two armed posts that share one turn for recording their results. The first post's first write
// fails, and its retry does not block the second post.
func TestRecordTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		must.Succeed(t, v1alpha1.AddToScheme(scheme))
		first := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "first"}}
		second := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "second"}}
		away := true
		api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(first).WithObjects(first, second).Build(), interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, _ string, obj client.Object, o ...client.SubResourceUpdateOption) error {
				if obj.GetName() == first.Name && away {
					return errors.New("away")
				}
				return c.Status().Update(ctx, obj, o...)
			},
		})
		clock := clocktesting.NewFakeClock(groupTime)
		scheduler := dispatch.NewScheduler(1)
		p := &Publisher{
			Client: api, APIReader: api, Clock: clock, RecordFor: time.Hour, Scheduler: scheduler, Owners: noOwners{}, Log: logr.Discard(),
			Recording:     dispatch.NewRecordLimit(1, clock, scheduler.Busy),
			DeadlineShift: func(context.Context, string) *delivery.Deadlines { return &delivery.Deadlines{} },
			Changed:       func(context.Context, *v1alpha1.Post, *v1alpha1.PostStatus) {},
		}
		recorded := make(chan error, 1)
		get := func(post *v1alpha1.Post) *v1alpha1.Post {
			must.Succeed(t, api.Get(t.Context(), client.ObjectKeyFromObject(post), post))
			return post
		}
		get(first)
		go func() { recorded <- p.recordInTurn(t.Context(), first, &WriteCache{}, nil, p.Recording.Acquire) }()
		synctest.Wait()
		must.Succeed(t, p.recordInTurn(t.Context(), get(second), &WriteCache{}, nil, p.Recording.Acquire))
		away = false
		clock.Step(firstPause)
		must.Succeed(t, <-recorded)
	})
}
