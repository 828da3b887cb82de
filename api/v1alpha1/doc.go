// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Herald's custom resources: Team, APIKey, Connection,
// Media and Post. It is types, markers and constants only; what a valid post is
// beyond the schema lives in posting/rules, what happens to it in posting.
//
// +kubebuilder:object:generate=true
// +groupName=social.herald.dev
package v1alpha1
