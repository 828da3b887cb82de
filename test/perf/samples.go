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
	"github.com/herald-social/herald/test/perf/internal/bare"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// The floor writes samples of what Herald wrote a moment before, so that both write objects of the same size and shape.

// sampleTries is how many deliveries are watched for one that was claimed and recorded by one write each.
const sampleTries = 5

// acceptedPost creates one post by the request of load and returns it as the manager left it.
func (s *session) acceptedPost(ctx context.Context, load bare.Config) (*v1alpha1.Post, error) {
	load.InFlight, load.Warm, load.Count = 1, 1, 0
	child, err := s.bare(ctx, bare.Ask, "", load)
	if err != nil {
		return nil, err
	}
	if err := child.Kill(); err != nil {
		return nil, err
	}
	if _, err := s.awaitNone(ctx, notScheduled); err != nil {
		return nil, err
	}
	var list v1alpha1.PostList
	if err := s.stack.Kubernetes.List(ctx, &list, client.InNamespace(s.connected[0].Namespace)); err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("one post was created, and there are %d", len(list.Items))
	}
	return &list.Items[0], nil
}

// asCreated is a post as it was when it was created.
func asCreated(post *v1alpha1.Post) *v1alpha1.Post {
	return &v1alpha1.Post{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Post"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: post.Namespace, Labels: post.Labels, Annotations: post.Annotations, Finalizers: post.Finalizers,
		},
		Spec: post.Spec,
	}
}

// delivered are the statuses through which a delivery goes.
type delivered struct{ accepted, claimed, posted v1alpha1.PostStatus }

// deliveredPost lets Herald deliver a post to two accounts and returns what it wrote, one after the other.
func (s *session) deliveredPost(ctx context.Context) (*delivered, error) {
	return s.sample(ctx, func(name string) *v1alpha1.Post {
		return duePost(s.connected[0], 0, 1, time.Now().Add(2*time.Second), name)
	})
}

// sample lets Herald deliver a post and returns the last statuses that it wrote. Herald must be started.
func (s *session) sample(ctx context.Context, post func(name string) *v1alpha1.Post) (*delivered, error) {
	for i := range sampleTries {
		statuses, err := s.follow(ctx, post(fmt.Sprintf("sample %d", i)))
		if err != nil {
			return nil, errors.Join(err, s.whyNot(ctx))
		}
		last := len(statuses) - 1
		if last >= 2 && statuses[last].Phase == v1alpha1.PhasePosted && statuses[last-2].Phase == v1alpha1.PhaseScheduled {
			return &delivered{statuses[last-2], statuses[last-1], statuses[last]}, nil
		}
	}
	return nil, fmt.Errorf("in %d tries, no delivery was claimed and recorded by one write each", sampleTries)
}

// follow creates a post and returns each status that is written until it is finished.
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

// duePost is a post to two accounts of a team, made as Herald's apiserver makes it.
func duePost(team stack.Team, first, second int, at time.Time, name string) *v1alpha1.Post {
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: team.Namespace, GenerateName: "p",
			Labels:      map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI},
			Annotations: map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(time.Now()).String()},
			Finalizers:  []string{v1alpha1.DeliveryFinalizer},
		},
		Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, ScheduledAt: v1alpha1.NewTimePtr(at)},
	}
	for _, connection := range []int{first, second} {
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{
			ConnectionRef: v1alpha1.LocalReference{Name: team.Connections[connection].Name},
			Caption:       "A benchmark's post to two accounts, as long as such posts are: " + name,
		})
	}
	return post
}
