// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package access

// What the apiserver may do for the web application, beside what it may for the REST API
// (apiserver/kube). An installation without the web application does not have these rights.
//
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
