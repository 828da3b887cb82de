// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// deliverySteps returns a scheduled text post to two accounts, as the REST API creates it, with the statuses that the manager
// writes: accepted, claimed and posted.
func deliverySteps() ([]map[string]any, error) {
	now := time.Now()
	post := &v1alpha1.Post{
		TypeMeta: metav1.TypeMeta{Kind: "Post"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Generation: 1, Finalizers: []string{v1alpha1.DeliveryFinalizer},
			Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI},
			Annotations: map[string]string{
				v1alpha1.BornAnnotation:        v1alpha1.NewTime(now).String(),
				v1alpha1.TraceparentAnnotation: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			},
		},
		Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, ScheduledAt: v1alpha1.NewTimePtr(now.Add(time.Minute))},
	}
	var claims []delivery.TargetClaim
	for i := range 2 {
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{
			ConnectionRef: v1alpha1.LocalReference{Name: fmt.Sprintf("account-%d", i)}, Caption: "We launched. Thank you to everyone who helped.",
		})
		post.Status.Targets = append(post.Status.Targets, v1alpha1.TargetStatus{
			Index: int32(i), Platform: v1alpha1.PlatformX, State: v1alpha1.TargetPending,
			TryUntil: v1alpha1.NewTimePtr(now.Add(time.Hour)),
		})
		claims = append(claims, delivery.TargetClaim{Target: i, Claim: attempt.Claim{
			ID: fmt.Sprintf("0b1f6f0c-8a39-4c3e-9a30-6b3c8f2f1c9%d", i), AccountID: fmt.Sprintf("12345678901%d", i),
			ContentHash: strings.Repeat("9c1e", 16), Window: 5 * time.Second,
		}})
	}
	return written(post, claims, now)
}

// written returns the post after each of the manager's writes.
func written(post *v1alpha1.Post, claims []delivery.TargetClaim, now time.Time) (steps []map[string]any, _ error) {
	post.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted, Message: "the post is valid",
		ObservedGeneration: post.Generation, LastTransitionTime: metav1.NewTime(now),
	}}
	delivery.Describe(post, now)
	accepted, err := asMap(post)
	if err != nil {
		return nil, err
	}
	if err := delivery.RecordClaims(post, claims, now); err != nil {
		return nil, err
	}
	claimed, err := asMap(post)
	if err != nil {
		return nil, err
	}
	var results []delivery.Result
	for _, claim := range claims {
		id := "19912345678901234" + fmt.Sprint(claim.Target)
		results = append(results, delivery.Result{Target: claim.Target, Attempt: claim.ID, Result: platforms.Result{
			Outcome: platforms.Posted, ExternalID: id, ExternalURL: "https://x.com/herald/status/" + id, PostedAt: now,
		}})
	}
	if err := delivery.RecordResults(post, results, &delivery.Deadlines{}, now); err != nil {
		return nil, err
	}
	posted, err := asMap(post)
	return []map[string]any{accepted, claimed, posted}, err
}

func asMap(post *v1alpha1.Post) (object map[string]any, _ error) {
	data, err := json.Marshal(post)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(data, &object)
	return object, err
}
