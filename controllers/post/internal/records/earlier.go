// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/record"
)

// Find reads the record of an earlier post with the same name. asked is true if it sent a request to the archive.
func (rs *Records) Find(ctx context.Context, post *v1alpha1.Post) (earlier delivery.Earlier, asked bool) {
	team, kept, err := rs.readableTeam(ctx, post.Namespace)
	switch {
	case err != nil:
		return delivery.Earlier{State: delivery.EarlierUnavailable, Problem: err.Error()}, false
	case !kept:
		return delivery.Earlier{State: delivery.EarlierDisabled}, false
	}
	var data []byte
	err = rs.breaker.execute(client.ObjectKeyFromObject(post), func() (err error) {
		data, err = rs.o.Records.Archive.Get(ctx, team, post.Name)
		return err //nolint:wrapcheck // the caller logs it
	})
	found, read := delivery.Earlier{State: delivery.EarlierFetched}, err == nil
	if read {
		found.Record, err = record.Decode(data)
	}
	if err != nil && !errors.Is(err, archive.ErrNotFound) {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look up an earlier post of this name", "uid", post.UID)
		problem := storeProblem
		if read || isRecordError(err) {
			problem = recordProblem
		}
		return delivery.Earlier{State: delivery.EarlierUnavailable, Problem: problem}, true
	}
	return found, true
}

// The problems in the status of a post whose record cannot be looked up: storeProblem if the store does not respond,
// recordProblem if only this record fails. Both are constant, so that retries do not change the status; the log has the
// error.
const (
	storeProblem  = "the store of media files does not respond, or does not return the record (the manager's log has the error)"
	recordProblem = "its record in the store of media files cannot be read, although other records can (the manager's log has the error)"
)
