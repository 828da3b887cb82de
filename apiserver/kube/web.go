// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Secrets reads and writes Secrets in one namespace. The apiserver may only read the Secret of the web application
// there.
type Secrets = gentype.ClientWithList[*corev1.Secret, *corev1.SecretList]

// NewSecrets returns a client for the Secrets of a namespace.
func NewSecrets(config *rest.Config, userAgent, namespace string) (*Secrets, error) {
	client, err := newClient(config, userAgent, "/api", corev1.SchemeGroupVersion, kinds(corev1.SchemeGroupVersion, &corev1.Secret{}, &corev1.SecretList{}))
	if err != nil {
		return nil, err
	}
	return gentype.NewClientWithList("secrets", client, metav1.ParameterCodec, namespace,
		func() *corev1.Secret { return &corev1.Secret{} }, func() *corev1.SecretList { return &corev1.SecretList{} }), nil
}

// Reviews creates SubjectAccessReviews.
type Reviews = gentype.Client[*authorizationv1.SubjectAccessReview]

// NewReviews returns a client for SubjectAccessReviews, which return a user's permissions.
func NewReviews(config *rest.Config, userAgent string) (*Reviews, error) {
	client, err := newClient(config, userAgent, "/apis", authorizationv1.SchemeGroupVersion,
		kinds(authorizationv1.SchemeGroupVersion, &authorizationv1.SubjectAccessReview{}))
	if err != nil {
		return nil, err
	}
	return gentype.NewClient("subjectaccessreviews", client, metav1.ParameterCodec, metav1.NamespaceNone,
		func() *authorizationv1.SubjectAccessReview { return &authorizationv1.SubjectAccessReview{} }), nil
}

// List returns the teams that own their namespaces, in no particular order.
func (t *Teams) List() []*v1alpha1.Team {
	return slices.DeleteFunc(t.all(), func(team *v1alpha1.Team) bool { return t.Owner(team.Spec.Namespace) != team })
}
