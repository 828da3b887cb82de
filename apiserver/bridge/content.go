// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// newPost returns the post of a request. shard is the team's shard, or "" if it has none.
func newPost(caller Caller, in *CreatePost, shard string, now time.Time) (*v1alpha1.Post, error) {
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   caller.Namespace,
			Labels:      map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI},
			Annotations: map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(now).String()},
			Finalizers:  []string{v1alpha1.DeliveryFinalizer},
		},
		Spec: in.Spec,
	}
	if shard != "" {
		post.Labels[v1alpha1.ShardLabel] = shard
	}
	if caller.Author != "" {
		post.Annotations[v1alpha1.AuthorAnnotation] = caller.Author
	}
	switch {
	case caller.Agent != "":
		post.Annotations[v1alpha1.AgentAnnotation] = caller.Agent
	case caller.Author != "":
		post.Labels[v1alpha1.OriginLabel] = v1alpha1.OriginWeb
	}
	var requested any = &post.Spec
	switch {
	case in.Composed:
		requested = composed
	case in.Identity != nil:
		requested = in.Identity
	}
	err := identify(&post.ObjectMeta, &caller, postPrefix, in.IdempotencyKey, requested)
	if in.Delay > 0 && !post.Spec.Draft && post.Spec.ScheduledAt == nil {
		post.Spec.ScheduledAt = v1alpha1.NewTimePtr(now.Add(in.Delay))
	}
	return post, err
}

// contentOf returns a post's media and cards for clients. The media of an image or video post are hidden unless the
// post came through the API (contract: empty for posts created in the web application).
func contentOf(post *v1alpha1.Post) (media []v1alpha1.MediaReference, cards []v1alpha1.TreeCard) {
	spec := &post.Spec
	switch {
	case spec.Tree != nil:
		return nil, spec.Tree.Cards
	case post.Labels[v1alpha1.OriginLabel] != v1alpha1.OriginAPI:
		return nil, nil
	default:
		return posting.OwnMedia(spec), nil
	}
}

func checkTime(post *v1alpha1.Post) field.ErrorList {
	if at := post.Spec.ScheduledAt; at != nil && at.Year() > lastYear {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "scheduledAt"), fmt.Sprintf("must not be after the year %d", lastYear))}
	}
	return nil
}
