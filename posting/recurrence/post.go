// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package recurrence

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// timeLayout is the time of a post in its name, in UTC. Occurrences are whole minutes.
const timeLayout = "20060102-1504"

// PostOf returns the post of an occurrence. Its name is derived from the schedule's name and the time, so an occurrence
// cannot have two posts.
func PostOf(s *v1alpha1.PostSchedule, o Occurrence) *v1alpha1.Post {
	template := s.Spec.Template.DeepCopy()
	if texts := s.Spec.Texts; len(texts) > 0 {
		for i := range template.Targets {
			if target := &template.Targets[i]; target.Caption == "" {
				target.Caption = texts[int(o.Number)%len(texts)]
			}
		}
	}
	return &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name + "-" + o.At.UTC().Format(timeLayout),
			Labels: map[string]string{v1alpha1.ScheduleLabel: s.Name},
			// Without blockOwnerDeletion, which would require another permission. No deletion has to wait for the posts.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "PostSchedule", Name: s.Name, UID: s.UID, Controller: new(true),
			}},
		},
		Spec: v1alpha1.PostSpec{
			Category: template.Category, ScheduledAt: v1alpha1.NewTimePtr(o.At), Image: template.Image, Video: template.Video,
			Targets: template.Targets, OnUnknownOutcome: template.OnUnknownOutcome,
		},
	}
}

// RepeatedText returns a warning if each of a schedule's posts has the same text on X, or "". platform returns the
// platform of a connection, or "".
//
// X rejects a post whose text equals that of a recent one (403, code 187). It does not document how recent, so
// alternating texts are not reported.
func RepeatedText(s *v1alpha1.PostSchedule, platform func(connection string) v1alpha1.Platform) string {
	if count := s.Spec.Count; count != nil && *count == 1 {
		return ""
	}
	for i := range s.Spec.Template.Targets {
		target := &s.Spec.Template.Targets[i]
		if (target.Caption != "" || len(s.Spec.Texts) == 1) && platform(target.ConnectionRef.Name) == v1alpha1.PlatformX {
			return fmt.Sprintf("X may reject posts whose text repeats a recent one, and each post to connection %q has the same text: "+
				"put several texts into spec.texts, and leave spec.template.targets[%d].caption out", target.ConnectionRef.Name, i)
		}
	}
	return ""
}
