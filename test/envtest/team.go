// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
)

// Team creates a namespace, and a Team of the same name that owns it, for suites without the team controller.
func (e *Environment) Team(ctx context.Context, namespace string) error {
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{v1alpha1.TeamLabel: namespace}}}
	if err := e.Client.Create(ctx, created); err != nil {
		return fmt.Errorf("cannot make the namespace of a team: %w", err)
	}
	return Own(ctx, e.Client, &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: v1alpha1.TeamSpec{Namespace: namespace}})
}

// Own creates a Team and marks it in its status as the owner of its namespace, as the team controller does.
func Own(ctx context.Context, c client.Client, team *v1alpha1.Team) error {
	if err := c.Create(ctx, team); err != nil {
		return fmt.Errorf("cannot make a team: %w", err)
	}
	conditions.Apply(&team.Status.Conditions, conditions.Summary{
		Ready: true, Reason: v1alpha1.ReasonNamespaceReady, Message: "as the test says", Progress: conditions.Settled,
	}, team.Generation, time.Now())
	if err := c.Status().Update(ctx, team); err != nil {
		return fmt.Errorf("cannot give a team its namespace: %w", err)
	}
	return nil
}

// EveryNamespace reports every namespace as owned, for suites without teams.
func EveryNamespace(context.Context, string) (bool, error) { return true, nil }

// Passes records the time that a controller's reconciliations have left.
type Passes struct {
	// Owned is called in each reconciliation.
	Owned func(ctx context.Context, namespace string) (bool, error)

	mu      sync.Mutex
	longest time.Duration
	endless bool
}

// IsOwned calls Owned and records the deadline of the reconciliation that called it.
func (p *Passes) IsOwned(ctx context.Context, namespace string) (bool, error) {
	end, ok := ctx.Deadline()
	p.mu.Lock()
	p.endless = p.endless || !ok
	p.longest = max(p.longest, time.Until(end))
	p.mu.Unlock()
	return p.Owned(ctx, namespace)
}

// Longest returns the longest time that a reconciliation had left when it called IsOwned, or zero if a reconciliation
// had no deadline or none called IsOwned.
func (p *Passes) Longest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.endless {
		return 0
	}
	return p.longest
}
