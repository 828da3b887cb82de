// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// fewestCards is the minimum number of cards in a published tree (the contract).
const fewestCards = 2

// tree checks the cards of a tree. Missing media is an error even in drafts. The number, content, length and size of
// the cards can be corrected until the tree is published.
func (v *validation) tree(path *field.Path) field.ErrorList {
	if v.post.Spec.Tree == nil || len(v.post.Spec.Tree.Cards) == 0 {
		return field.ErrorList{field.Required(path, "a tree needs at least one card, and two to be published")}
	}
	cards, draft := v.post.Spec.Tree.Cards, v.post.Spec.Draft
	var errs field.ErrorList
	if !draft && len(cards) < fewestCards {
		errs = append(errs, field.Invalid(path, len(cards), "a tree needs at least two cards unless it is a draft; add a card, or use category text"))
	}
	for i := range cards {
		card, at := &cards[i], path.Index(i)
		media, missing := v.cardMedia(card, at.Child("mediaRefs"))
		errs = append(errs, missing...)
		errs = append(errs, validateText(card.Caption, at.Child("caption"))...)
		if draft {
			continue
		}
		if card.Caption == "" && len(card.MediaRefs) == 0 {
			errs = append(errs, field.Required(at, "a card needs a caption or media unless the tree is a draft"))
		}
		text := posting.TextToSend(card.Caption, len(card.MediaRefs) > 0)
		for _, t := range v.destinations {
			errs = append(errs, validateCaption(text, t.name, t.limits, at.Child("caption"))...)
			errs = append(errs, v.validateCardMedia(card, media, t, at.Child("mediaRefs"))...)
		}
	}
	return errs
}

// cardMedia returns a card's media, with nil for each file that cannot be used.
func (v *validation) cardMedia(card *v1alpha1.TreeCard, path *field.Path) (media []*v1alpha1.Media, errs field.ErrorList) {
	media = make([]*v1alpha1.Media, len(card.MediaRefs))
	for i, ref := range card.MediaRefs {
		found, err := v.resolveMedia(ref.Name, path.Index(i).Child("name"))
		if err != nil {
			errs = append(errs, err)
		}
		errs = append(errs, validateAltText(ref, found, path.Index(i))...)
		media[i] = found
	}
	return media, errs
}

func (v *validation) validateCardMedia(card *v1alpha1.TreeCard, media []*v1alpha1.Media, t destination, path *field.Path) field.ErrorList {
	limits := t.limits.Card
	var errs field.ErrorList
	if len(card.MediaRefs) > limits.MaxItems {
		errs = append(errs, field.Invalid(path, len(card.MediaRefs),
			fmt.Sprintf("%s accepts at most %d media on a card; spread them over more cards", t.name, limits.MaxItems)))
	}
	var images, videos int
	for i, m := range media {
		if m == nil {
			continue
		}
		limit, at := limits.MaxImageBytes, path.Index(i).Child("name")
		errs = append(errs, v.describes(card.MediaRefs[i], m, t, path.Index(i))...)
		if isVideo(m) {
			videos++
			limit = limits.MaxVideoBytes
			if limits.MaxVideos > 0 {
				errs = append(errs, v.fits(m, t, at)...)
			}
		} else {
			images++
			errs = append(errs, v.convertible(m, t, at)...)
		}
		if size := sizeOf(m); limit > 0 && size > limit {
			errs = append(errs, tooLarge(at, m.Name, size, t.name, limit))
		}
	}
	switch {
	case images > 0 && videos > 0 && !limits.Mixed:
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("%s accepts images or a video on a card, not both; spread them over two cards", t.name)))
	case v.env.Accepted || videos <= limits.MaxVideos:
	case limits.MaxVideos == 0:
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("the server of an account on %s accepts no videos; remove the video, or choose other accounts", t.name)))
	default:
		errs = append(errs, field.Invalid(path, videos,
			fmt.Sprintf("%s accepts at most %s on a card; spread them over more cards", t.name, pluralize(limits.MaxVideos, "video"))))
	}
	return errs
}
