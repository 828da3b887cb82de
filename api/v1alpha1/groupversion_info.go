// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 defines Herald's custom resources: Team, APIKey, Connection, Media, Post, PostSchedule, Notifier, Usage and OAuthGrant. It
// contains types, markers and constants only. posting/rules validates posts beyond the schema, and posting delivers them.
//
// +kubebuilder:object:generate=true
// +groupName=social.herald.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "social.herald.dev", Version: "v1alpha1"}

// AddToScheme registers this package's types with a scheme. It always returns nil.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Team{}, &TeamList{},
		&APIKey{}, &APIKeyList{},
		&Connection{}, &ConnectionList{},
		&Media{}, &MediaList{},
		&Post{}, &PostList{},
		&PostSchedule{}, &PostScheduleList{},
		&Notifier{}, &NotifierList{},
		&Usage{}, &UsageList{},
		&OAuthGrant{}, &OAuthGrantList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
