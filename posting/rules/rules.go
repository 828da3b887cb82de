// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules says what a valid post is, given the post and the connections
// and media it names. The HTTP service, the reconciler and every other door use these
// rules, so that nothing invalid is delivered whichever way it came.
package rules

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// Env is what a post is judged against.
type Env struct {
	// Connection returns a connection of the post's namespace, or nil. One
	// that is being deleted is judged like one that is not there.
	Connection func(name string) *v1alpha1.Connection
	// Media returns a media file of the post's namespace, or nil. Without it
	// no media file is there.
	Media func(name string) *v1alpha1.Media
	// Capabilities returns what a platform declares; false if this installation
	// cannot publish there.
	Capabilities func(v1alpha1.Platform) (platforms.Capabilities, bool)
	// Converts says that the team has its videos converted for platforms that do not take
	// them as they are.
	Converts bool
	// Accepted says that the post was accepted as it is. The files of such a post are not
	// held against what platforms take once more: it may have been accepted by a version
	// that knew less, and its platforms decide.
	Accepted bool
	// Stored is the post as the Kubernetes API has it; nil for a new one. A post that
	// was stored when posts could be larger may stay as large as it is.
	Stored *v1alpha1.Post
}

// connection returns a connection that is there to stay, or nil.
func (e Env) connection(name string) *v1alpha1.Connection {
	if c := e.Connection(name); c != nil && c.DeletionTimestamp.IsZero() {
		return c
	}
	return nil
}

// Validate returns everything that is wrong with a post, with paths in the
// naming of the resource. What does not exist yet, a connection or a media file
// or its upload, is an error of type field.ErrorTypeNotFound: it may come later.
//
// What one resource can tell by itself (the blocks that belong to a category,
// the combinations of options) is held by the schema and only partly repeated.
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
		return errs // its texts are not counted: what they hold may be of any length
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

// validation is the work on one post.
type validation struct {
	post *v1alpha1.Post
	env  Env
	// destinations are the platforms that the post goes to, each once, in the order
	// of the targets: those that take its category.
	destinations []destination
}

type destination struct {
	name   v1alpha1.Platform
	limits platforms.Capabilities
}

// addDestination notes a platform that the post goes to, and the least that one of its accounts takes.
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

// least returns the lesser of two bounds, of which zero is none.
func least(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
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
