// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"

	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/recurrence"
)

// byKind serves posts and schedules at one path, with one certificate and one webhook configuration.
type byKind struct{ posts, schedules admission.Handler }

// Handle implements admission.Handler.
func (b byKind) Handle(ctx context.Context, r admission.Request) admission.Response {
	if r.Kind.Kind == "PostSchedule" {
		return b.schedules.Handle(ctx, r)
	}
	return b.posts.Handle(ctx, r)
}

// ScheduleValidator warns about schedules. It implements admission.Validator. It never rejects one: the manager creates
// their posts as dry runs, and reports mistakes in their conditions.
type ScheduleValidator struct{ Options }

var _ admission.Validator[*v1alpha1.PostSchedule] = (*ScheduleValidator)(nil)

// ValidateCreate warns about a new schedule.
func (v *ScheduleValidator) ValidateCreate(ctx context.Context, schedule *v1alpha1.PostSchedule) (admission.Warnings, error) {
	return v.warnings(ctx, schedule), nil
}

// ValidateUpdate warns about a changed schedule.
func (v *ScheduleValidator) ValidateUpdate(ctx context.Context, _, schedule *v1alpha1.PostSchedule) (admission.Warnings, error) {
	return v.warnings(ctx, schedule), nil
}

// ValidateDelete allows every deletion.
func (v *ScheduleValidator) ValidateDelete(context.Context, *v1alpha1.PostSchedule) (admission.Warnings, error) {
	return nil, nil
}

// warnings returns a warning if X may reject the posts because they repeat a text.
func (v *ScheduleValidator) warnings(ctx context.Context, schedule *v1alpha1.PostSchedule) admission.Warnings {
	if !v.Namespaces.Include(schedule.Namespace) || !schedule.DeletionTimestamp.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	platform := func(name string) v1alpha1.Platform {
		connection, err := read(ctx, v.Reader, schedule.Namespace, name, &v1alpha1.Connection{})
		switch {
		case err != nil:
			ctrllog.FromContext(ctx).Error(err, "a schedule was admitted without being checked")
			return ""
		case connection == nil:
			return "" // the condition TextRepeats reports it once the connection exists
		default:
			return connection.Spec.Platform
		}
	}
	if warning := recurrence.RepeatedText(schedule, platform); warning != "" {
		return admission.Warnings{warning}
	}
	return nil
}
