// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"context"
	"fmt"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// Confirm asks the platform about the id of a post that a person told for a target:
// people may tell any id, also that of another team's post. Only a connection whose
// account is verified can answer for that account. Without an answer nothing is
// confirmed.
func (l *Lookups) Confirm(ctx context.Context, f *delivery.Facts, t *v1alpha1.TargetStatus, externalID string) (said delivery.Confirmation) {
	conn := f.Connections[f.Post.Spec.Targets[t.Index].ConnectionRef.Name]
	timing, known := f.Timing(t.Platform)
	if !known || conn == nil || conn.Spec.Platform != t.Platform ||
		!conn.Status.Verified() || t.Attempt != nil && !attempt.SameAccount(t.Attempt, conn.Spec.AccountID) {
		return said
	}
	token, err := l.Token(ctx, conn)
	if err != nil {
		return said
	}
	job := l.Preparer.Job(&prepare.Target{Post: f.Post, Index: int(t.Index), Conn: conn, Media: f.Media, Token: token})
	ctx, cancel := context.WithTimeout(ctx, timing.CallTimeout)
	defer cancel()
	switch whose := l.whose(ctx, f, t, job, externalID); whose {
	case platforms.Own:
		said.AccountID = conn.Spec.AccountID
	case platforms.Foreign:
		said.Foreign = fmt.Sprintf("%s says that post %q is not one of account %s", t.Platform, externalID, conn.Spec.AccountID)
	case platforms.Unshown:
	}
	return said
}

// whose asks by the id where the platform can be asked so. Otherwise the account's posts
// are searched for the target's content under that id, which confirms it and denies
// nothing.
func (l *Lookups) whose(ctx context.Context, f *delivery.Facts, t *v1alpha1.TargetStatus, job platforms.Job, externalID string) platforms.Ownership {
	if to, ok := f.Platforms[t.Platform].(platforms.Confirmer); ok {
		whose, err := to.Confirm(ctx, job.Account, externalID)
		if err != nil {
			return platforms.Unshown
		}
		return whose
	}
	to, ok := f.Platforms[t.Platform].(platforms.Publisher)
	if !ok {
		return platforms.Unshown
	}
	if t.Attempt != nil {
		job.SearchFrom = attempt.SearchFrom(t.Attempt)
	} else {
		// A copy from a backup: the original was published when that was due, or made.
		job.SearchFrom = posting.Original(f.Post)
	}
	job.Taken = func(id string) bool { return id != externalID }
	found, err := to.Lookup(ctx, job)
	if err == nil && found.Matches == 1 && found.ExternalID == externalID {
		return platforms.Own
	}
	return platforms.Unshown
}
