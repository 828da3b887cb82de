// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/internal/quota"
)

const (
	// budgetEvery is the minimum time between two writes of a team's budget usage.
	budgetEvery = 10 * time.Second
	// budgetTimeout is the timeout of a write, and maxConcurrentBudgets limits concurrent writes.
	budgetTimeout        = 10 * time.Second
	maxConcurrentBudgets = 4
)

// budgets writes the teams' budget usage to their Usages. Every replica computes the same values.
type budgets struct {
	owner      func(namespace string) *v1alpha1.Team
	uses       func(namespace string) []v1alpha1.BudgetUse
	store      *quota.UsageStore
	namespaces configv1alpha1.Namespaces
	clock      clock.Clock
	log        *slog.Logger
	// sources return the namespaces that changed since they were last called.
	sources []func() []string

	mu sync.Mutex
	// due holds the namespaces whose usage may differ from the stored usage.
	due map[string]struct{}
}

func newBudgets(service *bridge.Service, store *quota.UsageStore, namespaces configv1alpha1.Namespaces, c clock.Clock, log *slog.Logger,
	sources ...func() []string,
) *budgets {
	return &budgets{
		owner: service.Owner, uses: service.Budget, store: store, namespaces: namespaces, clock: c, log: log, sources: sources, due: map[string]struct{}{},
	}
}

type watch interface {
	Handle(handler cache.ResourceEventHandler)
}

// enqueueOnChange marks an object's namespace as due when the object changes.
func (b *budgets) enqueueOnChange(watch watch, namespace func(obj any) string) {
	changed := func(obj any) { b.mark(namespace(obj)) }
	watch.Handle(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, obj any) { changed(obj) }, DeleteFunc: changed,
	})
}

func namespaceOf(obj any) string {
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return ""
	}
	return name.Namespace
}

func ownedBy(obj any) string {
	if team, ok := obj.(*v1alpha1.Team); ok {
		return team.Spec.Namespace
	}
	return "" // nothing is written for a deleted team
}

func (b *budgets) mark(namespaces ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, namespace := range namespaces {
		if namespace != "" && b.namespaces.Include(namespace) {
			b.due[namespace] = struct{}{}
		}
	}
}

func (b *budgets) drain() []string {
	for _, changed := range b.sources {
		b.mark(changed()...)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	namespaces := make([]string, 0, len(b.due))
	for namespace := range b.due {
		namespaces = append(namespaces, namespace)
	}
	clear(b.due)
	return namespaces
}

func (b *budgets) run(ctx context.Context) {
	for {
		b.write(ctx)
		select {
		case <-b.clock.After(budgetEvery):
		case <-ctx.Done():
			return
		}
	}
}

// write stores the changed usage. Failed writes are retried next time.
func (b *budgets) write(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(maxConcurrentBudgets)
	for _, namespace := range b.drain() {
		group.Go(func() error {
			b.writeOne(ctx, namespace)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
}

func (b *budgets) writeOne(ctx context.Context, namespace string) {
	team := b.owner(namespace)
	// A Team that is not allowed to own the namespace is not ready. If that changes, its status changes too, which
	// makes the namespace due again.
	if team == nil || !meta.IsStatusConditionTrue(team.Status.Conditions, v1alpha1.ConditionReady) || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, budgetTimeout)
	defer cancel()
	switch err := b.store.RecordBudget(ctx, namespace, b.uses(namespace), b.clock.Now(), budgetEvery); {
	case errors.Is(err, quota.ErrRecentlyWritten):
		b.mark(namespace)
	case err != nil:
		b.mark(namespace)
		b.log.WarnContext(ctx, "Cannot store a team's budget usage; retrying", "namespace", namespace, "error", err)
	}
}
