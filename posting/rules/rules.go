// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules validates posts together with their connections and media. All entry points share these rules,
// including the HTTP service and the reconciler.
package rules

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// Env is the environment of a validation.
type Env struct {
	// Connection returns a connection in the post's namespace, or nil if it is missing or being deleted.
	Connection func(name string) *v1alpha1.Connection
	// Media returns a media file in the post's namespace, or nil. If Media is nil, every media file counts as missing.
	Media func(name string) *v1alpha1.Media
	// Capabilities returns a platform's capabilities, or false if this installation cannot publish there.
	Capabilities func(v1alpha1.Platform) (platforms.Capabilities, bool)
	// Converts means that the team's videos are converted for platforms that would otherwise reject them.
	Converts bool
	// Accepted means that the post was already accepted as it is now. Its files are not checked against the platforms'
	// limits again, because an older version with fewer rules may have accepted them. The platforms decide.
	Accepted bool
	// Stored is the post in the Kubernetes API, or nil if it is new. A post stored under a larger limit may keep its size.
	Stored *v1alpha1.Post
}

func (e Env) connection(name string) *v1alpha1.Connection {
	if c := e.Connection(name); c != nil && c.DeletionTimestamp.IsZero() {
		return c
	}
	return nil
}

// Validate returns all validation errors of a post, with the paths of the resource's fields. If a connection, media
// file or upload is missing, the error is of type field.ErrorTypeNotFound, because it may still be created.
//
// Rules that need only the resource itself (category blocks, combinations of options) are in the schema and only partly
// repeated here.
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
		return errs // the text may be of any length, so do not count its characters
	}
	for i := range post.Spec.Targets {
		errs = append(errs, v.target(i, spec.Child("targets").Index(i))...)
	}
	errs = append(errs, ValidateFiles(post)...)
	errs = append(errs, v.content(spec)...)
	return errs
}

// content checks the post's files, and the texts of its cards.
func (v *validation) content(spec *field.Path) field.ErrorList {
	switch v.post.Spec.Category {
	case v1alpha1.CategoryImage:
		return v.images(spec.Child("image", "mediaRefs"))
	case v1alpha1.CategoryVideo:
		return v.video(spec.Child("video"))
	case v1alpha1.CategoryTree:
		return v.tree(spec.Child("tree", "cards"))
	case v1alpha1.CategoryText:
	}
	return nil
}

type validation struct {
	post *v1alpha1.Post
	env  Env
	// destinations lists the platforms that accept the post's category, in target order and without duplicates.
	destinations []destination
}

type destination struct {
	name   v1alpha1.Platform
	limits platforms.Capabilities
}

// addDestination adds a platform. If there are several accounts on a platform, it keeps the lowest limit.
func (v *validation) addDestination(conn *v1alpha1.Connection, limits platforms.Capabilities) {
	if limits.MaxVideoDuration != nil {
		limits.Videos.MaxDuration = least(limits.MaxVideoDuration(&conn.Status), limits.Videos.MaxDuration)
	}
	for i := range v.destinations {
		if known := &v.destinations[i]; known.name == conn.Spec.Platform {
			known.limits.Videos.MaxDuration = least(known.limits.Videos.MaxDuration, limits.Videos.MaxDuration)
			known.limits = strictest(known.limits, limits)
			return
		}
	}
	v.destinations = append(v.destinations, destination{conn.Spec.Platform, limits})
}

// strictest returns limits with the lower of the values that differ between accounts of one platform.
func strictest(limits, other platforms.Capabilities) platforms.Capabilities {
	if captionRoom(other) < captionRoom(limits) {
		limits.MaxCaption, limits.CaptionLength, limits.CaptionUnit = other.MaxCaption, other.CaptionLength, other.CaptionUnit
	}
	limits.MaxAltText = least(limits.MaxAltText, other.MaxAltText)
	limits.MaxImages = least(limits.MaxImages, other.MaxImages)
	limits.MaxVideoBytes = least(limits.MaxVideoBytes, other.MaxVideoBytes)
	card, beside := &limits.Card, other.Card
	card.MaxItems, card.MaxVideos = least(card.MaxItems, beside.MaxItems), min(card.MaxVideos, beside.MaxVideos)
	card.MaxImageBytes, card.MaxVideoBytes = least(card.MaxImageBytes, beside.MaxImageBytes), least(card.MaxVideoBytes, beside.MaxVideoBytes)
	images, videos := &limits.Images, &limits.Videos
	images.MaxBytes, images.MaxPixels = least(images.MaxBytes, other.Images.MaxBytes), least(images.MaxPixels, other.Images.MaxPixels)
	videos.MaxPixels, videos.MaxFrameRate = least(videos.MaxPixels, other.Videos.MaxPixels), least(videos.MaxFrameRate, other.Videos.MaxFrameRate)
	images.Types, videos.Types = common(images.Types, other.Images.Types), common(videos.Types, other.Videos.Types)
	return limits
}

// captionRoom returns the maximum length of a caption beside the target's options. Only accounts of one platform are
// compared, so none has a limit if one has none.
func captionRoom(limits platforms.Capabilities) int {
	if limits.MaxCaption == 0 {
		return 0
	}
	return limits.MaxCaption - limits.CaptionLength("")
}

// least returns the lower of two limits. Zero means no limit.
func least[T int | int64 | float64 | time.Duration](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// common returns the types that two accounts accept. Nil means all, and an empty list none.
func common(types, other []v1alpha1.MimeType) []v1alpha1.MimeType {
	if types == nil {
		return other
	}
	if other == nil {
		return types
	}
	return slices.DeleteFunc(slices.Clone(types), func(name v1alpha1.MimeType) bool { return !slices.Contains(other, name) })
}

// ValidateTime checks that a scheduled time from the HTTP service is in the future. Posts that are applied through
// Kubernetes have the starting deadline instead.
func ValidateTime(post *v1alpha1.Post, now time.Time) field.ErrorList {
	at := post.Spec.ScheduledAt
	if at == nil || at.After(now) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "scheduledAt"), at.String(),
		"must be in the future; leave it out to post at once")}
}
