// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package access

// The permissions that the apiserver needs for the web application, in addition to those for the REST API
// (apiserver/kube). An installation without the web application does not have them.
//
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=list
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections,verbs=create;patch;delete
// +kubebuilder:rbac:groups=social.herald.dev,resources=apikeys,verbs=create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
// +kubebuilder:rbac:groups=social.herald.dev,resources=oauthgrants,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=social.herald.dev,resources=oauthgrants/status,verbs=update;patch
