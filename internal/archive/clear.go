// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/internal/media/store"
)

const (
	// maxConcurrentRemovals limits concurrent removals, and maxRemovals limits the removals per call, to a few seconds of
	// work at 50 ms per response.
	maxConcurrentRemovals = 16
	maxRemovals           = 1000
)

// maxFaults limits the number of documents that are skipped because they cannot be removed. A single document must not
// block the others, but a store that rejects every removal must not be called for each document.
const maxFaults = 16

type faults struct {
	mu   sync.Mutex
	errs []error
}

func (f *faults) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.errs = append(f.errs, err)
	}
}

func (f *faults) many() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.errs) >= maxFaults
}

func (f *faults) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errs) == 0 {
		return nil
	}
	return &faultsError{len(f.errs), f.errs[0]}
}

// faultsError reports that every document was examined but some could not be removed.
type faultsError struct {
	n     int
	first error
}

func (e *faultsError) Error() string {
	return fmt.Sprintf("%d documents could not be removed, the first one because: %v", e.n, e.first)
}

func (e *faultsError) Unwrap() error { return e.first }

// Clear removes a team's records and lists, stops after a few seconds, and reports whether any are left. The caller
// must have seen that the Team is being deleted. Clear waits for writes that are in progress.
func (a *Archive) Clear(ctx context.Context, team Team) (left bool, err error) {
	if err := a.waitForWrites(ctx, team); err != nil {
		return true, err
	}
	_, left, err = a.remove(ctx, team, team.Prefix(), func(store.Object) (bool, error) { return true, nil })
	return left || err != nil, err
}

// remove removes the documents under a prefix for which goes returns true. A failure does not stop the others.
func (a *Archive) remove(ctx context.Context, team Team, under string, goes func(store.Object) (bool, error)) (n int, left bool, err error) {
	if a.Absent() {
		return 0, false, nil
	}
	var group errgroup.Group
	group.SetLimit(maxConcurrentRemovals)
	var failed faults
	list := func() error {
		for object, err := range a.store.List(ctx, under) {
			if err != nil {
				return err
			}
			if failed.many() {
				left = true
				return nil
			}
			switch gone, err := goes(object); {
			case err != nil:
				return err
			case !gone:
				continue
			case n == maxRemovals:
				left = true
				return nil
			}
			n++
			group.Go(func() error {
				failed.add(a.store.Delete(ctx, object.Key))
				return nil
			})
		}
		return nil
	}
	doing := "cannot remove the archive of team " + team.Name
	if err := errors.Join(list(), group.Wait()); err != nil {
		return n, true, explain(doing, err)
	}
	if err := failed.err(); err != nil {
		return n, left, fmt.Errorf("%s: %w", doing, err)
	}
	return n, left, nil
}
