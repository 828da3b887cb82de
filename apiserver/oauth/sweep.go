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
	// sweepEvery is how often grants that are over are looked for.
	sweepEvery = 10 * time.Minute
	// unredeemedFor is how long a grant is kept whose code nobody has exchanged: far longer than the code is good.
	unredeemedFor = 10 * time.Minute
	// endedRetention is how long a grant is kept after its end, so that people see what became of it.
	endedRetention = 7 * 24 * time.Hour
)

// Run removes grants that are over, until ctx ends. All replicas do so, and a grant that one has removed is no error to another.
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

// Sweep removes the grants that are over, and notes when those ended that a person has revoked.
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
			s.Log.WarnContext(ctx, "Cannot remove a grant that is over, or note its end", "namespace", grant.Namespace, "name", grant.Name, "error", err)
		}
	}
}

// remove removes a grant that is over. One that was written since is looked at again the next time. Of one that an agent has
// used the status says first that it ended: nothing else is removed, whoever has this process (config/rbac/policies.yaml).
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

// recordRevocation stores when a grant ended: a person sets spec.revoked, with kubectl too, and no time.
func (s *Server) recordRevocation(ctx context.Context, grant *v1alpha1.OAuthGrant) error {
	_, err := s.recordEnd(ctx, grant)
	return unlessOvertaken(err)
}

// recordEnd stores that a grant has ended now, and why, if no person has said so.
func (s *Server) recordEnd(ctx context.Context, grant *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error) {
	noted, now := grant.DeepCopy(), v1alpha1.NewTime(s.Clock.Now())
	noted.Status.RevokedAt = &now
	if !grant.Spec.Revoked {
		noted.Status.RevokedReason = v1alpha1.GrantExpired
	}
	return s.Grants.UpdateStatus(ctx, noted)
}

// unlessOvertaken passes over the errors of a write that another replica was faster with.
func unlessOvertaken(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// retainUntil is when a grant can go.
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
