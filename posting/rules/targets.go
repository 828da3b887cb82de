// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
)

// languageTag is the pattern of the resource's field.
var languageTag = regexp.MustCompile(`^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$`)

// IsLanguage reports whether a target may have a language: a tag of BCP 47 in its usual spelling, such as pt-BR.
func IsLanguage(tag string) bool { return languageTag.MatchString(tag) }

func (v *validation) target(i int, path *field.Path) field.ErrorList {
	target, category := &v.post.Spec.Targets[i], v.post.Spec.Category
	var errs field.ErrorList
	if target.Caption == "" && !v.post.Spec.Draft && category != v1alpha1.CategoryTree {
		errs = append(errs, field.Required(path.Child("caption"), "a post that is not a draft needs a caption"))
	}
	errs = append(errs, validateText(target.Caption, path.Child("caption"))...)
	if target.Language != "" && !IsLanguage(target.Language) {
		errs = append(errs, field.Invalid(path.Child("language"), target.Language, "enter the language as a tag, such as en, pt-BR or zh-Hant"))
	}
	if target.YouTube != nil {
		errs = append(errs, validateText(target.YouTube.Title, path.Child("youtube", "title"))...)
	}
	if target.Mastodon != nil {
		errs = append(errs, validateText(target.Mastodon.ContentWarning, path.Child("mastodon", "contentWarning"))...)
	}
	ref := path.Child("connectionRef", "name")
	if category == v1alpha1.CategoryTree && v.namedBefore(i) {
		errs = append(errs, field.Duplicate(ref, target.ConnectionRef.Name))
	}
	conn := v.env.connection(target.ConnectionRef.Name)
	if conn == nil {
		return append(errs, notFound(ref, target.ConnectionRef.Name, "no such connection"))
	}
	general, ok := v.env.Capabilities(conn.Spec.Platform)
	if !ok {
		return append(errs, field.Invalid(ref, target.ConnectionRef.Name,
			fmt.Sprintf("this installation cannot publish to %s", conn.Spec.Platform)))
	}
	limits := general.Of(&conn.Status).For(target)
	switch {
	case limits.Allows(category), v.env.Accepted && general.Allows(category):
		v.addDestination(conn, limits)
	case v.post.Spec.Draft && category != v1alpha1.CategoryTree: // the contract's rule 1 rejects drafts only if they are trees
	case general.Allows(category):
		errs = append(errs, field.Invalid(ref, target.ConnectionRef.Name,
			fmt.Sprintf("the account's server does not accept posts of category %s; choose another connection", category)))
	default:
		errs = append(errs, field.Invalid(ref, target.ConnectionRef.Name,
			fmt.Sprintf("%s does not accept posts of category %s; choose another connection", conn.Spec.Platform, category)))
	}
	errs = append(errs, validateTitle(target.YouTube, v.post.Spec.Draft, conn.Spec.Platform, limits, path.Child("youtube", "title"))...)
	showsFiles := category == v1alpha1.CategoryImage || category == v1alpha1.CategoryVideo
	return append(errs, validateCaption(posting.TextToSend(target.Caption, showsFiles), conn.Spec.Platform, limits, path.Child("caption"))...)
}

// ValidateOptions checks the platform options of the targets against the choices that the Connections list for their
// accounts. It is separate from Validate because the HTTP API reports its errors with a separate code.
func ValidateOptions(post *v1alpha1.Post, env Env) field.ErrorList {
	var errs field.ErrorList
	for i := range post.Spec.Targets {
		target := &post.Spec.Targets[i]
		conn := env.connection(target.ConnectionRef.Name)
		if conn == nil {
			continue
		}
		if limits, ok := env.Capabilities(conn.Spec.Platform); ok && limits.ValidateOptions != nil {
			errs = append(errs, limits.ValidateOptions(target, post.Spec.Draft, &conn.Status, field.NewPath("spec", "targets").Index(i))...)
		}
	}
	return errs
}

// ValidateAudiences rejects a limited audience of a target whose platform shows posts to everyone. It is separate from
// Validate because only the HTTP API has one field for the audience on every platform. In the resource, it is an option
// of one platform and has no effect on others.
func ValidateAudiences(post *v1alpha1.Post, env Env) field.ErrorList {
	var errs field.ErrorList
	for i := range post.Spec.Targets {
		target := &post.Spec.Targets[i]
		if target.Mastodon == nil {
			continue
		}
		audience := target.Mastodon.Visibility
		if audience != v1alpha1.MastodonPrivate && audience != v1alpha1.MastodonDirect {
			continue
		}
		if conn := env.connection(target.ConnectionRef.Name); conn != nil && conn.Spec.Platform != v1alpha1.PlatformMastodon {
			errs = append(errs, field.Invalid(field.NewPath("spec", "targets").Index(i).Child("mastodon", "visibility"), audience,
				fmt.Sprintf("%s does not have the audience %q, so the post would be visible to everyone; set it to null, or choose another connection", conn.Spec.Platform, audience)))
		}
	}
	return errs
}

func (v *validation) namedBefore(i int) bool {
	name := v.post.Spec.Targets[i].ConnectionRef.Name
	return slices.ContainsFunc(v.post.Spec.Targets[:i], func(t v1alpha1.PostTarget) bool { return t.ConnectionRef.Name == name })
}

// notFound returns the error for an object that may still be created.
func notFound(path *field.Path, name, detail string) *field.Error {
	err := field.NotFound(path, name)
	err.Detail = detail
	return err
}

// validateText rejects the NUL character, in drafts too, because some databases and programs truncate or reject it.
func validateText(text string, path *field.Path) field.ErrorList {
	if !strings.ContainsRune(text, 0) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, `must not contain the NUL character (\u0000)`)}
}

func validateTitle(options *v1alpha1.YouTubeOptions, draft bool, platform v1alpha1.Platform, limits platforms.Capabilities, path *field.Path) field.ErrorList {
	if limits.MaxTitle == 0 {
		return nil
	}
	title := ""
	if options != nil {
		title = options.Title
	}
	if title == "" {
		if draft {
			return nil
		}
		return field.ErrorList{field.Required(path, fmt.Sprintf("a post to %s needs a title unless it is a draft", platform))}
	}
	var errs field.ErrorList
	if n := limits.TitleLength(title); n > limits.MaxTitle {
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("%d characters are too many for a title on %s, which accepts at most %d; shorten it", n, platform, limits.MaxTitle)))
	}
	if limits.TitleProblem != nil {
		if problem := limits.TitleProblem(title); problem != "" {
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, problem))
		}
	}
	return errs
}

func validateCaption(caption string, platform v1alpha1.Platform, limits platforms.Capabilities, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if limits.MaxCaption > 0 {
		if n := limits.CaptionLength(caption); n > limits.MaxCaption {
			errs = append(errs, field.Invalid(path, field.OmitValueType{},
				fmt.Sprintf("%d %s are too many for %s, which accepts at most %d; shorten it", n, limits.CaptionUnit, platform, limits.MaxCaption)))
		}
	}
	if caption != "" && limits.CaptionProblem != nil {
		if problem := limits.CaptionProblem(caption); problem != "" {
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, problem))
		}
	}
	return errs
}
