// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import "sigs.k8s.io/controller-runtime/pkg/handler"

// Deletions is what the watch of Connections tells of those that are deleted.
func (r *Reconciler) Deletions() handler.EventHandler { return r.recordDeleted() }
