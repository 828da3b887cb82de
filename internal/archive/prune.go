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
	// unreferencedFile is the name of the document that stores the time since which each record has been unreferenced.
	unreferencedFile = "unneeded.json"
	// maxUnreferenced limits the number of records in the document, and maxUnreferencedBytes its size: a name has up to
	// 253 characters. More records are added once those are removed.
	maxUnreferenced      = 20_000
	maxUnreferencedBytes = 8 << 20
)

// PruneOptions select the records to remove.
type PruneOptions struct {
	// Now is the current time. Only records last written before Before are removed.
	Now, Before time.Time
	// GracePeriod is how long a record must have been unreferenced before it is removed.
	GracePeriod time.Duration
	// InUse reports whether the record of a post is still needed.
	InUse func(post string) (bool, error)
}

// Prune removes records that have been unreferenced for the grace period, and stops after a few seconds. It returns the
// number of removed records, and whether more are left.
//
// The time when a record was written does not reveal when its post last existed. So each call stores in the bucket
// which records were unreferenced, and a record is removed once every call during the grace period has found it
// unreferenced. A post that returns in the meantime finds its record, and so do the posts of a rebuilt cluster.
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
		case !known || since.Before(o.ModifiedAt): // It was referenced and written again in the meantime.
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
	// Records that could not be removed will be found again. The other results are stored regardless.
	if left { // Records after the removed ones were not examined.
		maps.Copy(before, found)
		found = before
	} else if maps.EqualFunc(before, found, time.Time.Equal) {
		return n, false, failed
	}
	return n, left, errors.Join(failed, a.writeUnreferenced(ctx, team, found))
}

// readUnreferenced returns the time since which each record has been unreferenced. A document that cannot be parsed is
// ignored, so all grace periods start over.
func (a *Archive) readUnreferenced(ctx context.Context, team Team) (map[string]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	since := map[string]time.Time{}
	data, _, err := a.store.ReadDocument(ctx, team.Prefix()+unreferencedFile, "", maxUnreferencedBytes)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return since, nil
	case err != nil:
		return nil, explain("cannot read the unreferenced records of team "+team.Name, err)
	}
	if json.Unmarshal(data, &since) != nil || since == nil {
		return map[string]time.Time{}, nil
	}
	return since, nil
}

func (a *Archive) writeUnreferenced(ctx context.Context, team Team, since map[string]time.Time) error {
	data, err := json.Marshal(since)
	if err != nil {
		return fmt.Errorf("cannot encode the unreferenced records of team %s: %w", team.Name, err)
	}
	if err := a.write(ctx, team.Prefix()+unreferencedFile, data, store.Any); err != nil {
		return explain("cannot store the unreferenced records of team "+team.Name, err)
	}
	return nil
}
