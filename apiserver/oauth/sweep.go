// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	sweepEvery = 10 * time.Minute
	// unredeemedFor is how long a grant whose code was not exchanged is kept: far longer than codeLife.
	unredeemedFor = 10 * time.Minute
	// endedRetention is how long an ended grant is kept, so that users can see why it ended.
	endedRetention = 7 * 24 * time.Hour
)

// Run sweeps until ctx is done. All replicas run it; a grant that another replica has already removed is not an error.
func (s *Server) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Clock.After(sweepEvery):
			s.Sweep(ctx)
		}
	}
}

// Sweep deletes grants past their retention period, and records when users revoked a grant.
func (s *Server) Sweep(ctx context.Context) {
	for _, grant := range s.Grants.List("") {
		if ctx.Err() != nil {
			return
		}
		if !s.Served(grant.Namespace) || grant.DeletionTimestamp != nil {
			continue
		}
		var err error
		switch {
		case !s.Clock.Now().Before(retainUntil(grant)):
			err = s.remove(ctx, grant)
		case grant.Spec.Revoked && grant.Status.RevokedAt == nil:
			err = s.recordRevocation(ctx, grant)
		}
		if err != nil {
			s.Log.WarnContext(ctx, "Cannot remove an ended grant, or record its end", "namespace", grant.Namespace, "name", grant.Name, "error", err)
		}
	}
}

// remove removes an ended grant. A grant that has changed since it was read is left for the next sweep. If an agent has
// used the grant, remove first records in the status that it ended: the admission policy rejects other deletions, even
// from a compromised apiserver (config/rbac/policies.yaml).
func (s *Server) remove(ctx context.Context, grant *v1alpha1.OAuthGrant) error {
	if grant.Status.RedeemedAt != nil && grant.Status.RevokedAt == nil {
		ended, err := s.recordEnd(ctx, grant)
		if err != nil {
			return unlessOvertaken(err)
		}
		grant = ended
	}
	return unlessOvertaken(s.Grants.Delete(ctx, grant))
}

// recordRevocation records when a grant was revoked, because a user, including one who uses kubectl, sets only
// spec.revoked.
func (s *Server) recordRevocation(ctx context.Context, grant *v1alpha1.OAuthGrant) error {
	_, err := s.recordEnd(ctx, grant)
	return unlessOvertaken(err)
}

// recordEnd records that a grant ends now. The reason is expiry unless a user has revoked it.
func (s *Server) recordEnd(ctx context.Context, grant *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error) {
	noted, now := grant.DeepCopy(), v1alpha1.NewTime(s.Clock.Now())
	noted.Status.RevokedAt = &now
	if !grant.Spec.Revoked {
		noted.Status.RevokedReason = v1alpha1.GrantExpired
	}
	return s.Grants.UpdateStatus(ctx, noted)
}

// unlessOvertaken ignores the errors of a write that another replica made first.
func unlessOvertaken(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func retainUntil(grant *v1alpha1.OAuthGrant) time.Time {
	refresh := grant.Status.Refresh
	if refresh == nil || grant.Status.RedeemedAt == nil {
		return grant.CreationTimestamp.Add(unredeemedFor)
	}
	end := grant.Spec.ExpiresAt.Time
	if idle := refresh.RotatedAt.Add(idleLife); idle.Before(end) {
		end = idle
	}
	if at := grant.Status.RevokedAt; at != nil && at.Before(end) {
		end = at.Time
	}
	return end.Add(endedRetention)
}
