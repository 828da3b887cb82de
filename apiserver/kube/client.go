// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube accesses the Kubernetes API for the apiserver: through a client for its few reads and writes, and
// through watches that cache what requests need without delay. It creates the Secrets of connected accounts and of
// notifiers, and reads only the Secret of the web application.
package kube

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/quota"
)

// The complete permissions of the apiserver.
//
// +kubebuilder:rbac:groups=social.herald.dev,resources=posts,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=media,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=media/status,verbs=update
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch
// +kubebuilder:rbac:groups=social.herald.dev,resources=apikeys,verbs=get;list;watch
// +kubebuilder:rbac:groups=social.herald.dev,resources=apikeys/status,verbs=patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=postschedules;notifiers,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups=social.herald.dev,resources=usages,verbs=get;create
// +kubebuilder:rbac:groups=social.herald.dev,resources=usages/status,verbs=update

// FieldOwner is the field manager of the apiserver's writes.
const FieldOwner = "herald-apiserver"

// NewClient returns a client for Herald's resources. It has no client-side rate limit, because the Kubernetes API has
// its own (API Priority and Fairness).
func NewClient(config *rest.Config, userAgent string) (rest.Interface, error) {
	return newClient(config, userAgent, "/apis", v1alpha1.GroupVersion, v1alpha1.AddToScheme)
}

// kinds registers individual Kubernetes kinds. Registering the whole group would link more code.
func kinds(group schema.GroupVersion, of ...runtime.Object) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(group, of...)
		metav1.AddToGroupVersion(scheme, group)
		return nil
	}
}

// newClient returns a client for the resources of one group and version, under "/api" or "/apis".
func newClient(config *rest.Config, userAgent, path string, group schema.GroupVersion, add func(*runtime.Scheme) error) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		return nil, fmt.Errorf("register the resources: %w", err)
	}
	cfg := rest.CopyConfig(config)
	cfg.UserAgent = userAgent
	cfg.QPS = -1
	cfg.Wrap(kubeclient.WrapTransport)
	httpClient, err := kubeclient.NewHTTPClient(cfg)
	if err != nil {
		return nil, err
	}
	cfg.APIPath = path
	cfg.GroupVersion = &group
	cfg.ContentType = runtime.ContentTypeJSON
	cfg.AcceptContentTypes = runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	return client, nil
}

// object is one of Herald's resources; T is its struct.
type object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// kind reads and writes resources of one kind in the Kubernetes API, without a cache. Its errors are API errors of
// k8s.io/apimachinery/pkg/api/errors.
type kind[T any, P object[T]] struct {
	client   rest.Interface
	resource string
}

func (k kind[T, P]) in(namespace string) *gentype.Client[P] {
	return gentype.NewClient(k.resource, k.client, metav1.ParameterCodec, namespace, func() P { return new(T) })
}

func (k kind[T, P]) Get(ctx context.Context, namespace, name string) (P, error) {
	return k.in(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (k kind[T, P]) create(ctx context.Context, created P) (P, error) {
	return quota.CreateWithRetry(ctx, func() (P, error) {
		return k.in(created.GetNamespace()).Create(ctx, created, metav1.CreateOptions{FieldManager: FieldOwner})
	})
}

func (k kind[T, P]) patch(ctx context.Context, namespace, name string, changes map[string]any, subresources ...string) (P, error) {
	body, err := json.Marshal(changes)
	if err != nil {
		return nil, fmt.Errorf("encode a patch: %w", err)
	}
	return k.in(namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldOwner}, subresources...)
}

// update writes the difference between two states of a resource as a merge patch, with optimistic concurrency.
func (k kind[T, P]) update(ctx context.Context, before, after P) (P, error) {
	body, err := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(after)
	if err != nil {
		return nil, fmt.Errorf("encode a patch: %w", err)
	}
	return k.in(before.GetNamespace()).Patch(ctx, before.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldOwner})
}

func (k kind[T, P]) annotate(ctx context.Context, namespace, name, key, value string) (P, error) {
	return k.patch(ctx, namespace, name, map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
}

// writable is a kind whose resources are created whole and whose status is written separately.
type writable[T any, P object[T]] struct{ kind[T, P] }

func (w writable[T, P]) Create(ctx context.Context, obj P) (P, error) {
	return w.create(ctx, obj)
}

// UpdateStatus stores a resource's status, with optimistic concurrency.
func (w writable[T, P]) UpdateStatus(ctx context.Context, updated P) (P, error) {
	return w.in(updated.GetNamespace()).UpdateStatus(ctx, updated, metav1.UpdateOptions{FieldManager: FieldOwner})
}

// editable is a writable kind whose resources users change and delete.
type editable[T any, P object[T]] struct{ writable[T, P] }

// Update writes the difference between two states of a resource, with optimistic concurrency.
func (w editable[T, P]) Update(ctx context.Context, before, after P) (P, error) {
	return w.update(ctx, before, after)
}

// Delete deletes a resource, but not a later one of the same name.
func (w editable[T, P]) Delete(ctx context.Context, of P) error {
	uid := of.GetUID()
	return w.in(of.GetNamespace()).Delete(ctx, of.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
}
