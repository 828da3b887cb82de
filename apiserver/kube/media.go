// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/api/v1alpha1"
)

const mediaResource = "media"

// Media reads and writes media files' resources in the Kubernetes API itself,
// past every cache: few requests name one, and those ask for what was uploaded
// a moment ago. Errors are those of k8s.io/apimachinery/pkg/api/errors.
type Media struct{ client rest.Interface }

// NewMedia returns a Media that uses client.
func NewMedia(client rest.Interface) *Media { return &Media{client: client} }

// Create registers a file.
func (m *Media) Create(ctx context.Context, media *v1alpha1.Media) (*v1alpha1.Media, error) {
	media.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Media"}
	out := &v1alpha1.Media{}
	if err := m.client.Post().Namespace(media.Namespace).Resource(mediaResource).Body(media).Do(ctx).Into(out); err != nil {
		return nil, err
	}
	return out, nil
}

// Get reads a media file.
func (m *Media) Get(ctx context.Context, namespace, name string) (*v1alpha1.Media, error) {
	out := &v1alpha1.Media{}
	if err := m.client.Get().Namespace(namespace).Resource(mediaResource).Name(name).Do(ctx).Into(out); err != nil {
		return nil, err
	}
	return out, nil
}

// UpdateStatus stores what a verification found, on the condition that the
// media file is still as it was read: a write in between wins, and the
// error is a conflict.
func (m *Media) UpdateStatus(ctx context.Context, media *v1alpha1.Media) (*v1alpha1.Media, error) {
	out := &v1alpha1.Media{}
	err := m.client.Put().
		Namespace(media.Namespace).Resource(mediaResource).Name(media.Name).SubResource("status").
		Body(media).
		Do(ctx).Into(out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// AwaitUntil records for the manager until when an address to upload a file to is
// good.
func (m *Media) AwaitUntil(ctx context.Context, namespace, name string, until time.Time) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{
			v1alpha1.UploadUntilAnnotation: until.UTC().Format(time.RFC3339),
		}},
	})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	return m.client.Patch(types.MergePatchType).Namespace(namespace).Resource(mediaResource).Name(name).Body(patch).Do(ctx).Error()
}
