// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
)

// validateAltText checks the alt text of one use of a media file, in drafts too: this limit does not depend on the rest
// of the post. path is the path of the reference.
func validateAltText(ref v1alpha1.MediaReference, media *v1alpha1.Media, path *field.Path) field.ErrorList {
	if ref.AltText == "" {
		if media == nil {
			return nil
		}
		return validateText(media.Spec.AltText, path.Child("name"))
	}
	path = path.Child("altText")
	errs := validateText(ref.AltText, path)
	if n := utf8.RuneCountInString(ref.AltText); n > v1alpha1.MaxAltText {
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("%d characters are too many for an alt text, which may have at most %d; shorten it", n, v1alpha1.MaxAltText)))
	}
	return errs
}

// describes rejects an alt text that is too long for an account's server. path is the path of the reference.
func (v *validation) describes(ref v1alpha1.MediaReference, media *v1alpha1.Media, t destination, path *field.Path) field.ErrorList {
	text, path := ref.AltText, path.Child("altText")
	if text == "" {
		text = media.Spec.AltText
	}
	n := utf8.RuneCountInString(text)
	if v.env.Accepted || t.limits.MaxAltText == 0 || n <= t.limits.MaxAltText {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{},
		fmt.Sprintf("%d characters are too many for an alt text on the account's server on %s, which accepts at most %d; shorten it", n, t.name, t.limits.MaxAltText))}
}
