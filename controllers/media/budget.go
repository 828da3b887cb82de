// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/jitter"
	"github.com/herald-social/herald/posting/plan"
)

// A team's files are waited for, and fetched, within its budget: beyond it a Media gets no
// address to upload to and is not fetched. It has its turn when others have come, or are
// given up. The API refuses its own beforehand; those count, and are never kept waiting.

const (
	// pendingIndex is the index of the Media that take a part of the budget.
	pendingIndex = "pending"
	isPending    = "true"
	// minBudgetPause is how long a Media waits before it is looked whether there is room. One
	// that has waited for long waits a quarter of that time, up to maxBudgetPause: a
	// team may have a hundred thousand that wait, which must not keep others' from
	// being looked at.
	minBudgetPause, maxBudgetPause = 30 * time.Second, 10 * time.Minute
	// reservationTTL is how long a place is kept that the cache does not show: it does within
	// a second or so.
	reservationTTL = time.Minute
)

// pending lists what indexes a Media whose file may come at any time: it has an address, or
// is being fetched.
func pending(obj client.Object) []string {
	if m, ok := obj.(*v1alpha1.Media); ok && hasReservation(m) {
		return []string{isPending}
	}
	return nil
}

// hasReservation reports whether a Media takes a part of the budget already.
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

// reservations are those that were just given, which the cache may not show yet.
type reservations struct {
	mu      sync.Mutex
	byMedia map[types.NamespacedName]reservation
}

type reservation struct {
	bytes int64
	at    time.Time
}

// reserveBudget takes a place for a Media in its team's budget, unless it has one; otherwise message
// says what there is too much of.
func (r *Reconciler) reserveBudget(ctx context.Context, m *v1alpha1.Media) (message string, err error) {
	if r.Owner == nil || hasReservation(m) {
		return "", nil
	}
	team, err := r.Owner(ctx, m.Namespace)
	if err != nil {
		return "", fmt.Errorf("cannot find the team whose budget the file takes: %w", err)
	}
	budget := plan.BudgetOf(team)
	// One at a time looks, and takes.
	r.reservations.mu.Lock()
	defer r.reservations.mu.Unlock()
	var others v1alpha1.MediaList
	err = r.Client.List(ctx, &others, client.InNamespace(m.Namespace), client.MatchingFields{pendingIndex: isPending}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return "", fmt.Errorf("cannot count the files that are waited for: %w", err)
	}
	key, size := client.ObjectKeyFromObject(m), plan.FileBytes(&m.Spec)
	files, bytes := r.reservations.uncached(key, &others, r.Clock.Now())
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
	r.reservations.byMedia[key] = reservation{size, r.Clock.Now()}
	return "", nil
}

// uncached returns how many places of a namespace, but for one, were given that a list does
// not show yet, and their bytes. It forgets those that it shows. Its caller holds the lock.
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

// reportBudgetFull shows that a Media waits until the budget has room for it, and returns when to look
// again.
func (r *Reconciler) reportBudgetFull(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus, message string) (time.Duration, error) {
	r.describe(m, v1alpha1.MediaPending, conditions.Underway, v1alpha1.ReasonBudgetLimit,
		"Waiting for room: "+message+" The file has its turn by itself when there is room.")
	return jitter.Around(budgetPause(r.Clock.Since(m.CreationTimestamp.Time)), m.UID), r.write(ctx, m, before)
}

// budgetPause is how long a Media that has waited for so long waits for room again.
func budgetPause(waited time.Duration) time.Duration {
	return min(max(waited/4, minBudgetPause), maxBudgetPause)
}
