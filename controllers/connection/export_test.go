// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Deletions returns the event handler for deleted Connections.
func (r *Reconciler) Deletions() handler.EventHandler { return r.collector.recordDeleted() }

// RevokeDue revokes the tokens that are due at a time.
func (r *Reconciler) RevokeDue(ctx context.Context, now time.Time) { r.revoker.revokeDue(ctx, now) }

// Sweep looks for working copies without a connection.
func (r *Reconciler) Sweep(ctx context.Context) error { return r.collector.sweep(ctx) }
