// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules defines the validity of a post, given the post and the connections and media that it names. The HTTP
// service, the reconciler and every other entry point use these rules, so that no invalid post is delivered.
package rules

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// Env is the environment of a validation.
type Env struct {
	// Connection returns a connection of the post's namespace, or nil. A connection that is being deleted counts as
	// missing.
	Connection func(name string) *v1alpha1.Connection
	// Media returns a media file of the post's namespace, or nil. If Media is nil, every media file counts as missing.
	Media func(name string) *v1alpha1.Media
	// Capabilities returns the capabilities of a platform. It returns false if this installation cannot publish there.
	Capabilities func(v1alpha1.Platform) (platforms.Capabilities, bool)
	// Converts is set if the team's videos are converted for platforms that do not accept them as they are.
	Converts bool
	// Accepted is set if the post was already accepted in its current form. Its files are not checked against the
	// platforms' limits again: an older version with fewer rules may have accepted it, and its platforms decide.
	Accepted bool
	// Stored is the post in the Kubernetes API, or nil for a new post. A post that was stored under a larger size
	// limit may keep its size.
	Stored *v1alpha1.Post
}

// connection returns a connection that exists and is not being deleted, or nil.
func (e Env) connection(name string) *v1alpha1.Connection {
	if c := e.Connection(name); c != nil && c.DeletionTimestamp.IsZero() {
		return c
	}
	return nil
}

// Validate returns all errors of a post, with paths in the naming of the resource. A missing connection, media file or
// upload is an error of type field.ErrorTypeNotFound, because it may be created later.
//
// Rules about a single resource (the blocks of a category, the combinations of options) are in the schema and only
// partly repeated here.
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
	v := validation{post: post, env: env}
	if errs := v.size(spec); len(errs) > 0 {
		return errs // the characters of its texts are not counted, since the texts may be of any length
	}
	for i := range post.Spec.Targets {
		errs = append(errs, v.target(i, spec.Child("targets").Index(i))...)
	}
	errs = append(errs, ValidateFiles(post)...)
	switch post.Spec.Category {
	case v1alpha1.CategoryImage:
		errs = append(errs, v.images(spec.Child("image", "mediaRefs"))...)
	case v1alpha1.CategoryVideo:
		errs = append(errs, v.video(spec.Child("video"))...)
	case v1alpha1.CategoryTree:
		errs = append(errs, v.tree(spec.Child("tree", "cards"))...)
	case v1alpha1.CategoryText:
	}
	return errs
}

// validation is the validation of one post.
type validation struct {
	post *v1alpha1.Post
	env  Env
	// destinations are the platforms of the targets that accept the post's category, without duplicates, in the order
	// of the targets.
	destinations []destination
}

type destination struct {
	name   v1alpha1.Platform
	limits platforms.Capabilities
}

// addDestination adds a platform. For several accounts of one platform, it keeps the lowest limit.
func (v *validation) addDestination(conn *v1alpha1.Connection, limits platforms.Capabilities) {
	if limits.MaxVideoDuration != nil {
		if longest := limits.MaxVideoDuration(&conn.Status); longest > 0 {
			limits.Videos.MaxDuration = least(longest, limits.Videos.MaxDuration)
		}
	}
	for i := range v.destinations {
		if known := &v.destinations[i]; known.name == conn.Spec.Platform {
			known.limits.Videos.MaxDuration = least(known.limits.Videos.MaxDuration, limits.Videos.MaxDuration)
			return
		}
	}
	v.destinations = append(v.destinations, destination{conn.Spec.Platform, limits})
}

// least returns the lower of two limits. Zero means no limit.
func least(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// ValidateTime checks that the scheduled time of a post from the HTTP service is in the future. Posts that are applied
// through Kubernetes have the starting deadline instead.
func ValidateTime(post *v1alpha1.Post, now time.Time) field.ErrorList {
	at := post.Spec.ScheduledAt
	if at == nil || at.After(now) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "scheduledAt"), at.String(),
		"must be in the future; leave it out to post at once")}
}
