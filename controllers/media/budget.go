// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/posting/plan"
)

// The team's budget limits the pending and fetching files. Beyond it, a Media is not given an upload URL and is not
// fetched. It proceeds when other files have arrived or expired. The REST API enforces the budget when it creates a
// Media; such Media count towards it but never wait.

const (
	pendingIndex = "pending"
	isPending    = "true"
	// minBudgetPause is the first pause before a waiting Media checks the budget again. Later pauses are a quarter of the
	// time waited, up to maxBudgetPause: a hundred thousand waiting Media must not delay other teams.
	minBudgetPause, maxBudgetPause = 30 * time.Second, 10 * time.Minute
	// reservationTTL is the lifetime of a reservation that the cache does not show yet; normally, a second is enough.
	reservationTTL = time.Minute
)

// pending indexes Media whose file may arrive at any time: they have an upload URL or are being fetched.
func pending(obj client.Object) []string {
	if m, ok := obj.(*v1alpha1.Media); ok && hasReservation(m) {
		return []string{isPending}
	}
	return nil
}

// hasReservation reports whether a Media already counts towards the budget.
func hasReservation(m *v1alpha1.Media) bool {
	if m.Status.Phase != "" && m.Status.Phase != v1alpha1.MediaPending || !m.DeletionTimestamp.IsZero() {
		return false
	}
	if m.Spec.Source == nil {
		return fromAPI(m) || m.Status.UploadURL != ""
	}
	reason := conditions.Reason(m.Status.Conditions)
	return reason == v1alpha1.ReasonFetching || reason == v1alpha1.ReasonFetchFailed
}

// reservations limits the pending files of teams to their budgets.
type reservations struct {
	client client.Reader
	clock  clock.PassiveClock
	// owner is Options.Owner.
	owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)

	mu sync.Mutex
	// byMedia holds the recent reservations, which the cache may not show yet.
	byMedia map[types.NamespacedName]reservation
}

type reservation struct {
	bytes int64
	at    time.Time
}

// reserve counts a Media towards its team's budget, unless it has a reservation already. If there is no room, message
// describes the exceeded limit.
func (p *reservations) reserve(ctx context.Context, m *v1alpha1.Media) (message string, err error) {
	if p.owner == nil || hasReservation(m) {
		return "", nil
	}
	team, err := p.owner(ctx, m.Namespace)
	if err != nil {
		return "", fmt.Errorf("cannot find the team whose budget applies to the file: %w", err)
	}
	budget := plan.BudgetOf(team)
	// The lock makes check and reservation atomic.
	p.mu.Lock()
	defer p.mu.Unlock()
	var others v1alpha1.MediaList
	err = p.client.List(ctx, &others, client.InNamespace(m.Namespace), client.MatchingFields{pendingIndex: isPending}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return "", fmt.Errorf("cannot count the pending files: %w", err)
	}
	key, size := client.ObjectKeyFromObject(m), plan.FileBytes(&m.Spec)
	files, bytes := p.uncached(key, &others, p.clock.Now())
	for i := range others.Items {
		files++
		bytes += plan.FileBytes(&others.Items[i].Spec)
	}
	name := m.Namespace
	if team != nil {
		name = team.Name
	}
	lacks := budget.Shortage(name,
		plan.Demand{Item: v1alpha1.BudgetPendingFiles, Used: files, More: 1},
		plan.Demand{Item: v1alpha1.BudgetPendingFileBytes, Used: bytes, More: size})
	if lacks != "" {
		return lacks, nil
	}
	p.byMedia[key] = reservation{size, p.clock.Now()}
	return "", nil
}

// uncached returns the number and bytes of a namespace's reservations that are not in shown, excluding the Media named
// but. It deletes the reservations that are in shown. The caller must hold the lock.
func (p *reservations) uncached(but types.NamespacedName, shown *v1alpha1.MediaList, now time.Time) (files, bytes int64) {
	for i := range shown.Items {
		delete(p.byMedia, client.ObjectKeyFromObject(&shown.Items[i]))
	}
	for key, given := range p.byMedia {
		switch {
		case now.Sub(given.at) >= reservationTTL:
			delete(p.byMedia, key)
		case key.Namespace == but.Namespace && key != but:
			files++
			bytes += given.bytes
		}
	}
	return files, bytes
}

func (r *Reconciler) reportBudgetFull(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus, message string) (time.Duration, error) {
	r.describe(m, v1alpha1.MediaPending, conditions.Underway, v1alpha1.ReasonBudgetLimit,
		"Waiting for room: "+message+" The file proceeds when there is room.")
	return pacing.Jitter(budgetPause(r.Clock.Since(m.CreationTimestamp.Time)), m.UID), r.write(ctx, m, before)
}

func budgetPause(waited time.Duration) time.Duration {
	return min(max(waited/4, minBudgetPause), maxBudgetPause)
}
