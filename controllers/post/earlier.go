// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"

	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/record"
)

// findEarlier reads the record of an earlier post of the same name from the archive.
func (rs *records) findEarlier(ctx context.Context, p *reconciliation, f *delivery.Facts) {
	if p.state.earlier != nil {
		f.Earlier = *p.state.earlier
		return
	}
	team, kept, err := rs.readableTeam(ctx, p.key.Namespace)
	switch {
	case err != nil:
		f.Earlier = delivery.Earlier{State: delivery.EarlierUnavailable, Problem: err.Error()}
		return
	case !kept:
		f.Earlier = delivery.Earlier{State: delivery.EarlierDisabled}
		return
	}
	p.calledPlatform = true
	var data []byte
	err = rs.breaker.execute(p.key, func() (err error) {
		data, err = rs.o.Records.Archive.Get(ctx, team, p.key.Name)
		return err //nolint:wrapcheck // the caller logs it
	})
	found, read := delivery.Earlier{State: delivery.EarlierFetched}, err == nil
	if read {
		found.Record, err = record.Decode(data)
	}
	if err != nil && !errors.Is(err, archive.ErrNotFound) {
		p.log.Error(err, "cannot look up an earlier post of this name", "uid", p.post.UID)
		f.Earlier = delivery.Earlier{State: delivery.EarlierUnavailable, Problem: storeProblem}
		if read || isRecordError(err) {
			f.Earlier.Problem = recordProblem
		}
		return
	}
	p.state.earlier = &found
	f.Earlier = found
}

// The problems in the status of a post whose record cannot be looked up: storeProblem if the store does not answer, and
// recordProblem if it only fails for this record. Both are constant, so that retries do not change the status; the log
// has the error.
const (
	storeProblem  = "the store of media files does not answer, or does not give out what became of it (the manager's log has the error)"
	recordProblem = "what the store of media files holds in the place of its record cannot be read, while other records can (the manager's log has the error)"
)
