// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/internal/media/store"
)

const (
	// clearAtOnce is how many removals are under way at a time, and clearMost how many one
	// call makes: some seconds' worth of a store that answers in 50 ms.
	clearAtOnce = 16
	clearMost   = 1000
)

// Clear removes what is kept of a team, records and lists, so much of it at most as takes
// seconds, and reports whether something is left. The Team must be seen to be deleted before, by
// those who write too: what they are writing by then is waited for.
func (a *Archive) Clear(ctx context.Context, team Team) (left bool, err error) {
	if err := a.quiet(ctx, team); err != nil {
		return true, err
	}
	_, left, err = a.remove(ctx, team, team.Prefix(), func(store.Object) (bool, error) { return true, nil })
	return left, err
}

// remove removes documents under a prefix that goes says are to go.
func (a *Archive) remove(ctx context.Context, team Team, under string, goes func(store.Object) (bool, error)) (n int, left bool, err error) {
	if a.Absent() {
		return 0, false, nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clearAtOnce)
	list := func() error {
		for object, err := range a.store.List(ctx, under) {
			if err != nil {
				return err
			}
			switch gone, err := goes(object); {
			case err != nil:
				return err
			case !gone:
				continue
			case n == clearMost:
				left = true
				return nil
			}
			n++
			group.Go(func() error { return a.store.Delete(ctx, object.Key) })
		}
		return nil
	}
	if err := errors.Join(list(), group.Wait()); err != nil {
		return n, true, explain("cannot remove what is kept of team "+team.Name, err)
	}
	return n, left, nil
}
