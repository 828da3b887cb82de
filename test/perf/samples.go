// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// The floor writes samples of statuses that Herald has just written, so both write objects of the same size and shape.

// sampleTries is the number of deliveries to observe until the claim and the outcome of one took a single write each.
const sampleTries = 5

// acceptedPost creates a post through the REST API and returns it with the status that the manager wrote.
func (s *session) acceptedPost(ctx context.Context, team stack.Team, body []byte) (*v1alpha1.Post, error) {
	if err := s.createByREST(ctx, team, body); err != nil {
		return nil, err
	}
	if _, err := s.awaitNone(ctx, notScheduled); err != nil {
		return nil, err
	}
	var list v1alpha1.PostList
	if err := s.stack.Kubernetes.List(ctx, &list, client.InNamespace(team.Namespace)); err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("one post was created, but there are %d", len(list.Items))
	}
	return &list.Items[0], nil
}

// asCreated returns a post in its state at creation.
func asCreated(post *v1alpha1.Post) *v1alpha1.Post {
	return &v1alpha1.Post{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Post"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: post.Namespace, Labels: post.Labels, Annotations: post.Annotations, Finalizers: post.Finalizers,
		},
		Spec: post.Spec,
	}
}

// delivered contains the successive statuses of a delivery.
type delivered struct{ accepted, claimed, posted v1alpha1.PostStatus }

// deliveredPost lets Herald deliver a post to two accounts and returns the last statuses that it wrote. Herald must be
// running.
func (s *session) deliveredPost(ctx context.Context, c *content) (*delivered, error) {
	team, second := c.teams[0], 1
	if len(c.platforms) > 1 {
		second = len(team.Connections) / 2
	}
	for i := range sampleTries {
		post := c.post(team, 0, time.Now().Add(c.sampleLead), fmt.Sprintf("sample %d", i), 0, second)
		statuses, err := s.follow(ctx, post)
		if err != nil {
			return nil, errors.Join(err, s.whyNot(ctx))
		}
		last := len(statuses) - 1
		if last >= 2 && statuses[last].Phase == v1alpha1.PhasePosted && statuses[last-2].Phase == v1alpha1.PhaseScheduled {
			return &delivered{statuses[last-2], statuses[last-1], statuses[last]}, nil
		}
	}
	return nil, fmt.Errorf("in %d attempts, no delivery was claimed and recorded with one write each", sampleTries)
}

// follow creates a post and returns each status that is written until the post is finished.
func (s *session) follow(ctx context.Context, post *v1alpha1.Post) ([]v1alpha1.PostStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.stack.Kubernetes.Create(ctx, post); err != nil {
		return nil, err
	}
	w, err := s.stack.Kubernetes.Watch(ctx, &v1alpha1.PostList{}, client.InNamespace(post.Namespace), client.MatchingFields{"metadata.name": post.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: post.ResourceVersion}})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	var statuses []v1alpha1.PostStatus
	for event := range w.ResultChan() {
		seen, ok := event.Object.(*v1alpha1.Post)
		if !ok || seen.Status.Phase == "" {
			continue
		}
		statuses = append(statuses, seen.Status)
		if seen.Status.Finished {
			return statuses, nil
		}
	}
	return nil, errors.Join(errors.New("the sample was not delivered"), context.Cause(ctx))
}
