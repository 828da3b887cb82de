// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules says what a valid post is, given the post and the connections
// it names. The HTTP service, the reconciler and every other door use these
// rules, so that nothing invalid is delivered whichever way it came.
package rules

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// Env is what a post is judged against.
type Env struct {
	// Connection returns a connection of the post's namespace, or nil.
	Connection func(name string) *v1alpha1.Connection
	// Limits returns what a platform declares; false if this installation
	// cannot publish there.
	Limits func(v1alpha1.Platform) (platforms.Limits, bool)
}

// LimitsOf makes Env.Limits from a registry.
func LimitsOf(registry platforms.Registry) func(v1alpha1.Platform) (platforms.Limits, bool) {
	return func(name v1alpha1.Platform) (platforms.Limits, bool) {
		p, ok := registry[name]
		if !ok {
			return platforms.Limits{}, false
		}
		return p.Limits(), true
	}
}

// Validate returns everything that is wrong with a post, with paths in the
// naming of the resource. A connection that does not exist is an error of type
// field.ErrorTypeNotFound: it may come into being later.
func Validate(post *v1alpha1.Post, env Env) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if post.Spec.Draft && post.Spec.ScheduledAt != nil {
		errs = append(errs, field.Forbidden(spec.Child("scheduledAt"),
			"a draft has no scheduled time; leave one of the two out"))
	}
	if len(post.Spec.Targets) == 0 {
		errs = append(errs, field.Required(spec.Child("targets"), "name at least one connection to post to"))
	}
	for i := range post.Spec.Targets {
		errs = append(errs, validateTarget(post, i, env, spec.Child("targets").Index(i))...)
	}
	return errs
}

// ValidateTime returns what is wrong with the scheduled time of a post that is
// made through the HTTP service: it must lie in the future. A post that is
// applied through Kubernetes has the starting deadline instead.
func ValidateTime(post *v1alpha1.Post, now time.Time) field.ErrorList {
	at := post.Spec.ScheduledAt
	if at == nil || at.After(now) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "scheduledAt"), at.String(),
		"must be in the future; leave it out to post at once")}
}

func validateTarget(post *v1alpha1.Post, i int, env Env, path *field.Path) field.ErrorList {
	target := &post.Spec.Targets[i]
	var errs field.ErrorList
	if target.Caption == "" && !post.Spec.Draft {
		errs = append(errs, field.Required(path.Child("caption"), "a post that is not a draft needs a caption"))
	}
	ref := path.Child("connectionRef", "name")
	conn := env.Connection(target.ConnectionRef.Name)
	if conn == nil {
		notFound := field.NotFound(ref, target.ConnectionRef.Name)
		notFound.Detail = "no such connection"
		return append(errs, notFound)
	}
	limits, ok := env.Limits(conn.Spec.Platform)
	if !ok {
		return append(errs, field.Invalid(ref, target.ConnectionRef.Name,
			fmt.Sprintf("this installation cannot publish to %s", conn.Spec.Platform)))
	}
	if !limits.Allows(post.Spec.Category) {
		errs = append(errs, field.Invalid(ref, target.ConnectionRef.Name,
			fmt.Sprintf("%s does not take posts of category %s; choose another connection", conn.Spec.Platform, post.Spec.Category)))
	}
	return append(errs, validateCaption(target.Caption, conn.Spec.Platform, limits, path.Child("caption"))...)
}

func validateCaption(caption string, platform v1alpha1.Platform, limits platforms.Limits, path *field.Path) field.ErrorList {
	if caption == "" {
		return nil
	}
	var errs field.ErrorList
	if limits.MaxCaption > 0 {
		if n := limits.CaptionLength(caption); n > limits.MaxCaption {
			errs = append(errs, field.Invalid(path, field.OmitValueType{},
				fmt.Sprintf("%d %s are too many for %s, which takes at most %d; shorten it", n, limits.CaptionUnit, platform, limits.MaxCaption)))
		}
	}
	if limits.CaptionProblem != nil {
		if problem := limits.CaptionProblem(caption); problem != "" {
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, problem))
		}
	}
	return errs
}
