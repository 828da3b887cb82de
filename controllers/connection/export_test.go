// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import "sigs.k8s.io/controller-runtime/pkg/handler"

// Deletions returns the event handler for deleted Connections.
func (r *Reconciler) Deletions() handler.EventHandler { return r.recordDeleted() }
