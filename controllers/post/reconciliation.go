// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/limits"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
)

type reconciliation struct {
	// View is a view of the working copy. stored is the status as last read or written.
	posting.View
	stored      v1alpha1.PostStatus
	key         types.NamespacedName
	now         time.Time
	log         logr.Logger
	state       *postState
	connections map[string]*v1alpha1.Connection
	media       map[string]*v1alpha1.Media
	limits      *limits.View
	// decide is delivery.Decide, or delivery.DecidePreparation if another process delivers posts.
	decide func(*delivery.Facts) []delivery.Action
	// tokens holds the tokens that were read, and credentials the errors for the others, both by connection.
	tokens      map[string]platforms.Token
	credentials map[string]error
	// unowned is set if no team owns the namespace. namespaceTerminating is set if the namespace is being deleted while
	// the post's last call has no outcome.
	unowned, namespaceTerminating bool
	converts                      bool
	suspended                     bool
	suspensions                   []v1alpha1.Suspension
	rollback                      delivery.Rollback
	hasUploadSecret               bool
	// wrote is set after a write to the post, whose watch event triggers the next reconciliation. calledPlatform is set
	// after a call to a platform or to the archive.
	wrote, calledPlatform bool
	// wait holds the time of the next reconciliation if nothing was written, and quotaRetryAt the time of the next attempt
	// to count plan usage, or zero if no count has failed. armAt is the time of the next attempt to arm the post, or zero.
	wait         delivery.Wait
	quotaRetryAt time.Time
	armAt        time.Time
	// claimAt is the time of the next attempt to claim the post if the cache lacked posts of its team, or zero.
	claimAt time.Time
	// reduced is set if the cache holds only part of the post.
	reduced bool
}

// newReconciliation returns the reconciliation of a post, with a working copy of it.
func newReconciliation(ctx context.Context, post *v1alpha1.Post, state *postState, now time.Time) *reconciliation {
	return &reconciliation{
		View: posting.Of(post.DeepCopy()), stored: post.Status, key: client.ObjectKeyFromObject(post), now: now, log: ctrl.LoggerFrom(ctx), state: state,
		tokens: map[string]platforms.Token{}, credentials: map[string]error{}, hasUploadSecret: prepare.HasUploadSecret(&post.Status),
	}
}

func (p *reconciliation) conn(target int) *v1alpha1.Connection {
	if target >= len(p.Post.Spec.Targets) {
		return nil
	}
	return p.connections[p.Post.Spec.Targets[target].ConnectionRef.Name]
}

func (p *reconciliation) markStored() {
	p.stored = *p.Post.Status.DeepCopy()
	p.wrote = true
}

func (p *reconciliation) isFinished() bool {
	if p.Post.DeletionTimestamp.IsZero() {
		return p.Post.Status.Finished
	}
	return !controllerutil.ContainsFinalizer(p.Post, v1alpha1.DeliveryFinalizer)
}

// requeueBy requeues the post at the given time or earlier. A zero time is ignored.
func (p *reconciliation) requeueBy(at time.Time) {
	if !at.IsZero() && (p.wait.Until.IsZero() || at.Before(p.wait.Until)) {
		p.wait.Until, p.wait.InTurn = at, false
	}
}
