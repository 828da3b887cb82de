// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"crypto/rand"
	"fmt"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
)

// newPost is the resource for a request.
func newPost(namespace string, in *CreatePost, now time.Time) (*v1alpha1.Post, error) {
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   namespace,
			Name:        "p" + strings.ToLower(rand.Text()[:idLength]),
			Labels:      map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI},
			Annotations: map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(now).String()},
			Finalizers:  []string{v1alpha1.DeliveryFinalizer},
		},
		Spec: v1alpha1.PostSpec{
			Category: in.Category,
			Draft:    in.Draft,
			Targets:  make([]v1alpha1.PostTarget, len(in.Targets)),
		},
	}
	if in.ScheduledAt != nil {
		post.Spec.ScheduledAt = v1alpha1.NewTimePtr(*in.ScheduledAt)
	}
	for i := range in.Targets {
		post.Spec.Targets[i] = newTarget(&in.Targets[i])
	}
	setContent(&post.Spec, in)
	if in.IdempotencyKey == "" {
		return post, nil
	}
	asked, err := fingerprint(&post.Spec)
	if err != nil {
		return nil, err
	}
	post.Name = keyedName("p", namespace, in.IdempotencyKey)
	post.Annotations[v1alpha1.RequestAnnotation] = asked
	return post, nil
}

// setContent fills in the block that belongs to the category.
func setContent(spec *v1alpha1.PostSpec, in *CreatePost) {
	switch in.Category {
	case v1alpha1.CategoryImage:
		spec.Image = &v1alpha1.ImageContent{MediaRefs: references(in.MediaIDs)}
	case v1alpha1.CategoryVideo:
		spec.Video = &v1alpha1.VideoContent{}
		if len(in.MediaIDs) > 0 {
			spec.Video.MediaRef.Name = in.MediaIDs[0]
		}
		if in.ThumbnailTime != nil {
			millis := math.Round(*in.ThumbnailTime * 1000)
			spec.Video.ThumbnailOffsetMillis = new(int32(min(max(millis, 0), math.MaxInt32)))
		}
	case v1alpha1.CategoryTree:
		spec.Tree = &v1alpha1.TreeContent{Cards: make([]v1alpha1.TreeCard, len(in.Cards))}
		for i := range in.Cards {
			spec.Tree.Cards[i] = v1alpha1.TreeCard{Caption: in.Cards[i].Caption, MediaRefs: references(in.Cards[i].MediaIDs)}
		}
	case v1alpha1.CategoryText:
	}
}

func newTarget(in *CreateTarget) v1alpha1.PostTarget {
	target := v1alpha1.PostTarget{
		ConnectionRef: v1alpha1.LocalReference{Name: in.ConnectionID},
		Caption:       in.Caption,
	}
	if in.YouTubeTitle != "" {
		target.YouTube = &v1alpha1.YouTubeOptions{Title: in.YouTubeTitle}
	}
	if in.TikTok != (TikTokOptions{}) {
		target.TikTok = &v1alpha1.TikTokOptions{
			AllowComment:  in.TikTok.AllowComment,
			AllowDuet:     in.TikTok.AllowDuet,
			AllowStitch:   in.TikTok.AllowStitch,
			Draft:         isTrue(in.TikTok.Draft),
			AutoAddMusic:  isTrue(in.TikTok.AutoAddMusic),
			IsAIGenerated: isTrue(in.TikTok.IsAIGenerated),
		}
		if in.TikTok.PrivacyLevel != nil {
			target.TikTok.PrivacyLevel = v1alpha1.TikTokPrivacyLevel(*in.TikTok.PrivacyLevel)
		}
	}
	return target
}

func isTrue(b *bool) bool { return b != nil && *b }

func references(names []string) []v1alpha1.LocalReference {
	if len(names) == 0 {
		return nil
	}
	out := make([]v1alpha1.LocalReference, len(names))
	for i, name := range names {
		out[i].Name = name
	}
	return out
}

func names(references []v1alpha1.LocalReference) []string {
	out := make([]string, len(references))
	for i := range references {
		out[i] = references[i].Name
	}
	return out
}

// contentOf returns the media and the cards of a post as clients see them. The
// media of an image or video post that did not come through the API are not
// theirs to know (contract: empty for posts created in the web application).
func contentOf(post *v1alpha1.Post) (media []string, cards []Card) {
	spec := &post.Spec
	switch {
	case spec.Tree != nil:
		cards = make([]Card, len(spec.Tree.Cards))
		for i := range spec.Tree.Cards {
			cards[i] = Card{Caption: spec.Tree.Cards[i].Caption, MediaIDs: names(spec.Tree.Cards[i].MediaRefs)}
		}
	case post.Labels[v1alpha1.OriginLabel] != v1alpha1.OriginAPI:
	case spec.Image != nil:
		media = names(spec.Image.MediaRefs)
	case spec.Video != nil:
		media = []string{spec.Video.MediaRef.Name}
	}
	return media, cards
}

// checkRequest refuses what cannot be told from the resource any more: the
// combinations of options that the contract names, whatever the platform of the
// target, and a time that the resource cannot hold.
func checkRequest(in *CreatePost) field.ErrorList {
	var errs field.ErrorList
	if in.ScheduledAt != nil && in.ScheduledAt.UTC().Year() > lastYear {
		errs = append(errs, field.Forbidden(field.NewPath("scheduled_at"), fmt.Sprintf("must not lie after the year %d", lastYear)))
	}
	for i := range in.Targets {
		errs = append(errs, checkOptions(in.Category, &in.Targets[i].TikTok, field.NewPath("targets").Index(i))...)
	}
	return errs
}

func checkOptions(category v1alpha1.Category, options *TikTokOptions, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if options.AutoAddMusic != nil && category != v1alpha1.CategoryImage {
		errs = append(errs, field.Forbidden(path.Child("tiktok_auto_add_music"), "only a post of category image may have it; leave it out"))
	}
	if options.AllowDuet != nil && category != v1alpha1.CategoryVideo {
		errs = append(errs, field.Forbidden(path.Child("tiktok_allow_duet"), "only a post of category video may have it; leave it out"))
	}
	if options.AllowStitch != nil && category != v1alpha1.CategoryVideo {
		errs = append(errs, field.Forbidden(path.Child("tiktok_allow_stitch"), "only a post of category video may have it; leave it out"))
	}
	if isTrue(options.Draft) && isTrue(options.AutoAddMusic) {
		errs = append(errs, field.Forbidden(path.Child("tiktok_auto_add_music"), "cannot stand beside tiktok_draft; leave one of the two out"))
	}
	if isTrue(options.Draft) && options.PrivacyLevel != nil {
		errs = append(errs, field.Forbidden(path.Child("tiktok_privacy_level"), "cannot stand beside tiktok_draft; leave one of the two out"))
	}
	return errs
}
