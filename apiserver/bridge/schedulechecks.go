// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/recurrence"
	"github.com/herald-social/herald/posting/rules"
)

// maxScheduleName is the schema's limit for a schedule's name, to which the names of its posts append their time.
const maxScheduleName = 48

// CheckSchedule returns the computed state and the problems of a schedule that is being written. It does not store it.
func (s *Service) CheckSchedule(ctx context.Context, caller Caller, name string, spec v1alpha1.PostScheduleSpec) (Schedule, *Error, error) {
	of := &v1alpha1.PostSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: name}, Spec: spec}
	err := s.validateSchedule(ctx, of)
	refused, ok := errors.AsType[*Error](err)
	if err != nil && !ok {
		return Schedule{}, nil, err
	}
	return s.ViewSchedule(of), refused, nil
}

// validateSchedule rejects a schedule whose times are invalid, or whose posts break a rule with any of its texts. The
// paths are those of the schedule in REST. The manager checks the plan and the budget when it creates a post.
func (s *Service) validateSchedule(ctx context.Context, of *v1alpha1.PostSchedule) error {
	errs := checkScheduleName(of.Name)
	now := s.Clock.Now()
	next := now.Add(time.Hour)
	rule, err := recurrence.Parse(of.Spec.Schedule, s.zoneOf(of))
	switch wrong, ok := errors.AsType[*field.Error](err); {
	case ok:
		errs = append(errs, wrong)
	case err != nil:
		return err
	default:
		if upcoming := recurrence.Upcoming(rule, of, now, 1); len(upcoming) > 0 {
			next = upcoming[0]
		}
	}
	if start, end := of.Spec.StartAt, of.Spec.EndAt; start != nil && end != nil && end.Before(start.Time) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "endAt"), "is before the start; choose a later time, or leave one of the two out"))
	}
	found, err := s.postsObeyRules(ctx, of, next)
	if err != nil {
		return err
	}
	if errs = append(errs, found...); len(errs) > 0 {
		return invalid(errs)
	}
	return nil
}

func checkScheduleName(name string) field.ErrorList {
	path := field.NewPath("name")
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "is missing")}
	case len(name) > maxScheduleName:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("has %d characters and may have at most %d; the names of posts add their time", len(name), maxScheduleName))}
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return field.ErrorList{field.Forbidden(path, "must consist of lower-case letters, digits and hyphens, and begin and end with a letter or a digit")}
	default:
		return nil
	}
}

// ofCaption matches the path of a target's caption.
var ofCaption = regexp.MustCompile(`^spec\.targets\[\d+\]\.caption$`)

// postsObeyRules returns the problems that a schedule's post at a given time has with each of the schedule's texts.
// Files are read once.
func (s *Service) postsObeyRules(ctx context.Context, of *v1alpha1.PostSchedule, at time.Time) (field.ErrorList, error) {
	connections := s.lookup(of.Namespace, false)
	env := rules.Env{Connection: connections.in(ctx), Capabilities: s.Capabilities, Converts: s.converts(of.Namespace)}
	var found field.ErrorList
	for n := range max(1, len(of.Spec.Texts)) {
		post := recurrence.PostOf(of, recurrence.Occurrence{At: at, Number: int32(n)})
		if env.Media == nil {
			env.Media = assumeValid(post)
			if names := posting.Of(post).MediaNames(); len(names) > 0 && len(rules.Validate(post, env)) == 0 {
				media, err := s.mediaOf(ctx, post, names)
				if err != nil {
					return nil, err
				}
				env.Media = media
			}
		}
		errs := slices.Concat(rules.Validate(post, env), rules.ValidateAudiences(post, env), rules.ValidateOptions(post, env))
		if connections.err != nil {
			return nil, fmt.Errorf("read a connection: %w", connections.err)
		}
		for _, err := range errs {
			alternates := len(of.Spec.Texts) > 0 && ofCaption.MatchString(err.Field) && usesTexts(of, err.Field)
			if alternates {
				err.Field = fmt.Sprintf("spec.texts[%d]", n)
			}
			if (n == 0 || alternates) && !slices.ContainsFunc(found, func(other *field.Error) bool { return other.Error() == err.Error() }) {
				found = append(found, err)
			}
		}
	}
	return found, nil
}

// usesTexts reports whether the target whose caption has a problem uses the schedule's texts.
func usesTexts(of *v1alpha1.PostSchedule, path string) bool {
	for i := range of.Spec.Template.Targets {
		if strings.HasPrefix(path, fmt.Sprintf("spec.targets[%d].", i)) {
			return of.Spec.Template.Targets[i].Caption == ""
		}
	}
	return false
}
