// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

// maxBindings limits the role bindings that are read for a team's members.
const maxBindings = 500

// RoleBindings lists the role bindings in teams' namespaces.
type RoleBindings struct{ client rest.Interface }

// NewRoleBindings returns a RoleBindings with its own client.
func NewRoleBindings(config *rest.Config, userAgent string) (RoleBindings, error) {
	client, err := newClient(config, userAgent, "/apis", rbacv1.SchemeGroupVersion,
		kinds(rbacv1.SchemeGroupVersion, &rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{}))
	return RoleBindings{client}, err
}

// List returns up to maxBindings of a namespace's role bindings, and whether there are more.
func (b RoleBindings) List(ctx context.Context, namespace string) (bindings []rbacv1.RoleBinding, more bool, err error) {
	var list rbacv1.RoleBindingList
	err = b.client.Get().Namespace(namespace).Resource("rolebindings").
		VersionedParams(&metav1.ListOptions{Limit: maxBindings}, metav1.ParameterCodec).
		Do(ctx).Into(&list)
	if err != nil {
		return nil, false, fmt.Errorf("list the role bindings in the namespace %s: %w", namespace, err)
	}
	return list.Items, list.Continue != "", nil
}

// List returns the teams that own their namespaces, in no particular order.
func (t *Teams) List() []*v1alpha1.Team {
	return slices.DeleteFunc(t.all(), func(team *v1alpha1.Team) bool { return t.Owner(team.Spec.Namespace) != team })
}
