// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Credentials creates Secrets in teams' namespaces, and has no other access to them. Each Team's role binding grants
// the permission.
type Credentials struct{ client rest.Interface }

// NewCredentials returns a Credentials with its own client.
func NewCredentials(config *rest.Config, userAgent string) (Credentials, error) {
	client, err := newClient(config, userAgent, "/api", corev1.SchemeGroupVersion, kinds(corev1.SchemeGroupVersion, &corev1.Secret{}))
	return Credentials{client}, err
}

// Create stores a Secret without reading it back. Its errors are API errors of k8s.io/apimachinery/pkg/api/errors.
func (s Credentials) Create(ctx context.Context, secret *corev1.Secret) error {
	return s.client.Post().
		Namespace(secret.Namespace).Resource("secrets").
		VersionedParams(&metav1.CreateOptions{FieldManager: FieldOwner}, metav1.ParameterCodec).
		Body(secret).
		Do(ctx).Error()
}
