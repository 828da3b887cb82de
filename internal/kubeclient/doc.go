// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeclient reads from the Kubernetes API: over many connections, in pages that are limited in bytes, and
// namespaces without a cache.
package kubeclient
