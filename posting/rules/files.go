// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// fits rejects a video that exceeds a platform's documented limits.
func (v *validation) fits(media *v1alpha1.Media, t destination, path *field.Path) field.ErrorList {
	if v.env.Accepted {
		return nil
	}
	var errs field.ErrorList
	file := platforms.FileOf(media)
	if v.converts(&file, t) {
		return nil
	}
	for _, problem := range t.limits.Videos.Problems(&file, string(t.name)) {
		errs = append(errs, field.Invalid(path, media.Name, fmt.Sprintf("the video %q %s; upload one that fits, or post it to the other platforms only", file.Name, problem)))
	}
	return errs
}

func (v *validation) converts(f *platforms.File, t destination) bool {
	return v.env.Converts && t.limits.ForConversion().Converts(f)
}

func (v *validation) convertible(media *v1alpha1.Media, t destination, path *field.Path) field.ErrorList {
	file := platforms.FileOf(media)
	if v.env.Accepted || media.Status.Unconvertible == "" || t.limits.Images.Accepts(&file) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, media.Name, fmt.Sprintf("%s does not accept the image %q as it is, and Herald cannot convert it: it %s",
		t.name, file.Name, media.Status.Unconvertible))}
}

// FileWarning is a warning about one of a post's files.
type FileWarning struct {
	// Path is the post's field that refers to the file.
	Path *field.Path
	// Message is one or two sentences.
	Message string
}

// String returns the warning with its path, in the format for admission webhooks.
func (w FileWarning) String() string { return w.Path.String() + ": " + w.Message }

// FileWarnings returns warnings about videos that a platform may reject, because the sources disagree about its limit.
// The post remains valid. Missing files are skipped.
func FileWarnings(post *v1alpha1.Post, env Env) []FileWarning {
	if env.Media == nil {
		return nil
	}
	var warnings []FileWarning
	seen := map[v1alpha1.Platform]bool{}
	for i := range post.Spec.Targets {
		conn := env.connection(post.Spec.Targets[i].ConnectionRef.Name)
		if conn == nil || seen[conn.Spec.Platform] {
			continue
		}
		seen[conn.Spec.Platform] = true
		limits, ok := env.Capabilities(conn.Spec.Platform)
		if !ok || limits.VideoDoubt == "" {
			continue
		}
		for _, at := range videosOf(post) {
			media := env.Media(at.name)
			if media == nil || !isVideo(media) {
				continue
			}
			file := platforms.FileOf(media)
			if len(limits.Videos.Problems(&file, string(conn.Spec.Platform))) > 0 {
				continue // Validate rejects it
			}
			if env.Converts && limits.ForConversion().Converts(&file) {
				continue
			}
			for _, problem := range limits.DoubtfulVideos.Problems(&file, "an ordinary account of "+string(conn.Spec.Platform)) {
				warnings = append(warnings, FileWarning{at.path, fmt.Sprintf("the video %q %s. %s", file.Name, problem, limits.VideoDoubt)})
			}
		}
	}
	return warnings
}

type named struct {
	name string
	path *field.Path
}

func videosOf(post *v1alpha1.Post) []named {
	spec := field.NewPath("spec")
	switch {
	case post.Spec.Video != nil:
		return []named{{post.Spec.Video.MediaRef.Name, spec.Child("video", "mediaRef", "name")}}
	case post.Spec.Tree != nil:
		var all []named
		for i := range post.Spec.Tree.Cards {
			for j, ref := range post.Spec.Tree.Cards[i].MediaRefs {
				all = append(all, named{ref.Name, spec.Child("tree", "cards").Index(i).Child("mediaRefs").Index(j).Child("name")})
			}
		}
		return all
	default:
		return nil
	}
}
