// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
)

// maxFiles is the maximum number of different files in a post, including drafts: a tree of 100 cards (the schema) with
// 20 files each (the contract, for Threads). Every reference costs a lookup.
const maxFiles = 2000

// ValidateFiles checks the number of different files in a post, before they are looked up. Validate includes it.
func ValidateFiles(post *v1alpha1.Post) field.ErrorList {
	n := len(posting.Of(post).MediaNames())
	if n <= maxFiles {
		return nil
	}
	// Only trees can have that many files.
	return field.ErrorList{field.Invalid(field.NewPath("spec", "tree", "cards"), n,
		fmt.Sprintf("the post names %d different media files, and can name at most %d; create several posts of it", n, maxFiles))}
}

// images checks an image post's media, in drafts too, as with all limits that the contract does not postpone.
func (v *validation) images(path *field.Path) field.ErrorList {
	if v.post.Spec.Image == nil || len(v.post.Spec.Image.MediaRefs) == 0 {
		return field.ErrorList{field.Required(path, "an image post needs at least one image, even as a draft")}
	}
	refs := v.post.Spec.Image.MediaRefs
	var errs field.ErrorList
	for i, ref := range refs {
		name := path.Index(i).Child("name")
		media, err := v.resolveMedia(ref.Name, name)
		errs = append(errs, validateAltText(ref, media, path.Index(i))...)
		if err == nil && isVideo(media) {
			err = field.Invalid(name, ref.Name, fmt.Sprintf("is of type %s; an image post can contain only images", media.Spec.MimeType))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, t := range v.destinations {
			errs = append(errs, v.convertible(media, t, name)...)
			errs = append(errs, v.describes(ref, media, t, path.Index(i))...)
		}
	}
	if len(v.destinations) == 0 {
		return errs
	}
	strictest := slices.MinFunc(v.destinations, func(a, b destination) int { return cmp.Compare(a.limits.MaxImages, b.limits.MaxImages) })
	if most := strictest.limits.MaxImages; len(refs) > most {
		errs = append(errs, field.Invalid(path, len(refs),
			fmt.Sprintf("%s accepts at most %s; leave some out, or post to the other connections separately", strictest.name, pluralize(most, "image"))))
	}
	return errs
}

func (v *validation) video(path *field.Path) field.ErrorList {
	ref := path.Child("mediaRef", "name")
	if v.post.Spec.Video == nil || v.post.Spec.Video.MediaRef.Name == "" {
		return field.ErrorList{field.Required(ref, "a video post needs a video, even as a draft")}
	}
	name := v.post.Spec.Video.MediaRef.Name
	media, err := v.resolveMedia(name, ref)
	errs := validateAltText(v.post.Spec.Video.MediaRef, media, path.Child("mediaRef"))
	if err != nil {
		return append(errs, err)
	}
	if !isVideo(media) {
		return append(errs, field.Invalid(ref, name, fmt.Sprintf("is of type %s; a video post needs a video", media.Spec.MimeType)))
	}
	for _, t := range v.destinations {
		file := platforms.FileOf(media)
		if size := sizeOf(media); t.limits.MaxVideoBytes > 0 && size > t.limits.MaxVideoBytes && !v.converts(&file, t) {
			errs = append(errs, tooLarge(ref, name, size, t.name, t.limits.MaxVideoBytes))
		}
		errs = append(errs, v.fits(media, t, ref)...)
		errs = append(errs, v.describes(v.post.Spec.Video.MediaRef, media, t, path.Child("mediaRef"))...)
	}
	if at, length := v.post.Spec.Video.ThumbnailOffsetMillis, media.Status.DurationMillis; at != nil && length > 0 && int64(*at) > length {
		errs = append(errs, field.Invalid(path.Child("thumbnailOffsetMillis"), *at,
			fmt.Sprintf("is after the end of the video, which is %s long; choose an earlier time", time.Duration(length)*time.Millisecond)))
	}
	return errs
}

func (v *validation) resolveMedia(name string, path *field.Path) (*v1alpha1.Media, *field.Error) {
	var media *v1alpha1.Media
	if v.env.Media != nil {
		media = v.env.Media(name)
	}
	if media == nil || !media.DeletionTimestamp.IsZero() {
		return nil, notFound(path, name, "no such media file")
	}
	switch media.Status.Phase {
	case v1alpha1.MediaUploaded:
		if c := ready(media); c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonFileMissing {
			// If the store gets the file back, the post proceeds.
			return nil, notFound(path, name, "the store no longer has the file, upload it again as another one: media file")
		}
		return media, nil
	case v1alpha1.MediaRejected:
		return nil, field.Invalid(path, name, "the file was rejected: "+rejection(media))
	case v1alpha1.MediaExpired:
		return nil, field.Invalid(path, name, "the file is gone or was never uploaded; upload it again as another one")
	case v1alpha1.MediaPending:
		if c := ready(media); c != nil && c.Reason == v1alpha1.ReasonBeingOverwritten {
			return nil, notFound(path, name, "the file is overwritten while it is examined; end that upload, then send the post again: media file")
		}
	}
	return nil, notFound(path, name, "nothing has been uploaded yet for media file")
}

func rejection(media *v1alpha1.Media) string {
	if c := ready(media); c != nil && c.Message != "" {
		return c.Message
	}
	return "it does not match its declaration, or was changed; upload another one"
}

func ready(media *v1alpha1.Media) *metav1.Condition {
	return meta.FindStatusCondition(media.Status.Conditions, v1alpha1.ConditionReady)
}

func isVideo(media *v1alpha1.Media) bool {
	return strings.HasPrefix(string(media.Spec.MimeType), "video/")
}

func pluralize(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func sizeOf(media *v1alpha1.Media) int64 {
	if media.Status.SizeBytes > 0 {
		return media.Status.SizeBytes
	}
	return media.Spec.SizeBytes
}

func tooLarge(path *field.Path, name string, size int64, platform v1alpha1.Platform, limit int64) *field.Error {
	return field.Invalid(path, name, fmt.Sprintf("has %d bytes; %s accepts at most %d here; upload a smaller file", size, platform, limit))
}
