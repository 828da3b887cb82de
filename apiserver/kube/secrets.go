// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Secrets makes Secrets in the namespaces of teams, and can do nothing else with
// them. The right to it comes by the role binding of each Team.
type Secrets struct{ client rest.Interface }

// NewSecrets returns a Secrets that uses a client of NewCoreClient.
func NewSecrets(client rest.Interface) Secrets { return Secrets{client} }

// Create stores a Secret. What was stored is not read back. Errors are those of
// k8s.io/apimachinery/pkg/api/errors.
func (s Secrets) Create(ctx context.Context, secret *corev1.Secret) error {
	return s.client.Post().
		Namespace(secret.Namespace).Resource("secrets").
		VersionedParams(&metav1.CreateOptions{FieldManager: FieldOwner}, metav1.ParameterCodec).
		Body(secret).
		Do(ctx).Error()
}
