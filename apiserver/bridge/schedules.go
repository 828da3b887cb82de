// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/posting/recurrence"
)

// UpcomingTimes is the number of a schedule's next times that are shown.
const UpcomingTimes = 5

// Schedules reads and writes schedules in the Kubernetes API.
type Schedules interface {
	List(ctx context.Context, namespace string) ([]v1alpha1.PostSchedule, error)
	Get(ctx context.Context, namespace, name string) (*v1alpha1.PostSchedule, error)
	Create(ctx context.Context, schedule *v1alpha1.PostSchedule) (*v1alpha1.PostSchedule, error)
	// Update stores the difference between two states of a schedule, with optimistic concurrency.
	Update(ctx context.Context, before, after *v1alpha1.PostSchedule) (*v1alpha1.PostSchedule, error)
	// Delete deletes a schedule, but not a later one of the same name.
	Delete(ctx context.Context, schedule *v1alpha1.PostSchedule) error
}

// Schedule is a schedule with its computed state. The resource must not be modified.
type Schedule struct {
	*v1alpha1.PostSchedule

	// Version identifies the content, like a post's Version.
	Version string
	// Zone is the time zone of the schedule's times; the team's by default.
	Zone *time.Location
	// Upcoming are the times of the next posts that have not been created yet, at most UpcomingTimes. A suspended schedule
	// has them as well. Rule computes others; it is nil if the schedule is invalid.
	Upcoming []time.Time
	Rule     *recurrence.Rule
	// Warning is the reason why X may reject the schedule's posts; empty if there is none.
	Warning string
	// Replayed is true if an earlier request created the schedule.
	Replayed bool
}

// ListSchedules returns the schedules of the caller's team, by name.
func (s *Service) ListSchedules(ctx context.Context, caller Caller) ([]Schedule, error) {
	if err := require(caller, ScopeRead); err != nil {
		return nil, err
	}
	found, err := s.Schedules.List(ctx, caller.Namespace)
	if err != nil {
		return nil, fmt.Errorf("list the schedules: %w", err)
	}
	limits.MeterFrom(ctx).Parts(len(found))
	found = slices.DeleteFunc(found, func(of v1alpha1.PostSchedule) bool { return !of.DeletionTimestamp.IsZero() })
	slices.SortFunc(found, func(a, b v1alpha1.PostSchedule) int { return cmp.Compare(a.Name, b.Name) })
	schedules := make([]Schedule, len(found))
	for i := range found {
		schedules[i] = s.ViewSchedule(&found[i])
	}
	return schedules, nil
}

// GetSchedule returns a schedule.
func (s *Service) GetSchedule(ctx context.Context, caller Caller, id string) (Schedule, error) {
	if err := require(caller, ScopeRead); err != nil {
		return Schedule{}, err
	}
	found, err := s.readSchedule(ctx, caller, id)
	if err != nil {
		return Schedule{}, err
	}
	return s.ViewSchedule(found), nil
}

// ViewSchedule returns the schedule with its computed state.
func (s *Service) ViewSchedule(of *v1alpha1.PostSchedule) Schedule {
	view := Schedule{
		PostSchedule: of, Version: string(of.UID) + "." + strconv.FormatInt(of.Generation, 10), Zone: time.UTC,
		Warning: recurrence.RepeatedText(of, s.platformOf(of.Namespace)),
	}
	name := s.zoneOf(of)
	if zone, err := time.LoadLocation(name); err == nil {
		view.Zone = zone
	}
	if rule, err := recurrence.Parse(of.Spec.Schedule, name); err == nil {
		view.Rule, view.Upcoming = rule, recurrence.Upcoming(rule, of, s.Clock.Now(), UpcomingTimes)
	}
	return view
}

// zoneOf returns the name of the time zone of a schedule's times.
func (s *Service) zoneOf(of *v1alpha1.PostSchedule) string {
	zone := of.Spec.TimeZone
	if team := s.Owner(of.Namespace); team != nil {
		zone = cmp.Or(zone, team.Spec.TimeZone)
	}
	return cmp.Or(zone, "UTC")
}

func (s *Service) platformOf(namespace string) func(connection string) v1alpha1.Platform {
	return func(name string) v1alpha1.Platform {
		if connection := s.Connections.Get(namespace, name); connection != nil {
			return connection.Spec.Platform
		}
		return ""
	}
}

// mayWriteSchedule rejects a caller that is not allowed to publish, or whose team is not allowed to create posts.
func (s *Service) mayWriteSchedule(caller Caller) error {
	if err := s.RequireSubscription(caller); err != nil {
		return err
	}
	return s.mayEndSchedule(caller)
}

// mayEndSchedule rejects a caller that is not allowed to publish, because a schedule publishes without human
// review.
func (s *Service) mayEndSchedule(caller Caller) error {
	if err := require(caller, ScopePublish); err != nil {
		return err
	}
	if s.requiresReview(caller) {
		return errorf(CodeInsufficientScope, "the team reviews what agents publish, and a schedule publishes by itself: a user creates and changes schedules in Herald")
	}
	return nil
}

// CreateSchedule creates a schedule and returns it. Its name makes the request idempotent: a schedule of this name with
// the same content is returned.
func (s *Service) CreateSchedule(ctx context.Context, caller Caller, name string, spec v1alpha1.PostScheduleSpec) (Schedule, error) {
	if err := s.mayWriteSchedule(caller); err != nil {
		return Schedule{}, err
	}
	wanted := &v1alpha1.PostSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: name}, Spec: spec}
	if err := s.validateSchedule(ctx, wanted); err != nil {
		return Schedule{}, err
	}
	signedByAny(&wanted.ObjectMeta, caller)
	tries, existed := 0, false
	stored, err := createOnce(ctx,
		func() (*v1alpha1.PostSchedule, error) {
			tries++
			return s.Schedules.Create(ctx, wanted)
		},
		func() (*v1alpha1.PostSchedule, error) {
			existed = true
			return s.Schedules.Get(ctx, wanted.Namespace, wanted.Name)
		})
	if refused := s.refused(caller.Namespace, err); refused != nil {
		return Schedule{}, refused
	}
	switch {
	case err != nil:
		return Schedule{}, fmt.Errorf("create a schedule: %w", err)
	case existed && (!stored.DeletionTimestamp.IsZero() || !v1alpha1.SemanticEqual(stored.Spec, withDefaults(spec))):
		return Schedule{}, errorf(CodeConflict, "there is already a schedule %q; change it, or choose another name", name)
	}
	replayed := existed && tries == 1 // after a lost response, the schedule is most likely this request's own
	if !replayed {
		s.Acted(ctx, caller, ActScheduleCreated, stored)
	}
	view := s.ViewSchedule(stored)
	view.Replayed = replayed
	return view, nil
}

// withDefaults returns a schedule as Kubernetes stores it.
func withDefaults(spec v1alpha1.PostScheduleSpec) v1alpha1.PostScheduleSpec {
	spec.Template.OnUnknownOutcome = cmp.Or(spec.Template.OnUnknownOutcome, v1alpha1.OnUnknownFail)
	return spec
}

// UpdateSchedule replaces the content of a schedule. Existing posts do not change. version is the Version that the
// client read; if the schedule has changed since, UpdateSchedule returns a CONFLICT and does not store the change.
func (s *Service) UpdateSchedule(ctx context.Context, caller Caller, id, version string, spec v1alpha1.PostScheduleSpec) (Schedule, error) {
	if err := s.mayWriteSchedule(caller); err != nil {
		return Schedule{}, err
	}
	spec = withDefaults(spec)
	return s.changeSchedule(ctx, caller, id, ActScheduleEdited, func(stored *v1alpha1.PostSchedule) error {
		if s.ViewSchedule(stored).Version != version && !v1alpha1.SemanticEqual(stored.Spec, spec) {
			return scheduleChanged(stored)
		}
		suspends := *stored.Spec.DeepCopy()
		suspends.Suspend = spec.Suspend
		stored.Spec = spec
		if v1alpha1.SemanticEqual(suspends, spec) {
			return nil // a schedule with problems can be suspended
		}
		return s.validateSchedule(ctx, stored)
	})
}

// SuspendSchedule suspends or resumes a schedule. Other changes in the meantime do not conflict.
func (s *Service) SuspendSchedule(ctx context.Context, caller Caller, id string, suspend bool) (Schedule, error) {
	may, act := s.mayWriteSchedule, ActScheduleResumed
	if suspend {
		may, act = s.mayEndSchedule, ActScheduleSuspended
	}
	if err := may(caller); err != nil {
		return Schedule{}, err
	}
	return s.changeSchedule(ctx, caller, id, act, func(stored *v1alpha1.PostSchedule) error {
		stored.Spec.Suspend = suspend
		return nil
	})
}

// scheduleChanged returns the error for a change to a schedule that has changed since the client read it.
func scheduleChanged(stored *v1alpha1.PostSchedule) *Error {
	by, author := "", stored.Annotations[v1alpha1.LastAuthorAnnotation]
	if author != "" {
		by = LastBy + author
	}
	refused := errorf(CodeConflict, "schedule %s has changed since you opened it%s; your change was not stored. Reload the schedule and make your change again.", stored.Name, by)
	refused.ChangedBy, refused.Stale = author, true
	return refused
}

// changeSchedule applies change to a copy of a schedule's current state, writes any difference, and retries conflicts
// with the manager, which writes the status.
func (s *Service) changeSchedule(ctx context.Context, caller Caller, id string, act Act, change func(*v1alpha1.PostSchedule) error) (Schedule, error) {
	lost := false
	var last error
	for range changeTries {
		stored, err := s.readSchedule(ctx, caller, id)
		if err != nil {
			return Schedule{}, err
		}
		wanted := stored.DeepCopy()
		if err := change(wanted); err != nil {
			return Schedule{}, err
		}
		if v1alpha1.SemanticEqual(stored.Spec, wanted.Spec) {
			if lost {
				s.Acted(ctx, caller, act, stored)
			}
			return s.ViewSchedule(stored), nil
		}
		signedByAny(&wanted.ObjectMeta, caller)
		written, err := s.Schedules.Update(ctx, stored, wanted)
		switch refused := s.refused(caller.Namespace, err); {
		case err == nil:
			s.Acted(ctx, caller, act, written)
			return s.ViewSchedule(written), nil
		case apierrors.IsConflict(err):
			last = errorf(CodeConflict, "schedule %s is being changed at the same time; try again", id)
		case refused != nil:
			return Schedule{}, refused
		case answerLost(err) && ctx.Err() == nil:
			lost, last = true, fmt.Errorf("change a schedule; the change may have been stored: %w", err)
		default:
			return Schedule{}, fmt.Errorf("change a schedule: %w", err)
		}
	}
	return Schedule{}, last
}

// DeleteSchedule deletes a schedule. Kubernetes then garbage-collects its posts, so that those not yet published are
// withdrawn.
func (s *Service) DeleteSchedule(ctx context.Context, caller Caller, id string) error {
	if err := s.mayEndSchedule(caller); err != nil {
		return err
	}
	stored, err := s.readSchedule(ctx, caller, id)
	if err != nil {
		return err
	}
	if err := s.Schedules.Delete(ctx, stored); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete a schedule: %w", err)
	}
	s.Acted(ctx, caller, ActScheduleDeleted, stored)
	return nil
}

func (s *Service) readSchedule(ctx context.Context, caller Caller, id string) (*v1alpha1.PostSchedule, error) {
	unknown := errorf(CodeNotFound, "this team has no schedule %q", truncateID(id))
	if !validName(id) {
		return nil, unknown
	}
	found, err := s.Schedules.Get(ctx, caller.Namespace, id)
	switch {
	case apierrors.IsNotFound(err), err == nil && !found.DeletionTimestamp.IsZero():
		return nil, unknown
	case err != nil:
		return nil, fmt.Errorf("read a schedule: %w", err)
	}
	return found, nil
}
