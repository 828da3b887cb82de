// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/retention"
)

// batchSize is the number of a team's posts that leave, and are listed together, before the next team's turn.
const batchSize = 100

func (s *Sweeper) sweep(ctx context.Context) error {
	var problems []error
	ends := s.Clock.Now().Add(sweepFor)
	for more := true; more && ctx.Err() == nil && s.Clock.Now().Before(ends); {
		var err error
		more, err = s.round(ctx)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// round collects the due posts and removes them team by team until none is due or roundFor has passed. It reports
// whether more may be due. An error in one team does not stop the others.
func (s *Sweeper) round(ctx context.Context) (more bool, err error) {
	teams, err := s.served(ctx)
	if err != nil {
		return false, err
	}
	ends := s.Clock.Now().Add(roundFor)
	var problems []error
	for _, namespace := range slices.Sorted(maps.Keys(teams)) {
		if err := s.refresh(ctx, teams[namespace]); err != nil {
			problems = append(problems, err)
		}
	}
	for more = true; more && ctx.Err() == nil && s.Clock.Now().Before(ends); {
		more = false
		for _, namespace := range slices.Sorted(maps.Keys(teams)) {
			busy, err := s.evictDue(ctx, teams[namespace])
			if err != nil {
				problems = append(problems, err)
				delete(teams, namespace)
				continue
			}
			more = more || busy
		}
		s.Metrics.lateness(s.late())
	}
	problems = append(problems, s.expire(ctx, teams))
	if err := errors.Join(problems...); err != nil {
		return more, err
	}
	s.recordSwept()
	return more, nil
}

// recordSwept records a complete sweep if no expired posts remain in the archive, which is checked once an hour.
func (s *Sweeper) recordSwept() {
	if !s.unexpired {
		s.Metrics.sweptAt(s.Clock.Now())
	}
}

// served returns the teams of this installation that own their namespace, by namespace, and forgets other teams. It
// excludes a Team that is being deleted: its records are deleted with it, so its posts are kept in the cluster.
func (s *Sweeper) served(ctx context.Context) (map[string]*v1alpha1.Team, error) {
	var all v1alpha1.TeamList
	if err := s.Client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("cannot list the teams: %w", err)
	}
	teams := map[string]*v1alpha1.Team{}
	for i := range all.Items {
		team := &all.Items[i]
		if !s.Namespaces.Include(team.Spec.Namespace) || !team.DeletionTimestamp.IsZero() || !conditions.IsReady(team.Status.Conditions) {
			continue
		}
		owner, err := s.Owner(ctx, team.Spec.Namespace)
		if err != nil {
			return nil, err
		}
		if owner == nil || owner.UID != team.UID {
			continue
		}
		teams[team.Spec.Namespace] = team
	}
	maps.DeleteFunc(s.teams, func(namespace string, a *agenda) bool {
		gone := teams[namespace] == nil || teams[namespace].Name != a.team
		if gone {
			s.Metrics.forget(namespace)
		}
		return gone
	})
	return teams, nil
}

// refresh completes a team's agenda with the day whose posts become due and, once an hour, with all days before it.
func (s *Sweeper) refresh(ctx context.Context, team *v1alpha1.Team) error {
	namespace, times := team.Spec.Namespace, s.Policy.Of(team)
	if s.Archive == nil {
		times.InCluster = times.Archived
	}
	a := s.teams[namespace]
	if a == nil || a.times != times {
		a = newAgenda(team.Name, times)
		s.teams[namespace] = a
	}
	now := s.Clock.Now()
	if days := a.daysToRead(now); len(days) > 0 {
		var due []entry
		for _, day := range days {
			read, err := s.day(ctx, a, namespace, day)
			if err != nil {
				return err
			}
			due = append(due, read.due...)
		}
		a.merge(due, now)
	}
	if now.Before(a.reviewAt) {
		return nil
	}
	read, err := s.review(ctx, a, namespace, now)
	if err != nil {
		return err
	}
	dated, err := s.backfillFinishedOn(ctx, a, namespace, read.undated)
	a.add(append(read.due, dated...))
	if err != nil {
		return err
	}
	a.reviewAt = now.Add(reviewEvery)
	return nil
}

func (s *Sweeper) late() time.Duration {
	var late time.Duration
	now := s.Clock.Now()
	for _, a := range s.teams {
		late = max(late, a.late(now))
	}
	return late
}

// expire removes expired posts from the archive once an hour, or sooner if more are left than it removes at once.
func (s *Sweeper) expire(ctx context.Context, teams map[string]*v1alpha1.Team) error {
	now := s.Clock.Now()
	if s.Archive == nil || now.Before(s.expireAt) {
		return nil
	}
	s.expireAt, s.unexpired = now.Add(reviewEvery), false
	var problems []error
	for _, team := range teams {
		more, err := s.Archive.Expire(ctx, team, s.Policy.Of(team))
		if err != nil {
			s.unexpired = true
			problems = append(problems, fmt.Errorf("cannot remove expired posts from the archive of team %s: %w", team.Name, err))
		}
		if more {
			s.expireAt = now
		}
	}
	return errors.Join(problems...)
}

// evictAt returns the time at which a finished post leaves the cluster. Without an archive, the post also remains for
// the time that it would spend in the archive. With an archive, it remains at least until a re-created object would be
// looked up there.
func (s *Sweeper) evictAt(post *v1alpha1.Post, times retention.Times) time.Time {
	if s.Archive == nil {
		return times.ArchivedUntil(post, retention.FinishedAt(post))
	}
	return later(retention.FinishedAt(post).Add(times.InCluster), posting.Of(post).RecreatedVisibleFrom(s.ClockMargin))
}
