// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeclient reads from the Kubernetes API with little memory: over many connections, in pages limited by size
// in bytes, and through a cache of reduced objects.
package kubeclient
