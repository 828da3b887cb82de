// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/api/v1alpha1"
)

const postsResource = "posts"

// Posts reads and writes posts in the Kubernetes API itself, past every cache.
// Errors are those of k8s.io/apimachinery/pkg/api/errors.
type Posts struct{ client rest.Interface }

// NewPosts returns a Posts that uses client.
func NewPosts(client rest.Interface) *Posts { return &Posts{client: client} }

// created is what is read of the answer to a create: all else is known.
type created struct {
	Metadata struct {
		UID               types.UID   `json:"uid"`
		ResourceVersion   string      `json:"resourceVersion"`
		Generation        int64       `json:"generation"`
		CreationTimestamp metav1.Time `json:"creationTimestamp"`
	} `json:"metadata"`
}

// Create stores a post and returns it with the metadata that it was given.
// What admission may have changed beside is not read back.
func (p *Posts) Create(ctx context.Context, post *v1alpha1.Post) (*v1alpha1.Post, error) {
	post.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Post"}
	body, err := json.Marshal(post)
	if err != nil {
		return nil, fmt.Errorf("encode a post: %w", err)
	}
	result := p.client.Post().
		Namespace(post.Namespace).Resource(postsResource).
		SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(body).
		Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	answer, err := result.Raw()
	if err != nil {
		return nil, err
	}
	var c created
	if err := json.Unmarshal(answer, &c); err != nil {
		return nil, fmt.Errorf("read the answer to a create: %w", err)
	}
	out := *post
	out.UID = c.Metadata.UID
	out.ResourceVersion = c.Metadata.ResourceVersion
	out.Generation = c.Metadata.Generation
	out.CreationTimestamp = c.Metadata.CreationTimestamp
	return &out, nil
}

// Get reads a post.
func (p *Posts) Get(ctx context.Context, namespace, name string) (*v1alpha1.Post, error) {
	post := &v1alpha1.Post{}
	if err := p.client.Get().Namespace(namespace).Resource(postsResource).Name(name).Do(ctx).Into(post); err != nil {
		return nil, err
	}
	return post, nil
}

// Cancel sets spec.cancelled, on the condition that the post is still as it was
// at resourceVersion: a write in between wins, and the error is a
// conflict.
func (p *Posts) Cancel(ctx context.Context, namespace, name, resourceVersion string) (*v1alpha1.Post, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"spec":     map[string]any{"cancelled": true},
	})
	if err != nil {
		return nil, fmt.Errorf("encode a patch: %w", err)
	}
	post := &v1alpha1.Post{}
	err = p.client.Patch(types.MergePatchType).
		Namespace(namespace).Resource(postsResource).Name(name).
		Body(patch).
		Do(ctx).Into(post)
	if err != nil {
		return nil, err
	}
	return post, nil
}
