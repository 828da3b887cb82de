// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package quota_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
)

// writes counts the calls of UpdateStatus. If entered is set, each call reports itself there and waits for proceed.
type writes struct {
	quota.API

	count            atomic.Int64
	entered, proceed chan struct{}
}

func (w *writes) UpdateStatus(ctx context.Context, u *v1alpha1.Usage) (*v1alpha1.Usage, error) {
	w.count.Add(1)
	if w.entered != nil {
		select {
		case w.entered <- struct{}{}:
			<-w.proceed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return w.API.UpdateStatus(ctx, u)
}

// The requests of one process wait for each other instead of conflicting, so that each needs one write.
func TestWritersOfOneProcessDoNotConflict(t *testing.T) {
	t.Parallel()
	namespace := team(t, "in-turn")
	api := &writes{API: quota.NewAPI(env.Client, env.Client)}
	store := quota.NewUsageStore(api)
	var racing sync.WaitGroup
	for i := range limit {
		racing.Go(func() {
			if ok, err := reserveOrConfirm(t.Context(), store, namespace, fmt.Sprint("p", i), ""); err != nil || !ok {
				t.Errorf("post %d: granted %v, error %v", i, ok, err)
			}
		})
	}
	racing.Wait()
	if got := api.count.Load(); got != limit {
		t.Errorf("%d writes of %d requests", got, limit)
	}
}

// A request that waits for another writer ends with its own context.
func TestWaitingWriterEndsWithItsContext(t *testing.T) {
	t.Parallel()
	namespace := team(t, "waiting")
	api := &writes{API: quota.NewAPI(env.Client, env.Client), entered: make(chan struct{}), proceed: make(chan struct{})}
	store := quota.NewUsageStore(api)
	var writing sync.WaitGroup
	ended := make(chan struct{})
	writing.Go(func() {
		defer close(ended)
		if _, err := reserveOrConfirm(t.Context(), store, namespace, "first", ""); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-api.entered:
	case <-ended:
		t.Fatal("the first request did not write")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := reserveOrConfirm(ctx, store, namespace, "second", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
	close(api.proceed)
	writing.Wait()
	if got := api.count.Load(); got != 1 {
		t.Errorf("%d writes, want only the first request's", got)
	}
}
