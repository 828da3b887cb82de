// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/tracing"
)

const postsResource = "posts"

// Posts reads and writes posts.
type Posts struct {
	kind[v1alpha1.Post, *v1alpha1.Post]
}

// NewPosts returns a Posts that uses client.
func NewPosts(client rest.Interface) Posts {
	return Posts{kind[v1alpha1.Post, *v1alpha1.Post]{client, postsResource}}
}

// Create stores a post and returns it with its stored metadata. Changes that admission makes to the spec are not read
// back.
func (p Posts) Create(ctx context.Context, post *v1alpha1.Post) (*v1alpha1.Post, error) {
	ctx, span := tracing.Call(ctx, "store post")
	defer span.End()
	span.Text(tracing.Post, post.Name)
	post.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Post"}
	body, err := json.Marshal(post)
	if err != nil {
		return nil, fmt.Errorf("encode a post: %w", err)
	}
	result, err := quota.CreateWithRetry(ctx, func() (rest.Result, error) {
		result := p.client.Post().
			Namespace(post.Namespace).Resource(p.resource).
			Param("fieldManager", FieldOwner).
			SetHeader("Content-Type", runtime.ContentTypeJSON).
			Body(body).
			Do(ctx)
		return result, result.Error()
	})
	if err != nil {
		span.Fail(string(apierrors.ReasonForError(err)))
		return nil, err
	}
	answer, err := result.Raw()
	if err != nil {
		return nil, err
	}
	var stored metav1.PartialObjectMetadata
	if err := json.Unmarshal(answer, &stored); err != nil {
		return nil, fmt.Errorf("read the answer to a create: %w", err)
	}
	out := *post
	out.ObjectMeta = stored.ObjectMeta
	return &out, nil
}

// Update writes the difference between two states of a post, with optimistic concurrency: a concurrent write makes it
// fail with a conflict. Unless a tool has applied the post, or the write cancels it, Kubernetes stops tracking who owns
// its fields, which makes the later status writes cheaper (docs/sizes.md).
func (p Posts) Update(ctx context.Context, before, after *v1alpha1.Post) (*v1alpha1.Post, error) {
	if len(before.ManagedFields) > 0 && !after.Spec.Cancelled && !isApplied(before) {
		after = after.DeepCopy()
		after.ManagedFields = []metav1.ManagedFieldsEntry{{}} // resets the list
	}
	return p.update(ctx, before, after)
}

// isApplied reports whether a client other than Herald has created the post, or has applied it since.
func isApplied(post *v1alpha1.Post) bool {
	return post.Labels[v1alpha1.OriginLabel] == "" || slices.ContainsFunc(post.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Operation == metav1.ManagedFieldsOperationApply
	})
}

// Media reads and writes Media resources. They are not watched: few requests refer to one, and those need its latest
// state.
type Media struct {
	writable[v1alpha1.Media, *v1alpha1.Media]
}

// NewMedia returns a Media that uses client.
func NewMedia(client rest.Interface) Media {
	return Media{writable[v1alpha1.Media, *v1alpha1.Media]{kind[v1alpha1.Media, *v1alpha1.Media]{client, "media"}}}
}

// SetUploadDeadline records for the manager when an upload URL expires.
func (m Media) SetUploadDeadline(ctx context.Context, namespace, name string, until time.Time) error {
	_, err := m.annotate(ctx, namespace, name, v1alpha1.UploadUntilAnnotation, until.UTC().Format(time.RFC3339))
	return err
}

// filesPerList limits the files of one list request, which keeps a response below about 1 MiB.
const filesPerList = 500

// Uploaded returns up to the given number of a namespace's uploaded files, and whether there are more.
func (m Media) Uploaded(ctx context.Context, namespace string, most int) (files []v1alpha1.Media, more bool, err error) {
	uploaded := fields.OneTermEqualSelector("status.phase", string(v1alpha1.MediaUploaded)).String()
	for from := ""; ; {
		var page v1alpha1.MediaList
		err := m.client.Get().Namespace(namespace).Resource(m.resource).
			VersionedParams(&metav1.ListOptions{FieldSelector: uploaded, Limit: filesPerList, Continue: from}, metav1.ParameterCodec).
			Do(ctx).Into(&page)
		if err != nil {
			return nil, false, err
		}
		files = append(files, page.Items...)
		if from = page.Continue; from == "" || len(files) >= most {
			return files[:min(len(files), most)], from != "" || len(files) > most, nil
		}
	}
}

// Schedules reads and writes the teams' schedules. They are not watched: a team has few, and they change rarely.
type Schedules struct {
	editable[v1alpha1.PostSchedule, *v1alpha1.PostSchedule]
}

// NewSchedules returns a Schedules that uses client.
func NewSchedules(client rest.Interface) Schedules {
	return Schedules{editable[v1alpha1.PostSchedule, *v1alpha1.PostSchedule]{writable[v1alpha1.PostSchedule, *v1alpha1.PostSchedule]{kind[v1alpha1.PostSchedule, *v1alpha1.PostSchedule]{client, "postschedules"}}}}
}

// List returns a namespace's schedules. The plan limits their number (posting/plan).
func (s Schedules) List(ctx context.Context, namespace string) ([]v1alpha1.PostSchedule, error) {
	var list v1alpha1.PostScheduleList
	err := s.client.Get().Namespace(namespace).Resource(s.resource).Do(ctx).Into(&list)
	return list.Items, err
}

// Notifiers reads and writes the teams' notifiers. They are not watched: a team has few, and they change rarely.
type Notifiers struct {
	editable[v1alpha1.Notifier, *v1alpha1.Notifier]
}

// NewNotifiers returns a Notifiers that uses client.
func NewNotifiers(client rest.Interface) Notifiers {
	return Notifiers{editable[v1alpha1.Notifier, *v1alpha1.Notifier]{writable[v1alpha1.Notifier, *v1alpha1.Notifier]{kind[v1alpha1.Notifier, *v1alpha1.Notifier]{client, "notifiers"}}}}
}

// List returns a namespace's notifiers. The plan limits their number (posting/plan).
func (n Notifiers) List(ctx context.Context, namespace string) ([]v1alpha1.Notifier, error) {
	var list v1alpha1.NotifierList
	err := n.client.Get().Namespace(namespace).Resource(n.resource).Do(ctx).Into(&list)
	return list.Items, err
}

// Usages reads and writes the teams' Usages.
type Usages struct {
	writable[v1alpha1.Usage, *v1alpha1.Usage]
}

// NewUsages returns a Usages that uses client.
func NewUsages(client rest.Interface) Usages {
	return Usages{writable[v1alpha1.Usage, *v1alpha1.Usage]{kind[v1alpha1.Usage, *v1alpha1.Usage]{client, "usages"}}}
}
