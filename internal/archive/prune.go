// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/media/store"
)

const (
	// unreferencedFile is the name of the document that says since when records are not needed.
	unreferencedFile = "unneeded.json"
	// maxUnreferenced is how many records are noted at a time, and maxUnreferencedBytes how many bytes they
	// take at most: a name has up to 253 characters. Others are noted when those are gone.
	maxUnreferenced      = 20_000
	maxUnreferencedBytes = 8 << 20
)

// PruneOptions says which records are removed.
type PruneOptions struct {
	// Now is the present, and Before the time before which a record was last written that may
	// go.
	Now, Before time.Time
	// GracePeriod is for how long it must have been needed by nobody.
	GracePeriod time.Duration
	// InUse reports whether somebody needs the record of a post.
	InUse func(post string) (bool, error)
}

// Prune removes records that nobody has needed for a while, so many of them at most as takes
// seconds, and returns how many, and whether some are left.
//
// When a record was written says nothing about when its post was last there. So each call notes
// in the bucket which records it found to be of no use, and one goes that every call has found
// so for long enough. Whoever is back in between finds it, and so do the posts of a cluster that
// is made anew.
func (a *Archive) Prune(ctx context.Context, team Team, f PruneOptions) (n int, left bool, err error) {
	if a.Absent() {
		return 0, false, nil
	}
	before, err := a.readUnreferenced(ctx, team)
	if err != nil {
		return 0, true, err
	}
	found := map[string]time.Time{}
	under := team.records()
	n, left, err = a.remove(ctx, team, under, func(o store.Object) (bool, error) {
		name, ok := nameOf(strings.TrimPrefix(o.Key, under))
		if !ok || !o.ModifiedAt.Before(f.Before) {
			return false, nil
		}
		if used, err := f.InUse(name); used || err != nil {
			return false, err
		}
		since, known := before[name]
		switch {
		case !known || since.Before(o.ModifiedAt): // It was needed and written again.
			since = f.Now
		case f.Now.Sub(since) >= f.GracePeriod:
			return true, nil
		}
		if len(found) < maxUnreferenced {
			found[name] = since
		}
		return false, nil
	})
	failed := err
	if err != nil && !errors.As(err, new(*faultsError)) {
		return n, left, err
	}
	// Records that could not be removed are found anew, and what was found of the others is noted all the same.
	if left { // What comes after those that went was not looked at.
		maps.Copy(before, found)
		found = before
	} else if maps.EqualFunc(before, found, time.Time.Equal) {
		return n, false, failed
	}
	return n, left, errors.Join(failed, a.writeUnreferenced(ctx, team, found))
}

// readUnreferenced returns since when each record was found to be of no use. A document that cannot be
// understood is one of nobody's: all begin anew.
func (a *Archive) readUnreferenced(ctx context.Context, team Team) (map[string]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	since := map[string]time.Time{}
	data, _, err := a.store.ReadDocument(ctx, team.Prefix()+unreferencedFile, "", maxUnreferencedBytes)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return since, nil
	case err != nil:
		return nil, explain("cannot read since when records of team "+team.Name+" are not needed", err)
	}
	if json.Unmarshal(data, &since) != nil || since == nil {
		return map[string]time.Time{}, nil
	}
	return since, nil
}

func (a *Archive) writeUnreferenced(ctx context.Context, team Team, since map[string]time.Time) error {
	data, err := json.Marshal(since)
	if err != nil {
		return fmt.Errorf("cannot write down since when records of team %s are not needed: %w", team.Name, err)
	}
	if err := a.write(ctx, team.Prefix()+unreferencedFile, data, store.Any); err != nil {
		return explain("cannot note since when records of team "+team.Name+" are not needed", err)
	}
	return nil
}
