// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
)

// ErrRecentlyWritten means that another process has just written the Usage, and the caller should count again later.
var ErrRecentlyWritten = errors.New("another process has just written this Usage")

// RecordBudget stores a team's usage of its budget, unless it is stored already. Several processes count the same
// usage: if the last write is less than apart ago, RecordBudget does not write and returns ErrRecentlyWritten.
func (s *UsageStore) RecordBudget(ctx context.Context, namespace string, uses []v1alpha1.BudgetUse, now time.Time, apart time.Duration) error {
	stored, err := s.Read(ctx, namespace, v1alpha1.UsageSpec{Resource: v1alpha1.ResourceBudget})
	if err != nil {
		return err
	}
	if slices.Equal(stored.Status.Budget, uses) {
		return nil
	}
	if at := stored.Status.CountedAt; at != nil && now.Sub(at.Time) < apart && !at.After(now) {
		return ErrRecentlyWritten
	}
	if stored.ResourceVersion == "" {
		if stored, err = s.api.Create(ctx, stored); apierrors.IsAlreadyExists(err) {
			return ErrRecentlyWritten
		} else if err != nil {
			return fmt.Errorf("cannot create Usage %s/%s: %w", namespace, v1alpha1.ResourceBudget, err)
		}
	}
	next := stored.DeepCopy()
	next.Status = v1alpha1.UsageStatus{
		Limit: wholePercent, Used: int32(fullest(uses)), //nolint:gosec // at most 1000
		Budget: uses, CountedAt: v1alpha1.NewTimePtr(now),
	}
	switch _, err := s.api.UpdateStatus(ctx, next); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return ErrRecentlyWritten
	case err != nil:
		return fmt.Errorf("cannot write Usage %s/%s: %w", namespace, next.Name, err)
	default:
		return nil
	}
}

func fullest(uses []v1alpha1.BudgetUse) (most int) {
	for _, u := range uses {
		most = max(most, u.Percent())
	}
	return most
}

// wholePercent is the limit of a budget whose usage is a percentage.
const wholePercent = 100
